/* What only a browser can measure: whether streams and sockets pass what stands before the server, and how long they last. */
;(() => {
  const PATIENCE_MS = 6e3
  const TOGETHER_MS = 150
  const QUICK_MS = 2e3

  /** Text and time of each piece of a stream. Throws when it is refused or cut. */
  async function* arrivals(path, signal) {
    const answer = await fetch(path, { signal, cache: 'no-store' })
    if (!answer.ok) throw new Error(answer.status)
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read())
      yield { text: piece.value, at: performance.now() }
  }

  // Each ends with the name of its outcome; `show` says one meanwhile.
  const measures = {
    async stream(path) {
      const times = []
      for await (const { at } of arrivals(path, AbortSignal.timeout(PATIENCE_MS))) times.push(at)
      return times.at(-1) - times[0] > TOGETHER_MS ? 'ok' : 'bad'
    },
    socket: (path) =>
      new Promise((resolve) => {
        const ws = new WebSocket(location.origin.replace(/^http/, 'ws') + path)
        let outcome = 'failed'
        const end = () => {
          resolve(outcome)
          ws.close()
        }
        setTimeout(end, PATIENCE_MS)
        ws.onopen = () => {
          outcome = 'bad'
          ws.send('ping')
        }
        ws.onmessage = ({ data }) => {
          outcome = data === 'ping' ? 'ok' : 'bad'
          end()
        }
        ws.onclose = end
      }),
    async lasting(path, show) {
      const start = performance.now()
      let isWhole = false
      try {
        for await (const { text, at } of arrivals(path)) {
          isWhole = text.includes('end')
          if (at - start > QUICK_MS) show('open')
        }
      } catch (error) {
        if (performance.now() - start < QUICK_MS) throw error // it never was there
      }
      return isWhole ? 'ok' : 'bad'
    },
  }

  const running = new Set()
  const measure = async (row) => {
    if (running.has(row)) return
    running.add(row)
    const { measure: kind, path } = row.dataset
    const start = performance.now()
    const show = (outcome) => {
      for (const el of row.querySelectorAll('[data-outcome]')) el.hidden = el.dataset.outcome !== outcome
      for (const el of row.querySelectorAll('[data-after]'))
        el.textContent = `${Math.round((performance.now() - start) / 1e3)} s`
    }
    show('running')
    show(await measures[kind](path, show).catch(() => 'failed'))
    running.delete(row)
  }
  const measureIn = (list) => {
    list.hidden = false
    list.querySelectorAll('[data-measure]').forEach(measure)
  }
  document.addEventListener('click', ({ target }) => {
    const list = target.closest('[data-path-test]') && document.getElementById('path-test')
    if (list) measureIn(list)
  })
  document.querySelectorAll('[data-measure-now]').forEach(measureIn)
})()
