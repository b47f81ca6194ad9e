/** One section of settings: inputs, or plain values if the user cannot change them. */
import type { FC } from 'hono/jsx'
import type { SettingField } from '../../src/settings/fields.ts'
import type { SettingName } from '../../src/settings/schema.ts'
import type { Section } from '../../src/settings/setting.ts'
import { ClaudeModelsInput, claudeModelsText, isClaudeModels } from '../keys/claude-models.tsx'
import { countText } from '../ui/amounts.ts'
import { Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Done, Form } from '../ui/form.tsx'
import { type Option, Options, withChosenOption } from '../ui/select.tsx'
import { isKeyRules, KeyRulesInput, keyRulesText } from './key-rules.tsx'
import { choiceWords, PICKED, SECTION_WORDS, STRATEGY_OF, ZEROS } from './words.ts'

export interface ShownField extends SettingField {
  /** The user may change it. */
  isEditable: boolean
}

/** The settings of a page, for its forms. */
export interface ShownSettings {
  /** Sent back with each form, so that other users' changes are not overwritten. */
  version: number
  fields: ShownField[]
  /** The section that was just saved. */
  saved: Section | null
}

interface SectionProps {
  section: Section
  settings: ShownSettings
  /** Another sentence after a setting's help. */
  notes?: Partial<Record<SettingName, string>>
}

/** As a card. */
export const SettingsCard: FC<SectionProps> = (props) => (
  <Card id={props.section} title={SECTION_WORDS[props.section].title} help={`settings-${props.section}`}>
    <SectionForm {...props} />
  </Card>
)

/** As a part of a card. */
export const SettingsPart: FC<SectionProps> = (props) => (
  <div class="card-part" id={props.section}>
    <h3>{SECTION_WORDS[props.section].title}</h3>
    <SectionForm {...props} isPart />
  </div>
)

const SectionForm: FC<SectionProps & { isPart?: boolean }> = ({ section, settings, notes = {}, isPart = false }) => {
  const strategy = settings.fields.find(({ name }) => name === 'routingStrategy')?.value
  const fields = settings.fields
    .filter((field) => field.section === section)
    .filter(({ name, isEditable }) => isEditable || (STRATEGY_OF[name] ?? strategy) === strategy)
  const { intro } = SECTION_WORDS[section]
  const parts = (
    <>
      {intro && <p class="form-intro">{intro}</p>}
      {fields.map((field) => (
        <Setting field={field} note={notes[field.name]} />
      ))}
    </>
  )
  const name = isPart ? 'settings-form' : 'settings-form card-body'
  if (!fields.some(({ isEditable }) => isEditable)) return <div class={name}>{parts}</div>
  return (
    <Form name={section} class={name} method="patch" action={`/api/settings?section=${section}`}>
      <input type="hidden" name="expectedVersion" value={settings.version} />
      {parts}
      <div class="actions">
        <Submit>Save</Submit>
        {settings.saved === section && <Done text="Saved." />}
      </div>
    </Form>
  )
}

/** One bar for all forms of the page; the script shows it after a change. */
export const UnsavedBar: FC = () => (
  <div id="unsaved" class="unsaved" role="status" hidden>
    <strong class="unsaved-count" />
    <button class="button" type="button" data-settings="save">
      Save
    </button>
    <button class="button button-plain" type="button" data-settings="discard">
      Discard
    </button>
  </div>
)

const Setting: FC<{ field: ShownField; note?: string }> = ({ field, note }) => {
  const { name, label, help, control, isEditable, isChanged } = field
  const hasFields = control.kind === 'key-rules' || control.kind === 'claude-models'
  const isList = hasFields || (control.kind === 'choice' && control.choices.some(({ label: own }) => own === null))
  return (
    <div
      class={isList ? 'setting setting-wide' : 'setting'}
      id={`setting-${name}`}
      data-strategy={isEditable ? STRATEGY_OF[name] : undefined}
    >
      <div class="setting-text">
        {isEditable && !isList ? (
          <label class="setting-label" for={`input-${name}`}>
            {label}
          </label>
        ) : (
          <span class="setting-label" id={`label-${name}`}>
            {label}
          </span>
        )}
        {isChanged && <span class="tag tag-changed">changed</span>}
        {isChanged && isEditable && !hasFields && <ToDefault {...field} />}
        <p class="hint" id={`help-${name}`}>
          {help} {note}
        </p>
        <p class="hint">{getAbout(field)}</p>
      </div>
      <div class="setting-control">
        {isEditable ? <Input {...field} /> : <strong>{valueText(field, field.value)}</strong>}
      </div>
    </div>
  )
}

/** Puts the default into the field without saving. */
const ToDefault: FC<ShownField> = (field) => (
  <button
    class="link-button small needs-script"
    type="button"
    data-settings="default"
    data-value={field.default === null ? '' : String(field.default)}
  >
    Reset to default
    <span class="sr"> ({field.label})</span>
  </button>
)

