/** The fields of a key: name, models and expiry in sight, everything else folded. One form makes a key and changes it. */
import type { Child, FC } from 'hono/jsx'
import { Check, Field } from '../ui/form.tsx'
import { type ApiKey, LIMIT_TYPE_NAMES, WINDOW_NAMES } from './words.ts'

/** What there is to choose from. */
export interface KeyChoices {
  models: readonly Choice[]
  accounts: readonly Choice[]
  /** Empty: the visitor may not give keys to others. */
  owners: readonly Choice[]
  efforts: readonly string[]
  tiers: readonly string[]
}

export interface Choice {
  id: string
  name: string
}

interface FieldsProps {
  choices: KeyChoices
  /** null: a new key. */
  apiKey: ApiKey | null
}

export const KeyFields: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    <Field
      label="Name"
      name="name"
      value={apiKey?.name}
      maxlength={128}
      placeholder="laptop"
      hint="Who or what uses it: logs and limits are by key."
      autofocus={apiKey === null}
      required
    />
    <Ticks
      legend="Models"
      name="allowedModels"
      options={withPresent(choices.models, apiKey?.allowedModels)}
      ticked={apiKey?.allowedModels ?? []}
      hint={
        choices.models.length === 0 ? 'The catalog is empty until an account is added.' : 'None ticked: every model.'
      }
    />
    <Expiry expiresAt={apiKey?.expiresAt ?? null} isNew={apiKey === null} />
    <Fold title="Limits" facts={limitFacts(apiKey)}>
      <Limits choices={choices} limits={apiKey?.limits ?? []} />
    </Fold>
    <Fold title="Routing" facts={routingFacts(apiKey)}>
      <Routing choices={choices} apiKey={apiKey} />
    </Fold>
    <Fold title="Advanced" facts="">
      <Advanced choices={choices} apiKey={apiKey} />
    </Fold>
  </>
)

const Fold: FC<{ title: string; facts: string; children?: Child }> = ({ title, facts, children }) => (
  <details class="key-fold">
    <summary>
      <b>{title}</b> <span class="muted small">{facts}</span>
    </summary>
    <div class="key-fold-body">{children}</div>
  </details>
)

const limitFacts = (apiKey: ApiKey | null): string => {
  const count = apiKey?.limits.length ?? 0
  return count === 0 ? 'none' : count === 1 ? 'one' : String(count)
}

const routingFacts = (apiKey: ApiKey | null): string =>
  [
    apiKey?.assignedAccountIds ? `${apiKey.assignedAccountIds.length} accounts` : 'every account',
    ...(apiKey?.enforcedModel ? [`always ${apiKey.enforcedModel}`] : []),
  ].join(' · ')

/** A model that is gone from the catalog stays to be unticked. */
const withPresent = (options: readonly Choice[], present: readonly string[] | null | undefined): readonly Choice[] => [
  ...options,
  ...(present ?? []).filter((id) => !options.some((option) => option.id === id)).map((id) => ({ id, name: id })),
]

interface TicksProps {
  legend: string
  name: string
  options: readonly Choice[]
  ticked: readonly string[]
  hint?: string
}

/** The hidden one says that none was ticked: a form leaves unticked boxes out. */
const Ticks: FC<TicksProps> = ({ legend, name, options, ticked, hint }) => (
  <fieldset class="key-ticks">
    <legend class="field-label">{legend}</legend>
    <input type="hidden" name={name} value="" />
    <div class="key-tick-list">
      {options.map(({ id, name: label }) => (
        <label class="key-tick">
          <input type="checkbox" name={name} value={id} checked={ticked.includes(id)} />
          <span>{label}</span>
        </label>
      ))}
    </div>
    {hint && <span class="hint">{hint}</span>}
  </fieldset>
)

const DAYS: readonly [value: string, label: string][] = [
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
]

const Expiry: FC<{ expiresAt: string | null; isNew: boolean }> = ({ expiresAt, isNew }) => (
  <Select
    label="Expires"
    name="expiry"
    options={[
      ...(expiresAt === null || isNew ? [] : [['keep', `On ${expiresAt.slice(0, 10)}, as it is`] as const]),
      ['never', 'Never'],
      ...DAYS,
    ]}
    value={expiresAt === null ? 'never' : 'keep'}
  />
)

interface SelectProps {
  label: string
  name: string
  options: readonly (readonly [value: string, label: string])[]
  value: string
  hint?: string
}

