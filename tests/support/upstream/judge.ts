/** Rejects what ChatGPT is known or assumed to reject on its model routes. */
import { modelNotSupported } from './faults.ts'
import { getSlugs } from './models.ts'
import { apiError, detail } from './refusal.ts'
import { isJson, type Json, type Turn } from './script.ts'

/** Every known member of the body; anything else is an unsupported parameter. */
const RESPONSES_PARAMETERS = new Set([
  'model',
  'stream',
  'store',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'include',
  'prompt_cache_key',
  'text',
  'service_tier',
  'client_metadata',
  'previous_response_id',
])
const COMPACT_PARAMETERS = new Set([
  'model',
  'input',
  'instructions',
  'tools',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'prompt_cache_key',
  'service_tier',
])

/** Names of the public API and of clients; what arrives unrequested has none here, and `fast` is `priority`. */
const REFUSED_TIERS = new Set<unknown>(['auto', 'default', 'fast'])

const CREATE_PARAMETERS = new Set([...RESPONSES_PARAMETERS, 'type', 'generate'])

type Judged = Omit<Turn, 'body'> & { body: unknown }

/** Validates the body of `POST /codex/responses` over HTTP; throws a `Refusal`. */
export function judgeResponses(request: Omit<Judged, 'model' | 'input'>): Turn {
  const { accept = '' } = request.headers
  if (!accept.includes('text/event-stream')) throw detail(400, 'The accept header must be text/event-stream')
  const body = jsonBody(request)
  judgeFlags(body)
  if (body.previous_response_id !== undefined) throw detail(400, 'Unsupported parameter: previous_response_id')
  const turn = judgeTurn(request, body, RESPONSES_PARAMETERS)
  judgeTrigger(turn.input)
  return turn
}

/**
 * Validates a `response.create` of a socket; throws a `Refusal`. `history` is the content of its previous response and
 * comes first in the input of the turn.
 */
export function judgeCreate(request: Omit<Judged, 'model' | 'input' | 'body'> & { body: Json }, history: Json[]): Turn {
  const { body } = request
  judgeFlags(body)
  const isPrewarm = body.generate === false
  const isContinued = body.previous_response_id !== undefined
  if (Array.isArray(body.input) && body.input.length === 0 && !isPrewarm && !isContinued)
    throw detail(400, 'Input must not be empty')
  const turn = judgeTurn(request, body, CREATE_PARAMETERS, { history, needsInstructions: !isPrewarm })
  judgeTrigger(turn.input)
  return turn
}

/** Validates the body of the unary `POST /codex/responses/compact`; throws a `Refusal`. */
export function judgeCompact(request: Omit<Judged, 'model' | 'input'>): Turn {
  return judgeTurn(request, jsonBody(request), COMPACT_PARAMETERS)
}

function jsonBody({ headers, body }: Pick<Judged, 'headers' | 'body'>): Json {
  if (!headers['content-type']?.startsWith('application/json')) throw detail(415, 'Unsupported content type')
  if (!isJson(body)) throw detail(400, 'The body must be a JSON object')
  return body
}

function judgeFlags(body: Json): void {
  if (body.stream !== true) throw detail(400, 'Stream must be set to true')
  if (body.store !== false) throw detail(400, 'Store must be set to false')
}

const ON_ITS_OWN = { history: [] as Json[], needsInstructions: true } // as: an empty list has no type of its own

function judgeTurn(
  request: Omit<Judged, 'model' | 'input'>,
  body: Json,
  parameters: Set<string>,
  { history, needsInstructions } = ON_ITS_OWN,
): Turn {
  const unsupported = Object.keys(body).find((name) => !parameters.has(name))
  if (unsupported) throw detail(400, `Unsupported parameter: ${unsupported}`)
  if (REFUSED_TIERS.has(body.service_tier)) throw detail(400, `Unsupported service_tier: ${body.service_tier}`)
  if (isJson(body.reasoning) && body.reasoning.effort === 'ultra')
    throw apiError(400, 'invalid_value', "Invalid value: 'ultra'.", 'reasoning.effort')
  if (!Array.isArray(body.input)) throw detail(400, 'Input must be a list')
  const model = String(body.model ?? '')
  if (!getSlugs(request.account).includes(model)) throw detail(400, modelNotSupported(model))
  const input = body.input.map((item, index) => {
    if (isJson(item)) return item
    throw apiError(400, 'invalid_type', 'An input item must be an object.', `input[${index}]`)
  })
  judgeTools(body.tools)
  judgeFormat(body.text)
  judgeInput(input, request.account.chatgptAccountId, history)
  const conversation = [...history, ...input]
  if (needsInstructions && !hasInstructions(body, conversation)) throw detail(400, 'Instructions are required')
  return { ...request, body, model, input: conversation }
}

/** A function has parameters, even if they are empty. */
function judgeTools(tools: unknown): void {
  if (!Array.isArray(tools)) return
  for (const [index, tool] of tools.entries()) {
    if (!isJson(tool) || tool.type !== 'function' || isJson(tool.parameters)) continue
    const at = `tools[${index}].parameters`
    if (!('parameters' in tool))
      throw apiError(400, 'missing_required_parameter', `Missing required parameter: '${at}'.`, at)
    throw apiError(400, 'invalid_type', `Invalid type for '${at}': expected an object.`, at)
  }
}

