/** Writes the body of a translated request anew, but for tools and schemas that would say something else then. */
import { type Node, parseTree } from 'jsonc-parser'
import { isObject, type JsonObject, objectOf } from '../lib/json.ts'
import { topMembers } from '../lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../lib/utf8.ts'
import { demandShallow } from './body-bounds.ts'
import type { TurnBody } from './turn.ts'

/** `json` as the body, in place of what the client wrote, with the budget adjusted to its size. Throws `invalid_request_error`. */
export const rewritten = (asked: TurnBody, json: JsonObject): TurnBody => {
  const { bytes: written, hold } = asked
  demandShallow(written)
  const bytes = encodeUtf8(withText(json, { tools: ownTools(asked, json.tools), text: ownFormat(asked, json.text) }))
  hold.resize(bytes.length)
  return { bytes, json, hold }
}

/** Names that a parsed object moves to its front, and numbers that a double may not hold. */
const LOSSY = /"(0|[1-9]\d*)":|\d[\d.]{15}|\de\+/

/** Whether writing it anew may change a number or an order, which is rare. */
const isLossy = (value: unknown): boolean => LOSSY.test(JSON.stringify(value))

/** The text of `object`, with these members as they are written here, last; null: as it has them. */
const withText = (object: JsonObject, texts: Readonly<Record<string, string | null>>): string => {
  const rest = { ...object }
  const own = Object.entries(texts).flatMap(([name, text]) => {
    if (text === null) return []
    rest[name] = undefined
    return `${JSON.stringify(name)}:${text}`
  })
  const written = JSON.stringify(rest).slice(1, -1)
  return `{${[...(written === '' ? [] : [written]), ...own].join(',')}}`
}

/**
 * The text of `tools`, with what is the client's own in its own words: whole tools, or their parameters in chat. Null where
 * they are written anew (proxy surface §5.5).
 */
const ownTools = (asked: TurnBody, tools: unknown): string | null => {
  if (!Array.isArray(tools) || !isLossy(tools)) return null
  const list = writtenAt(asked, 'tools')
  if (!list) return null
  const own = ownNodes(list.node, asked.json.tools)
  const texts = tools.map((tool: unknown) => {
    const whole = own.get(tool)
    if (whole) return list.textOf(whole)
    const parameters = isObject(tool) && own.get(tool.parameters)
    return parameters ? withText(tool, { parameters: list.textOf(parameters) }) : JSON.stringify(tool)
  })
  return `[${texts.join(',')}]`
}

/** Where the tools the client sent, and the parameters inside those of chat, stand in its text. */
const ownNodes = (list: Node, tools: unknown): ReadonlyMap<unknown, Node> => {
  const nodes = new Map<unknown, Node>()
  for (const [index, node] of (list.children ?? []).entries()) {
    const tool: unknown = Array.isArray(tools) ? tools[index] : undefined
    const parameters = memberOf(node, 'function', 'parameters')
    const value = objectOf(objectOf(tool).function).parameters
    if (isObject(tool)) nodes.set(tool, node)
    if (parameters && isObject(value)) nodes.set(value, parameters)
  }
  return nodes
}

/** The text of `text` with the schema of its format in the client's own words, by which a model orders what it writes. */
const ownFormat = (asked: TurnBody, text: unknown): string | null => {
  const { format } = objectOf(text)
  const { schema } = objectOf(format)
  if (!isObject(schema) || !isLossy(schema)) return null
  const isChat = objectOf(objectOf(asked.json.response_format).json_schema).schema === schema
  const [member, path] = isChat
    ? (['response_format', ['json_schema', 'schema']] as const)
    : (['text', ['format', 'schema']] as const)
  const place = writtenAt(asked, member)
  const node = place && memberOf(place.node, ...path)
  if (!node) return null
  return withText(objectOf(text), { format: withText(objectOf(format), { schema: place.textOf(node) }) })
}

/** A top-level member as the client wrote it. */
const writtenAt = ({ bytes }: TurnBody, member: string) => {
  const place = topMembers(bytes).findLast(({ name }) => name === member)
  const text = place ? decodeUtf8(bytes.subarray(place.value, place.end)) : ''
  const node = parseTree(text)
  return node ? { node, textOf: ({ offset, length }: Node) => text.slice(offset, offset + length) } : null
}

/** Along `path`. Of a member written twice the last counts, as in `JSON.parse`. */
const memberOf = (node: Node | undefined, ...path: readonly string[]): Node | undefined =>
  path.reduce(
    (at, name) => at?.children?.findLast(({ children }) => children?.[0]?.value === name)?.children?.[1],
    node,
  )
