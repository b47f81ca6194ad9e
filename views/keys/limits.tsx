/** The limits of a key: a bar that fills with usage, and the same in words. */
import type { FC } from 'hono/jsx'
import { Bar } from '../ui/meter.tsx'
import { Until } from '../ui/time.tsx'
import { type ApiKey, amountText, boundText, getPercent, limitName } from './words.ts'

type Limit = ApiKey['limits'][number]

/** For lists: the two fullest limits and the number of others. */
export const LimitBars: FC<{ limits: readonly Limit[] }> = ({ limits }) => {
  if (limits.length === 0) return <span class="muted">unlimited</span>
  const fullest = limits.toSorted((a, b) => getPercent(b) - getPercent(a)).slice(0, SHOWN)
  const more = limits.length - fullest.length
  return (
    <span class="key-limits">
      {fullest.map((limit) => (
        <span class="key-limit">
          <Bar label={limitName(limit)} used={getPercent(limit)} />
          <span class="small muted">
            <b>{Math.floor(getPercent(limit))} %</b> of {boundText(limit)}
          </span>
        </span>
      ))}
      {more > 0 && <span class="muted small">+ {more} more</span>}
    </span>
  )
}

const SHOWN = 2

/** For the page of the key: all limits with amounts and resets. */
export const LimitList: FC<{ limits: readonly Limit[]; now: string }> = ({ limits, now }) => (
  <ul class="key-limit-list">
    {limits.map((limit) => (
      <li>
        <span>{limitName(limit)}</span>
        <Bar label={limitName(limit)} used={getPercent(limit)} />
        <span class="muted">
          <b>{amountText(limit.limitType, limit.currentValue)}</b> of {amountText(limit.limitType, limit.maxValue)} used
          {' · resets '}
          <Until at={limit.resetAt} now={now} />
        </span>
      </li>
    ))}
  </ul>
)
