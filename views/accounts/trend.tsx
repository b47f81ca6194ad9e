/** Seven days as lines, drawn on the server. An hour without a sample breaks the line, because it is a gap and not zero. */
import type { FC } from 'hono/jsx'
import { units } from '../ui/svg.ts'
import { AsTable, TableHead } from '../ui/table.tsx'
import { dateText, momentText, weekdayText } from '../ui/time.tsx'

interface TrendSeries {
  name: string
  /** Percent used for each hour, oldest first; null: no sample. */
  values: readonly (number | null)[]
}

interface TrendProps {
  /** Start of the first hour, ms since epoch. */
  from: number
  series: readonly TrendSeries[]
}

const HOUR_MS = 3_600_000
const DAY_HOURS = 24
const HEIGHT = 100

export const TrendChart: FC<TrendProps> = ({ from, series }) => {
  const known = series.filter(({ values }) => values.some((value) => value !== null))
  const hours = series[0]?.values.length ?? 0
  if (known.length === 0) return <p class="empty muted">No data yet. The first point appears within an hour.</p>
  return (
    <figure class="trend">
      <div class="trend-plot">
        <span class="trend-scale" aria-hidden="true">
          <span>100 %</span>
          <span>50 %</span>
          <span>0 %</span>
        </span>
        <svg class="trend-lines" viewBox={`0 0 ${hours} ${HEIGHT}`} preserveAspectRatio="none" role="img">
          <title>Percent used per hour, last 7 days</title>
          <desc>{known.map(spoken).join(' ')}</desc>
          <path class="trend-grid" d={gridPath(hours)} />
          {known.map(({ values }, index) => (
            <>
              <path class={`trend-line trend-line-${index + 1}`} d={linePath(values)} />
              <path class={`trend-line trend-line-${index + 1} trend-dot`} d={dotsPath(values)} />
            </>
          ))}
        </svg>
      </div>
      <ol class="trend-days" aria-hidden="true">
        {daysFrom(from, hours).map((at) => (
          <li>
            {weekdayText(at)} <span class="trend-date">{Number(dateText(at).slice(8))}</span>
          </li>
        ))}
      </ol>
      <figcaption class="trend-legend">
        {known.map(({ name }, index) => (
          <span class="trend-key">
            <svg viewBox="0 0 20 6" width="20" height="6" aria-hidden="true">
              <path class={`trend-line trend-line-${index + 1}`} d="M1 3H19" />
            </svg>
            {name}
          </span>
        ))}
        <span class="muted small">Gaps are hours without data.</span>
      </figcaption>
      <DayTable from={from} series={known} />
    </figure>
  )
}

/** Each run of hours is a separate line. */
export const linePath = (values: readonly (number | null)[]): string =>
  values
    .map((value, hour) => {
      if (value === null || isAlone(values, hour)) return ''
      return `${isKnown(values[hour - 1]) ? 'L' : 'M'}${pointAt(hour, value)}`
    })
    .join('')

/** A single hour between gaps is a dot: the round ends of a line of zero length. */
export const dotsPath = (values: readonly (number | null)[]): string =>
  values.map((value, hour) => (value !== null && isAlone(values, hour) ? `M${pointAt(hour, value)}h.01` : '')).join('')

const isKnown = (value: number | null | undefined): boolean => value !== null && value !== undefined

const isAlone = (values: readonly (number | null)[], hour: number): boolean =>
  !isKnown(values[hour - 1]) && !isKnown(values[hour + 1])

const pointAt = (hour: number, value: number): string => `${hour + 0.5} ${units(HEIGHT - value)}`

const gridPath = (hours: number): string => {
  const days = Array.from({ length: Math.floor(hours / DAY_HOURS) + 1 }, (_, day) => `M${day * DAY_HOURS} 0V${HEIGHT}`)
  return `M0 0H${hours}M0 50H${hours}M0 100H${hours}${days.join('')}`
}

const spoken = ({ name, values }: TrendSeries): string => {
  const known = values.filter((value) => value !== null)
  const last = known.at(-1) ?? 0
  return `${name}: ${Math.round(last)} % used now, at most ${Math.round(Math.max(...known))} %.`
}

/** Every 24 hours from the first, ISO 8601. */
const daysFrom = (from: number, hours: number): string[] =>
  Array.from({ length: Math.floor(hours / DAY_HOURS) }, (_, day) =>
    new Date(from + day * DAY_HOURS * HOUR_MS).toISOString(),
  )

const DayTable: FC<TrendProps> = ({ from, series }) => (
  <AsTable>
    <table class="figures">
      <TableHead texts={['24 hours from']} numbers={series.map(({ name }) => `${name}, highest`)} />
      <tbody>
        {daysFrom(from, series[0]?.values.length ?? 0).map((at, day) => (
          <tr>
            <th scope="row">{momentText(at)}</th>
            {series.map(({ values }) => (
              <td>{getMost(values.slice(day * DAY_HOURS, (day + 1) * DAY_HOURS))}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </AsTable>
)

const getMost = (values: readonly (number | null)[]): string => {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? '–' : `${Math.round(Math.max(...known))} %`
}
