/** The two kinds of calls a model makes of the client's tools: one with arguments in JSON, one with any text. They differ in names only. */
import type { JsonObject } from '../../lib/json.ts'

export interface CallKind {
  /** The `type` of the item in Responses. */
  item: 'function_call' | 'custom_tool_call'
  /** The `type` of the call in chat, and the member that holds it there. */
  type: 'function' | 'custom'
  /** The member, in both, that holds what the tool is called with. */
  text: 'arguments' | 'input'
}

const CALL_KINDS: readonly CallKind[] = [
  { item: 'function_call', type: 'function', text: 'arguments' },
  { item: 'custom_tool_call', type: 'custom', text: 'input' },
]

/** Undefined for items that call none of the client's tools. */
export const callKind = ({ type }: JsonObject): CallKind | undefined => CALL_KINDS.find(({ item }) => item === type)

/** The call of chat for an item of this kind, with as much `text` as is known. */
export const chatCall = ({ type, text: member }: CallKind, item: JsonObject, text: string): JsonObject => ({
  id: item.call_id ?? item.id,
  type,
  [type]: { name: item.name, [member]: text },
})

/** Chat answers both kinds alike; here an output is of the kind of its call. */
export const withOutputKinds = (items: JsonObject[]): JsonObject[] => {
  const custom = new Set(items.filter(({ type }) => type === 'custom_tool_call').map(({ call_id }) => call_id))
  if (custom.size === 0) return items
  return items.map((item) =>
    item.type === 'function_call_output' && custom.has(item.call_id)
      ? { ...item, type: 'custom_tool_call_output' }
      : item,
  )
}
