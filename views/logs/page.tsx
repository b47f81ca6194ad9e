/** `/logs`: filters, the list, its pages, and the drawer of one request. */
import type { FC } from 'hono/jsx'
import type { RejectedClient } from '../../src/model/log/rejected-clients.ts'
import type { LogHistogram } from '../../src/model/log/request-histogram.ts'
import type { LogPage } from '../../src/model/log/request-log.ts'
import type { MoreColumn, PageStatus, RangeName } from '../../src/model/log/request-log-page.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import type { Choice } from '../ui/select.tsx'
import { Moment } from '../ui/time.tsx'
import { Filters } from './filters.tsx'
import { Histogram, hasAny } from './histogram.tsx'
import { RejectedTable } from './rejected.tsx'
import { RequestDetail, type RequestView } from './request.tsx'
import { RequestTable } from './rows.tsx'

/** Times are ISO 8601; links are paths with their query. */
export interface Logs extends LogPage {
  generatedAt: string
  filters: LogFilterValues
  /** Set when the page shows rejected clients instead of requests. */
  rejected: RejectedClient[] | null
  /** Requests or rejections over time under the same filters; null: none. */
  histogram: LogHistogram | null
  /** What the filters offer. `keys` is null for users who may not see keys. */
  options: { accounts: Choice[]; keys: Choice[] | null; models: string[] }
  /** false: this user sees only their own keys. */
  showsAccounts: boolean
  columns: MoreColumn[]
  /** Rows per page, if set in the URL. */
  limit: number | null
  /** New requests are added as they end. */
  isLive: boolean
  /** Repeated errors are folded into one row. */
  isGrouped: boolean
  links: LogLinks
  /** The request opened next to the list. */
  open: RequestView | null
  /** May look into conversations. */
  isSensitive: boolean
  /** May open the list of captures. */
  hasCaptures: boolean
}

/** As shown in the form. */
export interface LogFilterValues {
  range: RangeName | null
  since: string | null
  until: string | null
  account: string[]
  key: string[]
  model: string[]
  status: PageStatus[]
  code: string[]
  kind: string[]
  search: string
  slow: boolean
  conversation: string | null
  /** Filters without a field in the form, as they are in the query string: second values, and filters that only links set. */
  further: [name: string, value: string][]
}

export interface LogLinks {
  /** The current list without an open request. */
  here: string
  older: string | null
  newer: string | null
  /** The newest page under the same filters. */
  newest: string
  /** Without filters; null: none are set. */
  clear: string | null
  /** Requests that ended since this page was made, under the same filters; null: this is not the newest page. */
  tail: string | null
  /** The four views above the filters. */
  all: string
  errors: string
  rejected: string
  slow: string
  /** The same list without folded repeats. */
  ungrouped: string
  /** All matching rows, as files. */
  csv: string
  json: string
}

export const LogsPage: FC<Logs> = (logs) => {
  const { requests, columns, links, open, generatedAt: now } = logs
  return (
    <div class="page" data-now={now}>
      <header class="page-head log-head">
        <h1>Logs</h1>
        {logs.isSensitive && <ButtonLink href="/logs/conversations">Conversations</ButtonLink>}
        {logs.hasCaptures && <ButtonLink href="/logs/captures">Captures</ButtonLink>}
        {links.tail && (
          <label class="check tail-switch needs-script">
            <input type="checkbox" data-tail={links.tail} checked={logs.isLive} />
            <span>Live</span>
          </label>
        )}
      </header>
      <Filters {...logs} />
      <Card
        id="log"
        title={logs.rejected ? 'Rejected clients' : 'Requests'}
        count={getCount(logs)}
        aside={
          <>
            <span class="sr" id="tail-says" role="status" />
            <button class="link" id="tail-resume" type="button" hidden>
              Resume
            </button>
            <HeadLinks {...logs} />
          </>
        }
      >
        {logs.histogram?.bars.some(hasAny) && (
          <Histogram
            histogram={logs.histogram}
            isOfRejected={logs.rejected !== null}
            now={now}
            src={links.tail && links.here}
          />
        )}
        {logs.rejected && logs.rejected.length > 0 && (
          <div class="scroll-x">
            <RejectedTable clients={logs.rejected} now={now} />
          </div>
        )}
        {requests.length > 0 || links.tail ? (
          <div class="scroll-x">
            <RequestTable
              id="log-rows"
              requests={requests}
              showsAccounts={logs.showsAccounts}
              columns={columns}
              here={links.here}
              openId={open?.id ?? null}
              now={now}
              ungrouped={logs.isGrouped ? links.ungrouped : null}
            />
          </div>
        ) : null}
        {requests.length === 0 && !logs.rejected?.length && <Nothing {...logs} />}
        <OlderLinks {...logs} />
      </Card>
      <aside id="drawer" class="drawer" aria-label="Request">
        {open && <RequestDetail {...open} close={links.here} />}
      </aside>
    </div>
  )
}

const getCount = ({ total, moreThan, requests, rejected }: Logs): string => {
  if (rejected) return rejected.length === 0 ? '' : `${rejected.length} on this page`
  if (total !== null) return countText(total)
  if (moreThan !== null) return `${countText(moreThan)}+`
  return requests.length === 0 ? '' : `${requests.length} on this page`
}

const HeadLinks: FC<Logs> = ({ links, requests, rejected }) => (
  <span class="card-link">
    {links.newer && (
      <>
        <a href={links.newest}>Newest</a>
        <a href={links.newer} rel="prev">
          Newer
        </a>
      </>
    )}
    {requests.length + (rejected?.length ?? 0) > 0 && (
      <span class="exports">
        Export{' '}
        <a href={links.csv} download>
          CSV
        </a>{' '}
        <a href={links.json} download>
          JSON
        </a>
      </span>
    )}
  </span>
)

const OlderLinks: FC<Logs> = ({ links, requests, rejected, searchedTo }) => {
  const isEmpty = requests.length === 0 && !rejected?.length
  if (!links.older || (isEmpty && searchedTo === null)) return null
  return (
    <nav class="pager" aria-label="Pages">
      {searchedTo !== null && (
        <span class="muted">
          Searched back to <Moment at={searchedTo} />.
        </span>
      )}
      <ButtonLink href={links.older} rel="next">
        {searchedTo === null ? 'Older' : 'Search older'}
      </ButtonLink>
    </nav>
  )
}

/** Distinguishes an empty log, filters without a match and an unfinished search. */
const Nothing: FC<Logs> = ({ links, searchedTo, prevCursor }) => (
  <div class="empty" id="log-empty">
    {links.clear ? (
      <>
        <p>{searchedTo ? 'No matches so far.' : 'No requests match these filters.'}</p>
        <ButtonLink href={links.clear}>Clear filters</ButtonLink>
      </>
    ) : prevCursor ? (
      <p>No more requests.</p>
    ) : (
      <>
        <p>No requests yet. They appear here as soon as a client sends one.</p>
        <ButtonLink href="/dashboard">Connect a client</ButtonLink>
      </>
    )}
  </div>
)
