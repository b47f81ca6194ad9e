/** Amounts over time as bars on a ground line, made on the server; each has a column to be pointed at. */
import type { FC } from 'hono/jsx'
import { units } from './svg.ts'

interface BarsProps {
  /** What the picture says in one sentence. */
  label: string
  /** Oldest first. */
  bars: readonly { title: string; value: number }[]
  /** What stands below both ends, and perhaps between them. */
  ends: readonly (string | undefined)[]
}

const WIDTH = 1000
const HEIGHT = 100
/** A few bars are no walls. */
const MAX_BAR_WIDTH = 60
/** Something is never nothing. */
const MIN_BAR_HEIGHT = 2

export const Bars: FC<BarsProps> = ({ label, bars, ends }) => {
  const most = Math.max(0, ...bars.map(({ value }) => value))
  const step = WIDTH / bars.length
  const width = Math.min(step * 0.76, MAX_BAR_WIDTH)
  return (
    <>
      <svg class="bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {bars.map(({ title, value }, index) => {
          const height = value === 0 ? 0 : Math.max(MIN_BAR_HEIGHT, (value / most) * HEIGHT)
          return (
            <g>
              <title>{title}</title>
              <rect class="bars-hit" x={units(index * step)} width={units(step)} height={HEIGHT} />
              <rect
                class="bars-bar"
                x={units((index + 0.5) * step - width / 2)}
                width={units(width)}
                y={units(HEIGHT - height)}
                height={units(height)}
              />
            </g>
          )
        })}
      </svg>
      <p class="bars-ends muted">
        {ends.map((text) => (
          <span>{text}</span>
        ))}
      </p>
    </>
  )
}
