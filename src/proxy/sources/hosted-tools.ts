/** Tools that OpenAI runs itself: a model source gets those that its model declares, and nothing that refers to the others. */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import type { SourceModel } from '../../model/sources/sources.ts'

/** Type → the start of the `include` values about its calls. */
const HOSTED: ReadonlyMap<string, string> = new Map([
  ['web_search', 'web_search_call.'],
  ['file_search', 'file_search_call.'],
  ['code_interpreter', 'code_interpreter_call.'],
  ['computer', 'computer_call_output.'],
  ['image_generation', 'image_generation_call.'],
  ['mcp', 'mcp_call.'],
])

/** Source models produce nothing that only its producer can read, so that a conversation can go on anywhere. */
const CIPHERTEXT = 'reasoning.encrypted_content'

interface Fitted {
  /** New values; undefined: the member is left out. */
  members: JsonObject
  /** What was left out, for `x-sluice-dropped-fields`. */
  dropped: string[]
}

/** The members of a Responses request about tools as this model takes them. */
export const toSupportedTools = (json: JsonObject, model: Pick<SourceModel, 'metadata'>): Fitted => {
  const declared = declaredTools(model)
  const isLost = (tool: unknown) => isObject(tool) && isUndeclared(getText(tool.type), declared)
  const tools = Array.isArray(json.tools) ? json.tools : []
  const lost = tools.filter(isLost)
  const lostNames = lost.map((tool) => hostedName(getText(getObject(tool).type)))
  const kept = tools.filter((tool) => !isLost(tool))
  const choice = fitChoice(json.tool_choice, { isLost, hasTools: kept.length > 0, hasLost: lost.length > 0 })
  const include = Array.isArray(json.include) ? json.include : []
  const isOut = (name: unknown) =>
    name === CIPHERTEXT || lostNames.some((tool) => getText(name).startsWith(HOSTED.get(tool ?? '') ?? CIPHERTEXT))
  const included = include.filter((name) => !isOut(name))
  return {
    members: {
      ...(lost.length > 0 && { tools: kept.length > 0 ? kept : undefined }),
      ...(choice !== json.tool_choice && { tool_choice: choice }),
      ...(included.length < include.length && { include: included.length > 0 ? included : undefined }),
    },
    dropped: [
      ...getObjects(lost).map(({ type }) => `tools.${getText(type)}`),
      ...(choice !== json.tool_choice ? ['tool_choice'] : []),
      ...include.filter(isOut).map((name) => `include.${getText(name)}`),
    ],
  }
}

const declaredTools = ({ metadata }: Pick<SourceModel, 'metadata'>): ReadonlySet<string> => {
  const { experimental_supported_tools: tools, supports_search_tool: searches } = metadata ?? {}
  const names = Array.isArray(tools) ? tools.map(getText) : []
  return new Set([...names, ...(searches === true ? ['web_search'] : [])])
}

/** Null for tools that the client runs. Names have versions: `web_search_preview_2025_03_11`. */
const hostedName = (type: string): string | null =>
  HOSTED.has(type) ? type : (HOSTED.keys().find((name) => type.startsWith(`${name}_`)) ?? null)

const isUndeclared = (type: string, declared: ReadonlySet<string>): boolean => {
  const name = hostedName(type)
  return name !== null && !declared.has(name) && !declared.has(type)
}

interface Remaining {
  isLost: (tool: unknown) => boolean
  hasTools: boolean
  hasLost: boolean
}

/** Undefined if it names a tool that was left out. */
const fitChoice = (choice: unknown, { isLost, hasTools, hasLost }: Remaining): unknown => {
  if (choice === undefined || (hasLost && !hasTools)) return undefined
  if (!isObject(choice)) return choice
  if (isLost(choice)) return undefined
  if (!Array.isArray(choice.tools) || !choice.tools.some(isLost)) return choice
  const tools = choice.tools.filter((tool) => !isLost(tool))
  return tools.length > 0 ? { ...choice, tools } : undefined
}
