/* Forms that narrow a list. Pages work without it. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  // The page that comes with the filter applied goes on where the keyboard was.
  const KEPT = 'filter-focus'
  document.querySelector(`form[data-auto] [name="${sessionStorage.getItem(KEPT)}"]`)?.focus()
  sessionStorage.removeItem(KEPT)
  let due = 0
  on('change', ({ target }) => {
    // A named range replaces the one that was set by hand.
    if (target.name === 'range')
      for (const field of target.form.querySelectorAll('[name=since], [name=until]')) field.value = ''
    // A time changes with each digit that is typed; it has a button.
    const form = target.closest('form[data-auto]')
    if (!form || target.type === 'datetime-local') return
    // Arrow keys pass by the choices before the wanted one.
    clearTimeout(due)
    due = setTimeout(() => {
      sessionStorage.setItem(KEPT, target.name)
      form.requestSubmit()
    }, 250)
  })
  on('submit', () => clearTimeout(due))
  // What is not filled in does not belong into the address.
  on('formdata', ({ target, formData }) => {
    if (target.method !== 'get') return
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name)
  })
})()
