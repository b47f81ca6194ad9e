/** One section of settings: a form that is saved by itself, or its values where the visitor may not change them. */
import type { FC } from 'hono/jsx'
import type { ShownField, ShownSettings } from '../../src/admin/settings-frame.ts'
import type { Section, SettingName } from '../../src/settings/schema.ts'
import { countText } from '../ui/amounts.ts'
import { Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Done, Form } from '../ui/form.tsx'
import { keeping, type Option, Options } from '../ui/select.tsx'
import { choiceWords, PICKED, SECTION_WORDS } from './words.ts'

interface SectionProps {
  section: Section
  settings: ShownSettings
  /** A further sentence below the help of a setting. */
  notes?: Partial<Record<SettingName, string>>
}

/** A card of its own. */
export const SettingsCard: FC<SectionProps> = (props) => (
  <Card id={props.section} title={SECTION_WORDS[props.section].title}>
    <SectionForm {...props} />
  </Card>
)

/** Below a heading of its own, in a card with others. */
export const SettingsPart: FC<SectionProps> = (props) => (
  <div class="card-part" id={props.section}>
    <h3>{SECTION_WORDS[props.section].title}</h3>
    <SectionForm {...props} isPart />
  </div>
)

const SectionForm: FC<SectionProps & { isPart?: boolean }> = ({ section, settings, notes = {}, isPart = false }) => {
  const fields = settings.fields.filter((field) => field.section === section)
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

const Setting: FC<{ field: ShownField; note?: string }> = ({ field, note }) => {
  const { name, label, help, control, isEditable, isChanged } = field
  const isList = control.kind === 'choice' && control.choices.some(({ label: own }) => own === null)
  return (
    <div class={isList ? 'setting setting-wide' : 'setting'} id={`setting-${name}`}>
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
        <p class="hint" id={`help-${name}`}>
          {help} {note}
        </p>
        <p class="hint">{aboutOf(field)}</p>
      </div>
      <div class="setting-control">
        {isEditable ? <Input {...field} /> : <strong>{valueText(field, field.value)}</strong>}
      </div>
    </div>
  )
}

const aboutOf = (field: ShownField): string => {
  const { control, isEditable, isSecurity } = field
  const isBounded = control.kind === 'number' && !PICKED[field.name]
  return [
    `Default: ${valueText(field, field.default)}`,
    ...(isBounded && isEditable ? [boundsText(control)] : []),
    ...(isSecurity && !isEditable ? ['only for those who may change security settings'] : []),
  ].join(' · ')
}

const boundsText = ({ min, max, isWhole }: { min: number; max: number; isWhole: boolean }): string =>
  isWhole ? `${countText(min)} to ${countText(max)}` : `above ${countText(min)}, up to ${countText(max)}`

/** A value as a person says it. */
export const valueText = ({ name, control, unit }: ShownField, value: ShownField['value']): string => {
  if (value === null || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (typeof value === 'number') {
    const picked = PICKED[name]?.find(([known]) => known === value)?.[1]
    return picked ?? `${countText(value)}${unit ? ` ${unit}` : ''}`
  }
  const own = control.kind === 'choice' ? control.choices.find((choice) => choice.value === value)?.label : null
  return control.kind === 'text' ? value : (own ?? choiceWords(name, value).label)
}

const Input: FC<ShownField> = (field) => {
  const { name, control, unit, value } = field
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
            min={control.min}
            max={control.max}
            step={control.isWhole ? 1 : 'any'}
            value={String(value)}
            required
          />
          {unit && <span class="unit">{unit}</span>}
        </span>
      )
  }
}

const choicesOf = ({ control }: ShownField) => (control.kind === 'choice' ? control.choices : [])

const Radios: FC<ShownField> = (field) => (
  <div class="radios" role="radiogroup" aria-labelledby={`label-${field.name}`} aria-describedby={`help-${field.name}`}>
    {choicesOf(field).map(({ value }) => {
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
  const offered = choicesOf(field).map((choice): Option => [choice.value, choice.label ?? choice.value])
  return <FieldSelect {...field} options={[['', 'none'], ...keeping(offered, chosen, `${chosen} (gone)`)]} />
}

const PickedNumber: FC<ShownField> = (field) => {
  const picks = (PICKED[field.name] ?? []).map(([known, label]): Option => [String(known), label])
  return <FieldSelect {...field} options={keeping(picks, String(field.value), valueText(field, field.value))} />
}

const FieldSelect: FC<ShownField & { options: readonly Option[] }> = ({ name, value, options }) => (
  <select id={`input-${name}`} name={name} aria-describedby={`help-${name}`}>
    <Options of={options} chosen={value === null ? '' : String(value)} />
  </select>
)
