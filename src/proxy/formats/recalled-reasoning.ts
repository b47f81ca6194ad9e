/** Chat messages cannot carry reasoning, so the stored reasoning of an answer is put back in front of its tool calls. */
import { getText, type JsonObject } from '../../lib/json.ts'
import { callKind } from './call-kinds.ts'

/** The reasoning items that led to a call, oldest first; none when nothing is stored of it. */
export type ReasoningBefore = (callId: string) => readonly JsonObject[]

/** The items of one assistant message. The first call's reasoning also comes before the text, as in the answer it was taken from. */
export const withReasoningBefore = (items: JsonObject[], reasoningBefore: ReasoningBefore): JsonObject[] => {
  const calls = items.filter(callKind)
  const recalled = new Map(calls.map((call) => [call, reasoningBefore(String(call.call_id))]))
  const first = calls[0]
  if (!first || ![...recalled.values()].some(({ length }) => length > 0)) return items
  const rest = items.flatMap((item) => (item === first ? [item] : [...(recalled.get(item) ?? []), item]))
  return [...(recalled.get(first) ?? []), ...rest]
}

/** Call id → the reasoning between it and the call before. A summary alone would be read as text, so it needs ciphertext. */
export const reasoningByCall = (output: readonly JsonObject[]): Map<string, JsonObject[]> => {
  const found = new Map<string, JsonObject[]>()
  let reasoning: JsonObject[] = []
  for (const item of output) {
    if (item.type === 'reasoning' && getText(item.encrypted_content) !== '') reasoning.push(item)
    const id = callKind(item) && (getText(item.call_id) || getText(item.id))
    if (!id) continue
    if (reasoning.length > 0) found.set(id, reasoning)
    reasoning = []
  }
  return found
}
