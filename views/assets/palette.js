/* The command palette: Ctrl+K or ⌘K, arrow keys and Enter. */
;(() => {
  if (!document.querySelector('[data-action=palette]')) return
  // Created here, so that pages stay small.
  const palette = Object.assign(document.createElement('dialog'), { id: 'palette', className: 'dialog palette' })
  palette.ariaLabel = 'Search Sluice'
  palette.innerHTML = `<form method="get" action="/search">
    <input type="search" name="q" maxlength="200" aria-label="Search Sluice" autocomplete="off"
      placeholder="Accounts, keys, users, settings, a request id…" hx-get="/search"
      hx-trigger="input changed delay:120ms, palette" hx-target="#palette-results" hx-swap="innerHTML">
  </form><div id="palette-results" class="palette-results" aria-live="polite"></div>`
  document.body.append(palette)
  window.htmx.process(palette)
  const field = palette.querySelector('input')
  const hits = () => [...palette.querySelectorAll('.palette-hit')]

  const open = () => {
    if (palette.open || document.querySelector('dialog[open]')) return
    palette.showModal()
    field.select()
    field.dispatchEvent(new CustomEvent('palette'))
  }
  document.addEventListener('click', ({ target }) => {
    if (target.closest('[data-action=palette]')) open()
    if (target === palette) palette.close()
    // A link to a place on this page does not load another one.
    if (target.closest('#palette .palette-hit')) palette.close()
  })
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
      event.preventDefault()
      open()
    }
  })
  palette.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter' && event.target === field) {
      event.preventDefault()
      hits()[0]?.click()
    }
    if (!step) return
    event.preventDefault()
    const all = [field, ...hits()]
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus()
  })
})()
