/* The account list: ticking all, and dialogs that shut after what they asked was done. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  on('change', ({ target: { dataset, checked } }) => {
    if (!dataset.selectAll) return
    for (const box of document.querySelectorAll(`[type=checkbox][name="${dataset.selectAll}"]`)) box.checked = checked
  })
  on('htmx:before:response', ({ detail: { ctx } }) => {
    if (!ctx.response.raw.ok) return
    ctx.sourceElement.closest('main dialog[open]')?.close()
    /* Ticks stay with their accounts; "all" would stand above accounts that came in meanwhile. */
    if (ctx.sourceElement.form?.id !== 'form-bulk') return
    for (const all of document.querySelectorAll('[data-select-all]')) all.checked = false
  })
})()
