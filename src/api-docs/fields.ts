/** A JSON Schema as table rows: what to send, its type, and what it means. */

import type { Field } from '../../views/docs/operation.tsx'
import type { JsonSchema } from './json-schema.ts'

/** The fields of an object, each followed by its nested fields. */
export const getFields = (object: JsonSchema, prefix = ''): Field[] =>
  Object.entries(object.properties ?? {}).flatMap(([name, schema]) => {
    const path = prefix + name
    const inner = schema.items?.properties ? schema.items : schema
    const below = getFields(inner, schema.items ? `${path}[].` : `${path}.`)
    return [getField(path, schema, object.required?.includes(name) ?? false), ...below]
  })

export const getField = (name: string, schema: JsonSchema, isRequired: boolean): Field => ({
  name,
  type: typeOf(schema),
  isRequired,
  meaning: schema.description ?? '',
  preset: schema.default === undefined ? null : JSON.stringify(schema.default),
})

const typeOf = (schema: JsonSchema): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  const types = [schema.type ?? 'any'].flat()
  return types.map((type) => (type === 'array' ? getList(schema) : type + getBounds(type, schema))).join(' | ')
}

const getList = ({ items }: JsonSchema): string => {
  const item = typeOf(items ?? {})
  return item.includes(' ') ? `(${item})[]` : `${item}[]`
}

const getBounds = (type: string, schema: JsonSchema): string => {
  if (type === 'string') return textBounds(schema)
  return type === 'integer' || type === 'number' ? numberBounds(schema) : ''
}

/** Leaves out very large upper bounds and the requirement not to be empty. */
const textBounds = ({ format, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema): string => {
  if (format) return ` (${format})`
  if (minLength > 1) return maxLength < LONG ? ` ${minLength}…${maxLength}` : ` ≥ ${minLength}`
  return maxLength < LONG ? ` ≤ ${maxLength}` : ''
}

const LONG = 8192

const numberBounds = ({ minimum, exclusiveMinimum, maximum }: JsonSchema): string => {
  const least = minimum ?? exclusiveMinimum
  if (least === undefined) return maximum === undefined ? '' : ` ≤ ${maximum}`
  if (maximum !== undefined) return ` ${exclusiveMinimum === undefined ? '' : '> '}${least}…${maximum}`
  return exclusiveMinimum === undefined ? ` ≥ ${least}` : ` > ${least}`
}
