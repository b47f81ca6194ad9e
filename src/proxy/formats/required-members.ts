/** Adds members that the upstream requires but chat or OpenAI's own API makes optional. */
import type { JsonObject } from '../../lib/json.ts'

const NO_PARAMETERS = { type: 'object', properties: {}, required: [], additionalProperties: false }

/** By `type` of a tool or response format: chat's default for each member. */
const IN_CHAT: Readonly<Record<string, JsonObject>> = {
  function: { parameters: NO_PARAMETERS, strict: false },
  json_schema: { schema: { type: 'object' } },
}

/** The same for the public Responses API, where a function without `strict` is strict, as upstream. */
const IN_RESPONSES: Readonly<Record<string, JsonObject>> = { function: { parameters: NO_PARAMETERS } }

/** Completes a flat tool or format made from a chat request. */
export const filledFromChat = (value: JsonObject): JsonObject => filled(value, IN_CHAT)

/** Completes a tool of a Responses request; returns the same object when nothing is missing. */
export const filledTool = (tool: JsonObject): JsonObject => filled(tool, IN_RESPONSES)

const filled = (value: JsonObject, table: typeof IN_CHAT): JsonObject => {
  const missing = Object.entries(table[String(value.type)] ?? {}).filter(([name]) => value[name] == null)
  return missing.length > 0 ? { ...value, ...Object.fromEntries(missing) } : value
}
