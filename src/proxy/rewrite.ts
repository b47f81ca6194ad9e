/** Writes the body of a translated request anew, but for tools that would say something else then. */
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
  const tools = ownTools(asked, json.tools)
  const text = JSON.stringify(tools === null ? json : { ...json, tools: undefined })
  const bytes = encodeUtf8(tools === null ? text : `${text.slice(0, -1)},"tools":${tools}}`)
  hold.resize(bytes.length)
  return { bytes, json, hold }
}

/** Names that a parsed object moves to its front, and numbers that a double may not hold. */
const LOSSY = /"(0|[1-9]\d*)":|\d[\d.]{15}|\de\+/

/**
 * The text of `tools`, with what is the client's own in its own words: whole tools, or their parameters in chat. Null where
 * writing them anew changes no number and no order, as is usual (proxy surface §5.5).
 */
const ownTools = ({ bytes, json }: TurnBody, tools: unknown): string | null => {
  if (!Array.isArray(tools) || !LOSSY.test(JSON.stringify(tools))) return null
  const place = topMembers(bytes).findLast(({ name }) => name === 'tools')
  if (!place) return null
  const text = decodeUtf8(bytes.subarray(place.value, place.end))
  const own = ownNodes(parseTree(text), json.tools)
  const textOf = ({ offset, length }: Node) => text.slice(offset, offset + length)
  const texts = tools.map((tool: unknown) => {
    const whole = own.get(tool)
    if (whole) return textOf(whole)
    const { parameters, ...rest } = objectOf(tool)
    const node = own.get(parameters)
    return node ? `${JSON.stringify(rest).slice(0, -1)},"parameters":${textOf(node)}}` : JSON.stringify(tool)
  })
  return `[${texts.join(',')}]`
}

/** Where the tools the client sent, and the parameters inside those of chat, stand in its text. */
const ownNodes = (list: Node | undefined, tools: unknown): ReadonlyMap<unknown, Node> => {
  const nodes = new Map<unknown, Node>()
  for (const [index, node] of (list?.children ?? []).entries()) {
    const tool: unknown = Array.isArray(tools) ? tools[index] : undefined
    const parameters = memberOf(memberOf(node, 'function'), 'parameters')
    const value = objectOf(objectOf(tool).function).parameters
    if (isObject(tool)) nodes.set(tool, node)
    if (parameters && isObject(value)) nodes.set(value, parameters)
  }
  return nodes
}

/** Of a member written twice the last counts, as in `JSON.parse`. */
const memberOf = (node: Node | undefined, name: string): Node | undefined =>
  node?.children?.findLast(({ children }) => children?.[0]?.value === name)?.children?.[1]
