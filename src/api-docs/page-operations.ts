/** The operations as shown on the page: grouped, aliases merged. */
import type { Field, Name, RefusalKind, ShownOperation } from '../../views/docs/operation.tsx'
import type { SharedErrors, ShownGroup } from '../../views/docs/page.tsx'
import { CODES } from '../errors.ts'
import { accessSentence } from './access-text.ts'
import { getCurl } from './examples.ts'
import { getField, getFields } from './fields.ts'
import { GROUPS } from './groups.ts'
import type { Operation } from './operations.ts'
import { KINDS, refusalsOfKind } from './refusals.ts'

interface Found {
  total: number
  /** Ids of the operations. */
  ids: ReadonlySet<string>
}

/** Finds operations that contain every word of `search`. */
export const findIn = (groups: readonly ShownGroup[], search: string): Found => {
  const all = groups.flatMap(({ operations }) => operations)
  return { total: all.length, ids: new Set(all.filter((one) => isFound(one, search)).map(({ id }) => id)) }
}

/** `baseUrl` is used in the examples. */
export const shownGroups = (operations: readonly Operation[], baseUrl: string): ShownGroup[] => {
  const byMain = Map.groupBy(operations, ({ id, aliasOf }) => aliasOf ?? id)
  return GROUPS.map(({ id, title, about }) => {
    const own = operations.filter((one) => one.group === id && one.aliasOf === null)
    return {
      id,
      title,
      about,
      operations: own
        .filter((one) => !one.isPlanned)
        .map((one) => shownOperation(one, byMain.get(one.id) ?? [], baseUrl)),
    }
  })
}

const getName = ({ method, path }: Operation): Name => ({ method, path })

const shownOperation = (operation: Operation, names: readonly Operation[], baseUrl: string): ShownOperation => {
  const { words, access, parameters, refusals } = operation
  const fields = (where: 'path' | 'query') =>
    parameters
      .filter((one) => one.in === where)
      .map(({ name, schema, isRequired }) => getField(name, schema, isRequired))
  return {
    id: operation.id,
    names: mainFirst(operation, names).map(getName),
    does: words.does,
    answer: words.answer ?? null,
    status: words.status ?? null,
    who: accessSentence(operation),
    capability: operation.capability,
    auditEvent: 'audit' in access ? (access.audit ?? null) : null,
    path: fields('path'),
    query: fields('query'),
    body: operation.body ? getFields(operation.body.json) : words.files ? [filesField(words.files)] : [],
    document: words.document ?? (words.files ? 'A form with files, `multipart/form-data`.' : null),
    kinds: refusals.kinds,
    refusals: refusals.own,
    curl: getCurl(operation, baseUrl),
  }
}

const mainFirst = (main: Operation, names: readonly Operation[]): Operation[] => [
  main,
  ...names.filter((one) => one !== main),
]

const filesField = ([name, meaning]: readonly [string, string]): Field => ({
  name,
  type: 'file[]',
  isRequired: true,
  meaning,
  preset: null,
})

/** Whether it contains every word of `search`. */
const isFound = (operation: ShownOperation, search: string): boolean => {
  const text = getText(operation).toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

const getText = ({ names, does, answer, who, auditEvent, path, query, body, refusals }: ShownOperation): string =>
  [
    ...names.map(({ method, path: at }) => `${method} ${at}`),
    does,
    answer ?? '',
    who,
    auditEvent ?? '',
    ...[...path, ...query, ...body].map(({ name, meaning }) => `${name} ${meaning}`),
    ...refusals.flatMap(({ codes }) => codes),
  ].join(' ')

export const SHARED_ERRORS: readonly SharedErrors[] = (Object.keys(KINDS) as RefusalKind[]).map((id) => ({
  id,
  title: KINDS[id].title,
  refusals: refusalsOfKind(id),
})) // as: Object.keys loses the literal types

/** All errors: code, status and default message. */
export const ALL_ERRORS = Object.entries(CODES).map(([code, [status, message]]) => ({ code, status, message }))
