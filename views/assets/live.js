/* Live updates: each visible tab has an event stream and refreshes its own parts. */
;(() => {
  const root = document.documentElement
  const SRC = '[data-live-src]'
  const stale = new Set()
  const busy = new Set()
  if (!document.querySelector(`${SRC}, [data-tail]`)) return

  // Parts the user is working in are not refreshed: unsent input, checked boxes, open dialogs, selected text, and badges
  // that show a change before its answer.
  const HELD =
    '[data-edited], [data-expected], dialog[open], [type=checkbox]:checked:not([checked]), [type=checkbox][checked]:not(:checked)'
  document.addEventListener('input', ({ target }) => {
    if (target.type !== 'checkbox') target.form?.setAttribute('data-edited', '')
  })
  // Keep input whose form was rejected.
  const sent = new Set()
  for (const end of ['submit', 'reset'])
    document.addEventListener(end, ({ type, target }) => {
      if (type === 'submit' && target.matches('[data-edited]')) sent.add(target)
      target.removeAttribute('data-edited')
    })
  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
    if (sent.delete(ctx.sourceElement) && !ctx.response?.raw?.ok) ctx.sourceElement.setAttribute('data-edited', '')
  })
  const isHeld = (el) => {
    const { activeElement } = document
    const selection = getSelection()
    return (
      (el.contains(activeElement) && activeElement.matches('input:not([type=checkbox]), select, textarea')) ||
      el.querySelector(HELD) ||
      (!selection.isCollapsed && selection.containsNode(el, true))
    )
  }
  const renew = async (el) => {
    stale.delete(el)
    busy.add(el)
    // A part with its own URL is the whole response. Other parts are picked from their page.
    const select = el.hasAttribute('data-live-pick') ? `#${el.id}` : undefined
    const how = { source: el, target: el, swap: 'outerMorph', push: 'false', select }
    await window.htmx.ajax('GET', el.dataset.liveSrc, how).finally(() => busy.delete(el))
  }
  const isTyped = () => sent.size > 0 || document.querySelector('[data-edited]') !== null
  // When the session has ended, keep unsent input. Without any, the response redirects to the sign-in page.
  document.addEventListener('htmx:before:response', (event) => {
    const { ctx } = event.detail
    if (!ctx.hx.redirect || !busy.has(ctx.sourceElement) || !isTyped()) return
    event.preventDefault()
    root.classList.remove('is-offline')
    root.classList.add('is-signed-out')
  })
  // A part that its page no longer has: the first item of a list was added, or the last one removed.
  let lost = null
  // The user may have started typing since the request was sent. Then the part waits, too.
  document.addEventListener('htmx:before:swap', (event) => {
    const { ctx, tasks } = event.detail
    const el = ctx.sourceElement
    if (!busy.has(el)) return
    const isLost = !tasks[0]?.fragment.hasChildNodes()
    if (!isLost && !isHeld(el)) return
    event.preventDefault()
    root.classList.remove('is-offline')
    if (isLost) lost = el
    else stale.add(el)
  })
  const settle = () => {
    if (document.hidden) return
    if (lost?.isConnected && !isHeld(document.body)) location.reload()
    for (const el of stale) {
      if (!el.isConnected) stale.delete(el)
      else if (!busy.has(el) && !isHeld(el)) void renew(el)
    }
  }
  const markStale = (topics) => {
    for (const el of document.querySelectorAll(SRC))
      if (!topics || el.dataset.live.split(' ').some((topic) => topics.includes(topic))) stale.add(el)
    for (const topic of topics ?? []) document.body.dispatchEvent(new CustomEvent(`live:${topic}`))
    settle()
  }

  // On pages without live parts, a request for the page shows whether the user is signed out or the server is down.
  const checkPage = async () => {
    const answer = await fetch(location.href, { headers: { 'hx-request': 'true', accept: 'text/html' } })
    if (answer.status >= 500) return
    const place = answer.headers.get('hx-redirect')
    root.classList.remove('is-offline')
    if (!place) return
    if (isTyped()) root.classList.add('is-signed-out')
    else location.href = place
  }

  // The last message this tab has received; at first the last one before the page was rendered.
  let seen = root.dataset.liveId
  // The session ended or its cookie changed. Requesting a part or the page shows which.
  const over = () => {
    markStale()
    if (!document.querySelector(SRC)) checkPage().catch(() => {}) // the server is down, and the page already says so
  }
  let source = null
  let heardAt = 0
  let retryAt = 0
  let openedAt = 0
  const poll = (isPolling) => root.classList.toggle('is-polling', isPolling)

  const drop = () => {
    source?.close()
    source = null
  }
  const listen = () => {
    drop()
    openedAt = heardAt = Date.now()
    source = new EventSource(`/api/events?since=${seen}`)
    const hear = (kind, run) =>
      source.addEventListener(kind, ({ data, lastEventId }) => {
        heardAt = Date.now()
        poll(false)
        root.classList.remove('is-offline', 'is-signed-out')
        run(data.split(' ').filter(Boolean), lastEventId)
      })
    const pass = (topics, id) => {
      markStale(topics)
      seen = id
    }
    hear('hello', pass)
    hear('changed', pass)
    hear('beat', () => {})
    hear('bye', () => {
      drop()
      retryAt = Date.now() + 1e3
      over()
    })
    source.onerror = () => {
      root.classList.add('is-offline')
      if (source.readyState !== 2) return
      drop()
      retryAt = Date.now() + 3e4
      poll(true)
      over()
    }
  }

  let ticks = 0
  const tick = () => {
    if (document.hidden) return
    const now = Date.now()
    settle()
    if (++ticks % 30 === 0 && root.matches('.is-polling')) markStale()
    if (!source) {
      if (now > retryAt) listen()
      return
    }
    if (heardAt === openedAt && now - openedAt > 5e3) poll(true)
    if (now - heardAt > 25e3 && heardAt !== openedAt) listen()
  }
  // Not immediately: the page may be left at once.
  const begin = () => {
    retryAt = 0
    setTimeout(tick, 500)
  }
  // A hidden tab has no stream: browsers allow few connections per host.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) drop()
    else {
      markStale()
      begin()
    }
  })
  // The next page may be signed out. If the page stays, as for a download, the stream is opened again.
  addEventListener('beforeunload', () => {
    drop()
    retryAt = Date.now() + 5e3
  })
  addEventListener('pagehide', drop)
  addEventListener('pageshow', ({ persisted }) => persisted && begin())
  setInterval(tick, 1e3)
  begin()
})()
