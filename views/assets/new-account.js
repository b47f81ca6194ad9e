/* Opens the pages that add an account as a dialog. On those pages the links are plain links. */
;(() => {
  const HERE = '/accounts/new'
  document.addEventListener('click', (event) => {
    const link = event.target.closest(`a[href^="${HERE}"]`)
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    if (!link || !isPlain || location.pathname.startsWith(HERE)) return
    event.preventDefault()
    const isInside = link.closest('#new-account')
    /* A sign-in that is still starting must not replace the tab opened now. */
    for (const form of isInside?.querySelectorAll('form') ?? []) window.htmx.trigger(form, 'htmx:abort')
    window.htmx.ajax('GET', link.getAttribute('href'), {
      target: isInside ? '#new-account' : '#dialog',
      swap: isInside ? 'outerHTML' : 'innerHTML',
      push: 'false',
    })
  })
})()
