/** What narrows the account list: a plain form whose answer is a link that can be kept. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { planName } from '../account-list.tsx'
import { STATE_LABELS } from '../ui/badge.tsx'
import type { AccountsProps } from './list.tsx'
import { listLink } from './list-link.ts'

export const Filters: FC<AccountsProps> = ({ query, plans, states }) => (
  <div class="filters">
    <form class="filter-form" method="get" action="/accounts" aria-label="Filter accounts" data-auto>
      <input
        type="search"
        name="q"
        value={query.q}
        maxlength={200}
        placeholder="Name, e-mail or id"
        aria-label="Search accounts"
        data-search
      />
      <Choice name="state" label="State" any="Any state" value={query.state}>
        {Object.entries(states).map(([state, count]) => (
          <option value={state} selected={state === query.state}>
            {STATE_LABELS[state as keyof typeof STATE_LABELS] /* as: the keys of `states` are states */} ({count})
          </option>
        ))}
      </Choice>
      <Choice name="eligible" label="Eligible now" any="Eligible or not" value={query.eligible}>
        <option value="yes" selected={query.eligible === 'yes'}>
          Eligible now
        </option>
        <option value="no" selected={query.eligible === 'no'}>
          Not eligible
        </option>
      </Choice>
      <Choice name="plan" label="Plan" any="Any plan" value={query.plan}>
        {plans.map((plan) => (
          <option value={plan} selected={plan === query.plan}>
            {planName(plan) ?? 'Unknown'}
          </option>
        ))}
      </Choice>
      {query.sort !== 'name' && <input type="hidden" name="sort" value={query.sort} />}
      {query.order !== 'asc' && <input type="hidden" name="order" value={query.order} />}
      {query.view !== 'table' && <input type="hidden" name="view" value={query.view} />}
      {query.per !== 25 && <input type="hidden" name="per" value={String(query.per)} />}
      <button class="button button-plain without-script" type="submit">
        Apply
      </button>
      {isNarrowed(query) && (
        <a
          class="filter-clear"
          href={listLink(query, { q: '', state: undefined, eligible: undefined, plan: undefined })}
        >
          Clear
        </a>
      )}
    </form>
    <ViewSwitch query={query} />
  </div>
)

const isNarrowed = ({ q, state, eligible, plan }: AccountsProps['query']): boolean =>
  q !== '' || state !== undefined || eligible !== undefined || plan !== undefined

interface ChoiceProps {
  name: string
  label: string
  any: string
  value: string | undefined
}

const Choice: FC<PropsWithChildren<ChoiceProps>> = ({ name, label, any, value, children }) => (
  <select name={name} aria-label={label} class={value === undefined ? undefined : 'is-set'}>
    <option value="">{any}</option>
    {children}
  </select>
)

const ViewSwitch: FC<Pick<AccountsProps, 'query'>> = ({ query }) => (
  <nav class="view-switch" aria-label="View">
    {(['table', 'cards'] as const).map((view) => (
      <a href={listLink(query, { view, page: query.page })} aria-current={query.view === view ? 'true' : undefined}>
        {view === 'table' ? 'Table' : 'Cards'}
      </a>
    ))}
  </nav>
)
