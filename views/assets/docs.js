/* Searches the API page while the user types. Without script, the server searches and finds the same. */
;(() => {
  const input = document.querySelector('input[data-filter]')
  if (!input) return
  const list = document.getElementById(input.dataset.filter)
  const none = document.getElementById(`${input.dataset.filter}-none`)
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/)
    for (const operation of list.querySelectorAll('.docs-op')) {
      const text = operation.textContent.toLowerCase()
      operation.hidden = !words.every((word) => text.includes(word))
    }
    for (const group of list.querySelectorAll('.docs-group'))
      group.hidden = !group.querySelector('.docs-op:not([hidden])')
    none.hidden = list.querySelector('.docs-op:not([hidden])') !== null
  }
  input.addEventListener('input', filter)
})()
