/** Changes single members of a JSON text at their place, or takes them out, leaving every other byte as the client wrote it. */
import { type Node, parseTree } from 'jsonc-parser'
import { afterBlanks } from '../lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../lib/utf8.ts'
import { demandShallow } from './nesting.ts'

/**
 * Sets top-level members of a JSON object; new ones are put first. The caller has parsed `bytes` as an object before.
 * Throws `invalid_request_error` for one that nests too deep.
 */
export const spliceMembers = (
  bytes: Uint8Array<ArrayBuffer>,
  members: Readonly<Record<string, unknown>>,
): Uint8Array<ArrayBuffer> => {
  demandShallow(bytes)
  const text = decodeUtf8(bytes)
  const root = parseTree(text)
  if (root?.type !== 'object') throw new TypeError('only an object has members')
  const edits = Object.entries(members).map(([name, value]) => editOf(root, name, JSON.stringify(value)))
  edits.sort((a, b) => b.offset - a.offset)
  let spliced = text
  for (const { offset, length, put } of edits) spliced = spliced.slice(0, offset) + put + spliced.slice(offset + length)
  return encodeUtf8(spliced)
}

/**
 * Takes top-level members out; the others stay as the client wrote them, separated by commas alone. The caller has parsed
 * `bytes` as an object before. Throws `invalid_request_error` for one that nests too deep.
 */
export const cutMembers = (bytes: Uint8Array<ArrayBuffer>, names: readonly string[]): Uint8Array<ArrayBuffer> => {
  demandShallow(bytes)
  const text = decodeUtf8(bytes)
  const members = parseTree(text)?.children ?? []
  const kept = members.filter((member) => !names.includes(member.children?.[0]?.value))
  if (kept.length === members.length) return bytes
  return encodeUtf8(`{${kept.map(({ offset, length }) => text.slice(offset, offset + length)).join(',')}}`)
}

const OPENING = 0x7b
const CLOSING = 0x7d

/**
 * Puts members first in the object that begins at `at`, the whole one unless told, which has none of these. No tree is
 * made of it, which takes some 20 ms a MiB.
 */
export const putFirst = (
  bytes: Uint8Array<ArrayBuffer>,
  members: Readonly<Record<string, unknown>>,
  at = bytes.indexOf(OPENING),
): Uint8Array<ArrayBuffer> => {
  const comma = bytes[afterBlanks(bytes, at + 1)] === CLOSING ? '' : ','
  const put = encodeUtf8(JSON.stringify(members).slice(1, -1) + comma)
  return Buffer.concat([bytes.subarray(0, at + 1), put, bytes.subarray(at + 1)])
}

interface Edit {
  offset: number
  length: number
  put: string
}

/** Of a member written twice the last counts, as in `JSON.parse`. */
const editOf = (root: Node, name: string, put: string): Edit => {
  const property = root.children?.findLast((node) => node.children?.[0]?.value === name)
  const value = property?.children?.[1]
  if (value) return { offset: value.offset, length: value.length, put }
  const comma = root.children?.length ? ',' : ''
  return { offset: root.offset + 1, length: 0, put: `${JSON.stringify(name)}:${put}${comma}` }
}
