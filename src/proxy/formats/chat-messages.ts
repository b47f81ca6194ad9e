/** Turns one chat message of a request into Responses items. */
import { z } from 'zod'
import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid, parseAt } from './invalid-request.ts'

/** Longest data URL accepted, in characters; base64 is ASCII, so also in bytes. */
export const MAX_DATA_URL_BYTES = 8 * 1024 * 1024

const Part = z.looseObject({ type: z.string() })
const Content = z.union([z.string(), z.array(Part)], { error: 'expected text or a list of parts' })
const TextPart = z.object({ text: z.string() })
const RefusalPart = z.object({ refusal: z.string() })
const ImagePart = z.object({ image_url: z.object({ url: z.string(), detail: z.string().nullish() }) })
const FilePart = z.object({
  file: z.object({
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
    file_id: z.unknown().optional(),
    filename: z.string().nullish(),
    mime_type: z.string().nullish(),
  }),
  mime_type: z.string().nullish(),
})
const FunctionCall = z.object({
  id: z.string().min(1),
  type: z.literal('function').nullish(),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})
const CustomCall = z.object({
  id: z.string().min(1),
  type: z.literal('custom'),
  custom: z.object({ name: z.string().min(1), input: z.string() }),
})
const ToolCall = z.discriminatedUnion('type', [FunctionCall, CustomCall])
const AssistantMessage = z.object({
  content: Content.nullish(),
  refusal: z.string().nullish(),
  tool_calls: z.array(ToolCall).nullish(),
})

type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

const TRANSLATE: Record<Role, (message: JsonObject, at: string) => JsonObject[]> = {
  system: instructionItem,
  developer: instructionItem,
  user: (message, at) => [{ role: 'user', content: userParts(getContent(message, at), `${at}.content`) }],
  assistant: assistantItems,
  tool: toolOutput,
}

/**
 * The items for one message, in order. Other keys (`name`, vendor extras) are dropped; function calls arrive here as
 * tool calls (`chat-functions.ts`). Throws `invalid_request_error` naming the part, as in `messages[1].content[0]`.
 */
export function messageItems(message: unknown, at: string): JsonObject[] {
  const role = isObject(message) ? message.role : undefined
  if (!isObject(message) || !isRole(role)) {
    throw invalid(`${at}.role`, `The role must be one of ${Object.keys(TRANSLATE).join(', ')}.`)
  }
  return TRANSLATE[role](message, at)
}

const isRole = (role: unknown): role is Role => typeof role === 'string' && Object.hasOwn(TRANSLATE, role)

const getContent = (message: JsonObject, at: string) => parseAt(Content, message.content, `${at}.content`)

/** The upstream rejects the role `system` in `input`; `developer` is its newer name. Instructions must be text. */
function instructionItem(message: JsonObject, at: string): JsonObject[] {
  const text = joinText(getContent(message, at), `${at}.content`, '\n')
  return [{ role: 'developer', content: [{ type: 'input_text', text }] }]
}

function joinText(content: z.output<typeof Content>, at: string, separator: string): string {
  if (typeof content === 'string') return content
  return content.map((part, index) => textAt(part, `${at}[${index}]`)).join(separator)
}

function textAt(part: z.output<typeof Part>, at: string): string {
  if (!isText(part)) throw invalid(at, 'Only text is supported in this message.')
  return parseAt(TextPart, part, at).text
}

const isText = ({ type }: z.output<typeof Part>): boolean => /^(input_|output_)?text$/.test(type)

function userParts(content: z.output<typeof Content>, at: string): JsonObject[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return content.map((part, index) => userPart(part, `${at}[${index}]`))
}

