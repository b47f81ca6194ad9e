/** Requests over time as stacked bars, above the rows they count. Dragging over them sets the time filter. */
import type { FC } from 'hono/jsx'
import type { Bar, LogHistogram } from '../../src/model/request-histogram.ts'
import { plural } from '../ui/amounts.ts'
import { units } from '../ui/svg.ts'
import { momentText } from '../ui/time.tsx'
import { logTimeText } from './log-time.tsx'

interface HistogramProps {
  histogram: LogHistogram
  /** Its bars are rejections. */
  isOfRejected: boolean
  /** ISO 8601: when the page was made. */
  now: string
  /** The page it is renewed from every minute; null: it shows a time that is over. */
  src: string | null
}

/** Of each bar; the picture is as wide as its place. */
const STEP = 10
const HEIGHT = 100
const BAR_WIDTH = 8
/** A few bars stay slim: of the whole width. */
const MAX_BAR_SHARE = 0.03
/** A single error must be visible. */
const MIN_PART = 4

export const Histogram: FC<HistogramProps> = ({ histogram, isOfRejected, now, src }) => {
  const { from, stepMs, bars, countedFrom } = histogram
  const startOf = (index: number) => new Date(Date.parse(from) + index * stepMs).toISOString()
  const most = Math.max(1, ...bars.map(totalOf))
  const parts = stacked(bars, most)
  const width = bars.length * STEP
  const stroke = units(Math.min(BAR_WIDTH, width * MAX_BAR_SHARE))
  return (
    <figure
      id="log-histogram"
      class="histogram"
      data-from={from}
      data-step={stepMs}
      {...(src && { 'data-live': 'minute', 'data-live-src': src, 'data-live-pick': true })}
    >
      <svg
        viewBox={`0 0 ${width} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${isOfRejected ? 'Rejections' : 'Requests'} over time: ${sumText(bars, isOfRejected)}`}
      >
        <g class="bars-hit" stroke-width={STEP}>
          {bars.map((bar, index) => (
            <path d={`M${middleOf(index)} 0V${HEIGHT}`}>
              {hasAny(bar) && <title>{`${momentText(startOf(index))}: ${barText(bar, isOfRejected)}`}</title>}
            </path>
          ))}
        </g>
        {parts.map(([name, d]) => (
          <path class={`bar-${name}`} stroke-width={stroke} d={d} />
        ))}
        <rect class="histogram-zoom" height={HEIGHT} width="0" />
      </svg>
      <figcaption class="bars-ends muted">
        <span>{logTimeText(from, now)}</span>
        <span class="histogram-key">
          {countedFrom && <span>Complete since {logTimeText(countedFrom, now)}. </span>}
          <span class="needs-script">Drag to zoom</span>
        </span>
        <span>{logTimeText(startOf(bars.length), now)}</span>
      </figcaption>
    </figure>
  )
}

export const hasAny = (bar: Bar): boolean => totalOf(bar) > 0

const totalOf = ({ completed, cancelled, errors }: Bar): number => completed + cancelled + errors

const middleOf = (index: number): number => (index + 0.5) * STEP

/** Errors at the bottom, where a few of them are still seen. */
const PARTS = ['errors', 'cancelled', 'completed'] as const

const stacked = (bars: readonly Bar[], most: number): [name: string, d: string][] => {
  const bottoms = bars.map(() => HEIGHT)
  return PARTS.map((name) => [
    name,
    bars
      .map((bar, index) => {
        if (bar[name] === 0) return ''
        const bottom = bottoms[index] ?? HEIGHT
        const top = Math.max(0, bottom - Math.max(MIN_PART, (bar[name] / most) * HEIGHT))
        bottoms[index] = top
        return `M${middleOf(index)} ${units(bottom)}V${units(top)}`
      })
      .join(''),
  ])
}

const barText = ({ completed, cancelled, errors }: Bar, isOfRejected: boolean): string => {
  if (isOfRejected) return plural(errors, 'rejection')
  const parts = [plural(completed + cancelled + errors, 'request')]
  if (errors > 0) parts.push(plural(errors, 'error'))
  if (cancelled > 0) parts.push(`${cancelled} cancelled`)
  return parts.join(', ')
}

const sumText = (bars: readonly Bar[], isOfRejected: boolean): string => {
  const sum: Bar = { completed: 0, cancelled: 0, errors: 0 }
  for (const bar of bars) for (const name of PARTS) sum[name] += bar[name]
  return barText(sum, isOfRejected)
}
