/** Requests over time as stacked bars, above the rows they count. Dragging over them sets the time filter. */
import type { FC } from 'hono/jsx'
import type { Bar, LogHistogram } from '../../src/model/log/request-histogram.ts'
import { plural } from '../ui/amounts.ts'
import { StackedBars } from '../ui/stacked-bars.tsx'
import { momentText } from '../ui/time.tsx'
import { logTimeText } from './log-time.tsx'

interface HistogramProps {
  histogram: LogHistogram
  /** The bars are rejections. */
  isOfRejected: boolean
  /** ISO 8601: when the page was made. */
  now: string
  /** The page to reload it from every minute; null: a past period. */
  src: string | null
}

/** Percent; keeps a single error visible. */
const MIN_PART = 4

export const Histogram: FC<HistogramProps> = ({ histogram, isOfRejected, now, src }) => {
  const { from, stepMs, bars, countedFrom } = histogram
  const getStart = (index: number) => new Date(Date.parse(from) + index * stepMs).toISOString()
  const most = Math.max(1, ...bars.map(getTotal))
  const layers = PARTS.map(([name, kind]) => ({ kind, values: bars.map((bar) => bar[name]) }))
  return (
    <figure
      id="log-histogram"
      class="histogram"
      data-from={from}
      data-step={stepMs}
      {...(src && { 'data-live': 'minute', 'data-live-src': src, 'data-live-pick': true })}
    >
      <svg
        viewBox={`0 0 ${bars.length} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${isOfRejected ? 'Rejections' : 'Requests'} over time: ${sumText(bars, isOfRejected)}`}
      >
        <g class="bars-hit" stroke-width="1">
          {bars.map((bar, index) => (
            <path d={`M${index + 0.5} 0V100`}>
              {hasAny(bar) && <title>{`${momentText(getStart(index))}: ${barText(bar, isOfRejected)}`}</title>}
            </path>
          ))}
        </g>
        <StackedBars layers={layers} top={most} cells={bars.length} minPart={MIN_PART} />
        <rect class="histogram-zoom" height={100} width="0" />
      </svg>
      <figcaption class="bars-ends muted">
        <span>{logTimeText(from, now)}</span>
        <span class="histogram-key">
          {countedFrom && <span>Complete since {logTimeText(countedFrom, now)}. </span>}
          <span class="needs-script">Drag to zoom</span>
        </span>
        <span>{logTimeText(getStart(bars.length), now)}</span>
      </figcaption>
    </figure>
  )
}

export const hasAny = (bar: Bar): boolean => getTotal(bar) > 0

const getTotal = ({ completed, cancelled, errors }: Bar): number => completed + cancelled + errors

/** With colors. Errors are at the bottom, where even a few are visible. */
const PARTS = [
  ['errors', 'error'],
  ['cancelled', 'cancelled'],
  ['completed', 'ok'],
] as const

const barText = ({ completed, cancelled, errors }: Bar, isOfRejected: boolean): string => {
  if (isOfRejected) return plural(errors, 'rejection')
  const parts = [plural(completed + cancelled + errors, 'request')]
  if (errors > 0) parts.push(plural(errors, 'error'))
  if (cancelled > 0) parts.push(`${cancelled} cancelled`)
  return parts.join(', ')
}

const sumText = (bars: readonly Bar[], isOfRejected: boolean): string => {
  const sum: Bar = { completed: 0, cancelled: 0, errors: 0 }
  for (const bar of bars) for (const [name] of PARTS) sum[name] += bar[name]
  return barText(sum, isOfRejected)
}
