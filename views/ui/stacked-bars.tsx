/** Stacked bars, one path per layer, in a `viewBox` one unit wide per bar and 100 high. */
import type { FC } from 'hono/jsx'
import { units } from './svg.ts'

export interface BarLayer {
  /** Color class: `chart-…` in charts.css. */
  kind: string
  /** Oldest first. */
  values: readonly number[]
}

interface StackedBarsProps {
  /** From bottom to top. */
  layers: readonly BarLayer[]
  /** The value at the top. */
  top: number
  /** Number of bars. */
  cells: number
  /** Height of the smallest part, so that a single error is visible. */
  minPart?: number
}

const BAR_WIDTH = 0.8
/** Share of the whole width, so that a few bars do not fill it. */
const MAX_BAR_SHARE = 0.06

export const StackedBars: FC<StackedBarsProps> = ({ layers, top, cells, minPart = 0 }) => {
  const width = units(Math.min(BAR_WIDTH, cells * MAX_BAR_SHARE))
  const below: number[] = []
  return layers.map(({ kind, values }) => {
    const path = values
      .map((value, n) => {
        if (value <= 0) return ''
        const from = below[n] ?? 0
        const to = Math.min(100, from + Math.max(minPart, (value / top) * 100))
        below[n] = to
        return `M${units(n + 0.5)} ${units(100 - from)}V${units(100 - to)}`
      })
      .join('')
    return path && <path class={`chart-bar chart-${kind}`} stroke-width={width} d={path} />
  })
}
