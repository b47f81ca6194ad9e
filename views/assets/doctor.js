/* The doctor's page measures what only a browser can: whether events and sockets pass whatever stands before the server. */
;(() => {
  const PATIENCE_MS = 6e3
  const TOGETHER_MS = 150

  const measures = {
    async stream(path) {
      const response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) })
      if (!response.ok) return 'failed'
      const arrivals = []
      for (const reader = response.body.getReader(); ; ) {
        const { done } = await reader.read()
        if (done) break
        arrivals.push(performance.now())
      }
      return arrivals.length > 1 && arrivals.at(-1) - arrivals[0] > TOGETHER_MS ? 'ok' : 'bad'
    },
    socket: (path) =>
      new Promise((resolve) => {
        const ws = new WebSocket(path.replace(/^/, location.origin.replace(/^http/, 'ws')))
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
  }

  const measure = async (row) => {
    const { measure: kind, path } = row.dataset
    delete row.dataset.measure // once, however often the page is swapped
    const outcome = await measures[kind](path).catch(() => 'failed')
    for (const el of row.querySelectorAll('[data-outcome]')) el.hidden = el.dataset.outcome !== outcome
  }
  const measureAll = () => document.querySelectorAll('[data-measure]').forEach(measure)
  document.addEventListener('htmx:after:swap', measureAll)
  measureAll()
})()
