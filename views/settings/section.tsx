/** One section of settings: a form that is saved by itself, or its values where the visitor may not change them. */
import type { FC } from 'hono/jsx'
import type { ShownField, ShownSettings } from '../../src/admin/settings-frame.ts'
import type { Section, SettingName } from '../../src/settings/schema.ts'
import { Done, Form } from '../ui/form.tsx'
import { choiceWords, numberText, PICKED, SECTION_WORDS } from './words.ts'

interface SectionProps {
  section: Section
  settings: ShownSettings
  /** A further sentence below the help of a setting. */
  notes?: Partial<Record<SettingName, string>>
}

/** A card of its own. */
export const SettingsCard: FC<SectionProps> = (props) => (
  <section class="card" id={props.section} aria-labelledby={`${props.section}-title`}>
    <header class="card-head">
      <h2 id={`${props.section}-title`}>{SECTION_WORDS[props.section].title}</h2>
    </header>
    <SectionForm {...props} />
  </section>
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
        <button class="button" type="submit">
          Save
        </button>
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
  isWhole ? `${numberText(min)} to ${numberText(max)}` : `above ${numberText(min)}, up to ${numberText(max)}`

/** A value as a person says it. */
export const valueText = ({ name, control, unit }: ShownField, value: ShownField['value']): string => {
  if (value === null || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (typeof value === 'number') {
    const picked = PICKED[name]?.find(([known]) => known === value)?.[1]
    return picked ?? `${numberText(value)}${unit ? ` ${unit}` : ''}`
  }
  const own = control.kind === 'choice' ? control.choices.find((choice) => choice.value === value)?.label : null
  return own ?? choiceWords(name, value).label
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
    case 'text':
      return (
        <input
          {...common}
          type="text"
          value={value === null ? '' : String(value)}
          maxlength={control.maxLength}
          autocapitalize="none"
          spellcheck={false}
          required={!control.isOptional}
        />
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

/** What is stored and no longer there stays chosen until somebody chooses anew. */
const Picker: FC<ShownField> = (field) => {
  const { name, value } = field
  const isKnown = value === null || choicesOf(field).some((choice) => choice.value === value)
  return (
    <select id={`input-${name}`} name={name} aria-describedby={`help-${name}`}>
      <option value="">none</option>
      {!isKnown && (
        <option value={String(value)} selected>
          {String(value)} (gone)
        </option>
      )}
      {choicesOf(field).map((choice) => (
        <option value={choice.value} selected={choice.value === value}>
          {choice.label}
        </option>
      ))}
    </select>
  )
}

const PickedNumber: FC<ShownField> = (field) => {
  const { name, value } = field
  const picks = PICKED[name] ?? []
  return (
    <select id={`input-${name}`} name={name} aria-describedby={`help-${name}`}>
      {!picks.some(([known]) => known === value) && (
        <option value={String(value)} selected>
          {valueText(field, value)}
        </option>
      )}
      {picks.map(([known, label]) => (
        <option value={known} selected={known === value}>
          {label}
        </option>
      ))}
    </select>
  )
}
