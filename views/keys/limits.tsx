/** The limits of a key: a bar each that fills with what is used, and the same in words. */
import type { FC } from 'hono/jsx'
import { Until } from '../ui/time.tsx'
import { type ApiKey, amountText, limitName, percentOf } from './words.ts'

type Limit = ApiKey['limits'][number]

/** In a list: the fullest two, and how many more there are. */
export const LimitBars: FC<{ limits: readonly Limit[] }> = ({ limits }) => {
  if (limits.length === 0) return <span class="muted">none</span>
  const fullest = limits.toSorted((a, b) => percentOf(b) - percentOf(a)).slice(0, SHOWN)
  const more = limits.length - fullest.length
  return (
    <span class="key-limits">
      {fullest.map((limit) => (
        <span class="key-limit">
          <LimitBar limit={limit} />
          <span class="small">
            <b>{Math.round(percentOf(limit))} %</b> <span class="muted">of {limitName(limit)}</span>
          </span>
        </span>
      ))}
      {more > 0 && <span class="muted small">and {more} more</span>}
    </span>
  )
}

const SHOWN = 2

/** On the page of the key: all of them, with amounts and resets. */
export const LimitList: FC<{ limits: readonly Limit[]; now: string }> = ({ limits, now }) => (
  <ul class="key-limit-list">
    {limits.map((limit) => (
      <li>
        <span class="key-limit-name">{limitName(limit)}</span>
        <LimitBar limit={limit} />
        <span class="key-limit-text muted">
          <b>{amountText(limit.limitType, limit.currentValue)}</b> of {amountText(limit.limitType, limit.maxValue)} used
          {' · resets '}
          <Until at={limit.resetAt} now={now} />
        </span>
      </li>
    ))}
  </ul>
)

const LimitBar: FC<{ limit: Limit }> = ({ limit }) => {
  const percent = percentOf(limit)
  const tone = percent >= 90 ? 'bar-full' : percent >= 75 ? 'bar-high' : 'bar-low'
  return (
    <svg class={`bar ${tone}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img">
      <title>{`${limitName(limit)}: ${Math.round(percent)} % used`}</title>
      <rect class="bar-track" width="100" height="6" />
      <rect class="bar-fill" width={String(Math.round(percent * 100) / 100)} height="6" />
    </svg>
  )
}
