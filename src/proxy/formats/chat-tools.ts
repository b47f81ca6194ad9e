/** Converts tools, tool choice and response format of a chat request to Responses. */
import { z } from 'zod'
import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid, parseAt } from './invalid-request.ts'
import { filledFromChat } from './required-members.ts'
import { currentTool } from './v1-responses.ts'

/** Not copied, so that the client's text can be reused (`ingress/rewrite.ts`). */
const Own = z.custom<JsonObject>(isObject, 'expected an object')
const FunctionShape = z.object({
  name: z.string().nullish(),
  description: z.string().nullish(),
  parameters: Own.nullish(),
  strict: z.boolean().nullish(),
})
const FunctionTool = z.object({ function: FunctionShape })
const Grammar = z.object({
  type: z.literal('grammar'),
  grammar: z.object({ definition: z.string(), syntax: z.string() }),
})
const CustomTool = z.object({
  custom: z.object({
    name: z.string().nullish(),
    description: z.string().nullish(),
    format: z.discriminatedUnion('type', [z.object({ type: z.literal('text') }), Grammar]).nullish(),
  }),
})
const Named = z.object({ name: z.string().min(1) })
const AllowedTools = z.object({
  allowed_tools: z.object({ mode: z.enum(['auto', 'required']), tools: z.array(z.looseObject({ type: z.string() })) }),
})
const JsonSchemaFormat = z.object({
  json_schema: z.object({
    name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, dashes or underscores'),
    description: z.string().nullish(),
    schema: Own.nullish(),
    strict: z.boolean().nullish(),
  }),
})

/** Flat tools, and the paths of those left out. */
interface FlatTools {
  tools: JsonObject[]
  dropped: string[]
}

/**
 * Flat tools. A tool without a name cannot be called and is listed in `dropped`. Throws `invalid_request_error` with
 * the client's index, also for hosted tools, whose results chat cannot show.
 */
export const responsesTools = (tools: unknown[]): FlatTools => flattened(tools, 'tools', flatTool)

/** The same for `functions`, the predecessor of `tools`. */
export const responsesFunctions = (functions: unknown[]): FlatTools =>
  flattened(functions, 'functions', (one, at) => functionTool(parseAt(FunctionShape, one, at)))

function flattened(
  tools: unknown[],
  source: string,
  flat: (tool: unknown, at: string) => JsonObject | null,
): FlatTools {
  const all = tools.map((tool, index) => ({ at: `${source}[${index}]`, tool: flat(tool, `${source}[${index}]`) }))
  return {
    tools: all.flatMap(({ tool }) => (tool ? [tool] : [])),
    dropped: all.filter(({ tool }) => !tool).map(({ at }) => at),
  }
}

/** `tool_choice` without chat's nesting; strings pass unchanged. */
export function responsesToolChoice(choice: unknown): unknown {
  if (!isObject(choice)) return choice
  if (choice.type !== 'allowed_tools') return flatChoice(choice, 'tool_choice')
  const { mode, tools } = parseAt(AllowedTools, choice, 'tool_choice').allowed_tools
  const flat = tools.map((tool, index) => flatChoice(tool, `tool_choice.allowed_tools.tools[${index}]`))
  return { type: 'allowed_tools', mode, tools: flat }
}

/** `text.format` for a `response_format` given as a string or an object. */
export function responsesFormat(format: unknown): JsonObject {
  const type = isObject(format) ? format.type : format
  if (type === 'text' || type === 'json_object') return { type }
  if (type !== 'json_schema') {
    throw invalid('response_format', "response_format must be 'text', 'json_object' or 'json_schema'.")
  }
  const { name, ...rest } = parseAt(JsonSchemaFormat, isObject(format) ? format : {}, 'response_format').json_schema
  return filledFromChat({ type, name, ...withoutNulls(rest) })
}

function flatTool(tool: unknown, at: string): JsonObject | null {
  const type = isObject(tool) ? tool.type : undefined
  if (type === 'web_search' || String(type).startsWith('web_search_preview')) return currentTool(tool) as JsonObject // an object: it has a type
  if (type === 'custom') return customTool(parseAt(CustomTool, tool, at).custom)
  if (type !== 'function')
    throw invalid(`${at}.type`, `Tools of type '${String(type)}' are not supported by Chat Completions.`)
  return functionTool(parseAt(FunctionTool, tool, at).function)
}

const functionTool = ({ name, ...rest }: z.output<typeof FunctionShape>): JsonObject | null =>
  name ? filledFromChat({ type: 'function', name, ...withoutNulls(rest) }) : null

function customTool({ name, description, format }: z.output<typeof CustomTool>['custom']): JsonObject | null {
  if (!name) return null
  const flat = format?.type === 'grammar' ? { type: format.type, ...format.grammar } : format
  return { type: 'custom', name, ...withoutNulls({ description, format: flat }) }
}

const flatChoice = (choice: JsonObject, at: string): unknown => {
  const { type } = choice
  if (type !== 'function' && type !== 'custom') return currentTool(choice)
  return { type, name: parseAt(Named, choice[type], `${at}.${type}`).name }
}

const withoutNulls = (value: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member != null))
