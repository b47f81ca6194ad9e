/* Theme, relative times, copying, keyboard shortcuts. Pages work without it. */
;(() => {
  const root = document.documentElement
  const all = (selector) => document.querySelectorAll(selector)
  const find = (selector) => document.querySelector(selector)
  const on = (event, run) => document.addEventListener(event, run)
  const remember = (cookie) => {
    // biome-ignore lint/suspicious/noDocumentCookie: for the server
    document.cookie = `${cookie};path=/;max-age=3e7;samesite=lax`
  }

  // Pages show times in the browser's zone, or in the one chosen under My account. The first page does not know it yet.
  const zone = root.dataset.timeZone
  const isFirst = !document.cookie.includes('zone=')
  remember(`zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`)
  // After all scripts have loaded, because a reload would interrupt them.
  if (!zone && isFirst && find('time') && document.cookie.includes('zone='))
    on('DOMContentLoaded', () => location.reload())

  const pair = (a, unit, b, small) => `${a} ${unit}${b ? ` ${b} ${small}` : ''}`
  const span = (ms) => {
    const [s, m, h] = [1e3, 6e4, 36e5].map((unit) => Math.floor(ms / unit))
    if (m < 1) return `${s} s`
    if (h < 1) return `${m} min`
    return h < 24 ? pair(h, 'h', m % 60, 'min') : pair(Math.floor(h / 24), 'd', h % 24, 'h')
  }
  // The same format as `ClockTime` in views/ui/time.tsx.
  const TIME = {
    ...(root.dataset.hours === '12' ? { hour: 'numeric', hourCycle: 'h12' } : { hour: '2-digit', hourCycle: 'h23' }),
    minute: '2-digit',
    timeZone: zone || 'UTC',
  }
  const countdown = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1e3))
    return `${Math.floor(s / 60)}:${`${s % 60}`.padStart(2, '0')}`
  }
  const moment = (at) =>
    new Date(at)
      .toLocaleString('en', Math.abs(at - Date.now()) < 72e6 ? TIME : { ...TIME, weekday: 'short' })
      .replace(/ ([AP]M)/, (half) => half.toLowerCase())
  // Relative times use the server's clock.
  const skew = Date.now() - Date.parse(find('[data-now]')?.dataset.now) || 0
  const tick = () => {
    for (const el of all('time[data-live]')) {
      const { live } = el.dataset
      const ms = (Date.parse(el.dateTime) - Date.now() + skew) * (live === 'since' ? -1 : 1)
      if (live === 'clock') el.textContent = moment(Date.parse(el.dateTime))
      else if (live === 'countdown') el.textContent = countdown(ms)
      else el.textContent = ms < 1e3 ? 'now' : live === 'until' ? `in ${span(ms)}` : `${span(ms)} ago`
    }
  }

  // Browsers have no clipboard API on plain HTTP. Copying the selection still works there.
  const write = (text) =>
    navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
  const copySelected = (el) => {
    getSelection().selectAllChildren(el)
    const isDone = document.execCommand('copy')
    if (isDone) getSelection().removeAllRanges()
    return isDone
  }
  const actions = {
    theme() {
      const now = root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
      root.dataset.theme = now === 'dark' ? 'light' : 'dark'
      remember(`theme=${root.dataset.theme}`)
    },
    privacy(button) {
      remember(`privacy=${button.ariaPressed === 'true' ? 'off' : 'on'}`)
      location.reload()
    },
    async copy(button) {
      const el = button.previousElementSibling
      const isDone = (await write(el.textContent)) || copySelected(el)
      button.classList.toggle('is-done', isDone)
      if (isDone || button.nextElementSibling?.matches('.uncopied')) return
      const says = Object.assign(document.createElement('span'), { className: 'small uncopied', role: 'status' })
      button.after(says)
      says.textContent = 'Not copied. It is selected: copy it with Ctrl+C.'
    },
    'put-away'(button) {
      remember('checklist=off')
      button.closest('.card').remove()
    },
    shortcuts(button) {
      // Closes the menu and moves the focus to its button.
      button?.closest('details').querySelector('summary').focus()
      find('#shortcuts')?.showModal()
    },
  }
  on('click', ({ target }) => {
    const button = target.closest('[data-action]')
    actions[button?.dataset.action]?.(button)
  })

  // Close an open help text or menu when the focus leaves it.
  on('focusin', ({ target }) => {
    for (const open of all('.help-text:popover-open, .menu[open]')) {
      if (open.contains(target) || target.getAttribute('popovertarget') === open.id) continue
      if (open.matches('.menu')) open.open = false
      else open.hidePopover()
    }
  })

  // `g` and a letter within a second. Off while the user types or a dialog is open.
  let wentAt = 0
  on('keydown', (event) => {
    const { key, target } = event
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (target.matches('input, select, textarea, [contenteditable]')) {
      if (key === 'Escape') target.blur()
      return
    }
    if (find('dialog[open]')) return
    const isGoing = Date.now() - wentAt < 1e3
    wentAt = key === 'g' ? Date.now() : 0
    const search = key === '/' && find('input[type=search]')
    if (isGoing) find(`[data-go="${CSS.escape(key)}"]`)?.click()
    if (key === '?') actions.shortcuts()
    if (!search) return
    event.preventDefault()
    search.focus()
  })

  on('htmx:error', () => root.classList.add('is-offline'))
  // The form that was just saved. The page fetched next shows its values.
  let saved = null
  // Input typed after a form was sent was not saved with it. It is typed again into the new form.
  const late = new WeakSet()
  on('input', ({ target }) => late.add(target))
  on('htmx:config:request', ({ target }) => {
    for (const field of target.elements ?? []) late.delete(field)
  })
  const typing = (field) => {
    const { value, checked, selectionStart, selectionEnd } = field
    const picked = new Set([...(field.selectedOptions ?? [])].map((option) => option.value))
    return () => {
      if (field.options) for (const option of field.options) option.selected = picked.has(option.value)
      else Object.assign(field, { value, checked })
      if (field === document.activeElement && Number.isInteger(selectionStart))
        field.setSelectionRange(selectionStart, selectionEnd)
      field.dispatchEvent(new Event('input', { bubbles: true }))
    }
  }
  // Other parts of the page can be refreshed first.
  const isAfterSaving = ({ target }) => saved && target === find('#main')
  let typings = []
  on('htmx:before:swap', (event) => {
    // Keep a secret that is shown only once, even if the response to an earlier change arrives now.
    if (event.detail.ctx.target === find('#main') && find('#main [data-once]')) event.preventDefault()
  })
  on('htmx:before:swap', ({ detail }) => {
    if (!isAfterSaving(detail.ctx)) return
    typings = [...(saved.elements ?? [])].filter((field) => late.has(field) && field.type !== 'file').map(typing)
  })
  const retype = () => {
    // The form has unsaved input, so the page must not say that it was saved.
    if (typings.length) for (const el of all('#main .done')) el.remove()
    for (const type of typings) type()
  }
  // When another user changed the values of a form, keep what this user typed, with the version it is based on. Sending
  // it is then rejected as a conflict.
  const filled = (form) => {
    const fields = new FormData(form)
    fields.delete('expectedVersion')
    return `${new URLSearchParams(fields)}`
  }
  window.htmx.registerExtension('typed', {
    htmx_before_morph_node(form, { newNode }) {
      if (form === saved || !(form instanceof HTMLFormElement)) return true
      const untouched = form.cloneNode(true)
      untouched.reset()
      const was = filled(untouched)
      const [now, then] = [filled(form), filled(newNode)]
      // Nothing is lost if the page already shows what was typed: it was saved, and another form right after it.
      return now === was || then === was || now === then
    },
  })
  // The element whose error is shown above the page, until its next successful response.
  let complaining = null
  // Sluice's errors name their target and replace it completely. Other errors come from a proxy while the server is down.
  on('htmx:before:response', (event) => {
    const { ctx } = event.detail
    if (ctx.hx.location) saved = ctx.sourceElement
    if (ctx.response.raw.ok) {
      if (ctx.sourceElement === complaining) find('#flash').replaceChildren()
      return
    }
    if (ctx.hx.retarget === '#flash') complaining = ctx.sourceElement
    ctx.select = null
    if (ctx.hx.retarget || ctx.hx.redirect) return
    event.preventDefault()
    root.classList.add('is-offline')
  })
  // Immediate feedback: a thin bar while a page or a drawer loads, and a button that says what it does.
  const BUSY = {
    Add: 'Adding',
    Back: 'Backing',
    Change: 'Changing',
    Create: 'Creating',
    Delete: 'Deleting',
    Import: 'Importing',
    Invite: 'Inviting',
    Pause: 'Pausing',
    Remove: 'Removing',
    Resume: 'Resuming',
    Save: 'Saving',
    Set: 'Setting',
  }
  const waiting = new Map()
  on('htmx:before:request', ({ detail }) => {
    const { sourceElement: source } = detail.ctx
    // No feedback for automatic refreshes.
    if (source?.hasAttribute?.('data-live-src')) return
    root.classList.add('is-busy')
    const button = source?.matches?.('form') && source.querySelector('button[type=submit]')
    const [verb, ...rest] = button?.textContent?.trim().split(' ') ?? []
    if (!button || button.childElementCount || !BUSY[verb]) return
    waiting.set(source, { button, text: button.textContent })
    button.textContent = `${[BUSY[verb], ...rest].join(' ')}…`
  })
  on('htmx:finally:request', ({ detail }) => {
    root.classList.remove('is-busy')
    const { button, text } = waiting.get(detail.ctx.sourceElement) ?? {}
    waiting.delete(detail.ctx.sourceElement)
    if (button?.textContent.endsWith('…')) button.textContent = text
  })
  // A download leaves this page open, so the bar ends after a while.
  addEventListener('beforeunload', () => {
    root.classList.add('is-busy')
    setTimeout(() => root.classList.remove('is-busy'), 8e3)
  })
  addEventListener('pageshow', () => root.classList.remove('is-busy'))

  // The tab is red while Sluice is not serving, as rendered by the server. The footer reports changes.
  const icon = find('link[rel=icon]')
  const REDS = [
    ['%230e7f93', '%23d33a2c'],
    ['%237b8a92', '%23d33a2d'],
  ]
  const alarm = () => {
    const word = find('#foot')?.dataset.alarm
    const title = document.title.replace(/^● .*? · /, '')
    document.title = word ? `● ${word} · ${title}` : title
    icon.href = REDS.reduce((href, [calm, red]) => href.replaceAll(word ? calm : red, word ? red : calm), icon.href)
  }
  const tidy = () => {
    for (const el of all('.asked-first')) el.remove()
  }
  on('htmx:after:swap', ({ detail }) => {
    root.classList.remove('is-offline')
    if (isAfterSaving(detail.ctx)) {
      const isStillThere = saved.isConnected
      saved.reset?.()
      saved = null
      if (isStillThere) retype()
    }
    tidy()
    tick()
    alarm()
  })
  root.classList.add('scripted')
  tidy()
  alarm()
  tick()
  setInterval(tick, 1e3)
})()
