/* The account list: filters that apply themselves, ticking all, and dialogs that shut after what they asked was done. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)
  const boxes = (name) => document.querySelectorAll(`input[type=checkbox][name="${name}"]`)

  on('change', ({ target }) => {
    if (target.dataset.selectAll) for (const box of boxes(target.dataset.selectAll)) box.checked = target.checked
    else target.closest('form[data-auto]')?.requestSubmit()
  })
  // Nothing chosen says nothing: it is left out of the address.
  on('submit', ({ target }) => {
    if (!target.matches('form[data-auto]')) return
    for (const field of target.elements) field.disabled = field.name !== '' && field.value === ''
  })
  on('keydown', (event) => {
    const field = document.querySelector('[data-search]')
    if (event.key !== '/' || !field || event.target.closest('input, textarea, select, dialog')) return
    event.preventDefault()
    field.focus()
  })
  on('htmx:before:response', ({ detail: { ctx } }) => {
    if (ctx.response.raw.ok) ctx.sourceElement.closest('main dialog[open]')?.close()
  })
  // A page that comes back from the cache has the fields that were left out.
  addEventListener('pageshow', () => {
    for (const field of document.querySelectorAll('form[data-auto] :disabled')) field.disabled = false
  })
})()
