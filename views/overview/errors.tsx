/** Errors of the period, repeated ones as one row with a count. */
import type { FC } from 'hono/jsx'
import type { ErrorGroup } from '../../src/model/overview/overview-errors.ts'
import type { Period } from '../../src/model/overview/overview-slots.ts'
import { Result } from '../logs/rows.tsx'
import { countText, plural } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { PERIOD_NAMES } from './periods.ts'

/** With the names this user may see. */
export interface ShownErrors extends ErrorGroup {
  accounts: readonly string[]
}

interface ErrorsProps {
  errors: readonly ShownErrors[]
  period: Period
  now: string
  hasRequests: boolean
}

export const LastErrors: FC<ErrorsProps> = ({ errors, period, now, hasRequests }) =>
  errors.length === 0 ? (
    <p class="card card-part muted">
      {hasRequests
        ? `No errors in the last ${PERIOD_NAMES[period]}.`
        : `No requests in the last ${PERIOD_NAMES[period]}.`}
    </p>
  ) : (
    <Card
      id="last-errors"
      title="Errors"
      aside={
        <a class="card-link" href={`/logs?status=failed&range=${period}`}>
          Show all in the log
        </a>
      }
    >
      <table class="list requests error-groups">
        <TableHead texts={['Last seen', 'Key', 'Account', 'Model', 'Error']} numbers={['Times']} />
        <tbody>
          {errors.map((group) => (
            <ErrorRow group={group} period={period} now={now} />
          ))}
        </tbody>
      </table>
    </Card>
  )

/** Uses the newest request's key. */
const ErrorRow: FC<{ group: ShownErrors; period: Period; now: string }> = ({ group, period, now }) => {
  const { count, newest, accounts, models } = group
  return (
    <tr>
      <td class="cell-time">
        <a class="row-link" href={count === 1 ? `/logs/${newest.id}` : getHref(group, period)}>
          <Since at={newest.requestedAt} now={now} />
        </a>
      </td>
      <td class="cell-key">{newest.apiKeyName ?? <span class="muted">–</span>}</td>
      <td class="cell-account" title={accounts.length > 1 ? accounts.join(', ') : undefined}>
        <Several of="account" names={accounts} />
      </td>
      <td class="cell-model" title={models.length > 1 ? models.join(', ') : undefined}>
        <Several of="model" names={models} isCode />
      </td>
      <td class="cell-result">
        <Result request={newest} />
      </td>
      <td class="cell-count number">{count === 1 ? '1' : `× ${countText(count)}`}</td>
    </tr>
  )
}

/** One name, or two, or how many; the cell's title has them all. */
const Several: FC<{ of: string; names: readonly string[]; isCode?: boolean }> = ({ of: noun, names, isCode }) => {
  if (names.length === 0) return <span class="muted">–</span>
  if (names.length > 2) return plural(names.length, noun)
  const text = names.join(', ')
  return isCode ? <code>{text}</code> : text
}

const getHref = ({ codes }: ErrorGroup, period: Period): string => {
  const params = new URLSearchParams({ status: 'failed', range: period })
  for (const code of codes) params.append('code', code)
  return `/logs?${params}`
}
