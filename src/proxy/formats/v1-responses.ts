/** Turns a public `/v1/responses` request into one the upstream accepts, changing no more than necessary. */

import { getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { checkCompactionTrigger } from './compaction-trigger.ts'
import { type InputItems, inputItems } from './input-items.ts'
import { type Conversation, type History, type InstructionOptions, NO_HISTORY, toInstructions } from './instructions.ts'
import { ALIASES, checkParameters, foldAliases, isImplied, REJECTED_UPSTREAM, rejectStateful } from './parameters.ts'
import { filledTool } from './required-members.ts'

export interface NormalisedRequest {
  body: JsonObject
  /** Names of members not passed to the upstream, for `x-sluice-dropped-fields`; in body order. */
  dropped: string[]
}

export interface NormalisedResponses extends NormalisedRequest {
  /** The request's own items in order, also those that moved to `instructions`, and which these are. */
  own: Conversation
}

/**
 * The upstream request: `store:false`, `stream:true`, a list of items, system messages moved to `instructions` unless
 * `placing` says otherwise, aliases applied, unsupported parameters dropped (decisions §3). Kept members stay in order
 * and, above all `tools`, are the client's own objects; `body` is not changed. `history` comes first in `input`; after
 * it new system messages stay in `input`, so that nothing before them changes. Throws `invalid_request_error`,
 * `unsupported_parameter` or `previous_response_not_found`, each with `param`.
 */
export function normaliseResponses(
  body: JsonObject,
  placing?: Omit<InstructionOptions, 'text'>,
  history: History = NO_HISTORY,
): NormalisedResponses {
  checkParameters(body)
  rejectStateful(body)
  const said = inputItems(body, history.items)
  checkCompactionTrigger(said.items)
  const isContinued = history !== NO_HISTORY
  const all = isContinued ? { items: [...history.items, ...said.items], system: history.system } : said
  const first = isContinued ? history.first : undefined
  const whole = toInstructions(getText(body.instructions), all, { ...placing, text: body.text }, first)
  const system = isContinued || whole.input.length === all.items.length ? new Set<JsonObject>() : said.system
  return {
    body: rebuilt(body, changedMembers(body, whole)),
    dropped: droppedFrom(body, said),
    own: { items: said.items, system },
  }
}

const CIPHERTEXT = 'reasoning.encrypted_content'

/**
 * Also requests encrypted reasoning. The upstream stores nothing, so a client that sends items back, as SDKs do, would
 * otherwise refer to reasoning that does not exist.
 */
export const withCiphertext = (body: JsonObject): JsonObject => {
  const include: unknown[] = Array.isArray(body.include) ? body.include : []
  return include.includes(CIPHERTEXT) ? body : { ...body, include: [...include, CIPHERTEXT] }
}

/** `tools` as the upstream accepts them; the same list when nothing changes. */
function currentTools(tools: unknown[]): unknown[] {
  const current = tools.map((tool) => (isObject(tool) ? filledTool(currentTool(tool)) : tool))
  return current.every((tool, index) => tool === tools[index]) ? tools : current
}

/** A tool or tool choice under the upstream's name for it. */
export const currentTool = <T>(tool: T): T => (isPreviewSearch(tool) ? { ...tool, type: 'web_search' } : tool)

const isPreviewSearch = (tool: unknown): boolean =>
  isObject(tool) && getText(tool.type).startsWith('web_search_preview')

/** New values of these members; `undefined` removes one. */
function changedMembers(body: JsonObject, { instructions, input }: ReturnType<typeof toInstructions>): JsonObject {
  return {
    instructions,
    input: sameItems(body.input, input) ? body.input : input,
    ...foldAliases(body),
    ...(Array.isArray(body.tools) && { tools: currentTools(body.tools) }),
    tool_choice: currentTool(body.tool_choice),
    store: false,
    stream: true,
  }
}

/** The client's members in order, with new values, then added members. */
function rebuilt(body: JsonObject, changed: JsonObject): JsonObject {
  const kept = Object.keys(body).filter((name) => !isLeftOut(name))
  const names = new Set([...kept, ...Object.keys(changed)])
  return Object.fromEntries(
    [...names].flatMap((name) => {
      const value = Object.hasOwn(changed, name) ? changed[name] : body[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

const STATE = new Set(['messages', 'conversation', 'prompt', 'previous_response_id'])

const isLeftOut = (name: string) =>
  REJECTED_UPSTREAM.has(name) || ALIASES.has(name) || STATE.has(name) || isImplied(name)

/** Dropping a null loses nothing. `store` is reported only when the client set it. */
function droppedFrom(body: JsonObject, { hadCacheBreakpoint }: InputItems): string[] {
  const names = Object.keys(body).filter((name) => REJECTED_UPSTREAM.has(name) && body[name] != null)
  if (body.store === true) names.push('store')
  if (hadCacheBreakpoint) names.push('prompt_cache_breakpoint')
  return names
}

const sameItems = (list: unknown, items: JsonObject[]) =>
  Array.isArray(list) && list.length === items.length && getObjects(list).every((item, index) => item === items[index])