const Select: FC<SelectProps> = ({ label, name, options, value, hint }) => (
  <label class="field field-short">
    <span class="field-label">{label}</span>
    <select name={name}>
      {options.map(([option, text]) => (
        <option value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
    {hint && <span class="hint">{hint}</span>}
  </label>
)

/** Rows for new ones, up to what the form can send. */
const BLANK_ROWS = 2
const MOST_ROWS = 12

type Limit = ApiKey['limits'][number]

const Limits: FC<{ choices: KeyChoices; limits: readonly Limit[] }> = ({ choices, limits }) => {
  if (limits.length > MOST_ROWS)
    return <p class="muted">This key has more limits than fit here; change them by the API.</p>
  const rows = Array.from(
    { length: Math.min(MOST_ROWS, limits.length + BLANK_ROWS) },
    (_, index) => limits[index] ?? null,
  )
  return (
    <>
      <p class="hint">Over a limit the client is answered 429. A row without an amount is no limit.</p>
      {rows.map((limit, index) => (
        <LimitRow limit={limit} index={index} models={choices.models} />
      ))}
    </>
  )
}

const LimitRow: FC<{ limit: Limit | null; index: number; models: readonly Choice[] }> = ({ limit, index, models }) => {
  const type = limit?.limitType ?? 'total_tokens'
  const name = (field: string) => `limits.${index}.${field}`
  const present = limit?.modelFilter ? [limit.modelFilter] : []
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
      <Bare name={name('type')} label="Of what" options={Object.entries(LIMIT_TYPE_NAMES)} value={type} />
      <Bare
        name={name('window')}
        label="How often"
        options={Object.entries(WINDOW_NAMES)}
        value={limit?.limitWindow ?? 'weekly'}
      />
      <Bare
        name={name('model')}
        label="Which model"
        options={[['', 'all models'], ...withPresent(models, present).map(({ id }) => [id, id] as const)]}
        value={limit?.modelFilter ?? ''}
      />
    </fieldset>
  )
}

const Bare: FC<Omit<SelectProps, 'hint'>> = ({ label, name, options, value }) => (
  <select name={name} aria-label={label}>
    {options.map(([option, text]) => (
      <option value={option} selected={option === value}>
        {text}
      </option>
    ))}
  </select>
)

const asOptions = (values: readonly string[]) => values.map((value) => [value, value] as const)

const Routing: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    <Select
      label="Model in place of what is asked for"
      name="enforcedModel"
      options={[['', 'As the client asks'], ...choices.models.map(({ id }) => [id, id] as const)]}
      value={apiKey?.enforcedModel ?? ''}
    />
    <Select
      label="Reasoning effort"
      name="enforcedReasoningEffort"
      options={[['', 'As the client asks'], ...asOptions(choices.efforts)]}
      value={apiKey?.enforcedReasoningEffort ?? ''}
    />
    <Select
      label="Service tier"
      name="enforcedServiceTier"
      options={[['', 'As the client asks'], ...asOptions(choices.tiers)]}
      value={apiKey?.enforcedServiceTier ?? ''}
    />
    <Select
      label="Accounts"
      name="accountScope"
      options={[
        ['all', 'Every account'],
        ['chosen', 'Only those chosen below'],
      ]}
      value={apiKey?.assignedAccountIds ? 'chosen' : 'all'}
    />
    {choices.accounts.length > 0 && (
      <Chosen
        options={withPresent(choices.accounts, apiKey?.assignedAccountIds)}
        chosen={apiKey?.assignedAccountIds ?? []}
      />
    )}
  </>
)

/** A list and no boxes: two hundred of them would weigh more than the rest of the page. */
const Chosen: FC<{ options: readonly Choice[]; chosen: readonly string[] }> = ({ options, chosen }) => (
  <label class="field key-chosen">
    <span class="field-label">Chosen accounts</span>
    <input type="hidden" name="assignedAccountIds" value="" />
    <select name="assignedAccountIds" multiple size={Math.min(8, options.length)}>
      {options.map(({ id, name }) => (
        <option value={id} selected={chosen.includes(id)}>
          {name}
        </option>
      ))}
    </select>
  </label>
)

const SECTIONS: readonly Choice[] = [
  { id: 'upstream_limits', name: 'What is left upstream' },
  { id: 'account_pool_usage', name: 'How much of the pool is used' },
]

const Advanced: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    {choices.owners.length > 0 && (
      <Select
        label="Owner"
        name="ownerUserId"
        options={[['', 'Nobody'], ...choices.owners.map(({ id, name }) => [id, name] as const)]}
        value={apiKey ? (apiKey.ownerUserId ?? '') : (choices.owners[0]?.id ?? '')}
        hint="The key works only while its owner is active."
      />
    )}
    <Ticks
      legend="Efforts the client may choose"
      name="allowedReasoningEfforts"
      options={choices.efforts.filter((effort) => effort !== 'none').map((id) => ({ id, name: id }))}
      ticked={apiKey?.allowedReasoningEfforts ?? []}
      hint="None ticked: every effort. Not together with one that is set under Routing."
    />
    <Select
      label="Traffic"
      name="trafficClass"
      options={[
        ['foreground', 'Foreground: somebody waits for it'],
        ['opportunistic', 'Opportunistic: only what others leave'],
      ]}
      value={apiKey?.trafficClass ?? 'foreground'}
    />
    <Select
      label="Upstream transport"
      name="transportPolicyOverride"
      options={[
        ['', 'As under Settings → Routing'],
        ['smart', 'Smart'],
        ['always_http', 'Always HTTP'],
        ['always_websocket', 'Always WebSocket'],
      ]}
      value={apiKey?.transportPolicyOverride ?? ''}
    />
    <Ticks
      legend="What the client may ask about the pool"
      name="usageSections"
      options={SECTIONS}
      ticked={(apiKey?.usageSections ?? 'upstream_limits,account_pool_usage').split(',')}
    />
    <Check
      name="applyToCodexModel"
      label="Hide other models in the native catalog"
      hint="Otherwise they are left out of it."
      isOn={apiKey?.applyToCodexModel ?? false}
    />
  </>
)
