/** Times and durations as text in the viewer's zone: "in 2 h 10 min", "2026-01-10 14:20:31". UTC is in the tooltip. */
import { type FC, useContext } from 'hono/jsx'
import { type ViewerClock, ViewerClockContext } from './viewer-clock.ts'

interface MomentProps {
  /** ISO 8601 */
  at: string
}

interface RelativeProps extends MomentProps {
  /** ISO 8601: when the page was made. */
  now: string
}

/** "in 2 h 10 min", counting down to "now". */
export const Until: FC<RelativeProps> = ({ at, now }) => (
  <time datetime={at} title={utcText(at)} data-live="until">
    {untilText(at, now)}
  </time>
)

/** "14:32", counting down every second. */
export const Countdown: FC<RelativeProps> = ({ at, now }) => (
  <time class="countdown" datetime={at} title={utcText(at)} data-live="countdown">
    {countdownText(Date.parse(at) - Date.parse(now))}
  </time>
)

/** Minutes and seconds. `views/assets/app.js` shows the same. */
const countdownText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** "3 min ago", counting up. */
export const Since: FC<RelativeProps> = ({ at, now }) => (
  <time datetime={at} title={utcText(at)} data-live="since">
    {sinceText(at, now)}
  </time>
)

/** "2026-01-10 14:20:31". */
export const Moment: FC<MomentProps> = ({ at }) => (
  <time datetime={at} title={utcText(at)}>
    {momentText(at)}
  </time>
)

/** "14:20", with the weekday if most of a day away. The script updates it past midnight. */
export const ClockTime: FC<RelativeProps> = ({ at, now }) => (
  <time datetime={at} title={utcText(at)} data-live="clock">
    {Math.abs(Date.parse(at) - Date.parse(now)) < 72e6 ? clockText(at) : `${weekdayText(at)} ${clockText(at)}`}
  </time>
)

export const untilText = (at: string, now: string): string => {
  const ms = Date.parse(at) - Date.parse(now)
  return ms < 1000 ? 'now' : `in ${spanText(ms)}`
}

export const sinceText = (at: string, now: string): string => {
  const ms = Date.parse(now) - Date.parse(at)
  return ms < 1000 ? 'now' : `${spanText(ms)} ago`
}

/** The two largest units, rounded down: "4 d 3 h", "2 h 10 min", "3 min", "42 s". The same as in `views/assets/app.js`. */
export const spanText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'min')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** A measured duration: "84 ms", "0.92 s", "12.4 s", "2 min". */
export const durationText = (ms: number): string => {
  if (ms < 100) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : spanText(ms)
}

const pair = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`

/** "2026-01-10 14:20:31", or "2026-01-10 2:20:31 pm". Call while rendering, like all below. */
export const momentText = (at: string): string => {
  const clock = useContext(ViewerClockContext)
  return `${toDate(clock, at)} ${timeOf(clock, at, true)}${clock.isKnown ? '' : ' UTC'}`
}

/** "14:20", or "2:20 pm". */
export const clockText = (at: string): string => {
  const clock = useContext(ViewerClockContext)
  return `${timeOf(clock, at, false)}${clock.isKnown ? '' : ' UTC'}`
}

/** "2026-01-10": the viewer's day. */
export const dateText = (at: string): string => toDate(useContext(ViewerClockContext), at)

/** 0 to 23: the hour of the viewer's clock. */
export const getHour = (at: string): number => Number(useContext(ViewerClockContext).getParts(Date.parse(at)).hour)

/** "Sat" */
export const weekdayText = (at: string): string => useContext(ViewerClockContext).getParts(Date.parse(at)).weekday

/** "2026-01-10T14:20:31" for a `datetime-local` field, whose value comes back in the viewer's zone. */
export const fieldTime = (at: string): string => {
  const clock = useContext(ViewerClockContext)
  return `${toDate(clock, at)}T${timeOf({ ...clock, hours: 24 }, at, true)}`
}

/** The name of the zone, for a label. */
export const zoneName = (): string => useContext(ViewerClockContext).zone.replaceAll('_', ' ')

const toDate = (clock: ViewerClock, at: string): string => {
  const { year, month, day } = clock.getParts(Date.parse(at))
  return `${year}-${month}-${day}`
}

const timeOf = (clock: ViewerClock, at: string, hasSeconds: boolean): string => {
  const { hour, minute, second } = clock.getParts(Date.parse(at))
  const rest = hasSeconds ? `${minute}:${second}` : minute
  if (clock.hours === 24) return `${hour}:${rest}`
  return `${Number(hour) % 12 || 12}:${rest} ${Number(hour) < 12 ? 'am' : 'pm'}`
}

export const utcText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`
