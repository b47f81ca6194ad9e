/* The account list: select all, and close dialogs after their action succeeded. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  on('change', ({ target: { dataset, checked } }) => {
    if (!dataset.selectAll) return
    for (const box of document.querySelectorAll(`[type=checkbox][name="${dataset.selectAll}"]`)) box.checked = checked
  })
  on('htmx:before:response', ({ detail: { ctx } }) => {
    if (!ctx.response.raw.ok) return
    ctx.sourceElement.closest('main dialog[open]')?.close()
    /* Selected accounts stay selected. "Select all" is cleared, because the list can have new accounts by now. */
    if (ctx.sourceElement.form?.id !== 'form-bulk') return
    for (const all of document.querySelectorAll('[data-select-all]')) all.checked = false
  })
})()
