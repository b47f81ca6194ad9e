/** `/logs`: filters, the list, its pages, and the drawer of one request. */
import type { FC } from 'hono/jsx'
import type { Logs } from '../../src/admin/logs-page.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Moment } from '../ui/time.tsx'
import { Filters } from './filters.tsx'
import { Histogram, hasAny } from './histogram.tsx'
import { RejectedTable } from './rejected.tsx'
import { RequestDetail } from './request.tsx'
import { RequestTable } from './rows.tsx'

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
