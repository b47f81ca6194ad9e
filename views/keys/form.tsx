/** The fields of a key: name, models and expiry are visible, everything else is folded. The same form creates and edits. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { ClaudeOffers } from '../../src/settings/fields.ts'
import { plural } from '../ui/amounts.ts'
import { Check, Field, Switch } from '../ui/form.tsx'
import { getOptions, type Option, plainOptions, Select, withChosenOption } from '../ui/select.tsx'
import { ClaudeModelsInput } from './claude-models.tsx'
import { type LimitBound, LimitRows } from './form-limits.tsx'
import { type ApiKey, FAST_MODE_NAMES } from './words.ts'

/** The options of the selects. */
export interface KeyChoices {
  models: readonly Choice[]
  accounts: readonly Choice[]
  /** Tags of accounts. */
  tags: readonly string[]
  /** Model sources. */
  sources: readonly Choice[]
  /** Empty: the user may not assign keys to others. */
  owners: readonly Choice[]
  efforts: readonly string[]
  tiers: readonly string[]
  /** For Claude names. */
  claude: ClaudeOffers
  /** The user changes only their own keys, within these bounds; null: every field is shown. */
  own: OwnBounds | null
}

export interface OwnBounds {
  /** What a new key gets. */
  limits: readonly LimitBound[]
  /** null: keys need not expire. */
  expiresDays: number | null
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

export const KeyFields: FC<FieldsProps> = ({ choices, apiKey }) => {
  const limits = apiKey?.limits ?? choices.own?.limits ?? []
  return (
    <>
      <Field
        label="Name"
        name="name"
        value={apiKey?.name}
        maxlength={128}
        placeholder="laptop"
        hint="Which person, app or machine will use it. You will see this name in the logs."
        autofocus={apiKey === null}
        required
      />
      <Ticks
        legend="Models"
        name="allowedModels"
        options={getOptions(choices.models)}
        ticked={apiKey?.allowedModels ?? []}
        hint={
          choices.models.length === 0 ? 'Add an account to see its models here.' : 'Leave empty to allow all models.'
        }
      />
      <Expiry expiresAt={apiKey?.expiresAt ?? null} most={choices.own?.expiresDays ?? null} />
      <Fold title="Limits" facts={limitFacts(limits)}>
        <LimitRows models={plainOptions(choices.models.map(({ id }) => id))} limits={limits} />
      </Fold>
      {choices.own ? (
        <OwnFields choices={choices} apiKey={apiKey} />
      ) : (
        <OperatorFields choices={choices} apiKey={apiKey} />
      )}
    </>
  )
}

/** What users set on their own keys. */
const OwnFields: FC<FieldsProps> = ({ choices, apiKey }) => (
  <Fold title="Advanced" facts={apiKey?.enforcedModel ? `always ${apiKey.enforcedModel}` : ''}>
    <EnforcedModel choices={choices} apiKey={apiKey} />
    <CodexModels apiKey={apiKey} />
    <HolderSwitch apiKey={apiKey} />
  </Fold>
)

const OperatorFields: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
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

const limitFacts = (limits: readonly LimitBound[]): string =>
  limits.length === 0 ? 'unlimited' : plural(limits.length, 'limit')

const routingFacts = (apiKey: ApiKey | null): string =>
  [
    scopeFact(apiKey),
    ...(apiKey?.trafficClass === 'opportunistic' ? ['opportunistic'] : []),
    ...(apiKey?.enforcedModel ? [`always ${apiKey.enforcedModel}`] : []),
  ].join(' · ')

const scopeFact = (apiKey: ApiKey | null): string => {
  if (!apiKey?.accountAssignmentScopeEnabled) return 'all accounts'
  const { assignedAccountIds: ids, assignedTags: tags } = apiKey
  return [ids && plural(ids.length, 'account'), tags && plural(tags.length, 'tag')].filter(Boolean).join(' · ')
}

/** Keeps chosen values that are no longer in the catalog or the pool, so that they can be unticked. */
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

/** Forms omit unticked boxes: the hidden input sends the empty list. */
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
  ['365', 'In 1 year'],
]

/** `most`: days after which the key must expire; null: it need not. */
const Expiry: FC<{ expiresAt: string | null; most: number | null }> = ({ expiresAt, most }) => {
  const days = most === null ? DAYS : daysUpTo(most)
  const select = (
    <Select
      label="Expires"
      name="expiry"
      options={[
        ...(expiresAt === null ? [] : [['keep', `On ${expiresAt.slice(0, 10)} (unchanged)`] as const]),
        ...days,
      ]}
      value={expiresAt === null ? (most === null ? '90' : String(most)) : 'keep'}
    />
  )
  if (most !== null) return select
  return (
    <Switch label="Never expires" name="neverExpires" isOn={expiresAt === null}>
      {select}
    </Switch>
  )
}

const daysUpTo = (most: number): readonly Option[] => [
  ...DAYS.filter(([days]) => Number(days) < most),
  [String(most), `In ${plural(most, 'day')}`],
]

const TRAFFIC_CLASSES: readonly Option[] = [
  ['foreground', 'Foreground'],
  ['opportunistic', 'Opportunistic'],
]

const SET_BY_CLIENT: Option = ['', 'Set by the client']

