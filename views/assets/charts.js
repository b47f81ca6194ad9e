/* Charts: show the table row of the bar under the pointer, and open its link on a click. */
;(() => {
  let shown = -1
  const barAt = ({ target, clientX }) => {
    const svg = target.closest?.('.chart')
    const figure = svg?.closest('[data-chart]')
    if (!figure) return null
    const { left, width } = svg.getBoundingClientRect()
    const n = Math.floor(((clientX - left) / width) * Number(figure.dataset.chart))
    const { rows } = figure.querySelector('tbody')
    const { cells } = figure.querySelector('thead tr')
    return { figure, svg, n, heads: cells, row: rows[rows.length - 1 - n] }
  }
  const show = ({ figure, svg, n, heads, row }) => {
    const [head, ...values] = [...row.cells].map((cell) => cell.textContent.trim())
    const said = values
      .map((value, i) => [heads[i + 1].textContent, value])
      .filter(([, value], i) => i === values.length - 1 || !/^\$?0$/.test(value))
      .map((pair) => pair.join(' '))
    figure.querySelector('.chart-values').textContent = `${head} · ${said.join(' · ')}`
    svg.querySelector('.chart-cursor').setAttribute('x', n)
    svg.classList.add('is-pointed')
    svg.classList.toggle('is-link', !!row.querySelector('a'))
    shown = n
  }
  const hide = () => {
    shown = -1
    for (const svg of document.querySelectorAll('.chart.is-pointed')) {
      svg.classList.remove('is-pointed')
      svg.closest('[data-chart]').querySelector('.chart-values').textContent = ''
    }
  }
  document.addEventListener('pointermove', (event) => {
    const bar = barAt(event)
    if (bar?.row) show(bar)
    else if (shown >= 0) hide()
  })
  // The first tap shows the values. A second tap on the same bar opens the link.
  let last = -1
  document.addEventListener('pointerdown', () => {
    last = shown
  })
  document.addEventListener('click', (event) => {
    const bar = barAt(event)
    if (!bar?.row) return
    if (event.pointerType === 'touch' && last !== bar.n) show(bar)
    else bar.row.querySelector('a')?.click()
  })
})()
