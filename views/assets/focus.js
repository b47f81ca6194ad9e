/* Restores the keyboard focus after a change: the pressed button is disabled while it waits, and may be gone afterwards. */
;(() => {
  const STOPS = 'a[href], button, input:not([type=hidden]), select, summary'
  const on = (event, run, isEarly) => document.addEventListener(event, run, isEarly)
  const stopsOf = (part) => [...part.querySelectorAll(STOPS)].filter((el) => el.checkVisibility())
  const present = () => document.querySelector('dialog[open]') ?? document.getElementById('main')
  const isOurs = ({ sourceElement }) => !sourceElement?.matches('[data-live-src]')

  // The focus when a request started, and when a request opened a dialog.
  let was = null
  let opener = null
  const isLost = ({ activeElement: el, body }) => el === body || !el.checkVisibility()
  const restore = ({ el, part, at }) => {
    if (!isLost(document) || (el.isConnected && el.disabled)) return
    el.focus()
    if (document.activeElement === el) return
    // The same position on the page. A dialog has other content by now, so its first element.
    const isSamePage = part === present() && part.id === 'main'
    const stops = stopsOf(present())
    const from = isSamePage ? Math.min(at, stops.length - 1) : 0
    stops
      .slice(from)
      .find((stop) => !stop.disabled)
      ?.focus()
  }
  on('htmx:config:request', ({ detail: { ctx } }) => {
    const { activeElement: el, body } = document
    if (!isOurs(ctx)) return
    if (el === body) {
      was ??= opener
      return
    }
    const part = present()
    was = { el, part, at: stopsOf(part).indexOf(el) }
  })
  on('htmx:finally:request', ({ detail: { ctx } }) => {
    // A response with a new location is followed by another request.
    if (!was || !isOurs(ctx) || ctx.hx?.location) return
    const place = was
    was = null
    if (place.part.id === 'main' && present() !== place.part) opener = place
    setTimeout(() => restore(place))
  })
  on(
    'close',
    () => {
      if (opener) restore(opener)
    },
    true,
  )
  on('pointerdown', () => {
    was = opener = null
  })
})()
