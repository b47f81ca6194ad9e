/** What happened to an account, newest first. */
import type { FC } from 'hono/jsx'
import type { AccountHistoryEntry, AccountHistoryPage } from '../../src/model/account-events-read.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { Since } from '../ui/time.tsx'
import { accountPath, withQuery } from './links.ts'

export interface EventsProps extends AccountHistoryPage {
  /** The page begins after this event; null: with the newest. */
  before: number | null
}

export const EventsTab: FC<EventsProps & { account: WireAccount; now: string }> = (props) => {
  const { account, events, older, before, now } = props
  const link = (at: number | null) => withQuery(accountPath(account.accountId), { tab: 'events', before: at })
  return (
    <section class="card" aria-labelledby="events-title">
      <header class="card-head">
        <h2 id="events-title">Events</h2>
      </header>
      {events.length === 0 ? (
        <p class="empty muted">{before === null ? 'Nothing has happened to this account yet.' : 'Nothing older.'}</p>
      ) : (
        <ol class="events">
          {events.map((event) => (
            <Event event={event} now={now} />
          ))}
        </ol>
      )}
      {(before !== null || older !== null) && (
        <nav class="pager" aria-label="Pages">
          {before !== null && <a href={link(null)}>Newest</a>}
          {older !== null && (
            <a href={link(older)} rel="next">
              Older
            </a>
          )}
        </nav>
      )}
    </section>
  )
}

const KINDS: Record<AccountHistoryEntry['kind'], string> = {
  state: 'State',
  token: 'Token',
  probe: 'Probe',
  import: 'Import',
  plan: 'Plan',
  reset: 'Reset',
}

const Event: FC<{ event: AccountHistoryEntry; now: string }> = ({ event, now }) => (
  <li class="event">
    <span class="event-time muted">
      <Since at={event.at} now={now} />
    </span>
    <span class="event-kind">{KINDS[event.kind]}</span>
    <span class="event-what">
      <strong>{event.result.replaceAll('_', ' ')}</strong>
      {event.detail && <span class="muted small">{event.detail}</span>}
    </span>
  </li>
)
