/**
 * Stacked bars over time with axes, drawn on the server. The table below has the same values; the script shows the row
 * of the bar under the pointer, and opens its link on a click.
 */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { type BarLayer, StackedBars } from './stacked-bars.tsx'
import { units } from './svg.ts'
import { AsTable } from './table.tsx'

export interface Layer extends BarLayer {
  name: string
  href?: string
}

interface ChartProps {
  /** A sentence describing the chart. */
  label: string
  /** From bottom to top. */
  layers: readonly Layer[]
  /** Drawn above the bars; null is a gap. */
  line?: { name: string; values: readonly (number | null)[] } | null
  /** Number of bars the axis shows. */
  cells: number
  /** `place`: 0 to 1. */
  ticks: readonly { place: number; label: string }[]
  /** The label of a grid line. */
  scale: (value: number) => string
}

const PLOT_HEIGHT = 150
const HEIGHT = 172

/** The children are the table's rows, newest first, one per bar. */
export const Chart: FC<PropsWithChildren<ChartProps>> = ({ label, layers, line, cells, ticks, scale, children }) => {
  const totals = Array.from({ length: cells }, (_, n) => layers.reduce((all, { values }) => all + (values[n] ?? 0), 0))
  const top = niceTop(Math.max(...totals, ...(line?.values ?? []).map((value) => value ?? 0)))
  return (
    <figure class="chart-figure" data-chart={cells}>
      <div class="chart-frame">
        <p class="chart-scale muted" aria-hidden="true">
          {[1, 0.5, 0].map((share) => (
            <span>{scale(top * share)}</span>
          ))}
        </p>
        <svg class="chart" width="100%" height={HEIGHT} role="img" aria-label={label}>
          {[1, 0.5, 0].map((share) => (
            <line class="chart-grid" x1="0" x2="100%" y1={getY(share)} y2={getY(share)} />
          ))}
          <svg
            class="chart-plot"
            width="100%"
            height={PLOT_HEIGHT}
            viewBox={`0 0 ${cells} 100`}
            preserveAspectRatio="none"
            aria-hidden="true"
          >
            <rect class="chart-cursor" width="1" height="100" />
            <StackedBars layers={layers} top={top} cells={cells} />
            {line && <path class="chart-line" d={linePath(line.values, top)} />}
          </svg>
          {ticks.map((tick) => (
            <text class="chart-text" x={`${units(tick.place * 100)}%`} y={HEIGHT - 5} text-anchor="middle">
              {tick.label}
            </text>
          ))}
        </svg>
      </div>
      <figcaption class="chart-legend muted">
        {layers.map(({ name, kind, href }) => (
          <span class={`chart-key chart-${kind}`}>{href ? <a href={href}>{name}</a> : name}</span>
        ))}
        {line && <span class="chart-key chart-before">{line.name}</span>}
        <output class="chart-values" />
      </figcaption>
      <AsTable>{children}</AsTable>
    </figure>
  )
}

const getY = (share: number): number => Math.max(0.5, PLOT_HEIGHT - share * PLOT_HEIGHT - 0.5)

const getHeight = (value: number, top: number): string => units(100 - (value / top) * 100)

const linePath = (values: readonly (number | null)[], top: number): string =>
  values
    .map((value, n) => {
      if (value === null) return ''
      const isFirst = n === 0 || (values[n - 1] ?? null) === null
      return `${isFirst ? 'M' : 'L'}${units(n + 0.5)} ${getHeight(value, top)}`
    })
    .join('')

const STEPS = [1, 1.6, 2, 3, 4, 5, 6, 8, 10]
const EVEN_STEPS = [2, 4, 6, 8, 10]

/** The next round number. */
const niceTop = (most: number): number => {
  if (most <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  const steps = power === 1 && Number.isInteger(most) ? EVEN_STEPS : STEPS
  return (steps.find((step) => most <= step * power) ?? 10) * power
}
