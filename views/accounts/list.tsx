/** All accounts: found, sorted, looked at as a table or as cards, and changed several at a time. */
import type { FC } from 'hono/jsx'
import type { AccountQuery } from '../../src/model/account-filter.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import { Done } from '../ui/form.tsx'
import { BulkBar } from './bulk.tsx'
import { AccountCards } from './cards.tsx'
import { Filters } from './filters.tsx'
import { listLink } from './list-link.ts'
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
  return (
    <div class="page" data-now={now}>
      <header class="page-head page-head-actions">
        <h1>Accounts</h1>
        <span class="muted">{countText(props)}</span>
        <AddAccount mayWrite={mayWrite} />
      </header>
      <Done text={done} />
      {problem && <p class="note note-bad">{problem}</p>}
      {total === 0 ? (
        <Empty mayWrite={mayWrite} />
      ) : (
        <section class="card" aria-label="Accounts">
          <Filters {...props} />
          {found === 0 ? (
            <NothingFound />
          ) : query.view === 'cards' ? (
            <AccountCards {...props} />
          ) : (
            <AccountTable {...props} />
          )}
          <Pager {...props} />
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
    <a class="button" href="/accounts/new">
      Add account
    </a>
  ) : (
    <button class="button" type="button" disabled title="Your role can look at accounts but not add them.">
      Add account
    </button>
  )

const Empty: FC<{ mayWrite: boolean }> = ({ mayWrite }) => (
  <section class="card empty">
    <p>No accounts yet. An account is what turns are served with: sign in to one, or bring its file.</p>
    <AddAccount mayWrite={mayWrite} />
  </section>
)

const NothingFound: FC = () => (
  <div class="empty">
    <p>No account matches.</p>
    <a class="button button-plain" href="/accounts">
      Clear filters
    </a>
  </div>
)

const Pager: FC<AccountsProps> = ({ query, pages, found }) => {
  if (found <= 25) return null
  return (
    <nav class="pager" aria-label="Pages">
      {query.page > 1 && (
        <a href={listLink(query, { page: query.page - 1 })} rel="prev">
          Previous
        </a>
      )}
      <span class="muted">
        Page {query.page} of {pages}
      </span>
      {query.page < pages && (
        <a href={listLink(query, { page: query.page + 1 })} rel="next">
          Next
        </a>
      )}
      <a href={listLink(query, { per: query.per === 25 ? 100 : 25 })}>Show {query.per === 25 ? 100 : 25} a page</a>
    </nav>
  )
}
