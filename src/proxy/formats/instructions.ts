/** Gives a request the instructions the upstream insists on, without inventing any where the client wrote some. */
import { isObject, type JsonObject, objectOf, objectsOf, textOf } from '../../lib/json.ts'

/** Items among which system messages stand as developer messages: the same rank, under the name the upstream takes inside `input`. */
export interface Conversation {
  items: JsonObject[]
  /** Those of the items that were system messages. */
  system: Set<JsonObject>
}

export interface Placing {
  /** System messages stay in `input`, where what continues the conversation finds them. */
  keepsSystem?: boolean
  /** The `text` of the request. */
  text?: unknown
  /** An earlier response it continues holds developer messages. */
  isInstructed?: boolean
}

/** Said only when the client gave neither instructions nor a developer message. */
export const NEUTRAL_INSTRUCTIONS = 'You are a helpful assistant.'

/**
 * The `instructions` to send, the client's own and then the texts of system messages, one per line, and the `input` without
 * what moved there. `undefined` means the developer messages are instruction enough, as the native client shows by sending
 * none. Nothing moves in JSON mode, where the upstream wants the word "JSON" in `input`, and where nothing would be left
 * there, which the upstream refuses.
 */
export function placed(
  own: string,
  { items, system }: Conversation,
  { keepsSystem = false, text, isInstructed = false }: Placing,
): { instructions: string | undefined; input: JsonObject[] } {
  const others = items.filter((item) => !system.has(item))
  const keeps = keepsSystem || others.length === 0 || objectOf(objectOf(text).format).type === 'json_object'
  const input = keeps ? items : others
  const texts = keeps ? [] : [...system].flatMap(({ content }) => objectsOf(content).map((part) => textOf(part.text)))
  const joined = [own, ...texts].filter((text) => text !== '').join('\n')
  const isEnough = isInstructed || hasInstruction(input)
  return { instructions: joined || (isEnough ? undefined : NEUTRAL_INSTRUCTIONS), input }
}

/** Whether a developer message is among the items. */
export const hasInstruction = (items: readonly unknown[]): boolean =>
  items.some((item) => isObject(item) && item.role === 'developer')
