/** Errors of the period, repeated ones as one row with a count. */
import type { FC } from 'hono/jsx'
import type { ErrorGroup } from '../../src/model/overview-errors.ts'
import type { Period } from '../../src/model/overview-slots.ts'
import { Result } from '../logs/rows.tsx'
import { countText } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { PERIOD_NAMES } from './periods.ts'

interface ErrorsProps {
  errors: readonly ErrorGroup[]
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
const ErrorRow: FC<{ group: ErrorGroup; period: Period; now: string }> = ({
  group: { count, newest },
  period,
  now,
}) => (
  <tr>
    <td class="cell-time">
      <a class="row-link" href={count === 1 ? `/logs/${newest.id}` : hrefOf(newest, period)}>
        <Since at={newest.requestedAt} now={now} />
      </a>
    </td>
    <td class="cell-key">{newest.apiKeyName ?? <span class="muted">–</span>}</td>
    <td class="cell-account">{newest.accountName ?? <span class="muted">–</span>}</td>
    <td class="cell-model">{newest.model ? <code>{newest.model}</code> : <span class="muted">–</span>}</td>
    <td class="cell-result">
      <Result request={newest} />
    </td>
    <td class="cell-count number">{count === 1 ? '1' : `× ${countText(count)}`}</td>
  </tr>
)

const hrefOf = ({ errorCode, accountId, model }: ErrorGroup['newest'], period: Period): string => {
  const params = new URLSearchParams({ status: 'failed', range: period })
  if (errorCode) params.set('code', errorCode)
  if (accountId) params.set('accountId', accountId)
  if (model) params.set('model', model)
  return `/logs?${params}`
}
