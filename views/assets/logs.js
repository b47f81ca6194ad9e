/* The request log: one request beside the list, the live tail. Pages work without it. */
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
  // On a phone it lies over the page, which is out of reach until it is gone.
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
    // Somebody went back before it came.
    if (!openId()) return shut()
    cover()
    drawer.querySelector('h2')?.focus()
  }
  const go = (href) => {
    history.pushState(null, '', href)
    show()
  }
  const without = () => {
    const url = new URL(location.href)
    url.searchParams.delete('open')
    return url.pathname + url.search
  }
  addEventListener('popstate', show)
  on('click', (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return
    const shutter = event.target.closest('[data-drawer-close]')
    // A row is its link, but for whoever selects in it.
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
    const row = here?.parentElement === rows ? here[step] : rows.firstElementChild
    const link = row?.querySelector('[data-drawer]')
    link?.focus()
    if (link && drawer.hasChildNodes()) go(link.href)
  })

  // Four times a second at most when the server tells, every six seconds when it does not: it tells every five at least.
  const MOST_ROWS = 200
  const toggle = document.querySelector('[data-tail]')
  const says = document.getElementById('tail-says')
  if (!toggle || !rows) return
  let next = toggle.dataset.tail
  let askedAt = 0
  let isAsking = false
  let isDue = false

  const card = rows.closest('.card')
  const older = () => card.querySelector('.pager a[rel=next]')
  const insert = (row) => {
    const after = [...rows.children].find(({ dataset }) => dataset.at <= row.dataset.at)
    if (!after && older()) return // its place is on an older page
    row.classList.add('is-new')
    rows.insertBefore(row, after ?? null)
  }
  // What follows the list is what follows the last row that is left.
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
    // What comes in may have been counted already, on an older page; that there are more than so many stays true.
    const count = card.querySelector('.count')
    if (fresh.length && !count.textContent.endsWith('+')) count.textContent = `${rows.children.length} on this page`
  }
  const ask = async () => {
    isDue = true
    if (isAsking || document.hidden || !toggle.checked || Date.now() - askedAt < 250) return
    isAsking = true
    isDue = false
    askedAt = Date.now()
    try {
      const answer = await fetch(next, { headers: { 'hx-request': 'true', accept: 'text/html' } })
      if (answer.ok) take(await answer.text())
      else if (answer.status < 500) stop(answer.status === 401 ? 'You are signed out.' : 'The live view stopped.')
    } catch {} // the server is away, as with a 502; asked again with the next beat
    isAsking = false
  }
  const stop = (why) => {
    if (!toggle.checked) return
    toggle.checked = false
    says.textContent = why
  }
  document.body.addEventListener('live:logs', ask)
  setInterval(() => {
    if (isDue || Date.now() - askedAt >= 6e3) ask()
  }, 250)
  toggle.addEventListener('change', () => {
    says.textContent = toggle.checked ? 'New requests appear by themselves.' : ''
    if (!toggle.checked) return
    askedAt = 0
    scrollTo({ top: 0 })
    ask()
  })
  // Whoever reads must not have the list move under the eyes.
  addEventListener('scroll', () => scrollY > 160 && stop('Live is off while you scroll.'), { passive: true })
  on('selectionchange', () => {
    const selection = getSelection()
    if (!selection.isCollapsed && selection.containsNode(rows, true)) stop('Live is off while you select.')
  })
})()
