/** All accounts: found, sorted, looked at as a table or as cards, and changed several at a time. */
import type { FC } from 'hono/jsx'
import type { AccountQuery } from '../../src/model/account-filter.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { ButtonLink, Refused } from '../ui/button.tsx'
import { Outcome } from '../ui/form.tsx'
import { LivePart, live } from '../ui/live.tsx'
import { NumberedPager } from '../ui/pager.tsx'
import { BulkBar } from './bulk.tsx'
import { AccountCards } from './cards.tsx'
import { Filters } from './filters.tsx'
import { listLink } from './links.ts'
import { AccountTable } from './table.tsx'

export interface AccountsProps {
  /** The page of the list that is shown. */
  accounts: readonly WireAccount[]
  /** How many pass the filters, and how many there are. */
  found: number
  total: number
  pages: number
  query: AccountQuery
  /** What the filters offer. */
  plans: readonly string[]
  states: Readonly<Record<string, number>>
  mayWrite: boolean
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

export const AccountsPage: FC<AccountsProps> = (props) => {
  const { accounts, found, total, query, mayWrite, now, done, problem } = props
  const src = listLink(query, { page: query.page })
  return (
    <div class="page" data-now={now}>
      <header class="page-head page-head-actions">
        <h1>Accounts</h1>
        <span class="muted" {...live({ id: 'account-count', topics: ['accounts'], src })}>
          {countText(props)}
        </span>
        <AddAccount mayWrite={mayWrite} />
      </header>
      <Outcome done={done} problem={problem} />
      {total === 0 ? (
        <Empty mayWrite={mayWrite} src={src} />
      ) : (
        <section class="card" aria-label="Accounts">
          <Filters {...props} />
          <LivePart id="account-list" topics={['accounts', 'usage']} src={src}>
            {found === 0 ? (
              <NothingFound />
            ) : query.view === 'cards' ? (
              <AccountCards {...props} />
            ) : (
              <AccountTable {...props} />
            )}
            <Pager {...props} />
          </LivePart>
          {mayWrite && accounts.length > 0 && <BulkBar />}
        </section>
      )}
    </div>
  )
}

const countText = ({ found, total, accounts }: AccountsProps): string => {
  if (found < total) return `${found} of ${total}`
  return accounts.length < total ? `${accounts.length} of ${total} on this page` : String(total)
}

const AddAccount: FC<{ mayWrite: boolean }> = ({ mayWrite }) =>
  mayWrite ? (
    <ButtonLink isMain href="/accounts/new">
      Add account
    </ButtonLink>
  ) : (
    <Refused label="Add account" why="Your role can look at accounts but not add them." isMain />
  )

const Empty: FC<{ mayWrite: boolean; src: string }> = ({ mayWrite, src }) => (
  <section class="card empty" {...live({ id: 'accounts-none', topics: ['accounts'], src })}>
    <p>No accounts yet. An account is what turns are served with: sign in to one, or bring its file.</p>
    <AddAccount mayWrite={mayWrite} />
  </section>
)

const NothingFound: FC = () => (
  <div class="empty">
    <p>No account matches.</p>
    <ButtonLink href="/accounts">Clear filters</ButtonLink>
  </div>
)

const Pager: FC<AccountsProps> = ({ query, pages, found }) => {
  if (found <= 25) return null
  const per = query.per === 25 ? 100 : 25
  return (
    <NumberedPager page={query.page} pages={pages} at={(page) => listLink(query, { page })}>
      <a href={listLink(query, { per })}>Show {per} a page</a>
    </NumberedPager>
  )
}
