/** The filters of the account list: a plain form, so every result is a link. */
import type { FC } from 'hono/jsx'
import type { AccountStatus } from '../../src/model/accounts/account-state.ts'
import { STATE_NAMES } from '../../src/model/accounts/account-words.ts'
import { type Option, Options, plainOptions, withChosenOption } from '../ui/select.tsx'
import { planName } from './availability.tsx'
import { listLink } from './links.ts'
import type { AccountsProps } from './list.tsx'

export const Filters: FC<AccountsProps> = ({ query, plans, tags, states }) => (
  <div class="filters">
    <form class="filter-form" method="get" action="/accounts" aria-label="Filter accounts" data-auto>
      <input
        type="search"
        name="q"
        value={query.q}
        maxlength={200}
        placeholder="Name, e-mail or ID"
        aria-label="Search accounts"
      />
      <Choice name="state" label="State" any="Any state" value={query.state} options={stateOptions(states)} />
      <Choice
        name="eligible"
        label="Availability"
        any="Any availability"
        value={query.eligible}
        options={AVAILABILITY}
      />
      <Choice
        name="plan"
        label="Plan"
        any="Any plan"
        value={query.plan}
        options={plans.map(({ plan, accounts }) => [plan, `${planName(plan) ?? 'Unknown'} (${accounts})`])}
      />
      {(tags.length > 0 || query.tag !== undefined) && (
        <Choice
          name="tag"
          label="Tag"
          any="Any tag"
          value={query.tag}
          options={withChosenOption(plainOptions(tags), query.tag)}
        />
      )}
      {query.sort !== 'name' && <input type="hidden" name="sort" value={query.sort} />}
      {query.order !== 'asc' && <input type="hidden" name="order" value={query.order} />}
      {query.view !== 'table' && <input type="hidden" name="view" value={query.view} />}
      {query.per !== 25 && <input type="hidden" name="per" value={String(query.per)} />}
      <button class="button button-plain without-script" type="submit">
        Apply
      </button>
      {isNarrowed(query) && (
        <a href={listLink(query, { q: '', state: undefined, eligible: undefined, plan: undefined, tag: undefined })}>
          Clear
        </a>
      )}
    </form>
    <ViewSwitch query={query} />
  </div>
)

const AVAILABILITY: readonly Option[] = [
  ['yes', 'Available'],
  ['no', 'Not available'],
]

const stateOptions = (states: AccountsProps['states']): Option[] =>
  Object.entries(states).map(([state, count]) => [
    state,
    `${STATE_NAMES[state as AccountStatus]} (${count})`, // as: the keys of `states` are
  ])

const isNarrowed = ({ q, state, eligible, plan, tag }: AccountsProps['query']): boolean =>
  q !== '' || state !== undefined || eligible !== undefined || plan !== undefined || tag !== undefined

interface ChoiceProps {
  name: string
  label: string
  any: string
  value: string | undefined
  options: readonly Option[]
}

const Choice: FC<ChoiceProps> = ({ name, label, any, value, options }) => (
  <select name={name} aria-label={label} class={value === undefined ? undefined : 'is-set'}>
    <option value="">{any}</option>
    <Options of={options} chosen={value} />
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
