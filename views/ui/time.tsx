/** Moments and spans in words: "2 h 10 m", with the exact time on hover; the page's script keeps them counting. */
import type { FC } from 'hono/jsx'

interface MomentProps {
  /** ISO 8601 */
  at: string
  /** ISO 8601: when the page was made. */
  now: string
}

/** "in 2 h 10 m", counting down; what has come is "now". */
export const Until: FC<MomentProps> = ({ at, now }) => (
  <time datetime={at} title={exactly(at)} data-live="until">
    {untilText(at, now)}
  </time>
)

/** "14:32", counting down every second. */
export const Countdown: FC<MomentProps> = ({ at, now }) => (
  <time class="countdown" datetime={at} title={exactly(at)} data-live="countdown">
    {countdownText(Date.parse(at) - Date.parse(now))}
  </time>
)

/** Minutes and seconds. `views/assets/app.js` says the same. */
const countdownText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** "3 m ago", counting up. */
export const Since: FC<MomentProps> = ({ at, now }) => (
  <time datetime={at} title={exactly(at)} data-live="since">
    {sinceText(at, now)}
  </time>
)

/** A time of day: UTC without script, which shows local time. */
export const ClockTime: FC<MomentProps> = ({ at }) => (
  <time datetime={at} title={exactly(at)} data-live="clock">
    {at.slice(11, 16)} UTC
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

/** The two largest units, rounded down: "4 d 3 h", "2 h 10 m", "3 m", "42 s". `views/assets/app.js` says the same. */
export const spanText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'm')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** A duration that was measured: "84 ms", "0.92 s", "12.4 s", "2 m". */
export const durationText = (ms: number): string => {
  if (ms < 100) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : spanText(ms)
}

const pair = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`

const exactly = (at: string): string => `${momentText(at)} UTC`

/** "2026-01-10 14:20:31" in UTC. */
export const momentText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)}`
