/** Fills in members that the upstream requires and that chat, or OpenAI's own API, lets a client leave out. */
import type { JsonObject } from '../../lib/json.ts'

const NO_PARAMETERS = { type: 'object', properties: {}, required: [], additionalProperties: false }

/** By the `type` of a tool or an answer format: what leaving the member out means in chat. */
const IN_CHAT: Readonly<Record<string, JsonObject>> = {
  function: { parameters: NO_PARAMETERS, strict: false },
  json_schema: { schema: { type: 'object' } },
}

/** The same for the public Responses API, where a function without `strict` is a strict one, upstream too. */
const IN_RESPONSES: Readonly<Record<string, JsonObject>> = { function: { parameters: NO_PARAMETERS } }

/** A flat tool or format made from a chat request, complete. */
export const filledFromChat = (value: JsonObject): JsonObject => filled(value, IN_CHAT)

/** A tool of a Responses request, complete; the same object when nothing is missing. */
export const filledTool = (tool: JsonObject): JsonObject => filled(tool, IN_RESPONSES)

const filled = (value: JsonObject, table: typeof IN_CHAT): JsonObject => {
  const missing = Object.entries(table[String(value.type)] ?? {}).filter(([name]) => value[name] == null)
  return missing.length > 0 ? { ...value, ...Object.fromEntries(missing) } : value
}