const getAbout = (field: ShownField): string => {
  const { control, isEditable, isSecurity } = field
  const isBounded = control.kind === 'number' && !PICKED[field.name]
  return [
    `Default: ${valueText(field, field.default)}`,
    ...(isBounded && isEditable
      ? [boundsText(ZEROS[field.name] && control.isWhole ? { ...control, min: 1 } : control)]
      : []),
    ...(isSecurity && !isEditable ? ['needs permission to change security settings'] : []),
  ].join(' · ')
}

const boundsText = ({ min, max, isWhole }: { min: number; max: number; isWhole: boolean }): string =>
  isWhole ? `${countText(min)} to ${countText(max)}` : `above ${countText(min)}, up to ${countText(max)}`

/** A value as text. */
export const valueText = ({ name, control, unit }: ShownField, value: ShownField['value']): string => {
  if (value === null || value === '') return 'none'
  if (isKeyRules(value)) return keyRulesText(value)
  if (isClaudeModels(value))
    return claudeModelsText(value, control.kind === 'claude-models' ? control.offers.defaults : null)
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (typeof value === 'number') {
    const picked = value === 0 ? ZEROS[name]?.label : PICKED[name]?.find(([known]) => known === value)?.[1]
    return picked ?? `${countText(value)}${unit ? ` ${unit}` : ''}`
  }
  const own = control.kind === 'choice' ? control.choices.find((choice) => choice.value === value)?.label : null
  return control.kind === 'text' ? value : (own ?? choiceWords(name, value).label)
}

const Input: FC<ShownField> = (field) => {
  const { name, control, unit, value } = field
  const zero = ZEROS[name]
  const common = { id: `input-${name}`, name, 'aria-describedby': `help-${name}` }
  switch (control.kind) {
    case 'switch':
      return (
        <>
          <input type="hidden" name={name} value="false" />
          <input {...common} class="switch" type="checkbox" value="true" checked={value === true} />
        </>
      )
    case 'choice':
      return control.choices.some(({ label }) => label === null) ? <Radios {...field} /> : <Picker {...field} />
    case 'key-rules':
      return isKeyRules(value) ? <KeyRulesInput rules={value} models={control.models} /> : null
    case 'claude-models':
      return isClaudeModels(value) ? (
        <ClaudeModelsInput name={name} models={value} offers={control.offers} none="Automatic" />
      ) : null
    case 'text':
      return <input {...common} type="text" maxlength={control.maxLength} value={String(value)} spellcheck={false} />
    case 'number':
      if (PICKED[name]) return <PickedNumber {...field} />
      return (
        <span class="with-unit">
          <input
            {...common}
            type="number"
            inputmode={control.isWhole ? 'numeric' : 'decimal'}
            min={zero && control.isWhole ? 1 : control.min}
            max={control.max}
            step={control.isWhole ? 1 : 'any'}
            value={String(zero && value === 0 ? zero.amount : value)}
            disabled={zero !== undefined && value === 0}
            required
          />
          {unit && <span class="unit">{unit}</span>}
          {zero && (
            <label class="zero">
              <input type="checkbox" name={name} value="0" checked={value === 0} data-zero />
              {zero.label}
            </label>
          )}
        </span>
      )
  }
}

const getChoices = ({ control }: ShownField) => (control.kind === 'choice' ? control.choices : [])

const Radios: FC<ShownField> = (field) => (
  <div class="radios" role="radiogroup" aria-labelledby={`label-${field.name}`} aria-describedby={`help-${field.name}`}>
    {getChoices(field).map(({ value }) => {
      const { label, says } = choiceWords(field.name, value)
      return (
        <label class="radio">
          <input type="radio" name={field.name} value={value} checked={value === field.value} />
          <span>
            <strong>{label}</strong>
            {says && <span class="hint">{says}</span>}
          </span>
        </label>
      )
    })}
  </div>
)

const Picker: FC<ShownField> = (field) => {
  const { value } = field
  const chosen = value === null ? '' : String(value)
  const offered = getChoices(field).map((choice): Option => [choice.value, choice.label ?? choice.value])
  return (
    <FieldSelect {...field} options={[['', 'none'], ...withChosenOption(offered, chosen, `${chosen} (deleted)`)]} />
  )
}

const PickedNumber: FC<ShownField> = (field) => {
  const picks = (PICKED[field.name] ?? []).map(([known, label]): Option => [String(known), label])
  return (
    <FieldSelect {...field} options={withChosenOption(picks, String(field.value), valueText(field, field.value))} />
  )
}

const FieldSelect: FC<ShownField & { options: readonly Option[] }> = ({ name, value, options }) => (
  <select id={`input-${name}`} name={name} aria-describedby={`help-${name}`}>
    <Options of={options} chosen={value === null ? '' : String(value)} />
  </select>
)
