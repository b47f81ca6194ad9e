/** The requests of a period by result, for one chart: bars with their times, and the marks of the time axis. */
import { iso } from '../../lib/iso.ts'
import type { PeriodFigures } from './overview-periods.ts'
import { getTicks, type Tick } from './time-axis.ts'

export interface Chart {
  /** From the first request on; the last one is still running. Times are ISO 8601. */
  bars: ChartBar[]
  /** Bars that fit on the axis. */
  cells: number
  ticks: Tick[]
  zone: string
}

interface ChartBar {
  from: string
  to: string
  answered: number
  errors: number
  cancelled: number
}

/** Narrower bars would be hard to point at. */
const MAX_BARS = 72

export const getChart = (
  { slots, slotMs, cells }: Pick<PeriodFigures, 'slots' | 'slotMs' | 'cells'>,
  { zone, now }: { zone: string; now: number },
): Chart => {
  const perBar = Math.ceil(cells / MAX_BARS)
  const barMs = slotMs * perBar
  const groups = Map.groupBy(slots, ({ at }) => at - (at % barMs))
  const bars = [...groups].map(([at, some]) => {
    const sum = (of: (slot: (typeof some)[number]) => number) => some.reduce((all, slot) => all + of(slot), 0)
    const errors = sum((slot) => slot.errors)
    const cancelled = sum((slot) => slot.cancelled)
    const answered = sum((slot) => slot.requests) - errors - cancelled
    return { from: iso(at), to: iso(at + barMs), answered, errors, cancelled }
  })
  const shown = Math.max(bars.length, Math.ceil(cells / perBar))
  const from = Date.parse(bars[0]?.from ?? iso(now))
  return { bars, cells: shown, ticks: getTicks({ from, to: from + shown * barMs, zone }), zone }
}
