/** Seven days of a key in bars of three hours each, with a title to point at and the same in a table of days. */
import type { FC } from 'hono/jsx'

export interface TrendPoint {
  /** ISO 8601: the beginning of the hour. */
  t: string
  v: number
}

interface TrendProps {
  label: string
  points: readonly TrendPoint[]
  /** A value in words. */
  text: (value: number) => string
}

const HOURS_A_BAR = 3
const HEIGHT = 40

export const Trend: FC<TrendProps> = ({ label, points, text }) => {
  const bars = grouped(points, HOURS_A_BAR)
  const most = Math.max(0, ...bars.map(({ v }) => v))
  const total = points.reduce((sum, { v }) => sum + v, 0)
  return (
    <figure class="key-trend">
      <figcaption>
        <span class="muted">{label}</span> <b>{text(total)}</b>
      </figcaption>
      <svg
        viewBox={`0 0 ${bars.length * 4} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label} in seven days: ${text(total)}`}
      >
        {bars.map(({ t, v }, index) => (
          <Bar x={index * 4} height={most === 0 ? 0 : (v / most) * (HEIGHT - 1)} title={`${spanOf(t)}: ${text(v)}`} />
        ))}
      </svg>
      <p class="key-trend-days muted small" aria-hidden="true">
        <span>{dayOf(points[0]?.t)}</span>
        <span>{most > 0 && `up to ${text(most)} in ${HOURS_A_BAR} hours`}</span>
        <span>{dayOf(points.at(-1)?.t)}</span>
      </p>
      <Days points={points} label={label} text={text} />
    </figure>
  )
}

/** The invisible column is there to be pointed at. */
const Bar: FC<{ x: number; height: number; title: string }> = ({ x, height, title }) => (
  <g>
    <title>{title}</title>
    <rect class="key-trend-hit" x={x} y="0" width="4" height={HEIGHT} />
    <rect class="key-trend-ground" x={x + 0.5} y={HEIGHT - 1} width="3" height="1" />
    {height > 0 && (
      <rect class="key-trend-bar" x={x + 0.5} y={rounded(HEIGHT - 1 - height)} width="3" height={rounded(height + 1)} />
    )}
  </g>
)

const Days: FC<TrendProps> = ({ points, label, text }) => (
  <details class="key-trend-table">
    <summary class="small muted">As a table</summary>
    <table>
      <thead>
        <tr>
          <th scope="col">Day (UTC)</th>
          <th scope="col" class="number">
            {label}
          </th>
        </tr>
      </thead>
      <tbody>
        {[...Map.groupBy(points, ({ t }) => t.slice(0, 10))].map(([day, hours]) => (
          <tr>
            <td>{day}</td>
            <td class="number">{text(hours.reduce((sum, { v }) => sum + v, 0))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </details>
)

const grouped = (points: readonly TrendPoint[], size: number): TrendPoint[] =>
  Array.from({ length: Math.ceil(points.length / size) }, (_, index) => {
    const group = points.slice(index * size, (index + 1) * size)
    return { t: group[0]?.t ?? '', v: group.reduce((sum, { v }) => sum + v, 0) }
  })

const spanOf = (t: string): string => `${t.slice(5, 10)} ${t.slice(11, 16)} UTC`

const dayOf = (t: string | undefined): string => t?.slice(5, 10) ?? ''

const rounded = (value: number): string => String(Math.round(value * 100) / 100)
