/**
 * Amounts over time as bars on a ground line, made on the server. Each has a column to be pointed at; bars and columns are
 * strokes as wide as they look, the bars in one shape, because a page of them weighs something.
 */
import type { FC } from 'hono/jsx'
import { units } from './svg.ts'

interface BarsProps {
  /** What the picture says in one sentence. */
  label: string
  /** Oldest first. */
  bars: readonly { title: string; value: number }[]
  /** The labels below both ends, and possibly between them. */
  ends: readonly (string | undefined)[]
}

/** For each bar; the picture is as wide as its place, whatever the number. */
const STEP = 10
const HEIGHT = 100
const BAR_WIDTH = 7.6
/** A few bars are no walls: of the whole width. */
const MAX_BAR_SHARE = 0.06
/** Something is never nothing. */
const MIN_BAR_HEIGHT = 2

export const Bars: FC<BarsProps> = ({ label, bars, ends }) => {
  const most = Math.max(0, ...bars.map(({ value }) => value))
  const width = bars.length * STEP
  const topOf = (value: number): string => units(HEIGHT - Math.max(MIN_BAR_HEIGHT, (value / most) * HEIGHT))
  const drawn = bars.map(({ value }, index) => (value === 0 ? '' : `M${middleOf(index)} ${HEIGHT}V${topOf(value)}`))
  return (
    <>
      <svg class="bars" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <g class="bars-hit" stroke-width={STEP}>
          {bars.map(({ title }, index) => (
            <path d={`M${middleOf(index)} 0V${HEIGHT}`}>
              <title>{title}</title>
            </path>
          ))}
        </g>
        <path class="bars-bar" stroke-width={units(Math.min(BAR_WIDTH, width * MAX_BAR_SHARE))} d={drawn.join('')} />
      </svg>
      <p class="bars-ends muted">
        {ends.map((text) => (
          <span>{text}</span>
        ))}
      </p>
    </>
  )
}

const middleOf = (index: number): number => (index + 0.5) * STEP
