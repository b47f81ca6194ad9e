/** `/logs/conversations`: conversations by their last request, with what each has used. */
import type { FC } from 'hono/jsx'
import type { ConversationQuery } from '../../src/model/conversations/conversation-query.ts'
import type { ConversationEntry, ConversationPage } from '../../src/model/conversations/conversations.ts'
import { LogTime } from '../logs/log-time.tsx'
import { costText, countText, shortCount } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { AgePager } from '../ui/pager.tsx'
import { Filter, FilterActions } from '../ui/select.tsx'
import { TableHead } from '../ui/table.tsx'
import { Moment, spanText } from '../ui/time.tsx'

export interface Conversations extends ConversationPage {
  /** ISO 8601: when the page was made. */
  now: string
  search: string
  timeframe: ConversationQuery['timeframe'] | null
  /** ISO 8601 */
  since: string | null
  links: { clear: string | null; newest: string | null; older: string | null }
}

export const ConversationsPage: FC<Conversations> = (page) => (
  <div class="page" data-now={page.now}>
    <nav class="crumbs" aria-label="Where you are">
      <a href="/logs">Logs</a>
    </nav>
    <header class="page-head">
      <h1>Conversations</h1>
    </header>
    <Filters {...page} />
    <Card
      id="conversations"
      title="Conversations"
      count={page.total === null ? `${page.conversations.length} on this page` : countText(page.total)}
    >
      {page.conversations.length === 0 ? (
        <Nothing {...page} />
      ) : (
        <div class="scroll-x">
          <table class="list requests labelled">
            <TableHead
              texts={['Last request', 'Key', 'Account', 'Model']}
              numbers={['Length', 'Requests', 'Tokens', 'Cached', 'Cost', 'Moves', 'Errors']}
            />
            <tbody>
              {page.conversations.map((one) => (
                <Row conversation={one} now={page.now} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page.searchedTo && (
        <p class="card-part muted">
          Searched back to <Moment at={page.searchedTo} />.
        </p>
      )}
      <AgePager newest={page.links.newest} older={page.links.older} />
    </Card>
  </div>
)

const TIMES = [
  ['1d', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
] as const

const Filters: FC<Conversations> = ({ search, timeframe, links }) => (
  <form class="card filter-card" method="get" action="/logs/conversations" data-auto>
    <div class="filter-row">
      <label class="field filter-search">
        <span class="field-label">Search</span>
        <input type="search" name="search" value={search} maxlength={200} placeholder="Account, key, model or ID" />
      </label>
      <Filter
        label="Time"
        name="timeframe"
        chosen={timeframe === '30d' ? null : timeframe}
        options={TIMES}
        none="Last 30 days"
      />
      <FilterActions label="Search" clear={links.clear} />
    </div>
  </form>
)

const Nothing: FC<Conversations> = ({ links, searchedTo }) => (
  <div class="empty">
    <p>
      {searchedTo
        ? 'No matches so far.'
        : links.clear
          ? 'No conversations match these filters.'
          : 'No conversations yet. A conversation appears when a client names it, or continues one.'}
    </p>
  </div>
)

const Row: FC<{ conversation: ConversationEntry; now: string }> = ({ conversation: one, now }) => (
  <tr>
    <td class="cell-time">
      <a class="row-link" href={`/logs/conversations/${encodeURIComponent(one.conversationId)}`}>
        <LogTime at={one.lastRequest} now={now} />
      </a>
    </td>
    <td class="cell-key">{one.apiKeyName ?? <span class="muted">{one.apiKeyId ? 'deleted key' : '–'}</span>}</td>
    <td class="cell-account" title={one.representativeAccount ?? undefined}>
      {one.representativeAccount ?? (
        <span class="muted">{one.representativeAccountId ? 'deleted account' : 'none'}</span>
      )}
      <Others count={one.remainingAccountCount} />
    </td>
    <td class="cell-model">
      {one.representativeModel && <code>{one.representativeModel}</code>}
      <Others count={one.remainingModelCount} />
    </td>
    <td class="number" data-label="Length">
      {spanText(Date.parse(one.lastRequest) - Date.parse(one.firstRequest))}
    </td>
    <td class="number" data-label="Requests">
      {countText(one.requestCount)}
    </td>
    <td class="number" data-label="Tokens" title={one.isPartial ? PARTIAL : undefined}>
      {shortCount(one.totalTokens)}
      {one.isPartial && '+'}
    </td>
    <td class="number" data-label="Cached">
      {one.cachedShare === null ? '–' : `${Math.round(one.cachedShare * 100)} %`}
    </td>
    <td class="number" data-label="Cost" title={one.isPartial ? PARTIAL : undefined}>
      {costText(one.totalCostUsd)}
      {one.isPartial && '+'}
    </td>
    <td class="number" data-label="Moves">
      {countText(one.moves)}
    </td>
    <td class="number" data-label="Errors">
      {one.errors > 0 ? <b>{countText(one.errors)}</b> : '0'}
    </td>
  </tr>
)

const PARTIAL = 'Sum of the newest 1,000 requests'

const Others: FC<{ count: number }> = ({ count }) => (count === 0 ? null : <span class="muted"> +{count}</span>)
