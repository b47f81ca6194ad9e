/* What only a browser can measure: what passes whatever stands before the server, and how long it lasts. */
;(() => {
  const PATIENCE_MS = 6e3
  const APART_MS = 100
  /** A page that was busy finds together what came apart, but not each time; behind a buffer it does each time. */
  const STREAMS = 3
  const QUICK_MS = 2e3
  const UPLOAD_MS = 3e4
  const UPLOAD_BYTES = 2 * 1024 * 1024

  /** Text and time of each piece of a stream. Throws when it is refused or cut. */
  async function* arrivals(path, signal) {
    const answer = await fetch(path, { signal, cache: 'no-store' })
    if (!answer.ok) throw new Error(answer.status)
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read())
      yield { text: piece.value, at: performance.now() }
  }

  const send = (path, bytes, ms) =>
    fetch(path, {
      method: 'POST',
      body: new Uint8Array(bytes),
      headers: { 'content-type': 'application/octet-stream', x_sluice_probe: '1' },
      signal: AbortSignal.timeout(ms),
    })

  /** A list of models or an error, with an id as this service gives them: other services speak alike. */
  const isOurs = ({ headers }, said) =>
    headers.get('x-request-id')?.startsWith('req_') &&
    (Array.isArray(said?.data ?? said?.models) || typeof said?.error?.message === 'string')

  // Each ends with the name of its outcome; `show` says one meanwhile.
  const measures = {
    async stream(path) {
      for (let nth = 0; nth < STREAMS; nth++) {
        const times = []
        for await (const { at } of arrivals(path, AbortSignal.timeout(PATIENCE_MS))) times.push(at)
        // Two pauses of the four: a buffer that is emptied now and then lets one be seen.
        if (times.filter((at, n) => at - times[n - 1] > APART_MS).length >= 2) return 'ok'
      }
      return 'bad'
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
    async upload(path) {
      const answer = await send(path, UPLOAD_BYTES, UPLOAD_MS).catch((error) => error)
      if (answer instanceof Error) return answer.name === 'TimeoutError' ? 'slow' : 'broken'
      if (answer.status === 413) return 'bad'
      if (!answer.ok) return 'failed'
      return (await answer.json()).bytes === UPLOAD_BYTES ? 'ok' : 'broken'
    },
    async headers(path) {
      const answer = await send(path, 1, PATIENCE_MS)
      if (!answer.ok) return 'failed'
      return (await answer.json()).underscore ? 'ok' : 'bad'
    },
    async path(path) {
      // As a client without a key: a cookie would open doors of the proxy that are shut for clients.
      const answer = await fetch(path, {
        credentials: 'omit',
        headers: { 'x-sluice-probe': '1' },
        redirect: 'manual',
        cache: 'no-store',
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      return isOurs(answer, await answer.json().catch(() => null)) ? 'ok' : 'bad'
    },
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
  const showIn = (row, outcome) => {
    for (const el of row.querySelectorAll('[data-outcome]')) el.hidden = el.dataset.outcome !== outcome
  }
  const measure = async (row) => {
    const { measure: kind, path } = row.dataset
    const start = performance.now()
    const show = (outcome) => {
      showIn(row, outcome)
      for (const el of row.querySelectorAll('[data-after]'))
        el.textContent = `${Math.round((performance.now() - start) / 1e3)} s`
    }
    show(await measures[kind](path, show).catch(() => 'failed'))
    running.delete(row)
  }
  /** One after the other; what is being measured already goes on. */
  const measureIn = async (list) => {
    const { src } = list.dataset
    if (src) {
      delete list.dataset.src
      const answer = await fetch(src, { headers: { 'hx-request': 'true' } }).catch(() => null)
      if (!answer?.ok) {
        list.dataset.src = src // for the next click
        return
      }
      list.innerHTML = await answer.text()
    }
    list.hidden = false
    const rows = [...list.querySelectorAll('[data-measure]')].filter((row) => !running.has(row))
    for (const row of rows) {
      running.add(row)
      showIn(row, 'running')
    }
    for (const row of rows) await measure(row)
  }
  document.addEventListener('click', ({ target }) => {
    const list = target.closest('[data-path-test]') && document.getElementById('path-test')
    if (list) measureIn(list)
  })
  document.querySelectorAll('[data-measure-now]').forEach(measureIn)
})()
