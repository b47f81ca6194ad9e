/** One account: its state and why, what you can do about it, and tabs with details. */
import type { FC } from 'hono/jsx'
import type { OfferedAction } from '../../src/model/accounts/account-actions.ts'
import type { AccountHistoryEntry } from '../../src/model/accounts/account-events-read.ts'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import type { Titled } from '../titles.ts'
import { NeedsScript, Outcome } from '../ui/form.tsx'
import { withQuery } from '../ui/with-query.ts'
import { type CredentialsProps, CredentialsTab } from './credentials.tsx'
import { type EventsProps, EventsTab } from './events.tsx'
import { AccountHead } from './head.tsx'
import { accountPath } from './links.ts'
import { type RoutingProps, RoutingTab } from './routing.tsx'
import { type StatementProps, StatementTab } from './statement.tsx'
import { type UsageProps, UsageTab } from './usage.tsx'

export type TabName = Tab['tab']

export type Tab =
  | ({ tab: 'usage' } & UsageProps)
  | ({ tab: 'statement' } & StatementProps)
  | ({ tab: 'routing' } & RoutingProps)
  | ({ tab: 'events' } & EventsProps)
  | ({ tab: 'credentials' } & CredentialsProps)

export interface AccountProps {
  account: WireAccount
  /** null: hidden from the user, or unknown. */
  workspace: string | null
  actions: readonly OfferedAction[]
  /** The tabs the user may open. */
  tabs: readonly TabName[]
  content: Tab
  mayWrite: boolean
  /** The last probe within an hour; null: none, or hidden from the user. */
  probe: AccountHistoryEntry | null
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

export const AccountPage: Titled<AccountProps> = (props) => {
  const { account, tabs, content, now, done, problem } = props
  return (
    <div class="page" data-now={now}>
      <nav class="crumbs" aria-label="Where you are">
        <a href="/accounts">Accounts</a>
      </nav>
      <Outcome done={done} problem={problem} />
      <NeedsScript />
      <AccountHead {...props} />
      <nav class="tabs" aria-label="About this account">
        {tabs.map((tab) => (
          <a
            href={withQuery(accountPath(account.accountId), { tab: tab === 'usage' ? null : tab })}
            aria-current={tab === content.tab ? 'page' : undefined}
          >
            {LABELS[tab]}
          </a>
        ))}
      </nav>
      <Content account={account} content={content} now={now} />
    </div>
  )
}

AccountPage.title = ({ account }) => account.displayName

const LABELS: Record<TabName, string> = {
  usage: 'Usage',
  statement: 'Statement',
  routing: 'Routing',
  events: 'Events',
  credentials: 'Credentials',
}

const Content: FC<Pick<AccountProps, 'account' | 'content' | 'now'>> = ({ account, content, now }) => {
  switch (content.tab) {
    case 'usage':
      return <UsageTab {...content} account={account} now={now} />
    case 'statement':
      return <StatementTab {...content} />
    case 'routing':
      return <RoutingTab {...content} account={account} />
    case 'events':
      return <EventsTab {...content} account={account} now={now} />
    case 'credentials':
      return <CredentialsTab {...content} account={account} now={now} />
  }
}
