/** Turns a public `/v1/responses` request into one the upstream accepts, changing nothing it need not change. */

import { isObject, type JsonObject, objectsOf, textOf } from '../../lib/json.ts'
import { checkCompactionTrigger } from './compaction-trigger.ts'
import { type InputItems, inputItems } from './input-items.ts'
import { type Placing, placed } from './instructions.ts'
import { ALIASES, checkParameters, foldAliases, isImplied, REFUSED_UPSTREAM, refuseStateful } from './parameters.ts'
import { filledTool } from './required-members.ts'

export interface NormalisedRequest {
  body: JsonObject
  /** Names of what the client sent and the upstream will not see, for `x-sluice-dropped-fields`; in body order. */
  dropped: string[]
}

/**
 * The request for the upstream: `store:false` and `stream:true`, a list of items, system messages moved into
 * `instructions` unless `placing` says otherwise, aliases folded, refused parameters dropped (decisions §3, proxy
 * surface §5.5). Members that stay keep their order and, `tools` above all, are the client's own objects; `body`
 * itself is not changed. Throws `invalid_request_error`, `unsupported_parameter` or `previous_response_not_found`,
 * each with `param`.
 */
export function normaliseResponses(body: JsonObject, placing?: Omit<Placing, 'text'>): NormalisedRequest {
  checkParameters(body)
  refuseStateful(body)
  const said = inputItems(body)
  checkCompactionTrigger(said.items)
  const changed = changedMembers(body, placed(textOf(body.instructions), said, { ...placing, text: body.text }))
  return { body: rebuilt(body, changed), dropped: droppedFrom(body, said) }
}

const CIPHERTEXT = 'reasoning.encrypted_content'

/**
 * The same, asking also for what reasoning can be read from again. Nothing is stored upstream: a client that sends the items of
 * an answer back, as SDKs do, would else name reasoning that is found nowhere.
 */
export const withCiphertext = (body: JsonObject): JsonObject => {
  const include: unknown[] = Array.isArray(body.include) ? body.include : []
  return include.includes(CIPHERTEXT) ? body : { ...body, include: [...include, CIPHERTEXT] }
}

/** `tools` as the upstream takes them; the same list when no tool needs a change. */
function currentTools(tools: unknown[]): unknown[] {
  const current = tools.map((tool) => (isObject(tool) ? filledTool(currentTool(tool)) : tool))
  return current.every((tool, index) => tool === tools[index]) ? tools : current
}

/** A tool, or a choice of one, under the name the upstream knows. */
export const currentTool = <T>(tool: T): T => (isPreviewSearch(tool) ? { ...tool, type: 'web_search' } : tool)

const isPreviewSearch = (tool: unknown): boolean => isObject(tool) && textOf(tool.type).startsWith('web_search_preview')

/** What the body will hold under these names; `undefined` takes a member out. */
function changedMembers(body: JsonObject, { instructions, input }: ReturnType<typeof placed>): JsonObject {
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

/** The client's members in their order, each under its new value, then what the client did not send. */
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
  REFUSED_UPSTREAM.has(name) || ALIASES.has(name) || STATE.has(name) || isImplied(name)

/** A null asks for nothing, so leaving it out loses nothing; `store` counts only when storing was asked for. */
function droppedFrom(body: JsonObject, { hadCacheBreakpoint }: InputItems): string[] {
  const names = Object.keys(body).filter((name) => REFUSED_UPSTREAM.has(name) && body[name] != null)
  if (body.store === true) names.push('store')
  if (hadCacheBreakpoint) names.push('prompt_cache_breakpoint')
  return names
}

const sameItems = (list: unknown, items: JsonObject[]) =>
  Array.isArray(list) && list.length === items.length && objectsOf(list).every((item, index) => item === items[index])
