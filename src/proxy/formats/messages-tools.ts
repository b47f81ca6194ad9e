/** Converts tools, tool names and tool choice of a Messages request to Responses. */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { sha256 } from '../pool/affinity.ts'
import { invalid } from './invalid-request.ts'

/** The longest tool name the upstream accepts (assumed); Messages allows 128 characters. */
const MAX_NAME_CHARS = 64
const HASH_CHARS = 8

/** Shortens a tool name, always to the same name, so that the upstream's prompt cache still matches. */
export const shortToolName = (name: string): string =>
  name.length <= MAX_NAME_CHARS
    ? name
    : `${name.slice(0, MAX_NAME_CHARS - HASH_CHARS - 1)}_${sha256(name).slice(0, HASH_CHARS)}`

/** Short name → the client's name, for names that were shortened. */
export type ToolNames = ReadonlyMap<string, string>

interface MessagesTools {
  tools: JsonObject[]
  names: ToolNames
  /** Paths of members that were left out. */
  dropped: string[]
}

/** A tool that only announces deferred tools to the model. It is never called (Claude Code 2.1.332). */
const PLACEHOLDER = 'DeferredToolPlaceholder'

/**
 * The tools that the model can use now. The upstream has no deferred tools, so these are left out until `found` names
 * them, and then added at the end in the order they were found. Throws `invalid_request_error` for unsupported server
 * tools.
 */
export const messagesTools = (value: unknown, found: ReadonlySet<string>): MessagesTools => {
  const names = new Map<string, string>()
  const dropped: string[] = []
  const known: JsonObject[] = []
  const deferred = new Map<string, JsonObject>()
  for (const [index, tool] of getObjects(value).entries()) {
    const name = getText(tool.name)
    if (name === PLACEHOLDER) continue
    const at = `tools[${index}]`
    const converted = isWebSearch(tool) ? webSearch(tool, at, dropped) : functionTool(tool, name, at)
    if (shortToolName(name) !== name) names.set(shortToolName(name), name)
    if (tool.defer_loading === true) deferred.set(name, converted)
    else known.push(converted)
  }
  const late = [...found].flatMap((name): JsonObject[] => [deferred.get(name) ?? []].flat())
  return { tools: [...known, ...late], names, dropped }
}

const isWebSearch = ({ type }: JsonObject): boolean => getText(type).startsWith('web_search')

const functionTool = (tool: JsonObject, name: string, at: string): JsonObject => {
  if (tool.type != null && tool.type !== 'custom')
    throw invalid(`${at}.type`, `The tool type '${getText(tool.type)}' is not supported.`)
  if (name === '') throw invalid(`${at}.name`, 'A tool needs a name.')
  const { $schema: _, ...schema } = getObject(tool.input_schema)
  const description = getText(tool.description)
  return {
    type: 'function',
    name: shortToolName(name),
    ...(description !== '' && { description }),
    parameters: { type: 'object', ...schema, ...(!isObject(schema.properties) && { properties: {} }) },
    strict: false,
  }
}

/** Assumed: upstream web search supports allowed domains, but not blocked ones. */
const webSearch = (tool: JsonObject, at: string, dropped: string[]): JsonObject => {
  const { allowed_domains: allowed, user_location: location } = tool
  for (const name of ['blocked_domains', 'max_uses']) if (tool[name] != null) dropped.push(`${at}.${name}`)
  return {
    type: 'web_search',
    ...(Array.isArray(allowed) && allowed.length > 0 && { filters: { allowed_domains: allowed } }),
    ...(isObject(location) && { user_location: location }),
  }
}

/** Members of the Responses request. Empty without tools or a tool choice. */
export const messagesToolChoice = (value: unknown, tools: readonly JsonObject[]): JsonObject => {
  if (!isObject(value) || tools.length === 0) return {}
  return {
    tool_choice: choice(value, tools),
    ...(value.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  }
}

const choice = ({ type, name }: JsonObject, tools: readonly JsonObject[]): unknown => {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  if (type !== 'tool') throw invalid('tool_choice.type', "Expected 'auto', 'any', 'tool' or 'none'.")
  const chosen = { type: 'function', name: shortToolName(getText(name)) }
  const isFunction = tools.some((tool) => tool.type === 'function' && tool.name === chosen.name)
  return name === 'web_search' && !isFunction ? { type: 'web_search' } : chosen
}
