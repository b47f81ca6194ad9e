/** What a form needs to know about each setting, from the schema: text, bounds, value and default. */
import { z } from 'zod'
import { isSameValue } from './same-value.ts'
import { DEFAULTS, SETTING_NAMES, type SettingName, Settings } from './schema.ts'
import type { Section } from './setting.ts'

/** A text may be a choice whose options the page knows. */
type Control =
  | { kind: 'switch' }
  | { kind: 'choice'; choices: readonly Choice[] }
  | { kind: 'text'; maxLength: number }
  /** `memberKeyDefaults`, for which the page has fields of its own. */
  | { kind: 'key-rules'; models: readonly string[] }
  /** Both bounds are included, except a `min` of 0 for a fractional number. */
  | { kind: 'number'; min: number; max: number; isWhole: boolean }

interface Choice {
  value: string
  /** null: the page has a label. */
  label: string | null
}

export interface SettingField {
  name: SettingName
  section: Section
  label: string
  help: string
  unit: string | null
  isSecurity: boolean
  control: Control
  value: Value
  default: Value
  isChanged: boolean
}

type Value = Settings[SettingName]

/** All settings with their values in `current`, in schema order. */
export const getFields = (current: Settings): SettingField[] =>
  SETTING_NAMES.map((name) => ({
    ...DESCRIBED[name],
    value: current[name],
    default: DEFAULTS[name],
    isChanged: !isSameValue(current[name], DEFAULTS[name]),
  }))

/** The members of `z.toJSONSchema` used for settings. */
const Described = z.looseObject({
  section: z.string(),
  label: z.string(),
  help: z.string(),
  unit: z.string().nullable().default(null),
  security: z.boolean().default(false),
  type: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  maximum: z.number().optional(),
  maxLength: z.number().default(Number.MAX_SAFE_INTEGER),
})
type Described = z.output<typeof Described>

const describe = (name: SettingName): Omit<SettingField, 'value' | 'default' | 'isChanged'> => {
  const described = Described.parse(z.toJSONSchema(Settings.shape[name]))
  const { section, label, help, unit, security } = described
  // as: `meta` allows no other
  return { name, section: section as Section, label, help, unit, isSecurity: security, control: getControl(described) }
}

const getControl = (described: Described): Control => {
  switch (described.type) {
    case 'boolean':
      return { kind: 'switch' }
    case 'integer':
    case 'number':
      return { kind: 'number', ...getBounds(described), isWhole: described.type === 'integer' }
    case 'string':
      return described.enum ? getChoice(described) : { kind: 'text', maxLength: described.maxLength }
    case 'object':
      return { kind: 'key-rules', models: [] }
    default:
      return getChoice(described)
  }
}

const getChoice = (described: Described): Control => ({
  kind: 'choice',
  choices: (described.enum ?? []).map((value) => ({ value, label: null })),
})

const getBounds = ({ minimum, exclusiveMinimum, maximum }: Described) => ({
  min: minimum ?? exclusiveMinimum ?? 0,
  max: maximum ?? Number.MAX_SAFE_INTEGER,
})

const DESCRIBED = Object.fromEntries(SETTING_NAMES.map((name) => [name, describe(name)])) as Record<
  SettingName,
  ReturnType<typeof describe>
> // as: contains every name
