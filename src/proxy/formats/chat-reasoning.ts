/** Reasoning summaries for chat clients as `reasoning_content`, introduced by DeepSeek and read by others too. */
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'

const BETWEEN_PARTS = '\n\n'

/** Requests a summary when an effort is set and the client did not choose a summary itself. */
export const withSummary = (body: JsonObject): JsonObject => {
  const reasoning = getObject(body.reasoning)
  if (reasoning.effort == null || reasoning.effort === 'none' || reasoning.summary !== undefined) return body
  return { ...body, reasoning: { ...reasoning, summary: 'auto' } }
}

/** All summaries of a finished response; empty when it has none. */
export const reasoningContent = (output: JsonObject[]): string =>
  output
    .flatMap(summaryTexts)
    .filter((text) => text !== '')
    .join(BETWEEN_PARTS)

/** The summary texts of a reasoning item; none for other items. */
export const summaryTexts = ({ type, summary }: JsonObject): string[] =>
  type === 'reasoning' ? getObjects(summary).map(({ text }) => getText(text)) : []

/** Tracks the summaries of one stream and returns what is new. */
export class ChatReasoning {
  /** Characters sent per part. */
  readonly #sent = new Map<string, number>()

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

  /** What the deltas left out of a complete part. */
  rest(event: JsonObject, full: string): string {
    return this.delta(event, full.slice(this.#sent.get(partKey(event)) ?? 0))
  }
}

const partKey = ({ output_index, summary_index }: JsonObject) => `${output_index ?? 0}:${summary_index ?? 0}`
