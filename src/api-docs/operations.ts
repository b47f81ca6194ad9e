/** The route table as documentation: each method and path with gates, input, description and errors. */
import type { z } from 'zod'
import type { AccessRule } from '../http/gates.ts'
import type { RouteRow } from '../http/route-table.ts'
import { getGroup } from './groups.ts'
import { getJsonSchema, type JsonSchema } from './json-schema.ts'
import { getEnvelope, getRefusals, type Refusals } from './refusals.ts'
import { PATH_PARAMETERS, WORDS, type Words } from './words/words.ts'

export interface Operation {
  /** Unique, letters and digits only. */
  id: string
  method: string
  /** In OpenAPI's form: `/api/accounts/{id}`. */
  path: string
  /** In the route table's form. */
  route: string
  group: string
  /** The operation this is an alias of, or null. */
  aliasOf: string | null
  isPlanned: boolean
  isPage: boolean
  access: AccessRule
  capability: RouteRow['capability']
  words: Words
  parameters: Parameter[]
  body: { schema: z.ZodObject; json: JsonSchema } | null
  refusals: Refusals
  envelope: 'dashboard' | 'openai'
}

export interface Parameter {
  name: string
  in: 'path' | 'query'
  isRequired: boolean
  schema: JsonSchema
}

/** One per row, in table order. */
export const getOperations = (rows: readonly RouteRow[]): Operation[] => {
  const first = new Map<object, RouteRow>()
  for (const row of rows) {
    const known = first.get(row.endpoint)
    if (!known || (!WORDS[getName(known)] && WORDS[getName(row)])) first.set(row.endpoint, row)
  }
  const jsonOf = once(getJsonSchema)
  return rows.map((row) => getOperation(row, first.get(row.endpoint) ?? row, jsonOf))
}

type JsonOf = typeof getJsonSchema

/** Many routes share a schema, and converting it takes most of the time. */
const once = (make: JsonOf): JsonOf => {
  const made = new Map<z.ZodObject, JsonSchema>()
  return (schema) => made.getOrInsertComputed(schema, make)
}

const getName = ({ method, path }: RouteRow): string => `${method} ${path}`

const PLANNED: Words = { does: 'Not available yet. Returns 404 `not_found`.' }
/** A test looks for this. */
export const NO_WORDS: Words = { does: 'Not described yet.' }

const getOperation = (row: RouteRow, main: RouteRow, jsonOf: JsonOf): Operation => {
  const words = row.isPlanned ? PLANNED : (WORDS[getName(main)] ?? NO_WORDS)
  const group = getGroup(row.path)
  const body = row.inputs.find((input) => input.in === 'body')?.schema
  return {
    id: idOf(row),
    method: row.method,
    path: templated(row.path),
    route: row.path,
    group,
    aliasOf: main === row ? null : idOf(main),
    isPlanned: row.isPlanned,
    isPage: group === 'pages',
    access: row.access[0]!, // guaranteed at start
    capability: row.capability,
    words,
    parameters: [...pathParameters(row.path), ...queryParameters(row, words, jsonOf)],
    body: body ? { schema: body, json: jsonOf(body) } : null,
    refusals: getRefusals(row, words),
    envelope: getEnvelope(row.path),
  }
}

/** `GET /api/api-keys/` → `getApiApiKeysSlash`. */
const idOf = ({ method, path }: RouteRow): string => {
  const words = templated(path)
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  const slash = path !== '/' && path.endsWith('/') ? ['slash'] : []
  const parts = words.length === 0 ? ['root'] : [...words, ...slash]
  return [method.toLowerCase(), ...parts.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join('')
}

/** `/:id{pattern}` becomes `/{id}`; no pattern contains slashes. */
const templated = (path: string): string =>
  path
    .split('/')
    .map((part) => part.replace(/^:(\w+).*$/, '{$1}'))
    .join('/')

const pathParameters = (path: string): Parameter[] => {
  const parts = path.split('/')
  return parts.flatMap((part, index) => {
    const [, name, pattern] = /^:(\w+)(?:\{(.+)\})?$/.exec(part) ?? []
    if (name === undefined) return []
    const known = parts.slice(0, index + 1).map((one) => one.replace(/\{.+\}$/, ''))
    const description = PATH_PARAMETERS[known.join('/')]
    const schema = {
      type: 'string',
      ...(pattern && { pattern: `^(?:${pattern})$` }),
      ...(description && { description }),
    }
    return [{ name, in: 'path', isRequired: true, schema }]
  })
}

const queryParameters = ({ inputs }: RouteRow, { query = {} }: Words, jsonOf: JsonOf): Parameter[] => {
  const schema = inputs.find((input) => input.in === 'query')?.schema
  const { properties = {}, required = [] } = schema ? jsonOf(schema) : {}
  const checked = Object.entries(properties)
  const read = Object.entries(query).map(([name, description]) => [name, { type: 'string', description }] as const)
  return [...checked, ...read].map(([name, json]) => ({
    name,
    in: 'query',
    isRequired: required.includes(name),
    schema: json,
  }))
}
