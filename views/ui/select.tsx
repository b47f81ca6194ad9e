/** Select fields: options, a form field, and an optional filter. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './button.tsx'
import { fieldTime } from './time.tsx'

export interface Choice {
  id: string
  name: string
}

export type Option = readonly [value: string, label: string]

interface OptionsProps {
  of: readonly Option[]
  chosen: string | null | undefined
}

export const Options: FC<OptionsProps> = ({ of: options, chosen }) => (
  <>
    {options.map(([value, label]) => (
      <option value={value} selected={value === chosen}>
        {label}
      </option>
    ))}
  </>
)

export const getOptions = (choices: readonly { id: string; name: string }[]): Option[] =>
  choices.map(({ id, name }) => [id, name])

/** Options labelled with their value. */
export const plainOptions = (values: readonly string[]): Option[] => values.map((value) => [value, value])

/** Keeps a chosen value that is no longer offered. */
export const withChosenOption = (options: readonly Option[], chosen: string | null | undefined, label?: string) =>
  !chosen || options.some(([value]) => value === chosen) ? options : [[chosen, label ?? chosen] as const, ...options]

interface SelectProps {
  label: string
  name: string
  options: readonly Option[]
  value: string
  hint?: string
}

export const Select: FC<SelectProps> = ({ label, name, options, value, hint }) => (
  <label class="field field-short">
    <span class="field-label">{label}</span>
    <select name={name}>
      <Options of={options} chosen={value} />
    </select>
    {hint && <span class="hint">{hint}</span>}
  </label>
)

interface FilterProps {
  label: string
  name: string
  options: readonly Option[]
  chosen: string | null | undefined
  /** The label for choosing none. */
  none?: string
}

export const Filter: FC<FilterProps> = ({ label, name, options, chosen, none = 'Any' }) => (
  <label class={chosen ? 'field is-set' : 'field'}>
    <span class="field-label">{label}</span>
    <select name={name}>
      <option value="">{none}</option>
      <Options of={withChosenOption(options, chosen)} chosen={chosen} />
    </select>
  </label>
)

/** `at`: ISO 8601; the field shows and takes the viewer's own time. */
export const TimeFilter: FC<{ label: string; name: string; at: string | null }> = ({ label, name, at }) => (
  <label class={at ? 'field filter-time is-set' : 'field filter-time'}>
    <span class="field-label">{label}</span>
    <input type="datetime-local" step="1" name={name} value={at ? fieldTime(at) : undefined} />
  </label>
)

/** Submits the filters; `clear` is the page without them. */
export const FilterActions: FC<{ label: string; clear?: string | null }> = ({ label, clear = null }) => (
  <div class="filter-actions">
    <Submit>{label}</Submit>
    {clear && <ButtonLink href={clear}>Clear</ButtonLink>}
  </div>
)
