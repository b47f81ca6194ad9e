/* Settings: switches for "unlimited", resetting a row to its default, and one bar for all unsaved changes of the page. */
;(() => {
  const bar = () => document.getElementById('unsaved')
  const forms = () => [...document.querySelectorAll('form.settings-form')]
  // The values from the server; `reset` restores them.
  const untouched = (form) => {
    const copy = form.cloneNode(true)
    copy.reset()
    for (const box of copy.querySelectorAll('[data-zero]')) zero(box)
    return new FormData(copy)
  }
  const changesOf = (form) => {
    const before = untouched(form)
    const now = new FormData(form)
    const names = new Set([...before.keys(), ...now.keys()])
    return [...names].filter((name) => `${before.getAll(name)}` !== `${now.getAll(name)}`).length
  }
  const zero = (box) => {
    box.closest('.setting-control').querySelector('[type=number]').disabled = box.checked
  }

  let isSaving = false
  const show = () => {
    const el = bar()
    if (!el) return
    const count = forms().reduce((sum, form) => sum + changesOf(form), 0)
    el.hidden = count === 0
    el.querySelector('.unsaved-count').textContent = `${count} unsaved ${count === 1 ? 'change' : 'changes'}`
    if (count === 0) isSaving = false
  }
  // Sections are saved one after another, because each has its own conflict check and errors.
  const saveNext = () => {
    const next = forms().find(changesOf)
    if (next && isSaving) next.requestSubmit()
  }
  const actions = {
    save() {
      isSaving = true
      saveNext()
    },
    discard() {
      for (const form of forms()) form.reset()
      for (const box of document.querySelectorAll('[data-zero]')) zero(box)
      show()
    },
    default(button) {
      const row = button.closest('.setting')
      const { value } = button.dataset
      for (const field of row.querySelectorAll('[name]:not([type=hidden], [data-zero])')) {
        if (field.type === 'checkbox') field.checked = value === 'true'
        else if (field.type === 'radio') field.checked = field.value === value
        else if (value !== '0' || !row.querySelector('[data-zero]')) field.value = value
      }
      const box = row.querySelector('[data-zero]')
      if (box) {
        box.checked = value === '0'
        zero(box)
      }
      button.form?.dispatchEvent(new Event('input', { bubbles: true }))
      show()
    },
  }
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-settings]')
    if (button) actions[button.dataset.settings](button)
  })
  document.addEventListener('input', ({ target }) => {
    if (target.matches('[data-zero]')) zero(target)
    if (target.closest('form.settings-form')) show()
  })
  document.addEventListener('htmx:after:swap', () => {
    show()
    // An error is shown in its form; the other forms wait until it is fixed.
    if (document.querySelector('.settings-form .problem-line, dialog[open]')) isSaving = false
    else if (isSaving) setTimeout(saveNext)
  })
  show()
})()