function userPart(part: z.output<typeof Part>, at: string): JsonObject {
  if (part.type === 'text' || part.type === 'input_text') {
    return { type: 'input_text', text: parseAt(TextPart, part, at).text }
  }
  if (part.type === 'image_url') return imagePart(parseAt(ImagePart, part, at).image_url, at)
  if (part.type === 'file') return filePart(parseAt(FilePart, part, at), at)
  if (part.type === 'input_audio') throw invalid(at, 'Audio input is not supported.')
  throw invalid(`${at}.type`, `Content parts of type '${part.type}' are not supported.`)
}

function imagePart({ url, detail }: { url: string; detail?: string | null | undefined }, at: string): JsonObject {
  const isData = /^data:/i.test(url)
  if (!isData && !/^https?:\/\//i.test(url)) throw invalid(`${at}.image_url.url`, 'Images need an http or data URL.')
  if (isData) checkDataUrl(url, `${at}.image_url.url`)
  return { type: 'input_image', image_url: url, ...(detail != null && { detail }) }
}

/** The upstream takes file contents as a data URL in `file_url` (observed in a comparable proxy). */
function filePart({ file, mime_type }: z.output<typeof FilePart>, at: string): JsonObject {
  if (file.file_id != null) throw invalid(`${at}.file.file_id`, 'Files cannot be sent by id. Use file_data instead.')
  const filename = file.filename != null && { filename: file.filename }
  if (file.file_data != null) {
    const mime = file.mime_type ?? mime_type ?? 'application/octet-stream'
    const url = /^data:/i.test(file.file_data) ? file.file_data : `data:${mime};base64,${file.file_data}`
    checkDataUrl(url, `${at}.file.file_data`)
    return { type: 'input_file', ...filename, file_url: url }
  }
  if (file.file_url == null) throw invalid(`${at}.file`, 'A file part needs file_data or file_url.')
  if (/^data:/i.test(file.file_url)) checkDataUrl(file.file_url, `${at}.file.file_url`)
  return { type: 'input_file', ...filename, file_url: file.file_url }
}

function checkDataUrl(url: string, param: string): void {
  if (url.length > MAX_DATA_URL_BYTES) throw invalid(param, 'A data URL may hold at most 8 MiB.')
}

function assistantItems(message: JsonObject, at: string): JsonObject[] {
  const { content, refusal, tool_calls } = parseAt(AssistantMessage, message, at)
  const parts = typeof content === 'string' ? textParts(content) : (content ?? []).map(assistantPart(`${at}.content`))
  if (refusal) parts.push({ type: 'refusal', refusal })
  const calls = (tool_calls ?? []).map((call) =>
    call.type === 'custom'
      ? { type: 'custom_tool_call', call_id: call.id, ...call.custom }
      : { type: 'function_call', call_id: call.id, ...call.function },
  )
  if (parts.length === 0) return calls
  // Newer models take unlabelled text before calls for an answer and then stop too early.
  return [{ role: 'assistant', ...(calls.length > 0 && { phase: 'commentary' }), content: parts }, ...calls]
}

const textParts = (text: string): JsonObject[] => (text === '' ? [] : [{ type: 'output_text', text }])

const assistantPart =
  (at: string) =>
  (part: z.output<typeof Part>, index: number): JsonObject => {
    if (part.type === 'refusal') return { type: 'refusal', ...parseAt(RefusalPart, part, `${at}[${index}]`) }
    return { type: 'output_text', text: textAt(part, `${at}[${index}]`) }
  }

/** Text stays a string; other tool output, such as an image, becomes a list of parts. */
function toolOutput(message: JsonObject, at: string): JsonObject[] {
  const id = message.tool_call_id ?? message.toolCallId ?? message.call_id
  const call_id = parseAt(z.string().min(1), id, `${at}.tool_call_id`)
  const content = getContent(message, at)
  const toOutput = typeof content === 'string' || content.every(isText) ? toolText : userParts
  return [{ type: 'function_call_output', call_id, output: toOutput(content, `${at}.content`) }]
}

const toolText = (content: z.output<typeof Content>, at: string): string => joinText(content, at, '')