function judgeFormat(text: unknown): void {
  const format = isJson(text) ? text.format : null
  if (!isJson(format) || format.type !== 'json_schema' || isJson(format.schema)) return
  const at = 'text.format.schema'
  throw apiError(400, 'missing_required_parameter', `Missing required parameter: '${at}'.`, at)
}

function judgeInput(input: Json[], chatgptAccountId: string, history: Json[]): void {
  const calls = new Set<unknown>(history.map(({ call_id }) => call_id))
  for (const [index, item] of input.entries()) {
    if (item.role === 'system') throw detail(400, 'System messages are not allowed')
    judgeStored(item)
    judgeMessage(item, `input[${index}]`)
    judgeReasoning(item, `input[${index}]`)
    judgeIds(item, `input[${index}]`)
    if (item.encrypted_content != null) judgeEncrypted(item, chatgptAccountId)
    const type = String(item.type ?? 'message')
    if (type.endsWith('_call')) calls.add(item.call_id)
    if (type.endsWith('_call_output') && !calls.has(item.call_id)) {
      const message = `No tool call found for the output with call_id ${item.call_id}.`
      throw apiError(400, 'invalid_value', message, `input[${index}]`)
    }
  }
}

/** Assumed: what an item of the type consists of; one that has an id and none of it is looked up, and nothing is stored. */
const SUBSTANCE: Record<string, readonly string[]> = {
  reasoning: ['encrypted_content'],
  compaction: ['encrypted_content'],
  web_search_call: ['action'],
  file_search_call: ['queries', 'results'],
  code_interpreter_call: ['code', 'outputs'],
  image_generation_call: ['result'],
  mcp_list_tools: ['tools'],
  item_reference: [],
}

function judgeStored({ type, id, ...item }: Json): void {
  // An item with neither type nor role is a reference, also without an id.
  const isReference = type === 'item_reference' || (type == null && item.role == null)
  const members = isReference ? [] : id == null ? undefined : SUBSTANCE[String(type)]
  if (!members || members.some((name) => item[name] != null)) return
  const message = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`
  throw apiError(
    404,
    null,
    `${message} Try again with \`store\` set to true, or remove this item from your input.`,
    'input',
  )
}

/** Assumed of the real service: a message says something. */
function judgeMessage({ type = 'message', content }: Json, at: string): void {
  if (type !== 'message' || typeof content === 'string' || (Array.isArray(content) && content.length > 0)) return
  const message = `Invalid '${at}.content': expected a string or a list that is not empty.`
  throw apiError(400, 'empty_array', message, `${at}.content`)
}

/** Reasoning is not accepted in the form it was sent. */
function judgeReasoning({ type, content, ...item }: Json, at: string): void {
  if (type !== 'reasoning') return
  if ('status' in item) throw apiError(400, 'unknown_parameter', `Unknown parameter: '${at}.status'.`, `${at}.status`)
  if (!Array.isArray(content) || content.length === 0) return
  const message = `Invalid '${at}.content': array too long. Expected an array with maximum length 0.`
  throw apiError(400, 'array_above_max_length', message, `${at}.content`)
}

/** The prefixes of ChatGPT's ids; the first three as reported in public issues, the others assumed. */
const ID_PREFIXES: Record<string, string> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  web_search_call: 'ws',
  image_generation_call: 'ig',
  compaction: 'cmp',
}

function judgeIds(item: Json, at: string): void {
  const prefix = ID_PREFIXES[String(item.type ?? 'message')]
  if (prefix && item.id != null && !String(item.id).startsWith(prefix)) {
    const message = `Invalid '${at}.id': '${item.id}'. Expected an ID that begins with '${prefix}'.`
    throw apiError(400, 'invalid_value', message, `${at}.id`)
  }
  for (const name of ['id', 'call_id']) {
    if (String(item[name] ?? '').length <= 64) continue
    const message = `Invalid '${at}.${name}': string too long. Expected a string with maximum length 64.`
    throw apiError(400, 'string_above_max_length', message, `${at}.${name}`)
  }
}

function judgeEncrypted(item: Json, chatgptAccountId: string): void {
  if (String(item.encrypted_content).startsWith(`enc.${chatgptAccountId}.`)) return
  const message = `The encrypted content for item ${item.id ?? '?'} could not be verified.`
  throw apiError(400, 'invalid_encrypted_content', message)
}

function judgeTrigger(input: Json[]): void {
  const position = input.findIndex((item) => item.type === 'compaction_trigger')
  if (position >= 0 && position !== input.length - 1)
    throw apiError(400, 'invalid_value', 'compaction_trigger must be the last input item.', 'input')
}

function hasInstructions(body: Json, input: Json[]): boolean {
  if (typeof body.instructions === 'string' && body.instructions !== '') return true
  return input.some((item) => item.role === 'developer' && (item.type ?? 'message') === 'message')
}
