/* The address in what is pasted, and what lies between this browser and the service. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  // The server knows the Host header at best; behind a proxy that ends TLS the address bar knows better.
  const correct = () => {
    for (const tabs of document.querySelectorAll('[data-guess]')) {
      const { guess } = tabs.dataset
      if (guess !== location.origin)
        for (const code of tabs.querySelectorAll('pre code'))
          code.textContent = code.textContent.replaceAll(guess, location.origin)
      delete tabs.dataset.guess
    }
  }

  const MARKS = { good: '✓', wait: '…', bad: '✗' }
  const finding = (list) => {
    const line = list.appendChild(document.createElement('li'))
    return (tone, title, text) => {
      const [mark, words, strong] = ['span', 'span', 'b'].map((name) => document.createElement(name))
      mark.className = 'key-finding-mark'
      mark.ariaHidden = 'true'
      mark.textContent = MARKS[tone]
      strong.textContent = title
      words.append(strong, ` ${text}`)
      line.className = `key-finding tone-${tone}`
      line.replaceChildren(mark, words)
    }
  }

  /** The events of the stream with the time of their arrival, in ms. */
  async function* arrivals(id, signal) {
    const start = performance.now()
    const answer = await fetch(`/path-test/stream?id=${id}`, { signal, cache: 'no-store' })
    if (!answer.ok) throw new Error(answer.status)
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ; ) {
      const { value, done } = await reader.read()
      if (done) return
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop()
      for (const block of blocks) yield { ...JSON.parse(block.slice(6)), at: performance.now() - start }
    }
  }

  const QUICK_MS = 2000
  const PATIENCE_MS = 6000
  const FIX = {
    held: 'Switch response buffering off there (nginx: proxy_buffering off).',
    upgrade:
      'Pass it on (nginx: proxy_http_version 1.1, and the headers Upgrade and Connection); the Codex CLI uses HTTP meanwhile.',
    cut: 'Raise the time limit there (nginx: proxy_read_timeout).',
  }
  const seconds = (ms) => `${Math.round(ms / 1000)} s`

  const watchSocket = (id, say) => {
    let isKnown = false
    const tell = (tone, text) => {
      isKnown = true
      say(tone, 'WebSockets.', text)
    }
    const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/path-test/socket?id=${id}`)
    socket.onerror = () =>
      setTimeout(() => {
        if (!isKnown) tell('bad', `The handshake does not arrive: something before Sluice refuses it. ${FIX.upgrade}`)
      }, PATIENCE_MS)
    return (arrived) =>
      arrived
        ? tell('good', 'The handshake arrives with its Upgrade header.')
        : tell(
            'bad',
            `The handshake arrives without its Upgrade header: something before Sluice drops it. ${FIX.upgrade}`,
          )
  }

  let stop = () => {}
  const measure = async (list) => {
    stop()
    const controller = new AbortController()
    stop = () => controller.abort()
    list.replaceChildren()
    list.hidden = false
    const [streams, sockets, length] = [finding(list), finding(list), finding(list)]
    streams('wait', 'Streams.', 'Watching how they arrive …')
    sockets('wait', 'WebSockets.', 'Trying a handshake …')
    length('wait', 'Long connections.', 'Watching …')
    const id = crypto.getRandomValues(new Uint32Array(3)).join('-')
    const state = { first: null, isJudged: false, last: 0, isDone: false }
    const judge = (isHeld, text) => {
      state.isJudged = true
      streams(isHeld ? 'bad' : 'good', 'Streams.', text)
    }
    const patience = setTimeout(() => {
      if (!state.isJudged)
        judge(
          true,
          `Nothing arrived for ${seconds(PATIENCE_MS)}: something before Sluice holds streams back. ${FIX.held}`,
        )
    }, PATIENCE_MS)
    const start = performance.now()
    try {
      let heard = null
      for await (const event of arrivals(id, controller.signal)) {
        if ('upgrade' in event) {
          heard?.(event.upgrade)
          continue
        }
        heard ??= watchSocket(id, sockets)
        state.first ??= event
        state.last = event.at
        state.isDone = event.last
        if (!state.isJudged && event.atMs >= QUICK_MS) {
          const isHeld = event.at - state.first.at < QUICK_MS / 2
          judge(
            isHeld,
            isHeld
              ? `What was sent over ${seconds(QUICK_MS)} arrived at once: something before Sluice holds streams back. ${FIX.held}`
              : 'They arrive as they are sent.',
          )
        }
        if (event.atMs > QUICK_MS)
          length(
            event.last ? 'good' : 'wait',
            'Long connections.',
            event.last
              ? `Still open after ${seconds(event.at)}.`
              : `Open for ${seconds(event.at)} so far; you may leave.`,
          )
      }
      if (!state.isDone) throw new Error('cut')
    } catch {
      if (controller.signal.aborted) return
      if (state.first === null) judge(true, 'The test could not be reached through this address.')
      length(
        'bad',
        'Long connections.',
        `Cut after ${seconds(performance.now() - start)} by something before Sluice. ${FIX.cut}`,
      )
    } finally {
      clearTimeout(patience)
    }
  }

  on('click', ({ target }) => {
    const list = target.closest('[data-path-test]') && document.getElementById('path-test')
    if (list) measure(list)
  })
  on('htmx:after:swap', correct)
  on('DOMContentLoaded', correct)
  correct()
})()
