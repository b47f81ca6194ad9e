/** The rows of the log: seven columns, and those that were chosen beside them; the same in the list and in a live tail. */
import type { FC } from 'hono/jsx'
import type { LogTail } from '../../src/admin/logs-page.ts'
import type { LogEntry } from '../../src/model/request-log-entry.ts'
import type { MoreColumn } from '../../src/model/request-log-page.ts'
import { durationText, Since } from '../ui/time.tsx'
import { COLUMN_NAMES, countText, phaseText, RESULTS, shortCount, usdText } from './words.ts'

interface TableProps {
  requests: readonly LogEntry[]
  columns: readonly MoreColumn[]
  /** The list without an open request. */
  here: string
  /** Row id of the request that stands open. */
  openId: string | null
  /** ISO 8601: when the page was made. */
  now: string
}

export const LogTable: FC<TableProps> = ({ requests, columns, ...row }) => (
  <table class="requests logs">
    <thead>
      <tr>
        <th scope="col">Time</th>
        <th scope="col">Key</th>
        <th scope="col">Account</th>
        <th scope="col">Model</th>
        <th scope="col">Result</th>
        <th scope="col" class="number">
          First token
        </th>
        <th scope="col" class="number">
          Cost
        </th>
        {columns.map((column) => (
          <th scope="col" class={NUMERIC.includes(column) ? 'number' : undefined}>
            {COLUMN_NAMES[column]}
          </th>
        ))}
      </tr>
    </thead>
    <tbody id="log-rows">
      {requests.map((request) => (
        <LogRow request={request} columns={columns} {...row} />
      ))}
    </tbody>
  </table>
)

/** What a live tail is answered: the rows, and in the attribute where the next question goes. */
export const NewRows: FC<LogTail> = ({ requests, columns, here, next, generatedAt }) => (
  <tbody data-next={next} data-now={generatedAt}>
    {requests.map((request) => (
      <LogRow request={request} columns={columns} here={here} openId={null} now={generatedAt} />
    ))}
  </tbody>
)

const LogRow: FC<Omit<TableProps, 'requests'> & { request: LogEntry }> = ({ request, columns, here, openId, now }) => (
  <tr
    id={`log-${request.id}`}
    class={request.id === openId ? 'is-open' : undefined}
    data-at={request.requestedAt}
    aria-current={request.id === openId ? 'true' : undefined}
  >
    <td class="cell-time">
      <a class="row-link" href={openLink(here, request.id)} data-drawer={`/logs/${request.id}`}>
        <Since at={request.requestedAt} now={now} />
      </a>
    </td>
    <td class="cell-key">
      {request.apiKeyName ?? <span class="muted">{request.apiKeyId ? 'deleted key' : '–'}</span>}
    </td>
    <td class="cell-account" title={request.accountName ?? undefined}>
      {request.accountName ?? <span class="muted">{request.accountId ? 'deleted account' : 'none'}</span>}
    </td>
    <td class="cell-model">{request.model ? <code>{request.model}</code> : <span class="muted">–</span>}</td>
    <td class="cell-result">
      <Result request={request} />
    </td>
    <td class="cell-first number">
      {request.latencyFirstTokenMs === null ? <Nothing /> : durationText(request.latencyFirstTokenMs)}
    </td>
    <td class="cell-cost number">{request.costUsd === null ? <Nothing /> : usdText(request.costUsd)}</td>
    {columns.map((column) => (
      <td class={NUMERIC.includes(column) ? 'cell-more number' : 'cell-more'}>
        {CELLS[column](request) ?? <Nothing />}
      </td>
    ))}
  </tr>
)

const openLink = (here: string, id: string): string => `${here}${here.includes('?') ? '&' : '?'}open=${id}`

const Nothing: FC = () => <span class="muted">–</span>

/** One word and an icon, the phase that failed, and the code. */
export const Result: FC<{ request: LogEntry }> = ({ request }) => {
  const { word, tone, Icon } = RESULTS[request.status]
  const { failurePhase: phase, attemptCount: attempts } = request
  return (
    <span class={`result tone-${tone}`} title={`HTTP ${request.httpStatus}`}>
      <Icon />
      <span>
        <b>{word}</b>
        {phase && ` ${phaseText(phase)}`}
        {attempts > 1 && <span class="muted"> · {attempts} accounts tried</span>}
        {request.errorCode && <code class="muted">{request.errorCode}</code>}
      </span>
    </span>
  )
}

const NUMERIC: readonly MoreColumn[] = ['tokens', 'total']

const CELLS: Record<MoreColumn, (request: LogEntry) => string | null> = {
  tokens: ({ inputTokens, outputTokens }) =>
    inputTokens === null && outputTokens === null
      ? null
      : `${shortCount(inputTokens ?? 0)} in, ${shortCount(outputTokens ?? 0)} out`,
  total: ({ latencyMs }) => durationText(latencyMs),
  effort: ({ reasoningEffort }) => reasoningEffort,
  kind: ({ requestKind, transport }) => `${requestKind}, ${transport}`,
  route: ({ route }) => route,
  tool: ({ useragentGroup }) => useragentGroup,
  address: ({ clientIp }) => clientIp,
  request: ({ requestId }) => requestId,
}

/** "12,400": exact where there is room. */
export const exactTokens = (count: number | null): string => (count === null ? '–' : countText(count))
