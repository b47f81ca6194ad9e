/** The account list: search, filters, table or cards, and actions on several accounts. */
import type { FC } from 'hono/jsx'
import type { AccountQuery, ListedAccount, PlanTotal } from '../../src/model/accounts/account-filter.ts'
import { ButtonLink, DisabledButton } from '../ui/button.tsx'
import { Outcome } from '../ui/form.tsx'
import { LivePart, live } from '../ui/live.tsx'
import { NumberedPager } from '../ui/pager.tsx'
import { BulkBar } from './bulk.tsx'
import { AccountCards } from './cards.tsx'
import { Filters } from './filters.tsx'
import { listLink, SIMULATOR } from './links.ts'
import { PlanTotals } from './plans.tsx'
import { AccountTable } from './table.tsx'

export interface AccountsProps {
  /** The current page of the list. */
  accounts: readonly ListedAccount[]
  /** How many match the filters, and how many there are. */
  found: number
  total: number
  pages: number
  query: AccountQuery
  /** One per plan, over all accounts. */
  plans: readonly PlanTotal[]
  /** Tags to filter by. */
  tags: readonly string[]
  /** States to filter by, with their number of accounts. */
  states: Readonly<Record<string, number>>
  mayWrite: boolean
  mayExport: boolean
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
        {mayWrite && <ButtonLink href="/accounts/import">Import</ButtonLink>}
        <ButtonLink href={SIMULATOR}>Routing simulator</ButtonLink>
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
          {mayWrite && accounts.length > 0 && <BulkBar mayExport={props.mayExport} tags={props.tags} />}
        </section>
      )}
      {total > 1 && <PlanTotals plans={props.plans} src={src} />}
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
    <DisabledButton label="Add account" why="Your role can view accounts but not add them." isMain />
  )

const Empty: FC<{ mayWrite: boolean; src: string }> = ({ mayWrite, src }) => (
  <section class="card empty" {...live({ id: 'accounts-none', topics: ['accounts'], src })}>
    <p>No accounts yet. Add a ChatGPT account to start serving requests.</p>
    <AddAccount mayWrite={mayWrite} />
    {mayWrite && (
      <p>
        Coming from codex-lb or another tool? <a href="/accounts/import">Import your accounts and keys</a>.
      </p>
    )}
  </section>
)

const NothingFound: FC = () => (
  <div class="empty">
    <p>No account matches these filters.</p>
    <ButtonLink href="/accounts">Clear filters</ButtonLink>
  </div>
)

const Pager: FC<AccountsProps> = ({ query, pages, found }) => {
  if (found <= 25) return null
  const per = query.per === 25 ? 100 : 25
  return (
    <NumberedPager page={query.page} pages={pages} at={(page) => listLink(query, { page })}>
      <a href={listLink(query, { per })}>Show {per} per page</a>
    </NumberedPager>
  )
}