const Routing: FC<FieldsProps> = ({ choices, apiKey }) => {
  const chosen = apiKey?.assignedAccountIds ?? []
  return (
    <>
      <EnforcedModel choices={choices} apiKey={apiKey} />
      <Select
        label="Reasoning effort"
        name="enforcedReasoningEffort"
        options={[SET_BY_CLIENT, ...plainOptions(choices.efforts)]}
        value={apiKey?.enforcedReasoningEffort ?? ''}
      />
      <Select
        label="Service tier"
        name="enforcedServiceTier"
        options={[SET_BY_CLIENT, ...plainOptions(choices.tiers)]}
        value={apiKey?.enforcedServiceTier ?? ''}
      />
      <Select label="Fast mode" name="prohibitFastMode" options={FAST_MODE} value={apiKey?.prohibitFastMode ?? ''} />
      <div class="field">
        <span class="field-label">Models for Claude names</span>
        <ClaudeModelsInput
          name="claudeModels"
          models={apiKey?.claudeModels ?? null}
          offers={choices.claude}
          none="As in the settings"
        />
      </div>
      <Select
        label="Traffic class"
        name="trafficClass"
        options={TRAFFIC_CLASSES}
        value={apiKey?.trafficClass ?? 'foreground'}
        hint="Opportunistic keys, for night jobs and the like, only get quota that other keys leave over. Otherwise their requests get HTTP 429."
      />
      <Select
        label="Accounts"
        name="accountScope"
        options={[
          ['all', 'All accounts'],
          ['chosen', 'Only those below'],
        ]}
        value={apiKey?.accountAssignmentScopeEnabled ? 'chosen' : 'all'}
      />
      {(choices.tags.length > 0 || apiKey?.assignedTags) && (
        <Ticks
          legend="Accounts with any of these tags"
          name="assignedTags"
          options={plainOptions(choices.tags)}
          ticked={apiKey?.assignedTags ?? []}
        />
      )}
      <Chosen options={withPresent(getOptions(choices.accounts), chosen)} chosen={chosen} />
      {(choices.sources.length > 0 || apiKey?.sourceAssignmentScopeEnabled) && (
        <Sources choices={choices} apiKey={apiKey} />
      )}
    </>
  )
}

const EnforcedModel: FC<FieldsProps> = ({ choices, apiKey }) => (
  <Select
    label="Always use this model"
    name="enforcedModel"
    options={[
      SET_BY_CLIENT,
      ...withChosenOption(plainOptions(choices.models.map(({ id }) => id)), apiKey?.enforcedModel),
    ]}
    value={apiKey?.enforcedModel ?? ''}
  />
)

const Sources: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    <Select
      label="Model sources"
      name="sourceScope"
      options={[
        ['all', 'All sources'],
        ['chosen', 'Only those below'],
      ]}
      value={apiKey?.sourceAssignmentScopeEnabled ? 'chosen' : 'all'}
      hint="A key that is limited to sources uses them first, also for models that your accounts have."
    />
    <Ticks
      legend="Sources for this key"
      name="assignedSourceIds"
      options={getOptions(choices.sources)}
      ticked={apiKey?.assignedSourceIds ?? []}
    />
    <Check
      name="allowOverflow"
      label="May overflow to a model source"
      hint="Counts only where the settings allow overflow to marked keys."
      isOn={apiKey?.allowOverflow ?? false}
    />
  </>
)

const FAST_MODE: readonly Option[] = [
  ['', 'As in the settings'],
  ...Object.entries(FAST_MODE_NAMES).map(
    ([rule, name]): Option => [rule, name.charAt(0).toUpperCase() + name.slice(1)],
  ),
]

/** A list instead of checkboxes: 200 checkboxes would outweigh the rest of the page. */
const Chosen: FC<{ options: readonly Option[]; chosen: readonly string[] }> = ({ options, chosen }) =>
  options.length === 0 ? null : (
    <label class="field key-chosen">
      <span class="field-label">Accounts for this key</span>
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
  ['upstream_limits', 'Remaining ChatGPT limits'],
  ['account_pool_usage', 'Usage of the account pool'],
]

const Advanced: FC<FieldsProps> = ({ choices, apiKey }) => (
  <>
    {choices.owners.length > 0 && (
      <Select
        label="Owner"
        name="ownerUserId"
        options={[
          ['', 'No owner'],
          ...withChosenOption(getOptions(choices.owners), apiKey?.ownerUserId, apiKey?.owner?.username),
        ]}
        value={apiKey ? (apiKey.ownerUserId ?? '') : (choices.owners[0]?.id ?? '')}
        hint="The key stops working while its owner is disabled."
      />
    )}
    <Ticks
      legend="Allowed reasoning efforts"
      name="allowedReasoningEfforts"
      options={plainOptions(choices.efforts.filter((effort) => effort !== 'none'))}
      ticked={apiKey?.allowedReasoningEfforts ?? []}
      hint="Leave empty to allow all. Does not apply if you set an effort under Routing."
    />
    <Ticks
      legend="Pool information the client can read"
      name="usageSections"
      options={SECTIONS}
      ticked={(apiKey?.usageSections ?? 'upstream_limits,account_pool_usage').split(',').filter(Boolean)}
    />
    <CodexModels apiKey={apiKey} />
    <HolderSwitch apiKey={apiKey} />
  </>
)

const CodexModels: FC<Pick<FieldsProps, 'apiKey'>> = ({ apiKey }) => (
  <Check
    name="applyToCodexModel"
    label="Hide other models in Codex"
    hint="Models this key cannot use stay in the model list, marked as hidden. When off, they are removed from the list."
    isOn={apiKey?.applyToCodexModel ?? false}
  />
)

const HolderSwitch: FC<Pick<FieldsProps, 'apiKey'>> = ({ apiKey }) => (
  <Check
    name="holderMayRegenerate"
    label="Let its holder create a new secret"
    hint="On the page of the key at /key, if that page is turned on in the settings. The current secret then stops working."
    isOn={apiKey?.holderMayRegenerate ?? false}
  />
)
