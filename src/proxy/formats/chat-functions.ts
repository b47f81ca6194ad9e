/** Translates chat's legacy `functions` to tools; some clients still use them. */
import { z } from 'zod'
import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid, parseAt } from './invalid-request.ts'

const Call = z.object({ name: z.string().min(1), arguments: z.string() })
const Functions = z.array(z.unknown()).nullish()
const Choice = z.object({ name: z.string().min(1) })

/** Whether the client offers functions; it is then answered with a `function_call`. */
export const usesFunctions = ({ functions }: JsonObject): boolean => Array.isArray(functions) && functions.length > 0

/** The functions offered. Throws `invalid_request_error` when it is not a list or is combined with tools. */
export function getFunctions(body: JsonObject): unknown[] {
  const functions = parseAt(Functions, body.functions, 'functions') ?? []
  if (functions.length > 0 && Array.isArray(body.tools) && body.tools.length > 0)
    throw invalid('functions', "Send either 'tools' or 'functions'.")
  return functions
}

/** The `tool_choice` for a `function_call`; strings pass unchanged. */
export const choiceOfFunction = (choice: unknown): unknown =>
  isObject(choice) ? { type: 'function', function: parseAt(Choice, choice, 'function_call') } : choice

/**
 * Replaces function calls and results with tool calls and tool results. Functions have no call ids, so ids are made
 * from positions, which stay the same in every turn. Throws `invalid_request_error` for a result without a call.
 */
export function withToolCalls(messages: unknown[], source: string): unknown[] {
  const open: { id: string; name: string }[] = []
  return messages.map((message, index) => {
    if (!isObject(message) || message.type != null) return message
    const at = `${source}[${index}]`
    if (message.role === 'function') return toolResult(message, open, at)
    if (message.role !== 'assistant' || message.function_call == null || hasToolCalls(message)) return message
    const { function_call, ...rest } = message
    const call = parseAt(Call, function_call, `${at}.function_call`)
    const id = `call_of_message_${index}`
    open.push({ id, name: call.name })
    return { ...rest, tool_calls: [{ id, type: 'function', function: call }] }
  })
}

function toolResult({ name, content }: JsonObject, open: { id: string; name: string }[], at: string): JsonObject {
  const call = open.findLastIndex((one) => one.name === name)
  const id = open.splice(call, call < 0 ? 0 : 1)[0]?.id
  if (id === undefined) throw invalid(`${at}.name`, 'This function result has no matching function_call.')
  return { role: 'tool', tool_call_id: id, content: content ?? '' }
}

const hasToolCalls = ({ tool_calls }: JsonObject): boolean => Array.isArray(tool_calls) && tool_calls.length > 0
