/** How much of a window is used: the bar fills with what is used, the text says what is left and when it resets. */
import type { FC } from 'hono/jsx'
import { Until } from './time.tsx'

export interface MeterWindow {
  usedPercent: number
  /** ISO 8601; null: unknown. */
  resetAt: string | null
  windowMinutes: number
}

interface MeterProps {
  label: string
  window: MeterWindow
  /** ISO 8601: when the page was made. */
  now: string
}

export const Meter: FC<MeterProps> = ({ label, window, now }) => (
  <div class="meter">
    <span class="meter-label">{label}</span>
    <Bar label={label} window={window} now={now} />
    <span class="meter-text">
      <b>{leftPercent(window)} % left</b>
      {window.resetAt && (
        <>
          {' · resets '}
          <Until at={window.resetAt} now={now} />
        </>
      )}
    </span>
  </div>
)

/** Whole percents; never 0 while something is left, never 100 once something is used. */
export const leftPercent = ({ usedPercent }: MeterWindow): number => {
  const left = 100 - usedPercent
  return left <= 0 ? 0 : Math.min(usedPercent > 0 ? 99 : 100, Math.max(1, Math.round(left)))
}

const Bar: FC<MeterProps> = ({ label, window, now }) => {
  const pace = pacePercent(window, now)
  return (
    <svg class={`bar ${toneOf(window.usedPercent)}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img">
      <title>
        {`${label}: ${Math.round(window.usedPercent)} % used`}
        {pace !== null && `, ${Math.round(pace)} % of the time gone`}
      </title>
      <rect class="bar-track" width="100" height="6" />
      <rect class="bar-fill" width={units(window.usedPercent)} height="6" />
      {pace !== null && <rect class="bar-pace" x={units(Math.min(99, pace))} width="1" height="6" />}
    </svg>
  )
}

/** How far the window is through: use beyond this mark runs out before the reset. */
const pacePercent = ({ resetAt, windowMinutes }: MeterWindow, now: string): number | null => {
  if (resetAt === null || windowMinutes <= 0) return null
  const leftMs = Date.parse(resetAt) - Date.parse(now)
  const gone = 100 - (leftMs / (windowMinutes * 60_000)) * 100
  return gone >= 0 && gone <= 100 ? gone : null
}

export const toneOf = (usedPercent: number): string =>
  usedPercent >= 90 ? 'bar-full' : usedPercent >= 75 ? 'bar-high' : 'bar-low'

const units = (percent: number): string => String(Math.round(percent * 100) / 100)
