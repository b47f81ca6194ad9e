/* A badge changes as soon as its button is pressed. If the change fails, it changes back and the page says so. */
;(() => {
  const on = (event, run) => document.addEventListener(event, run)
  /** Form or button → its badges before the change. */
  const before = new Map()

  on('htmx:before:request', ({ detail: { ctx } }) => {
    const { expects, expectsTone, expectsAt } = ctx.sourceElement?.dataset ?? {}
    if (!expects) return
    const badges = [...document.querySelectorAll(expectsAt)]
    before.set(
      ctx.sourceElement,
      badges.map((badge) => ({ badge, tone: badge.className, text: badge.lastChild.data })),
    )
    for (const badge of badges) {
      badge.className = `badge tone-${expectsTone}`
      badge.lastChild.data = expects
      badge.dataset.expected = '' // live updates wait for the answer, because they still show the old state
    }
  })
  on('htmx:finally:request', ({ detail: { ctx } }) => {
    const changed = before.get(ctx.sourceElement)
    if (!changed) return
    before.delete(ctx.sourceElement)
    for (const { badge } of changed) delete badge.dataset.expected
    if (ctx.response?.raw?.ok) return
    for (const { badge, tone, text } of changed) {
      badge.className = tone
      badge.lastChild.data = text
    }
    // Sluice's errors have their own message.
    if (ctx.hx?.retarget) return
    const alert = Object.assign(document.createElement('p'), {
      className: 'alert',
      textContent: 'Sluice didn’t answer, so nothing was changed. Try again.',
    })
    document.querySelector('#flash').replaceChildren(alert)
  })
})()
