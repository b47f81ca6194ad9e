/** One conversation: what it used, how its requests ended, and a line for each of them. */
import type { FC } from 'hono/jsx'
import type { ConversationDetail } from '../../src/model/conversations/conversations.ts'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import type { LogStatus } from '../../src/model/log/request-log-query.ts'
import type { Outcome } from '../../src/model/overview/outcome-strip.ts'
import { LogTime } from '../logs/log-time.tsx'
import { Result } from '../logs/rows.tsx'
import { KIND_NAMES } from '../logs/words.ts'
import { OutcomeCell, OutcomeStrip } from '../overview/charts.tsx'
import type { Titled } from '../titles.ts'
import { costText, countText, plural, shortCount } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { CopyButton } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Fact } from '../ui/fact.tsx'
import { AgePager } from '../ui/pager.tsx'
import { TableHead } from '../ui/table.tsx'
import { durationText, Moment, spanText } from '../ui/time.tsx'

export interface ConversationView extends ConversationDetail {
  /** ISO 8601: when the page was made. */
  now: string
  /** Newest first. */
  requests: LogEntry[]
  links: {
    newest: string | null
    older: string | null
    /** Its requests in the log, with filters. */
    log: string
    /** The account it stays on; null: hidden from the user. */
    session: string | null
  }
}

export const ConversationPageView: Titled<ConversationView> = (conversation) => (
  <div class="page" data-now={conversation.now}>
    <nav class="crumbs" aria-label="Where you are">
      <a href="/logs">Logs</a> / <a href="/logs/conversations">Conversations</a>
    </nav>
    <header class="page-head">
      <h1>Conversation</h1>
    </header>
    <Card id="conversation" title="Summary">
      <Facts {...conversation} />
      <Strip outcomes={conversation.outcomes} />
    </Card>
    {conversation.modelStats.length > 1 && <Models {...conversation} />}
    <Card
      id="turns"
      title="Requests"
      count={countText(conversation.requestCount)}
      aside={
        <span class="card-link">
          <a href={conversation.links.log}>Open in Logs</a>
        </span>
      }
    >
      <div class="scroll-x">
        <Turns {...conversation} />
      </div>
      <AgePager newest={conversation.links.newest} older={conversation.links.older} />
    </Card>
  </div>
)

ConversationPageView.title = () => 'Conversation'

const Facts: FC<ConversationView> = (one) => (
  <dl class="answers">
    <Fact name="Time">
      <Moment at={one.start} /> to <Moment at={one.latest} />{' '}
      <span class="muted">· {spanText(Date.parse(one.latest) - Date.parse(one.start))}</span>
    </Fact>
    <Fact name="Key">{one.apiKeyName ?? (one.apiKeyId ? 'Deleted key' : 'None')}</Fact>
    <Fact name="Client">{one.dominantClientName ?? 'Unknown'}</Fact>
    <Fact name={one.accountCount === 1 ? 'Account' : 'Accounts'}>
      {one.accounts.length === 0
        ? 'None'
        : one.accounts.map(({ accountName, requestCount }, index) => (
            <>
              {index > 0 && ', '}
              {accountName ?? 'Deleted account'} <span class="muted">({plural(requestCount, 'request')})</span>
            </>
          ))}
      {one.links.session && (
        <>
          {' '}
          · <a href={one.links.session}>Sticky session</a>
        </>
      )}
    </Fact>
    <Fact name="Moves">{movesText(one)}</Fact>
    <Fact name="Tokens">
      {countText(one.inputTokens)} in{' '}
      <span class="muted">
        ({one.cachedShare === null ? 'no usage reported' : `${Math.round(one.cachedShare * 100)} % cached`})
      </span>
      , {countText(one.outputTokens)} out
    </Fact>
    <Fact name="Cost">
      {costText(one.totalCostUsd)} <span class="muted">at API prices</span>
    </Fact>
    <Fact name="Results">{resultsText(one)}</Fact>
    <Fact name="Conversation ID">
      <span class="copied">
        <code>{one.conversationId}</code>
        <CopyButton />
      </span>
    </Fact>
    {one.isPartial && <Fact name="Note">The sums contain the newest 20,000 requests.</Fact>}
  </dl>
)

const movesText = ({ moves, movedInputTokens, avoidableMoves }: ConversationView): string =>
  moves === 0
    ? 'None'
    : `${plural(moves, 'move')}, ${countText(movedInputTokens)} tokens sent uncached, ${countText(avoidableMoves)} avoidable`

const resultsText = ({ requestCount, errors, cancelled }: ConversationView): string =>
  [plural(requestCount, 'request'), plural(errors, 'error'), `${countText(cancelled)} cancelled`].join(', ')

