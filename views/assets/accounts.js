/* The account list: ticking all, and dialogs and ticks that go once what they asked was done. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  on('change', ({ target: { dataset, checked } }) => {
    if (!dataset.selectAll) return
    for (const box of document.querySelectorAll(`[type=checkbox][name="${dataset.selectAll}"]`)) box.checked = checked
  })
  on('htmx:before:response', ({ detail: { ctx } }) => {
    const { form } = ctx.sourceElement
    if (!ctx.response.raw.ok) return
    ctx.sourceElement.closest('main dialog[open]')?.close()
    if (form?.id === 'form-bulk') untick()
  })
  /* The list that comes back takes these boxes over, and their ticks would stand beside accounts nobody chose. */
  const untick = () => {
    for (const box of document.querySelectorAll('[name=accountIds], [data-select-all]')) box.checked = false
  }
})()
