/** The limits of a key as form rows: the existing ones and a few blank ones. */
import type { FC } from 'hono/jsx'
import { Switch } from '../ui/form.tsx'
import { type Option, Options, withChosenOption } from '../ui/select.tsx'
import { type ApiKey, LIMIT_TYPE_NAMES, WINDOW_NAMES } from './words.ts'

type Limit = ApiKey['limits'][number]
export type LimitBound = Pick<Limit, 'limitType' | 'limitWindow' | 'maxValue'> & { modelFilter?: string | null }

const TYPES: readonly Option[] = Object.entries(LIMIT_TYPE_NAMES)

/** Blank rows for new limits, up to the number of rows the form can send. */
const BLANK_ROWS = 2
const MAX_ROWS = 12

interface RowsProps {
  limits: readonly LimitBound[]
  models: readonly Option[]
  /** Before the names of the fields. */
  prefix?: string
}

export const LimitRows: FC<RowsProps> = ({ limits, models, prefix = '' }) => {
  if (limits.length > MAX_ROWS)
    return <p class="muted">This key has more limits than this form can show. Change them with the API.</p>
  const rows = Array.from(
    { length: Math.min(MAX_ROWS, limits.length + BLANK_ROWS) },
    (_, index) => limits[index] ?? null,
  )
  return (
    <Switch label="Unlimited" name={`${prefix}unlimited`} isOn={limits.length === 0}>
      <p class="hint">Requests over a limit get HTTP 429. To remove a limit, clear its amount.</p>
      {rows.map((limit, index) => (
        <LimitRow limit={limit} index={index} models={models} prefix={prefix} />
      ))}
    </Switch>
  )
}

type RowProps = Required<Omit<RowsProps, 'limits'>> & { limit: LimitBound | null; index: number }

const LimitRow: FC<RowProps> = ({ limit, index, models, prefix }) => {
  const type = limit?.limitType ?? 'total_tokens'
  const model = limit?.modelFilter ?? ''
  const name = (field: string) => `${prefix}limits.${index}.${field}`
  return (
    <fieldset class="key-limit-row">
      <legend class="sr">Limit {index + 1}</legend>
      <input
        type="number"
        name={name('amount')}
        min="0"
        step="any"
        value={limit ? String(type === 'cost_usd' ? limit.maxValue / 1e6 : limit.maxValue) : undefined}
        placeholder="Amount"
        aria-label="Amount"
      />
      <BareSelect name={name('type')} label="Unit" options={withChosenOption(TYPES, type)} value={type} />
      <BareSelect
        name={name('window')}
        label="Period"
        options={Object.entries(WINDOW_NAMES)}
        value={limit?.limitWindow ?? 'weekly'}
      />
      <BareSelect
        name={name('model')}
        label="Model"
        options={[['', 'all models'], ...withChosenOption(models, model)]}
        value={model}
      />
    </fieldset>
  )
}

const BareSelect: FC<{ label: string; name: string; options: readonly Option[]; value: string }> = (select) => (
  <select name={select.name} aria-label={select.label}>
    <Options of={select.options} chosen={select.value} />
  </select>
)
