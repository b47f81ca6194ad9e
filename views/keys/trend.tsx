/** The last 7 days of a key as bars of up to six hours in the viewer's time zone, and as a table of days. */
import type { FC } from 'hono/jsx'
import { Bars } from '../ui/bars.tsx'
import { AsTable, TableHead } from '../ui/table.tsx'
import { clockText, dateText, getHour } from '../ui/time.tsx'

export interface TrendPoint {
  /** ISO 8601: the start of the hour. */
  t: string
  v: number
}

interface TrendProps {
  label: string
  points: readonly TrendPoint[]
  /** A value in words. */
  text: (value: number) => string
}

const HOURS_A_BAR = 6

export const Trend: FC<TrendProps> = ({ label, points, text }) => {
  const groups = grouped(points)
  const most = Math.max(0, ...groups.map(({ v }) => v))
  const total = text(getSum(points))
  return (
    <figure class="key-trend">
      <figcaption>
        <span class="muted">{label}</span> <b>{total}</b>
      </figcaption>
      <Bars
        label={`${label}, last 7 days: ${total}`}
        bars={groups.map(({ t, v }) => ({ title: `${getSpan(t)}: ${text(v)}`, value: v }))}
        ends={[toDay(points[0]), most > 0 ? `peak ${text(most)} in ${HOURS_A_BAR} h` : '', toDay(points.at(-1))]}
      />
      <AsTable>
        <table class="figures">
          <TableHead texts={['Day']} numbers={[label]} />
          <tbody>
            {[...Map.groupBy(points, ({ t }) => dateText(t))].map(([day, hours]) => (
              <tr>
                <th scope="row">{day}</th>
                <td>{text(getSum(hours))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </AsTable>
    </figure>
  )
}

const getSum = (points: readonly TrendPoint[]): number => points.reduce((sum, { v }) => sum + v, 0)

/**
 * Bars begin at 0, 6, 12 and 18 o’clock where the viewer is, so that none spans two days. The first and the last may be shorter,
 * and so may one where clocks change.
 */
const grouped = (points: readonly TrendPoint[]): TrendPoint[] => {
  const bars = Map.groupBy(points, ({ t }) => `${dateText(t)} ${Math.floor(getHour(t) / HOURS_A_BAR)}`)
  return [...bars.values()].map((hours) => ({ t: hours[0]?.t ?? '', v: getSum(hours) }))
}

const getSpan = (t: string): string => `${dateText(t).slice(5)} ${clockText(t)}`

const toDay = (point: TrendPoint | undefined): string => (point ? dateText(point.t).slice(5) : '')
