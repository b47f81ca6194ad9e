/* Checks that only a browser can make: what reverse proxies in front of the server let through, and for how long. */
;(() => {
  const PATIENCE_MS = 6e3
  const APART_MS = 100
  /** A busy page can receive separate pieces together once. Behind a buffering proxy this happens every time. */
  const STREAMS = 3
  const QUICK_MS = 2e3
  const UPLOAD_MS = 3e4
  const UPLOAD_BYTES = 2 * 1024 * 1024

  /** Text and time of each piece of a stream. Throws when it is rejected or cut off. */
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

  /** A list of models or an error, with a request id of Sluice: other servers answer in the same format. */
  const isOurs = ({ headers }, said) =>
    headers.get('x-request-id')?.startsWith('req_') &&
    (Array.isArray(said?.data ?? said?.models) || typeof said?.error?.message === 'string')

  // Each resolves with the name of its outcome; `show` displays one while it runs.
  const measures = {
    async stream(path) {
      for (let nth = 0; nth < STREAMS; nth++) {
        const times = []
        for await (const { at } of arrivals(path, AbortSignal.timeout(PATIENCE_MS))) times.push(at)
        // Two of four pauses are enough, but one is not: a buffer flushed at intervals shows one.
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
      // Like a client without a key: a reverse proxy may let requests with a cookie pass that it blocks for clients.
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
        if (performance.now() - start < QUICK_MS) throw error // the stream never started
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
  /** Runs one check after another. Running checks continue. */
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
    if (list) void measureIn(list)
  })
  document.querySelectorAll('[data-measure-now]').forEach(measureIn)
})()
