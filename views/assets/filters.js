/* Filter forms. Pages work without it. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  // On the filtered page, the focus returns to the field that was changed.
  const KEPT = 'filter-focus'
  document.querySelector(`form[data-auto] [name="${sessionStorage.getItem(KEPT)}"]`)?.focus()
  sessionStorage.removeItem(KEPT)
  let due = 0
  on('change', ({ target }) => {
    // A named range replaces times entered by hand.
    if (target.name === 'range')
      for (const field of target.form.querySelectorAll('[name=since], [name=until]')) field.value = ''
    // A time changes with each typed digit, so it is applied with the button.
    const form = target.closest('form[data-auto]')
    if (!form || target.type === 'datetime-local') return
    // Wait, because arrow keys step through other options first.
    clearTimeout(due)
    due = setTimeout(() => {
      sessionStorage.setItem(KEPT, target.name)
      form.requestSubmit()
    }, 250)
  })
  on('submit', () => clearTimeout(due))
  // Keep empty fields out of the URL.
  on('formdata', ({ target, formData }) => {
    if (target.method !== 'get') return
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name)
  })
})()
