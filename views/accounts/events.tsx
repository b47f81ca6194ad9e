/** What happened to an account, newest first. */
import type { FC } from 'hono/jsx'
import type { AccountHistoryEntry, AccountHistoryPage } from '../../src/model/accounts/account-events-read.ts'
import type { AccountStatus } from '../../src/model/accounts/account-state.ts'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { STATE_NAMES } from '../../src/model/accounts/account-words.ts'
import { Card } from '../ui/card.tsx'
import { AgePager } from '../ui/pager.tsx'
import { Since } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import { accountPath } from './links.ts'

export interface EventsProps extends AccountHistoryPage {
  /** The page starts after this event; null: with the newest. */
  before: number | null
}

export const EventsTab: FC<EventsProps & { account: WireAccount; now: string }> = (props) => {
  const { account, events, older, before, now } = props
  const link = (at: number | null) => withQuery(accountPath(account.accountId), { tab: 'events', before: at })
  return (
    <Card id="events" title="Events">
      {events.length === 0 ? (
        <p class="empty muted">{before === null ? 'No events yet.' : 'No older events.'}</p>
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
  window: 'Window',
  statement: 'Statement',
}

const resultText = ({ kind, result }: AccountHistoryEntry): string => {
  if (kind === 'state' && Object.hasOwn(STATE_NAMES, result)) return STATE_NAMES[result as AccountStatus] // as: it is one
  const text = result.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const Event: FC<{ event: AccountHistoryEntry; now: string }> = ({ event, now }) => (
  <li class="event">
    <span class="muted">
      <Since at={event.at} now={now} />
    </span>
    <span class="event-kind">{KINDS[event.kind]}</span>
    <span class="event-what">
      <strong>{resultText(event)}</strong>
      {event.detail && <span class="muted small">{event.detail}</span>}
    </span>
  </li>
)
