/* Dialogs, confirming a change and sending it again, passkeys, passwords, menus. Signing in, joining and confirming by password work without it. */
;(() => {
  const root = document.documentElement
  const dialog = document.getElementById('dialog')
  const on = (event, run) => document.addEventListener(event, run)
  const go = (path) => {
    location.href = path
  }

  // The request that needs a confirmation first; it is sent again afterwards.
  let replay = null
  let replayed = null
  // Wait for the dialog's close event, which empties it: a fast response could fill it before that.
  const confirmed = () => {
    const again = replay
    dialog.addEventListener('close', () => again?.(), { once: true })
    dialog.close()
  }

  const call = async (path, body = {}) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(`/api/dashboard-auth/passkeys/${path}`, init)
    const value = await answer.json()
    if (!answer.ok) throw Object.assign(new Error(value.error.message), value.error)
    return value
  }
  const assertion = async (purpose) => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await call(`${purpose}/start`))
    const credential = await navigator.credentials.get({ publicKey })
    await call(`${purpose}/finish`, { response: credential.toJSON() })
  }
  const registration = async (name) => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await call('register/start'))
    const credential = await navigator.credentials.create({ publicKey })
    await call('register/finish', { name, response: credential.toJSON() })
  }
  const WORDS = {
    NotAllowedError: 'The passkey was not used. Try again.',
    InvalidStateError: 'This device already has a passkey for Sluice.',
    SecurityError: 'Passkeys do not work at this address.',
  }
  const say = (place, text) => {
    const line = document.createElement('p')
    line.className = 'problem-line'
    line.textContent = text
    place.replaceChildren(line)
  }
  /** `el` is a form, or a button next to the element that shows problems. */
  const withPasskey = async (el, work, then) => {
    const place = (el.closest('form') ?? el.parentElement).querySelector('.form-problem')
    place.replaceChildren()
    try {
      await work()
      then()
    } catch (error) {
      if (error.code === 'step_up_required') {
        replay = () => withPasskey(el, work, then)
        window.htmx.ajax('GET', '/confirm', { target: '#dialog', swap: 'innerHTML', push: 'false' })
      } else say(place, WORDS[error.name] ?? error.message)
    }
  }

  const setShown = (input, isShown) => {
    const button = input.closest('.password-field').querySelector('[data-action]')
    input.type = isShown ? 'text' : 'password'
    button.title = button.querySelector('.sr').textContent = isShown ? 'Hide password' : 'Show password'
  }
  const actions = {
    close(el, event) {
      if (!dialog.contains(el)) return
      event.preventDefault()
      dialog.close()
    },
    'show-password'(el) {
      const input = el.previousElementSibling.querySelector('input')
      setShown(input, input.type === 'password')
      input.focus()
    },
    'sign-in-passkey'(el) {
      void withPasskey(
        el,
        () => assertion('sign-in'),
        () => go(el.dataset.then),
      )
    },
    'confirm-passkey'(el) {
      void withPasskey(
        el,
        () => assertion('step-up'),
        () => (dialog.contains(el) ? confirmed() : go(el.dataset.then)),
      )
    },
  }
  // The strength hint below a new password counts different characters and their kinds. A sentence counts as strong.
  const hints = new WeakMap()
  const strengthOf = (text) => {
    const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^a-zA-Z\d]/].filter((kind) => kind.test(text)).length
    const score = new Set(text).size * 2 + text.length + kinds * 2
    return text.length < 8 || /^(passwor[dt]|qwert|12345|letmein|admin)/i.test(text) || score < 28
      ? 0
      : score < 42
        ? 1
        : 2
  }
  on('input', ({ target }) => {
    const hint = target.closest('.password-field')?.querySelector('[data-strength]')
    if (!hint) return
    if (!hints.has(hint)) hints.set(hint, hint.textContent)
    hint.textContent = target.value ? hint.dataset.strength.split('|')[strengthOf(target.value)] : hints.get(hint)
  })
  const shutMenus = (except) => {
    for (const menu of document.querySelectorAll('details.menu[open]'))
      if (!except || !menu.contains(except)) menu.open = false
  }
  on('click', (event) => {
    const el = event.target.closest('[data-action]')
    actions[el?.dataset.action]?.(el, event)
    shutMenus(event.target)
  })
  on('focusin', ({ target }) => shutMenus(target))
  on('keydown', ({ key, target }) => {
    if (key !== 'Escape') return
    target.closest('details.menu[open]')?.querySelector('summary').focus()
    shutMenus()
  })
  on('submit', (event) => {
    const form = event.target
    // Back to a password field before sending: browsers remember values of text fields.
    for (const input of form.querySelectorAll('.password-field input')) setShown(input, false)
    if (!form.matches('[data-passkey]')) return
    event.preventDefault()
    void withPasskey(
      form,
      () => registration(form.elements.name.value),
      () => go(form.dataset.then),
    )
  })
  // Empty the closed dialog, unless it was filled and opened again. The page behind it may be out of date.
  dialog.addEventListener('close', () => {
    if (dialog.open) return
    replay = null
    const isStale = dialog.querySelector('[data-reload]')
    dialog.replaceChildren()
    if (isStale) location.reload()
  })

  // The line at the top of the page goes with the next message of the server, so the form says it, too.
  const unanswered = (form) => {
    const place = form?.matches?.('form:not([data-expects])') && form.querySelector('.form-problem')
    if (place) say(place, 'Sluice didn’t answer. Try again.')
  }
  on('htmx:error', ({ detail }) => unanswered(detail.ctx?.sourceElement))
  // Remove the result of the previous attempt.
  on('htmx:before:request', ({ target }) => {
    target.querySelector('.form-problem')?.replaceChildren()
    document.querySelector(`[data-result-of="${target.id}"]`)?.replaceChildren()
  })
  on('htmx:before:response', (event) => {
    const { ctx } = event.detail
    const form = ctx.sourceElement
    if (!ctx.response.raw.ok && !ctx.hx.retarget && !ctx.hx.redirect) unanswered(form) // from a proxy
    if (ctx.response.status === 403 && ctx.hx.retarget === '#dialog')
      replay = () => {
        replayed = form
        form.requestSubmit()
      }
    else if (ctx.response.raw.ok && /^form-confirm/.test(form.id) && dialog.contains(form)) {
      event.preventDefault()
      confirmed()
    }
  })
  // Do not ask for the same confirmation twice.
  on('htmx:confirm', (event) => {
    if (event.detail.ctx.sourceElement !== replayed) return
    replayed = null
    event.preventDefault()
    event.detail.issueRequest()
  })
  // The closing dialog still has content, and swaps can also be in other parts of the page.
  on('htmx:after:swap', ({ detail: { ctx } }) => {
    if (!dialog.hasChildNodes()) return
    dialog.ariaLabel = dialog.querySelector('h1, h2').textContent
    if (!dialog.open && (ctx.target === dialog || ctx.target === '#dialog')) dialog.showModal()
  })
  if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) root.classList.add('has-passkeys')
})()
