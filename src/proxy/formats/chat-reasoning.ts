/** Reasoning summaries as chat clients show them: the `reasoning_content` of a message, which DeepSeek introduced and others read too. */
import { type JsonObject, objectOf, objectsOf, textOf } from '../../lib/json.ts'

const BETWEEN_PARTS = '\n\n'

/** The request, asking for a summary where an effort is set and the client did not decide about summaries itself. */
export const withSummary = (body: JsonObject): JsonObject => {
  const reasoning = objectOf(body.reasoning)
  if (reasoning.effort == null || reasoning.effort === 'none' || reasoning.summary !== undefined) return body
  return { ...body, reasoning: { ...reasoning, summary: 'auto' } }
}

/** All summaries of a finished response; empty when it has none. */
export const reasoningContent = (output: JsonObject[]): string =>
  output
    .flatMap(summaryTexts)
    .filter((text) => text !== '')
    .join(BETWEEN_PARTS)

/** The texts of a reasoning item's summary; of other items none. */
export const summaryTexts = ({ type, summary }: JsonObject): string[] =>
  type === 'reasoning' ? objectsOf(summary).map(({ text }) => textOf(text)) : []

/** Follows the summaries of one stream and returns what is new of them. */
export class ChatReasoning {
  /** Characters sent of each part. */
  readonly #sent = new Map<string, number>()

  /** Nothing was sent. */
  get isEmpty(): boolean {
    return this.#sent.size === 0
  }

  /** The text to send for a delta. */
  delta(event: JsonObject, text: string): string {
    if (text === '') return ''
    const key = partKey(event)
    const sent = this.#sent.get(key)
    const before = sent === undefined && !this.isEmpty ? BETWEEN_PARTS : ''
    this.#sent.set(key, (sent ?? 0) + text.length)
    return before + text
  }

  /** What the deltas left out of a part that is now known in full. */
  rest(event: JsonObject, full: string): string {
    return this.delta(event, full.slice(this.#sent.get(partKey(event)) ?? 0))
  }
}

const partKey = ({ output_index, summary_index }: JsonObject) => `${output_index ?? 0}:${summary_index ?? 0}`
