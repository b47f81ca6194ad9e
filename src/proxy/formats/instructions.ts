/** Gives a request the instructions the upstream requires, and invents none if the client sent some. */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'

/** Input items, with system messages as developer messages, the role the upstream accepts in `input`. */
export interface Conversation {
  items: JsonObject[]
  /** The items that were system messages. */
  system: Set<JsonObject>
}

export interface InstructionOptions {
  /** System messages stay in `input`, where requests that continue the conversation find them. */
  keepsSystem?: boolean
  /** `text` of the request. */
  text?: unknown
  /** The earlier response it continues has developer messages. */
  isInstructed?: boolean
}

/** The conversation that a request continues. */
export interface History extends Conversation {
  /** Items of its first request. They decide for the whole conversation whether it needs `NEUTRAL_INSTRUCTIONS`. */
  first: readonly JsonObject[]
}

export const NO_HISTORY: History = { items: [], system: new Set(), first: [] }

/** Used only when the client sent neither instructions nor a developer message. */
export const NEUTRAL_INSTRUCTIONS = 'You are a helpful assistant.'

/**
 * The `instructions` to send (the client's own, then system messages, one per line) and the remaining `input`.
 * `undefined`: developer messages suffice, as in the native client's requests. System messages stay in `input` in JSON
 * mode, where the upstream requires the word "JSON" there, and when `input` would be empty, which the upstream rejects.
 */
export function toInstructions(
  own: string,
  { items, system }: Conversation,
  { keepsSystem = false, text, isInstructed = false }: InstructionOptions,
  first?: readonly JsonObject[],
): { instructions: string | undefined; input: JsonObject[] } {
  const others = items.filter((item) => !system.has(item))
  const keeps = keepsSystem || others.length === 0 || getObject(getObject(text).format).type === 'json_object'
  const input = keeps ? items : others
  const texts = keeps ? [] : [...system].flatMap(({ content }) => getObjects(content).map((part) => getText(part.text)))
  const joined = [own, ...texts].filter((text) => text !== '').join('\n')
  const isEnough = isInstructed || hasInstruction(first ?? input)
  return { instructions: joined || (isEnough ? undefined : NEUTRAL_INSTRUCTIONS), input }
}

/** Whether the items include a developer message. */
export const hasInstruction = (items: readonly unknown[]): boolean =>
  items.some((item) => isObject(item) && item.role === 'developer')
