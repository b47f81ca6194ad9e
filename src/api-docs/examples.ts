/** An example body and curl command for each route. */
import type { JsonSchema } from './json-schema.ts'
import type { Operation } from './operations.ts'

/** An example body: the one in the descriptions, otherwise the required members only. null: the route takes none. */
export const getExample = ({ body, words }: Operation): unknown => {
  if (words.example) return words.example
  return body ? smallest(body.json) : null
}

/** A value of `schema` with only its required members. */
const smallest = (schema: JsonSchema): unknown => {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  switch (typeof schema.type === 'string' ? schema.type : schema.type?.[0]) {
    case 'object': {
      const names = schema.required ?? []
      return Object.fromEntries(names.map((name) => [name, smallest(schema.properties?.[name] ?? {})]))
    }
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => smallest(schema.items ?? {}))
    case 'string':
      return 'x'.repeat(Math.max(1, schema.minLength ?? 0))
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    default:
      return null
  }
}

/** Short enough for little scrolling on a phone. */
const LINE_CHARS = 76

/** The curl command for the route under `baseUrl`; null where a shell does not help. */
export const getCurl = (operation: Operation, baseUrl: string): string | null => {
  const { words, isPage, isPlanned } = operation
  if (isPage || isPlanned || words.status === 101) return null
  const body = bodyPart(operation)
  const url = baseUrl + operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => placeholder(name))
  const parts = [commandPart(operation, body.length > 0), ...authPart(operation), ...body, url]
  const line = parts.join(' ')
  return line.length <= LINE_CHARS ? line : parts.join(' \\\n  ')
}

/** `sessionId` → `SESSION_ID`. */
const placeholder = (name: string): string => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()

/** A body makes curl use POST. */
const commandPart = ({ method }: Operation, hasBody: boolean): string =>
  method === (hasBody ? 'POST' : 'GET') ? 'curl' : `curl -X ${method}`

const authPart = ({ access, words }: Operation): string[] => {
  if (access.access === 'client-key') return ['-H "Authorization: Bearer $OPENAI_API_KEY"']
  if (words.cookie) return ['-b cookies.txt -c cookies.txt']
  return access.access !== 'open' || words.account ? ['-b cookies.txt'] : []
}

const bodyPart = (operation: Operation): string[] => {
  const { files } = operation.words
  if (files) return [`-F ${files[0]}=@auth.json`]
  const example = JSON.stringify(getExample(operation))
  if (example === 'null' || example === '{}') return []
  return ["-H 'content-type: application/json'", `-d '${example.replaceAll("'", "'\\''")}'`]
}
