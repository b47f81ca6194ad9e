/**
 * Updates the generated parts of `docs/api.md`: tables of routes, fields and errors, between `<!-- … -->` and `<!-- end
 * -->`.
 */
import { join } from 'node:path'
import { accessLabel } from '../src/api-docs/access-text.ts'
import { getField, getFields } from '../src/api-docs/fields.ts'
import { getOperations, type Operation } from '../src/api-docs/operations.ts'
import { CODES } from '../src/errors.ts'
import { everyRoute } from '../src/routes/every-route.ts'
import type { Field } from '../views/docs/operation.tsx'

export const API_DOCS = join(import.meta.dir, '../docs/api.md')

const BLOCK = /<!-- (routes|fields|parameters|errors)(?: ([^\n]*?))? -->\n[\s\S]*?<!-- end -->/g

/** `text` with its generated blocks updated. Throws for a block about a route that does not exist. */
export const rendered = (text: string, operations: readonly Operation[] = getOperations(everyRoute)): string =>
  text.replaceAll(BLOCK, (_, kind: keyof typeof BLOCKS, what = '') => {
    const table = BLOCKS[kind](what, operations)
    return `<!-- ${[kind, what].filter(Boolean).join(' ')} -->\n\n${table}\n\n<!-- end -->`
  })

const BLOCKS = {
  /** Routes whose path starts with one of `prefixes`. */
  routes: (what: string, operations: readonly Operation[]): string => {
    const prefixes = what.split(' ')
    const wanted = operations.filter(
      ({ path, isPlanned, aliasOf }) =>
        !isPlanned && aliasOf === null && prefixes.some((one) => path === one || path.startsWith(`${one}/`)),
    )
    if (wanted.length === 0) throw new Error(`No route begins with ${what}.`)
    return table(
      ['Route', 'Access', 'Body', 'Description and response', 'Errors'],
      wanted.map((one) => [getNames(one, operations), accessLabel(one), takes(one), does(one), refuses(one)]),
    )
  },
  fields: (what: string, operations: readonly Operation[]): string =>
    fieldTable(getFields(find(what, operations).body?.json ?? {})),
  parameters: (what: string, operations: readonly Operation[]): string =>
    fieldTable(
      find(what, operations)
        .parameters.filter((one) => one.in === 'query')
        .map(({ name, schema, isRequired }) => getField(name, schema, isRequired)),
    ),
  errors: (): string =>
    table(
      ['Code', 'Status', 'Message unless a better one is known'],
      Object.entries(CODES).map(([code, [status, message, type]]) => [
        `\`${code}\``,
        String(status),
        type ? `${message} (type \`${type}\`)` : message,
      ]),
    ),
}

const find = (name: string, operations: readonly Operation[]): Operation => {
  const found = operations.find(({ method, path }) => `${method} ${path}` === name)
  if (!found) throw new Error(`There is no route ${name}.`)
  return found
}

const getNames = (main: Operation, operations: readonly Operation[]): string =>
  [main, ...operations.filter(({ aliasOf }) => aliasOf === main.id)]
    .map(({ method, path }) => `\`${method} ${path}\``)
    .join(', ')

const FEW = 6

const takes = ({ words, body, parameters }: Operation): string => {
  const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name)
  const asked = query.length === 0 ? [] : [`\`?${query.length > FEW ? '…' : query.join('&')}\``]
  if (words.files) return [...asked, `files in \`${words.files[0]}\``].join(' ')
  if (words.document) return [...asked, words.document].join(' ')
  return [...asked, ...bodyText(body?.json ?? {})].join(' ') || '–'
}

const bodyText = ({ properties = {}, required = [] }: NonNullable<Operation['body']>['json']): string[] => {
  const names = Object.keys(properties)
  if (names.length === 0) return []
  const all = names.map((name) => (required.includes(name) ? name : `${name}?`))
  return [`\`{${(names.length > FEW ? [...required, '…'] : all).join(', ')}}\``]
}

const does = ({ words: { does: what, status, answer } }: Operation): string => {
  const result = [status, answer].filter(Boolean).join(' ')
  return result === '' ? what : `${what} → ${result}`
}

const refuses = ({ refusals }: Operation): string => {
  const own = refusals.own.flatMap(({ status, codes }) =>
    codes.filter((code) => !GATE_CODES.includes(code)).map((code) => `${status} \`${code}\``),
  )
  return [...own, ...(refusals.kinds.includes('turn') ? ['model request errors'] : [])].join(', ') || '–'
}

/** Not repeated: the previous column says it. */
const GATE_CODES: readonly string[] = [
  'permission_required',
  'admin_account_required',
  'read_only_access',
  'user_account_required',
  'totp_enrollment_required',
  'unsupported_required_capability',
]

const fieldTable = (fields: readonly Field[]): string =>
  table(
    ['Name', 'Values', 'Meaning'],
    fields.map(({ name, type, isRequired, meaning, preset }) => [
      `\`${name}\`${isRequired ? ', required' : ''}`,
      `\`${type}\``,
      preset === null ? meaning : `${meaning} Else \`${preset}\`.`,
    ]),
  )

const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heads, heads.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')

if (import.meta.main) {
  const file = Bun.file(API_DOCS)
  await Bun.write(file, rendered(await file.text()))
}
