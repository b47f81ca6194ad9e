/** The fields of a key: name, models and expiry in sight, everything else folded. One form makes a key and changes it. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { plural } from '../ui/amounts.ts'
import { Check, Field } from '../ui/form.tsx'
import { keeping, type Option, optionsOf, plainOptions, Select } from '../ui/select.tsx'
import { LimitRows } from './form-limits.tsx'
import type { ApiKey } from './words.ts'

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
      options={optionsOf(choices.models)}
      ticked={apiKey?.allowedModels ?? []}
      hint={
        choices.models.length === 0 ? 'The catalog is empty until an account is added.' : 'None ticked: every model.'
      }
    />
    <Expiry expiresAt={apiKey?.expiresAt ?? null} />
    <Fold title="Limits" facts={limitFacts(apiKey)}>
      <LimitRows models={plainOptions(choices.models.map(({ id }) => id))} limits={apiKey?.limits ?? []} />
    </Fold>
    <Fold title="Routing" facts={routingFacts(apiKey)}>
      <Routing choices={choices} apiKey={apiKey} />
    </Fold>
    <Fold title="Advanced" facts="">
      <Advanced choices={choices} apiKey={apiKey} />
    </Fold>
  </>
)

const Fold: FC<PropsWithChildren<{ title: string; facts: string }>> = ({ title, facts, children }) => (
  <details class="key-fold">
    <summary>
      <b>{title}</b> <span class="muted small">{facts}</span>
    </summary>
    <div class="stack key-fold-body">{children}</div>
  </details>
)

const limitFacts = (apiKey: ApiKey | null): string => {
  const count = apiKey?.limits.length ?? 0
  return count === 0 ? 'none' : count === 1 ? 'one' : String(count)
}

const routingFacts = (apiKey: ApiKey | null): string =>
  [
    apiKey?.assignedAccountIds ? plural(apiKey.assignedAccountIds.length, 'account') : 'every account',
    ...(apiKey?.enforcedModel ? [`always ${apiKey.enforcedModel}`] : []),
  ].join(' · ')

/** What was chosen and is gone from the catalog or the pool stays, to be taken back. */
const withPresent = (options: readonly Option[], present: readonly string[]): readonly Option[] => [
  ...options,
  ...plainOptions(present.filter((id) => !options.some(([value]) => value === id))),
]

interface TicksProps {
  legend: string
  name: string
  options: readonly Option[]
  ticked: readonly string[]
  hint?: string
}

/** The hidden one says that none was ticked: a form leaves unticked boxes out. */
const Ticks: FC<TicksProps> = ({ legend, name, options, ticked, hint }) => (
  <fieldset class="key-ticks">
    <legend class="field-label">{legend}</legend>
    <input type="hidden" name={name} value="" />
    <div class="key-tick-list">
      {withPresent(options, ticked).map(([value, label]) => (
        <label class="key-tick">
          <input type="checkbox" name={name} value={value} checked={ticked.includes(value)} />
          <span>{label}</span>
        </label>
      ))}
    </div>
    {hint && <span class="hint">{hint}</span>}
  </fieldset>
)

const DAYS: readonly Option[] = [
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
]

const Expiry: FC<{ expiresAt: string | null }> = ({ expiresAt }) => (
  <Select
    label="Expires"
    name="expiry"
    options={[
      ...(expiresAt === null ? [] : [['keep', `On ${expiresAt.slice(0, 10)}, as it is`] as const]),
      ['never', 'Never'],
      ...DAYS,
    ]}
    value={expiresAt === null ? 'never' : 'keep'}
  />
)

const AS_ASKED: Option = ['', 'As the client asks']

const Routing: FC<FieldsProps> = ({ choices, apiKey }) => {
  const chosen = apiKey?.assignedAccountIds ?? []
  return (
    <>
      <Select
        label="Model in place of what is asked for"
        name="enforcedModel"
        options={[AS_ASKED, ...keeping(plainOptions(choices.models.map(({ id }) => id)), apiKey?.enforcedModel)]}
        value={apiKey?.enforcedModel ?? ''}
      />
      <Select
        label="Reasoning effort"
        name="enforcedReasoningEffort"
        options={[AS_ASKED, ...plainOptions(choices.efforts)]}
        value={apiKey?.enforcedReasoningEffort ?? ''}
      />
      <Select
        label="Service tier"
        name="enforcedServiceTier"
        options={[AS_ASKED, ...plainOptions(choices.tiers)]}
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
      <Chosen options={withPresent(optionsOf(choices.accounts), chosen)} chosen={chosen} />
    </>
  )
}

/** A list and no boxes: two hundred of them would weigh more than the rest of the page. */
const Chosen: FC<{ options: readonly Option[]; chosen: readonly string[] }> = ({ options, chosen }) =>
  options.length === 0 ? null : (
    <label class="field key-chosen">
      <span class="field-label">Chosen accounts</span>
      <input type="hidden" name="assignedAccountIds" value="" />
      <select name="assignedAccountIds" multiple size={Math.min(8, options.length)}>
        {options.map(([value, label]) => (
          <option value={value} selected={chosen.includes(value)}>
            {label}
          </option>
        ))}
      </select>
    </label>
  )

const SECTIONS: readonly Option[] = [
  ['upstream_limits', 'What is left upstream'],
  ['account_pool_usage', 'How much of the pool is used'],
]

const Advanced: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    {choices.owners.length > 0 && (
      <Select
        label="Owner"
        name="ownerUserId"
        options={[['', 'Nobody'], ...keeping(optionsOf(choices.owners), apiKey?.ownerUserId, apiKey?.owner?.username)]}
        value={apiKey ? (apiKey.ownerUserId ?? '') : (choices.owners[0]?.id ?? '')}
        hint="The key works only while its owner is active."
      />
    )}
    <Ticks
      legend="Efforts the client may choose"
      name="allowedReasoningEfforts"
      options={plainOptions(choices.efforts.filter((effort) => effort !== 'none'))}
      ticked={apiKey?.allowedReasoningEfforts ?? []}
      hint="None ticked: every effort. Not together with one that is set under Routing."
    />
    <Ticks
      legend="What the client may ask about the pool"
      name="usageSections"
      options={SECTIONS}
      ticked={(apiKey?.usageSections ?? 'upstream_limits,account_pool_usage').split(',').filter(Boolean)}
    />
    <Check
      name="applyToCodexModel"
      label="Hide other models in the native catalog"
      hint="Otherwise they are left out of it."
      isOn={apiKey?.applyToCodexModel ?? false}
    />
  </>
)
