/* Forms that narrow a list. Pages work without it. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)

  on('change', ({ target }) => {
    target.closest('form[data-auto]')?.requestSubmit()
    // A range by name instead of the one that was set by hand.
    if (target.name === 'range' && target.value)
      for (const field of target.form.querySelectorAll('[name=since], [name=until]')) field.value = ''
  })
  // What is not filled in does not belong into the address.
  on('formdata', ({ target, formData }) => {
    if (target.method !== 'get') return
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name)
  })
  const zone = document.querySelector('[data-zone]')
  if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone
})()
