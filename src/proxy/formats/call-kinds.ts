/** The two kinds of client tool calls: with JSON arguments, and with free text. They differ only in names. */
import type { JsonObject } from '../../lib/json.ts'

export interface CallKind {
  /** The item's `type` in Responses. */
  item: 'function_call' | 'custom_tool_call'
  /** The call's `type` in chat, also the name of its member. */
  type: 'function' | 'custom'
  /** The member that holds the arguments, the same in both APIs. */
  text: 'arguments' | 'input'
}

const CALL_KINDS: readonly CallKind[] = [
  { item: 'function_call', type: 'function', text: 'arguments' },
  { item: 'custom_tool_call', type: 'custom', text: 'input' },
]

/** Undefined for items that are not client tool calls. */
export const callKind = ({ type }: JsonObject): CallKind | undefined => CALL_KINDS.find(({ item }) => item === type)

/** The chat call for an item of this kind, with the `text` known so far. */
export const chatCall = ({ type, text: member }: CallKind, item: JsonObject, text: string): JsonObject => ({
  id: item.call_id ?? item.id,
  type,
  [type]: { name: item.name, [member]: text },
})

/** Chat has one kind of tool output; in Responses it must match the kind of its call, which may be in `history`. */
export const withOutputKinds = (items: JsonObject[], history: readonly JsonObject[] = []): JsonObject[] => {
  const calls = [...history, ...items].filter(({ type }) => type === 'custom_tool_call')
  const custom = new Set(calls.map(({ call_id }) => call_id))
  if (custom.size === 0) return items
  return items.map((item) =>
    item.type === 'function_call_output' && custom.has(item.call_id)
      ? { ...item, type: 'custom_tool_call_output' }
      : item,
  )
}
