/** The last requests: when, whose key, which account, what came of it and where it failed, how fast, what it cost. */
import type { FC } from 'hono/jsx'
import type { OverviewRequest } from '../src/admin/overview.ts'
import { CheckIcon, CrossIcon, LeaveIcon } from './ui/icons.tsx'
import { durationText, Since } from './ui/time.tsx'

interface ListProps {
  requests: readonly OverviewRequest[]
  /** ISO 8601: when the page was made. */
  now: string
  title?: string
  /** Where there are more of them. */
  more?: string
}

export const RequestList: FC<ListProps> = ({ requests, now, title = 'Last requests', more }) => (
  <section class="card" aria-labelledby="requests-title">
    <header class="card-head">
      <h2 id="requests-title">{title}</h2>
      {more && (
        <a class="card-link" href={more}>
          All of them
        </a>
      )}
    </header>
    <table class="requests">
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
        </tr>
      </thead>
      <tbody>
        {requests.map((request) => (
          <RequestRow request={request} now={now} />
        ))}
      </tbody>
    </table>
  </section>
)

const RequestRow: FC<{ request: OverviewRequest; now: string }> = ({ request, now }) => (
  <tr id={`request-${request.id}`}>
    <td class="cell-time">
      <a href={`/logs/${request.id}`}>
        <Since at={request.startedAt} now={now} />
      </a>
    </td>
    <td class="cell-key">{request.keyName ?? <span class="muted">no key</span>}</td>
    <td class="cell-account" title={request.accountName ?? undefined}>
      {request.accountName ?? <span class="muted">none</span>}
    </td>
    <td class="cell-model">{request.model ? <code>{request.model}</code> : <span class="muted">–</span>}</td>
    <td class="cell-result">
      <Result request={request} />
    </td>
    <td class="cell-first number">
      {request.firstEventMs === null ? <span class="muted">–</span> : durationText(request.firstEventMs)}
    </td>
    <td class="cell-cost number" title={tokensText(request)}>
      {costText(request.costMicros) ?? <span class="muted">–</span>}
    </td>
  </tr>
)

const RESULTS = {
  ok: { word: 'Done', tone: 'good', Icon: CheckIcon },
  error: { word: 'Failed', tone: 'bad', Icon: CrossIcon },
  cancelled: { word: 'Client left', tone: 'idle', Icon: LeaveIcon },
} as const

/** The phases of the request log in words that follow "Failed". */
const PHASES: Readonly<Record<string, string>> = {
  auth: 'at the key',
  select: 'choosing an account',
  connect: 'connecting',
  first_event: 'before the first token',
  stream: 'mid-stream',
  finish: 'at the end',
}

const Result: FC<{ request: OverviewRequest }> = ({ request }) => {
  const { word, tone, Icon } = RESULTS[request.status]
  const phase = request.status === 'ok' || !request.phase ? null : (PHASES[request.phase] ?? request.phase)
  return (
    <span class={`result tone-${tone}`} title={`HTTP ${request.httpStatus}`}>
      <Icon />
      <span>
        <b>{word}</b>
        {phase && ` ${phase}`}
        {request.attempts > 1 && <span class="muted"> · {request.attempts} accounts tried</span>}
        {request.status === 'error' && request.errorCode && <code class="muted">{request.errorCode}</code>}
      </span>
    </span>
  )
}

/** Dollars with as many digits as a small amount needs; null: unpriced. */
export const costText = (micros: number | null): string | null => {
  if (micros === null) return null
  const dollars = micros / 1_000_000
  if (dollars === 0) return '$0'
  if (dollars < 0.0001) return '<$0.0001'
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : dollars < 10 ? 3 : 2)}`
}

const tokensText = ({ inputTokens, outputTokens }: OverviewRequest): string | undefined =>
  inputTokens === null && outputTokens === null
    ? undefined
    : `${(inputTokens ?? 0).toLocaleString('en')} tokens in, ${(outputTokens ?? 0).toLocaleString('en')} out`
