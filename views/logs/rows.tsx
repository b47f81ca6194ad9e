/** Requests as table rows with the usual and optional columns, for every list and the live tail. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import type { MoreColumn } from '../../src/model/log/request-log-page.ts'
import { costText, countText, shortCount } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { TableHead } from '../ui/table.tsx'
import { durationText } from '../ui/time.tsx'
import { LogTime, logTimeText } from './log-time.tsx'
import { groupRepeats } from './repeats.ts'
import { COLUMN_NAMES, KIND_NAMES, STATUS_STYLES } from './words.ts'

export interface LogTail {
  generatedAt: string
  /** Newest first. Overlapping requests appear twice and are matched by id. */
  requests: LogEntry[]
  showsAccounts: boolean
  columns: MoreColumn[]
  /** The URL of the next poll. */
  next: string
  here: string
}

interface RowProps {
  /** false: without the column of accounts. */
  showsAccounts?: boolean
  /** Optional columns. */
  columns?: readonly MoreColumn[]
  /** The list's URL: requests open beside it. null: each opens as a page. */
  here?: string | null
  /** Row id of the open request. */
  openId?: string | null
  /** ISO 8601: when the page was made. */
  now: string
  /** The URL of the list with all repeats. null: repeats are not folded. */
  ungrouped?: string | null
}

export const RequestTable: FC<RowProps & { id: string; requests: readonly LogEntry[] }> = ({
  id,
  requests,
  columns = [],
  ungrouped = null,
  ...row
}) => (
  <table class="list requests">
    <TableHead
      texts={['Time', 'Key', ...(row.showsAccounts === false ? [] : ['Account']), 'Model', 'Result']}
      numbers={['Tokens', 'First token', 'Cost']}
    >
      {columns.map((column) => (
        <th scope="col" class={NUMERIC.includes(column) ? 'number' : undefined}>
          {COLUMN_NAMES[column]}
        </th>
      ))}
    </TableHead>
    <tbody id={id}>
      {(ungrouped === null ? requests.map((request) => [request]) : groupRepeats(requests)).map((group) =>
        group.map((request, place) => (
          <RequestRow
            request={request}
            columns={columns}
            repeats={place === 0 && group.length > 1 ? { group, ungrouped } : null}
            firstId={group[0]?.id}
            isFolded={place > 0 && group.every(({ id }) => id !== row.openId)}
            {...row}
          />
        )),
      )}
    </tbody>
  </table>
)

/** The answer to a live tail: new rows, and the URL of the next poll in an attribute. */
export const NewRows: FC<LogTail> = ({ requests, columns, showsAccounts, here, next, generatedAt }) => (
  <tbody data-next={next} data-now={generatedAt}>
    {requests.map((request) => (
      <RequestRow request={request} columns={columns} showsAccounts={showsAccounts} here={here} now={generatedAt} />
    ))}
  </tbody>
)

interface Repeats {
  group: readonly LogEntry[]
  ungrouped: string | null
}

type RequestRowProps = Omit<RowProps, 'ungrouped'> & {
  request: LogEntry
  /** Set on the first row of a group. */
  repeats?: Repeats | null
  /** A repeat within a group, hidden. */
  isFolded?: boolean
  /** The first row of its group. */
  firstId?: string
}

