/* Theme, living times, copying. Pages work without it. */
;(() => {
  const root = document.documentElement
  const all = (selector) => document.querySelectorAll(selector)
  const on = (event, run) => document.addEventListener(event, run)

  const pair = (a, unit, b, small) => `${a} ${unit}${b ? ` ${b} ${small}` : ''}`
  const span = (ms) => {
    const [s, m, h] = [1e3, 6e4, 36e5].map((unit) => Math.floor(ms / unit))
    if (m < 1) return `${s} s`
    if (h < 1) return `${m} m`
    return h < 24 ? pair(h, 'h', m % 60, 'm') : pair(Math.floor(h / 24), 'd', h % 24, 'h')
  }
  // The server's clock counts.
  const skew = Date.now() - Date.parse(document.querySelector('[data-now]')?.dataset.now) || 0
  const tick = () => {
    for (const el of all('time[data-live]')) {
      const until = el.dataset.live === 'until'
      const ms = (Date.parse(el.dateTime) - Date.now() + skew) * (until ? 1 : -1)
      el.textContent = ms < 1e3 ? 'now' : until ? `in ${span(ms)}` : `${span(ms)} ago`
    }
  }

  const actions = {
    theme() {
      const now = root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
      root.dataset.theme = now === 'dark' ? 'light' : 'dark'
      // biome-ignore lint/suspicious/noDocumentCookie: for the server
      document.cookie = `theme=${root.dataset.theme};path=/;max-age=3e7;samesite=lax`
    },
    copy(button) {
      const { textContent } = button.previousElementSibling
      navigator.clipboard.writeText(textContent).then(() => button.classList.add('is-done'))
    },
  }
  on('click', ({ target }) => {
    const button = target.closest('[data-action]')
    actions[button?.dataset.action]?.(button)
  })
  on('htmx:before:request', (event) => {
    if (document.hidden && event.target.matches('[data-poll]')) event.preventDefault()
  })
  on('htmx:error', () => root.classList.add('is-offline'))
  on('htmx:after:swap', () => {
    root.classList.remove('is-offline')
    tick()
  })
  root.classList.add('scripted')
  setInterval(tick, 1e3)
})()
