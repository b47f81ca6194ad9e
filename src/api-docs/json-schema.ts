/** Converts the routes' zod schemas to JSON Schema 2020-12, describing what a client may send. */
import { z } from 'zod'
import { DEFAULTS } from '../settings/schema.ts'

export interface JsonSchema {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean
  description?: string
  default?: unknown
  pattern?: string
  format?: string
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}

/** The input side of `schema`. A field is required if the schema rejects its absence, whatever its type says. */
export const getJsonSchema = (schema: z.ZodObject): JsonSchema => {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override })
  const required = Object.keys(schema.shape).filter((name) => !schema.shape[name]?.safeParse(undefined).success)
  const { required: __, ...tidied } = tidy(json as JsonSchema) // as: routes use no other kinds of schemas
  return { ...tidied, ...(required.length > 0 && { required }) }
}

type Override = NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']

/** Adds what the input side lacks: the choices behind a transformed text, and a setting's description. */
const override: Override = ({ zodSchema, jsonSchema, path }) => {
  const { def } = (zodSchema as z.core.$ZodTypes)._zod // as: zod's own union, distinguished by `type`
  if (def.type === 'pipe' && jsonSchema.type === 'string') {
    const out = (def.out as z.core.$ZodTypes)._zod.def // as: the same union
    if (out.type === 'enum') jsonSchema.enum = Object.values(out.entries)
  }
  const { section, label, help, unit, security, ...plain } = jsonSchema
  if (typeof label !== 'string') return
  for (const name of Object.keys(jsonSchema)) delete jsonSchema[name]
  const preset = DEFAULTS[path.at(-1) as keyof typeof DEFAULTS] // as: only settings have a label
  Object.assign(jsonSchema, plain, { description: settingText({ label, help, unit, security, preset }) })
}

const settingText = ({ label, help, unit, security, preset }: Record<string, unknown>): string => {
  const amount = unit === undefined ? JSON.stringify(preset) : `${preset} ${unit}`
  return `${label}. ${help} Default: ${amount}.${security ? ' A security setting.' : ''}`
}

/** Leaves out what only validators need, and shows null in the type. */
const tidy = (schema: JsonSchema): JsonSchema => {
  const { properties, items, anyOf, ...rest } = bounded(schema)
  if (anyOf) return { ...withNull(anyOf.map(tidy)), ...rest }
  return {
    ...rest,
    ...(items && { items: tidy(items) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, tidy(one)])),
    }),
  }
}

/** Leaves out huge maximums and date patterns. */
const bounded = ({ maximum, pattern, ...rest }: JsonSchema): JsonSchema => ({
  ...rest,
  ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && { maximum }),
  ...(pattern !== undefined && pattern.length < LONGEST_PATTERN && { pattern }),
})

const LONGEST_PATTERN = 80

const withNull = (choices: JsonSchema[]): JsonSchema => {
  const [one, ...others] = choices.filter(({ type }) => type !== 'null')
  if (one === undefined || others.length > 0 || typeof one.type !== 'string') return { anyOf: choices }
  return { ...one, type: [one.type, 'null'], ...(one.enum && { enum: [...one.enum, null] }) }
}