const RequestRow: FC<RequestRowProps> = ({
  request,
  columns = [],
  showsAccounts = true,
  here = null,
  openId,
  now,
  repeats = null,
  isFolded = false,
  firstId,
}) => (
  <tr
    id={`log-${request.id}`}
    hidden={isFolded || undefined}
    data-of={isFolded && firstId ? `log-${firstId}` : undefined}
    class={request.id === openId ? 'is-open' : undefined}
    data-at={request.requestedAt}
    aria-current={request.id === openId ? 'true' : undefined}
  >
    <td class="cell-time">
      <RequestLink id={request.id} here={here}>
        <LogTime at={request.requestedAt} now={now} />
      </RequestLink>
    </td>
    <td class="cell-key">{request.apiKeyName ?? <span class="muted">{noKeyText(request)}</span>}</td>
    {showsAccounts && (
      <td class="cell-account" title={request.accountName ?? undefined}>
        {request.accountName ?? <span class="muted">{request.accountId ? 'deleted account' : 'none'}</span>}
      </td>
    )}
    <td class="cell-model">
      {request.requestKind !== 'normal' && <Badge tone="idle">{KIND_NAMES[request.requestKind]}</Badge>}{' '}
      {request.model ? <code>{request.model}</code> : request.requestKind === 'normal' && <Nothing />}
    </td>
    <td class="cell-result">
      <Result request={request} />
      {repeats && <RepeatsLink {...repeats} now={now} />}
    </td>
    <td class="cell-tokens number" title={tokensTitle(request)}>
      {request.tokens === null ? <Nothing /> : shortCount(request.tokens)}
    </td>
    <td class="cell-first number">
      {request.latencyFirstTokenMs === null ? <Nothing /> : durationText(request.latencyFirstTokenMs)}
    </td>
    <td class="cell-cost number">{request.costUsd === null ? <Nothing /> : costText(request.costUsd)}</td>
    {columns.map((column) => (
      <td class={NUMERIC.includes(column) ? 'cell-more number' : 'cell-more'}>
        {CELLS[column](request) ?? <Nothing />}
      </td>
    ))}
  </tr>
)

/** Without scripts it opens the list with all rows. */
const RepeatsLink: FC<Repeats & { now: string }> = ({ group, ungrouped, now }) => {
  const oldest = group.at(-1)
  return (
    <a class="repeats" href={ungrouped ?? undefined} data-repeats>
      {group.length} times{oldest && ` since ${logTimeText(oldest.requestedAt, now)}`}
    </a>
  )
}

const tokensTitle = ({ inputTokens, cachedInputTokens, outputTokens }: LogEntry): string | undefined =>
  inputTokens === null && outputTokens === null
    ? undefined
    : `${countText(inputTokens ?? 0)} in (${countText(cachedInputTokens ?? 0)} cached), ${countText(outputTokens ?? 0)} out`

const noKeyText = ({ apiKeyId, unrecognizedKey }: LogEntry): string =>
  apiKeyId ? 'deleted key' : unrecognizedKey ? 'unrecognized key' : '–'

const RequestLink: FC<PropsWithChildren<{ id: string; here: string | null }>> = ({ id, here, children }) =>
  here === null ? (
    <a class="row-link" href={`/logs/${id}`}>
      {children}
    </a>
  ) : (
    <a class="row-link" href={`${here}${here.includes('?') ? '&' : '?'}open=${id}`} data-drawer={`/logs/${id}`}>
      {children}
    </a>
  )

const Nothing: FC = () => <span class="muted">–</span>

/** The result with icon and error code. */
export const Result: FC<{ request: LogEntry }> = ({ request }) => {
  const { tone, Icon } = STATUS_STYLES[request.status]
  const { attemptCount: attempts, result } = request
  const isSaid = attempts <= 1 || result.endsWith(`(${attempts} accounts tried)`)
  return (
    <span class={`result tone-${tone}`} title={`HTTP ${request.httpStatus}`}>
      <Icon />
      <span>
        <b>{result}</b>
        {!isSaid && <span class="muted"> · {attempts} attempts</span>}
        {request.errorCode && <code class="muted">{request.errorCode}</code>}
      </span>
    </span>
  )
}

const NUMERIC: readonly MoreColumn[] = ['total']

const CELLS: Record<MoreColumn, (request: LogEntry) => string | null> = {
  total: ({ latencyMs }) => durationText(latencyMs),
  effort: ({ reasoningEffort }) => reasoningEffort,
  kind: ({ requestKind, transport }) => `${KIND_NAMES[requestKind]}, ${transport}`,
  route: ({ route }) => route,
  tool: ({ clientName }) => clientName,
  address: ({ clientIp }) => clientIp,
  request: ({ requestId }) => requestId,
  paid: ({ paidCredits }) => (paidCredits ? 'paid credits' : null),
}
