/**
 * Amounts over time as bars, drawn on the server. Each has a column for pointing; bars and columns are strokes, the
 * bars in one path to keep the page small.
 */
import type { FC } from 'hono/jsx'
import { units } from './svg.ts'

interface BarsProps {
  /** A sentence describing the picture. */
  label: string
  /** Oldest first. */
  bars: readonly { title: string; value: number }[]
  /** Labels at both ends, and possibly between. */
  ends: readonly (string | undefined)[]
}

/** Width per bar; the picture scales to its place. */
const STEP = 10
const HEIGHT = 100
const BAR_WIDTH = 7.6
/** Share of the whole width, so that a few bars do not fill it. */
const MAX_BAR_SHARE = 0.06
/** Keeps small values visible. */
const MIN_BAR_HEIGHT = 2

export const Bars: FC<BarsProps> = ({ label, bars, ends }) => {
  const most = Math.max(0, ...bars.map(({ value }) => value))
  const width = bars.length * STEP
  const getTop = (value: number): string => units(HEIGHT - Math.max(MIN_BAR_HEIGHT, (value / most) * HEIGHT))
  const drawn = bars.map(({ value }, index) => (value === 0 ? '' : `M${getMiddle(index)} ${HEIGHT}V${getTop(value)}`))
  return (
    <>
      <svg class="bars" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <g class="bars-hit" stroke-width={STEP}>
          {bars.map(({ title }, index) => (
            <path d={`M${getMiddle(index)} 0V${HEIGHT}`}>
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

const getMiddle = (index: number): number => (index + 0.5) * STEP