const CELLS: Record<LogStatus, Outcome> = {
  ok: 'ok',
  error: 'some_errors',
  rate_limit: 'blocked',
  quota: 'blocked',
  cancelled: 'idle',
}

const LEGEND: readonly (readonly [Outcome, string])[] = [
  ['ok', 'completed'],
  ['some_errors', 'error'],
  ['blocked', 'rate limited or out of quota'],
  ['idle', 'cancelled'],
]

const Strip: FC<Pick<ConversationView, 'outcomes'>> = ({ outcomes }) => {
  const strip = outcomes.map(({ status }) => CELLS[status])
  const counts = LEGEND.map(([kind, text]) => [strip.filter((one) => one === kind).length, text] as const)
  const label = counts.flatMap(([count, text]) => (count > 0 ? `${count} ${text}` : [])).join(', ')
  return (
    <div class="card-part conversation-strip">
      <OutcomeStrip
        strip={strip}
        cells={Math.max(strip.length, FEWEST_CELLS)}
        label={`The last ${plural(strip.length, 'request')}, oldest first: ${label}`}
      />
      <span class="strip-legend muted">
        <span>Last {plural(strip.length, 'request')}</span>
        {LEGEND.filter(([kind]) => strip.includes(kind)).map(([kind, text]) => (
          <span class="strip-key">
            <OutcomeCell outcome={kind} /> {text}
          </span>
        ))}
      </span>
    </div>
  )
}

const FEWEST_CELLS = 60

const Models: FC<ConversationView> = ({ modelStats }) => (
  <Card id="conversation-models" title="Models" help="conversation-models">
    <div class="scroll-x">
      <table class="list labelled">
        <TableHead texts={['Model']} numbers={['Requests', 'Input', 'Cached', 'Output', 'Cost', 'Total time']} />
        <tbody>
          {modelStats.map(({ modelEffort: { model, reasoningEffort }, ...sums }) => (
            <tr>
              <td>
                {model ? <code>{model}</code> : '–'} {reasoningEffort}
              </td>
              <td class="number" data-label="Requests">
                {countText(sums.reqs)}
              </td>
              <td class="number" data-label="Input">
                {shortCount(sums.totalInputTokens)}
              </td>
              <td class="number" data-label="Cached">
                {shortCount(sums.cachedInputTokens)}
              </td>
              <td class="number" data-label="Output">
                {shortCount(sums.totalOutputTokens)}
              </td>
              <td class="number" data-label="Cost">
                {costText(sums.totalCostUsd)}
              </td>
              <td class="number" data-label="Total time">
                {durationText(sums.totalElapsedTime)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Card>
)

const Turns: FC<ConversationView> = ({ requests, now }) => (
  <table class="list requests labelled">
    <TableHead
      texts={['Time', 'Account', 'Model', 'Result']}
      numbers={['Input', 'Cached', 'Output', 'First token', 'Cost']}
    />
    <tbody>
      {requests.map((request) => (
        <Turn request={request} now={now} />
      ))}
    </tbody>
  </table>
)

const Turn: FC<{ request: LogEntry; now: string }> = ({ request, now }) => {
  const { inputTokens, cachedInputTokens, outputTokens } = request
  return (
    <tr>
      <td class="cell-time">
        <a class="row-link" href={`/logs/${request.id}`}>
          <LogTime at={request.requestedAt} now={now} />
        </a>
      </td>
      <td class="cell-account" title={request.accountName ?? undefined}>
        {request.accountName ?? <span class="muted">{request.accountId ? 'deleted account' : 'none'}</span>}{' '}
        {request.movedAccount && <Badge tone="wait">Moved here</Badge>}
      </td>
      <td class="cell-model">
        {request.requestKind !== 'normal' && <Badge tone="idle">{KIND_NAMES[request.requestKind]}</Badge>}{' '}
        {request.model && <code>{request.model}</code>} {request.reasoningEffort}
      </td>
      <td class="cell-result">
        <Result request={request} />
      </td>
      <td class="number" data-label="Input">
        {amount(inputTokens)}
      </td>
      <td class="number" data-label="Cached">
        {inputTokens ? `${Math.round(((cachedInputTokens ?? 0) / inputTokens) * 100)} %` : '–'}
      </td>
      <td class="number" data-label="Output">
        {amount(outputTokens)}
      </td>
      <td class="number" data-label="First token">
        {request.latencyFirstTokenMs === null ? '–' : durationText(request.latencyFirstTokenMs)}
      </td>
      <td class="cell-cost number">{request.costUsd === null ? '–' : costText(request.costUsd)}</td>
    </tr>
  )
}

const amount = (tokens: number | null): string => (tokens === null ? '–' : shortCount(tokens))
