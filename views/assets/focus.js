/* Where the keyboard goes on after a change: the button that was pressed is switched off while it waits, and may be gone then. */
;(() => {
  const STOPS = 'a[href], button, input:not([type=hidden]), select, summary'
  const on = (event, run) => document.addEventListener(event, run)
  const stopsOf = (part) => [...part.querySelectorAll(STOPS)].filter((el) => el.checkVisibility())
  const present = () => document.querySelector('dialog[open]') ?? document.getElementById('main')
  const isOurs = ({ sourceElement }) => !sourceElement?.matches('[data-live-src]')

  let was = null
  const restore = ({ el, part, at }) => {
    if (document.activeElement !== document.body) return
    el.focus()
    if (document.activeElement === el) return
    // The same place of the page; of a dialog, which is another one by now, the beginning.
    const isSamePage = part === present() && part.id === 'main'
    const stops = stopsOf(present())
    const from = isSamePage ? Math.min(at, stops.length - 1) : 0
    const next = stops.slice(from).find((stop) => !stop.disabled)
    next?.focus()
  }
  on('htmx:config:request', ({ detail: { ctx } }) => {
    const { activeElement: el, body } = document
    if (!isOurs(ctx) || el === body) return
    const part = present()
    was = { el, part, at: stopsOf(part).indexOf(el) }
  })
  on('htmx:finally:request', ({ detail: { ctx } }) => {
    // An answer that leads elsewhere on the page is followed by the request for that.
    if (!was || !isOurs(ctx) || ctx.hx?.location) return
    const place = was
    was = null
    setTimeout(() => restore(place))
  })
  on('pointerdown', () => {
    was = null
  })
})()
