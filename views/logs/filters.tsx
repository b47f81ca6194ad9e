/** The filters of the log: a form whose fields are the query string of the page. */
import type { Child, FC, PropsWithChildren } from 'hono/jsx'
import type { Choice, Logs } from '../../src/admin/logs-page.ts'
import type { MoreColumn } from '../../src/model/request-log-page.ts'
import { COLUMN_NAMES, RANGE_CHOICES, STATUS_CHOICES } from './words.ts'

export const Filters: FC<Logs> = (logs) => {
  const { filters, options, links, columns } = logs
  return (
    <form class="card log-filters" method="get" action="/logs">
      <div class="filter-row">
        <label class="field filter-search">
          <span class="field-label">Text</span>
          <input
            type="search"
            name="search"
            value={filters.search}
            maxlength={200}
            placeholder="Request id, message, name …"
          />
        </label>
        <Select label="Time" name="range" chosen={filters.range} none={isCustom(logs) ? 'Own range' : 'Any time'}>
          {RANGE_CHOICES.map(([value, label]) => (
            <Option value={value} chosen={filters.range}>
              {label}
            </Option>
          ))}
        </Select>
        <Select label="Result" name="status" chosen={filters.status[0]} none="Any">
          {STATUS_CHOICES.map(([value, label]) => (
            <Option value={value} chosen={filters.status[0]}>
              {label}
            </Option>
          ))}
        </Select>
        <Choices label="Account" name="accountId" chosen={filters.account} choices={options.accounts} />
        {options.keys && <Choices label="Key" name="apiKeyId" chosen={filters.key} choices={options.keys} />}
        <Choices label="Model" name="model" chosen={filters.model} choices={options.models.map(asChoice)} />
        <div class="filter-actions">
          <button class="button" type="submit">
            Filter
          </button>
          {links.clear && (
            <a class="button button-plain" href={links.clear}>
              Clear
            </a>
          )}
        </div>
      </div>
      {filters.conversation && <input type="hidden" name="conversation_id" value={filters.conversation} />}
      <details class="filter-more" open={isCustom(logs) || filters.code.length > 0}>
        <summary class="reveal">More filters and columns</summary>
        <div class="filter-row">
          <TextFilter label="Error code" name="code" value={filters.code[0]} placeholder="usage_limit_reached" />
          <TimeFilter label="From (UTC)" name="since" at={filters.since} />
          <TimeFilter label="To (UTC)" name="until" at={filters.until} />
        </div>
        <fieldset class="columns">
          <legend class="field-label">Columns beside the usual ones</legend>
          {COLUMNS.filter((name) => logs.isSensitive || name !== 'address').map((name) => (
            <label class="check">
              <input type="checkbox" name="columns" value={name} checked={columns.includes(name)} />
              <span>{COLUMN_NAMES[name]}</span>
            </label>
          ))}
        </fieldset>
      </details>
      {filters.conversation && (
        <p class="filter-note">
          Only the conversation <code>{filters.conversation.slice(0, 12)}</code>.
        </p>
      )}
    </form>
  )
}

const COLUMNS = Object.keys(COLUMN_NAMES) as MoreColumn[] // as: Object.keys forgets the literal types

const isCustom = ({ filters: { range, since, until } }: Logs): boolean => range === null && Boolean(since ?? until)

const asChoice = (name: string): Choice => ({ id: name, name })

interface ChoicesProps {
  label: string
  name: string
  chosen: readonly string[]
  choices: readonly Choice[]
}

/** One of a list, or any; what the URL asks for and the list has not stays chosen. */
export const Choices: FC<ChoicesProps> = ({ label, name, chosen, choices }) => {
  const [first] = chosen
  const isKnown = first === undefined || choices.some(({ id }) => id === first)
  return (
    <Select label={label} name={name} chosen={first} none="Any">
      {!isKnown && (
        <Option value={first} chosen={first}>
          {first}
        </Option>
      )}
      {choices.map((choice) => (
        <Option value={choice.id} chosen={first}>
          {choice.name}
        </Option>
      ))}
    </Select>
  )
}

interface SelectProps {
  label: string
  name: string
  chosen?: string | null
  /** What choosing none of them is called. */
  none: string
}

export const Select: FC<PropsWithChildren<SelectProps>> = ({ label, name, chosen, none, children }) => (
  <label class={chosen ? 'field is-set' : 'field'}>
    <span class="field-label">{label}</span>
    <select name={name}>
      <option value="">{none}</option>
      {children}
    </select>
  </label>
)

export const Option: FC<{ value: string; chosen?: string | null; children?: Child }> = ({
  value,
  chosen,
  children,
}) => (
  <option value={value} selected={value === chosen}>
    {children}
  </option>
)

const TextFilter: FC<{ label: string; name: string; value?: string; placeholder?: string }> = ({ label, ...input }) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input type="text" autocapitalize="none" spellcheck={false} maxlength={100} {...input} />
  </label>
)

const TimeFilter: FC<{ label: string; name: string; at: string | null }> = ({ label, name, at }) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input type="datetime-local" step="1" name={name} value={at?.slice(0, 19)} />
  </label>
)
