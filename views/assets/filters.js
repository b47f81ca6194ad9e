/* Forms that narrow a list. Pages work without it. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  on('change', ({ target }) => {
    // A named range replaces the one that was set by hand.
    if (target.name === 'range')
      for (const field of target.form.querySelectorAll('[name=since], [name=until]')) field.value = ''
    // A time changes with each digit that is typed; it has a button.
    if (target.type !== 'datetime-local') target.closest('form[data-auto]')?.requestSubmit()
  })
  // What is not filled in does not belong into the address.
  on('formdata', ({ target, formData }) => {
    if (target.method !== 'get') return
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name)
  })
  const zone = document.querySelector('[data-zone]')
  if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone
})()
