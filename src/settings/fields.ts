/** What a form needs to know about each setting, from the schema: text, bounds, value and default. */
import { z } from 'zod'
import type { ClaudeSize } from '../../db/schema/keys.ts'
import { isSameValue } from '../lib/same-value.ts'
import { DEFAULTS, SETTING_NAMES, type SettingName, Settings } from './schema.ts'
import type { Section } from './setting.ts'

/** A text may be a choice whose options the page knows. */
type Control =
  | { kind: 'switch' }
  | { kind: 'choice'; choices: readonly Choice[] }
  | { kind: 'text'; maxLength: number }
  /** `memberKeyDefaults`, for which the page has fields of its own. */
  | { kind: 'key-rules'; models: readonly string[] }
  /** `claudeModels`. */
  | { kind: 'claude-models'; offers: ClaudeOffers }
  /** Both bounds are included, except a `min` of 0 for a fractional number. */
  | { kind: 'number'; min: number; max: number; isWhole: boolean }

/** What can be chosen for Claude names. */
export interface ClaudeOffers {
  models: readonly string[]
  efforts: readonly string[]
  /** The models that serve while none is chosen; null: no model is known. */
  defaults: Readonly<Record<ClaudeSize, string | null>>
}

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
  return {
    name,
    section: section as Section,
    label,
    help,
    unit,
    isSecurity: security,
    control: getControl(name, described),
  }
}

const getControl = (name: SettingName, described: Described): Control => {
  switch (described.type) {
    case 'boolean':
      return { kind: 'switch' }
    case 'integer':
    case 'number':
      return { kind: 'number', ...getBounds(described), isWhole: described.type === 'integer' }
    case 'string':
      return described.enum ? getChoice(described) : { kind: 'text', maxLength: described.maxLength }
    case 'object':
      return name === 'claudeModels' ? { kind: 'claude-models', offers: NO_OFFERS } : { kind: 'key-rules', models: [] }
    default:
      return getChoice(described)
  }
}

const NO_OFFERS: ClaudeOffers = { models: [], efforts: [], defaults: { opus: null, sonnet: null, haiku: null } }

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
