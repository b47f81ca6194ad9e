/** The filters of the log: a form whose fields become the query string of the page. */
import type { FC } from 'hono/jsx'
import type { MoreColumn } from '../../src/model/log/request-log-page.ts'
import { Submit } from '../ui/button.tsx'
import { Filter, getOptions, plainOptions, TimeFilter } from '../ui/select.tsx'
import type { Logs } from './page.tsx'
import { COLUMN_NAMES, KIND_CHOICES, RANGE_CHOICES, STATUS_CHOICES, VIEWS } from './words.ts'

export const Filters: FC<Logs> = (logs) => {
  const { filters, options, limit } = logs
  return (
    <form id="log-filters" class="card filter-card" method="get" action="/logs" data-auto>
      <Chips {...logs} />
      <div class="filter-row">
        <label class="field filter-search">
          <span class="field-label">Search</span>
          <input
            type="search"
            name="search"
            value={filters.search}
            maxlength={200}
            placeholder={logs.showsAccounts ? 'Request ID, error, account, key …' : 'Request ID, error, key …'}
          />
        </label>
        <Filter
          label="Time"
          name="range"
          chosen={filters.range}
          options={RANGE_CHOICES}
          none={isCustom(logs) ? 'Custom' : 'Any time'}
        />
        <Filter label="Result" name="status" chosen={filters.status[0]} options={STATUS_CHOICES} />
        {logs.showsAccounts && (
          <Filter label="Account" name="accountId" chosen={filters.account[0]} options={getOptions(options.accounts)} />
        )}
        {options.keys && (
          <Filter label="Key" name="apiKeyId" chosen={filters.key[0]} options={getOptions(options.keys)} />
        )}
        <Filter label="Model" name="model" chosen={filters.model[0]} options={plainOptions(options.models)} />
        <div class="filter-actions without-script">
          <Submit>Apply</Submit>
        </div>
      </div>
      {filters.slow && <input type="hidden" name="slow" value="true" />}
      {logs.isLive && <input type="hidden" name="live" value="true" data-live-field />}
      {!logs.isGrouped && <input type="hidden" name="grouped" value="false" />}
      {filters.conversation && <input type="hidden" name="conversation_id" value={filters.conversation} />}
      {filters.further.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {limit !== null && <input type="hidden" name="limit" value={String(limit)} />}
      <MoreFilters {...logs} />
      {filters.further.length > 0 && <p class="filter-note">Also filtered by {furtherText(logs)}.</p>}
      {filters.conversation && (
        <p class="filter-note">
          Showing one conversation: <code>{filters.conversation.slice(0, 12)}</code>
        </p>
      )}
    </form>
  )
}

const Chips: FC<Logs> = (logs) => {
  const { links } = logs
  return (
    <div class="chip-row">
      <nav class="chips" aria-label="Show">
        {VIEWS.map(([name, label]) => (
          <a
            href={links[name]}
            aria-current={name === getView(logs) ? 'page' : undefined}
            title={name === 'slow' ? 'First token after more than 10 s' : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      {links.clear && (
        <a class="clear-filters" href={links.clear}>
          Clear filters
        </a>
      )}
    </div>
  )
}

const MoreFilters: FC<Logs> = (logs) => {
  const { filters, columns } = logs
  return (
    <details
      class="filter-more"
      open={isCustom(logs) || filters.code.length > 0 || filters.kind.length > 0 || columns.length > 0}
    >
      <summary class="reveal">More filters and columns</summary>
      <div class="filter-row">
        <Filter label="Kind" name="kind" chosen={filters.kind[0]} options={KIND_CHOICES} />
        <TextFilter label="Error code" name="code" value={filters.code[0]} placeholder="usage_limit_reached" />
        <TimeFilter label="From" name="since" at={filters.since} />
        <TimeFilter label="To" name="until" at={filters.until} />
        <div class="filter-actions needs-script">
          <Submit isPlain>Apply times</Submit>
        </div>
      </div>
      <fieldset class="columns">
        <legend class="field-label">More columns</legend>
        {COLUMNS.filter((name) => logs.isSensitive || name !== 'address').map((name) => (
          <label class="check">
            <input type="checkbox" name="columns" value={name} checked={columns.includes(name)} />
            <span>{COLUMN_NAMES[name]}</span>
          </label>
        ))}
      </fieldset>
    </details>
  )
}

const getView = ({ filters: { status, slow } }: Logs): string | null => {
  const [chosen = null, ...further] = status
  if (chosen === null) return slow ? 'slow' : 'all'
  if (slow || further.length > 0) return null
  return chosen === 'failed' ? 'errors' : chosen === 'rejected' ? 'rejected' : null
}

const COLUMNS = Object.keys(COLUMN_NAMES) as MoreColumn[] // as: Object.keys loses the literal types

const FURTHER: Readonly<Record<string, string>> = {
  accountId: 'account',
  apiKeyId: 'key',
  status: 'result',
  code: 'error code',
  kind: 'kind',
  reasoningEffort: 'effort',
  modelOption: 'model and effort',
  client: 'client',
}

const furtherText = ({ filters, options }: Logs): string => {
  const named = new Map([...options.accounts, ...(options.keys ?? [])].map(({ id, name }) => [id, name]))
  const results = new Map<string, string>(STATUS_CHOICES)
  const texts = filters.further.map(([name, value]) => {
    const text = named.get(value) ?? (name === 'status' ? results.get(value) : undefined) ?? value.replace(':::', ', ')
    return `${FURTHER[name] ?? name} ${text}`
  })
  return texts.join('; ')
}

const isCustom = ({ filters: { range, since, until } }: Logs): boolean => range === null && Boolean(since ?? until)

const TextFilter: FC<{ label: string; name: string; value?: string; placeholder?: string }> = ({ label, ...input }) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input type="text" autocapitalize="none" spellcheck={false} maxlength={100} {...input} />
  </label>
)
