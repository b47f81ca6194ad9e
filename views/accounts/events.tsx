/** What happened to an account, newest first. */
import type { FC } from 'hono/jsx'
import type { AccountHistoryEntry, AccountHistoryPage } from '../../src/model/account-events-read.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { Card } from '../ui/card.tsx'
import { AgePager } from '../ui/pager.tsx'
import { Since } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import { accountPath } from './links.ts'

export interface EventsProps extends AccountHistoryPage {
  /** The page begins after this event; null: with the newest. */
  before: number | null
}

export const EventsTab: FC<EventsProps & { account: WireAccount; now: string }> = (props) => {
  const { account, events, older, before, now } = props
  const link = (at: number | null) => withQuery(accountPath(account.accountId), { tab: 'events', before: at })
  return (
    <Card id="events" title="Events">
      {events.length === 0 ? (
        <p class="empty muted">{before === null ? 'Nothing has happened to this account yet.' : 'Nothing older.'}</p>
      ) : (
        <ol>
          {events.map((event) => (
            <Event event={event} now={now} />
          ))}
        </ol>
      )}
      <AgePager newest={before === null ? null : link(null)} older={older === null ? null : link(older)} />
    </Card>
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
    <span class="muted">
      <Since at={event.at} now={now} />
    </span>
    <span class="event-kind">{KINDS[event.kind]}</span>
    <span class="event-what">
      <strong>{event.result.replaceAll('_', ' ')}</strong>
      {event.detail && <span class="muted small">{event.detail}</span>}
    </span>
  </li>
)
