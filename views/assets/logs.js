/* The request log: the drawer, grouped repeats, zooming by dragging, the live tail. Pages work without it. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)
  const drawer = document.getElementById('drawer')

  if (!drawer) return

  const rows = document.getElementById('log-rows')
  const openId = () => new URL(location.href).searchParams.get('open')
  const mark = () => {
    for (const row of rows?.querySelectorAll('.is-open') ?? []) row.classList.remove('is-open')
    document.getElementById(`log-${openId()}`)?.classList.add('is-open')
  }
  // On a phone the drawer covers the page, so the page is inert until it closes.
  const narrow = matchMedia('(max-width: 639px)')
  const cover = () => {
    const isCovered = narrow.matches && drawer.hasChildNodes()
    for (const el of [...document.querySelectorAll('.skip, .top'), ...drawer.parentElement.children])
      el.inert = isCovered && el !== drawer
  }
  narrow.addEventListener('change', cover)
  cover()
  let last = `log-${openId()}`
  const shut = () => {
    drawer.replaceChildren()
    cover()
    mark()
    document.getElementById(last)?.querySelector('a')?.focus()
  }
  const show = async () => {
    const id = openId()
    if (!id) return shut()
    mark()
    last = `log-${id}`
    await window.htmx.ajax('GET', `/logs/${encodeURIComponent(id)}`, { target: '#drawer', swap: 'innerHTML' })
    // The user went back before the response arrived.
    if (!openId()) return shut()
    cover()
    drawer.querySelector('h2')?.focus()
  }
  const go = (href) => {
    history.pushState(null, '', href)
    void show()
  }
  const without = () => {
    const url = new URL(location.href)
    url.searchParams.delete('open')
    return url.pathname + url.search
  }
  addEventListener('popstate', show)
  on('click', (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return
    const repeats = event.target.closest('[data-repeats]')
    if (repeats) {
      event.preventDefault()
      for (const row of document.querySelectorAll(`[data-of="${repeats.closest('tr').id}"]`)) row.hidden = !row.hidden
      return
    }
    const shutter = event.target.closest('[data-drawer-close]')
    // A click anywhere in a row opens it, unless text is selected.
    const row = getSelection().isCollapsed ? event.target.closest('#log-rows tr') : null
    const link = event.target.closest('[data-drawer]') ?? row?.querySelector('[data-drawer]')
    if (!shutter && !link) return
    event.preventDefault()
    go(shutter ? without() : link.href)
  })
  on('keydown', (event) => {
    if (event.target.matches('input, select, textarea') || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'Escape' && drawer.hasChildNodes()) go(without())
    const step = { j: 'nextElementSibling', k: 'previousElementSibling' }[event.key]
    if (!step || !rows) return
    const here = document.activeElement.closest('tr') ?? document.getElementById(last)
    let row = here?.parentElement === rows ? here[step] : rows.firstElementChild
    while (row?.hidden) row = row[step]
    const link = row?.querySelector('[data-drawer]')
    link?.focus()
    if (link && drawer.hasChildNodes()) go(link.href)
  })

  // The same words as on the server, by the server's clock.
  const skew = Date.now() - Date.parse(document.querySelector('[data-now]').dataset.now)
  const ago = (at) => {
    const seconds = Math.max(0, Math.floor((Date.now() - skew - at) / 1e3))
    if (seconds < 60) return `${seconds} s ago`
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
    return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} d ago`
  }
  on('mouseover', ({ target }) => {
    const time = target.closest('time[data-ago]')
    if (time) time.title = time.title.replace(/^.* ·/, `${ago(Date.parse(time.dateTime))} ·`)
  })

  // Dragging over the histogram sets the time filter; a click sets it to one bar.
  let drag = null
  const shareAt = ({ clientX }, svg) => {
    const { left, width } = svg.getBoundingClientRect()
    return Math.min(Math.max((clientX - left) / width, 0), 0.9999)
  }
  const spanOf = ({ svg, from, to }) => {
    const bars = svg.viewBox.baseVal.width
    return [Math.min(from, to), Math.max(from, to)].map((share) => Math.floor(share * bars))
  }
  const draw = () => {
    const [first, last] = spanOf(drag)
    const zoom = drag.svg.querySelector('.histogram-zoom')
    zoom.setAttribute('x', first)
    zoom.setAttribute('width', last - first + 1)
  }
  on('pointerdown', (event) => {
    const svg = event.target.closest('#log-histogram svg')
    if (!svg || event.button) return
    event.preventDefault()
    svg.setPointerCapture(event.pointerId)
    const share = shareAt(event, svg)
    drag = { svg, from: share, to: share }
    draw()
  })
  on('pointermove', (event) => {
    if (!drag) return
    drag.to = shareAt(event, drag.svg)
    draw()
  })
  on('pointercancel', () => {
    drag?.svg.querySelector('.histogram-zoom').setAttribute('width', 0)
    drag = null
  })
  on('pointerup', () => {
    if (!drag) return
    const [first, last] = spanOf(drag)
    const { from, step } = drag.svg.closest('figure').dataset
    drag = null
    const timeOf = (bar) => `${new Date(Date.parse(from) + bar * step).toISOString().slice(0, 19)}Z`
    const url = new URL(location.href)
    for (const name of ['range', 'cursor', 'newer', 'open', 'live']) url.searchParams.delete(name)
    url.searchParams.set('since', timeOf(first))
    url.searchParams.set('until', timeOf(last + 1 - 1e3 / step))
    location.href = url.href
  })

  // Four times a second at most when the server sends changes, every six seconds when it does not.
  const MOST_ROWS = 200
  const toggle = document.querySelector('[data-tail]')
  const says = document.getElementById('tail-says')
  const resume = document.getElementById('tail-resume')
  if (!toggle || !rows) return
  let pausedBy = null
  let next = toggle.dataset.tail
  let askedAt = 0
  let isAsking = false
  let isDue = false

  const card = rows.closest('.card')
  const older = () => card.querySelector('.pager a[rel=next]')
  const insert = (row) => {
    const after = [...rows.children].find(({ dataset }) => dataset.at <= row.dataset.at)
    if (!after && older()) return // it belongs on an older page
    row.classList.add('is-new')
    rows.insertBefore(row, after ?? null)
  }
  // The next page starts after the last remaining row.
  const cut = () => {
    while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove()
    const { id, dataset } = rows.lastElementChild
    const place = btoa(`${Date.parse(dataset.at)}.${id.slice('log-'.length)}`)
    const url = new URL(location.href)
    url.searchParams.delete('open')
    url.searchParams.set('cursor', place.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''))
    const link =
      older() ?? Object.assign(document.createElement('a'), { className: 'button button-plain', rel: 'next' })
    const pager = link.closest('.pager') ?? Object.assign(document.createElement('nav'), { className: 'pager' })
    link.href = url.pathname + url.search
    link.textContent = 'Older'
    pager.replaceChildren(link)
    if (!pager.isConnected) card.append(pager)
  }
  const take = (html) => {
    const template = document.createElement('template')
    template.innerHTML = html
    const body = template.content.querySelector('tbody')
    if (!body) return
    next = body.dataset.next
    const fresh = [...body.children].filter(({ id }) => !document.getElementById(id))
    for (const row of fresh.reverse()) insert(row)
    if (rows.children.length > MOST_ROWS) cut()
    if (rows.children.length) document.getElementById('log-empty')?.remove()
    // New rows may already be counted on an older page. "More than" stays true.
    const count = card.querySelector('.count')
    if (fresh.length && !count.textContent.endsWith('+')) count.textContent = `${rows.children.length} on this page`
  }
  const ask = async () => {
    isDue = true
    if (isAsking || document.hidden || !toggle.checked || pausedBy || Date.now() - askedAt < 250) return
    isAsking = true
    isDue = false
    askedAt = Date.now()
    try {
      const answer = await fetch(next, { headers: { 'hx-request': 'true', accept: 'text/html' } })
      if (answer.ok) take(await answer.text())
      else if (answer.status < 500) stop(answer.status === 401 ? 'You are signed out.' : 'Live updates stopped.')
    } catch {} // no connection; the next interval tries again
    isAsking = false
  }
  const write = (words, isPaused) => {
    says.textContent = words
    resume.hidden = !isPaused
  }
  const stop = (why) => {
    toggle.checked = false
    pausedBy = null
    write(why, false)
  }
  const pause = (what) => {
    if (!toggle.checked || pausedBy) return
    pausedBy = what
    write(`Paused while you ${what}`, true)
  }
  const goOn = () => {
    pausedBy = null
    write('', false)
    askedAt = 0
    void ask()
  }
  document.body.addEventListener('live:logs', ask)
  setInterval(() => {
    if (isDue || Date.now() - askedAt >= 6e3) void ask()
  }, 250)
  // Keep `live` in the URL, and in the links and filters of the list.
  const keep = (href) => {
    const url = new URL(href, location.href)
    url.searchParams.delete('live')
    if (toggle.checked) url.searchParams.set('live', 'true')
    return url.pathname + url.search
  }
  toggle.addEventListener('change', () => {
    history.replaceState(history.state, '', keep(location.href))
    for (const link of document.querySelectorAll('.chips a, .clear-filters, #log-rows a, [data-drawer-close]'))
      link.setAttribute('href', keep(link.href))
    document.querySelector('[data-live-field]')?.remove()
    if (toggle.checked) {
      const field = { type: 'hidden', name: 'live', value: 'true' }
      const input = Object.assign(document.createElement('input'), field)
      input.dataset.liveField = ''
      document.getElementById('log-filters').append(input)
      scrollTo({ top: 0 })
    }
    goOn()
  })
  resume.addEventListener('click', () => {
    getSelection().removeAllRanges()
    scrollTo({ top: 0 })
    goOn()
  })
  // The list must not move while the user reads further down or selects text.
  const onScroll = () => {
    const isAbove = rows.getBoundingClientRect().top < 0
    if (isAbove) pause('scroll')
    else if (pausedBy === 'scroll') goOn()
  }
  addEventListener('scroll', onScroll, { passive: true })
  on('selectionchange', () => {
    const selection = getSelection()
    if (!selection.isCollapsed && selection.containsNode(rows, true)) pause('select')
  })
})()
