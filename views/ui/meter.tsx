/** A quota bar: it shows what is used, the text what is left and when it resets. */
import type { FC } from 'hono/jsx'
import { units } from './svg.ts'
import { Until } from './time.tsx'

interface MeterWindow {
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
  <div class="meter muted">
    <span>{label}</span>
    <Bar label={label} used={window.usedPercent} pace={pacePercent(window, now)} />
    <span class="meter-text">
      <b>{leftPercent(window.usedPercent)} % left</b>
      {window.resetAt && (
        <>
          {' · resets '}
          <Until at={window.resetAt} now={now} />
        </>
      )}
    </span>
  </div>
)

/** Whole percents, never 0 while something is left and never 100 once something is used. */
export const leftPercent = (usedPercent: number): number => {
  const left = 100 - usedPercent
  return left <= 0 ? 0 : Math.min(usedPercent > 0 ? 99 : 100, Math.max(1, Math.round(left)))
}

/** Elapsed part of the window: use beyond it runs out before the reset. */
const pacePercent = ({ resetAt, windowMinutes }: MeterWindow, now: string): number | null => {
  if (resetAt === null || windowMinutes <= 0) return null
  const leftMs = Date.parse(resetAt) - Date.parse(now)
  const gone = 100 - (leftMs / (windowMinutes * 60_000)) * 100
  return gone >= 0 && gone <= 100 ? gone : null
}

interface BarProps {
  label: string
  /** Percent, possibly above 100. */
  used: number
  /** Where even use would be, in percent. */
  pace?: number | null
}

export const Bar: FC<BarProps> = ({ label, used, pace = null }) => (
  <svg class={`bar ${getTone(used)}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img">
    <title>
      {`${label}: ${Math.round(used)} % used`}
      {pace !== null && `, ${Math.round(pace)} % of the time gone`}
    </title>
    <rect class="bar-fill" width={units(Math.min(100, used))} height="6" />
    {pace !== null && <path class="bar-pace" d={`M${units(pace)} 0v6`} />}
  </svg>
)

export const getTone = (used: number): string => (used >= 90 ? 'bar-full' : used >= 75 ? 'bar-high' : 'bar-low')

/** A share of a total, below its name. */
export const ShareBar: FC<{ percent: number; of: string }> = ({ percent, of: whole }) => (
  <svg class="bar bar-low share" viewBox="0 0 100 3" preserveAspectRatio="none" role="img">
    <title>{`${Math.round(percent)} % of ${whole}`}</title>
    <rect class="bar-fill" width={units(percent)} height="3" />
  </svg>
)
