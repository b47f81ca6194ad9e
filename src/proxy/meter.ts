/** Watches the events of one turn in passing: response id, usage, terminal event, ciphertext. Reads bytes; parses almost nothing. */
import { asLatin1, placeOf } from '../lib/bytes.ts'
import { isObject, type JsonObject, objectOf, objectsOf, textOf } from '../lib/json.ts'
import type { SseEvent } from '../lib/sse.ts'
import { eventJson } from '../lib/sse-payload.ts'
import type { TokenUsage } from '../model/pricing.ts'
import { isTerminal, type Terminal } from '../upstream/terminal.ts'
import { sha256 } from './affinity.ts'

/** Events that say nothing yet: held back, and no commitment (decisions §3 "Commit point"). Comments count among them. */
export const isHeld = (type: string | null): boolean =>
  type === null ||
  type === 'response.created' ||
  type === 'response.in_progress' ||
  type === 'response.queued' ||
  type.startsWith('codex.')

const ID_KEY = Buffer.from('"id":"')
const CIPHERTEXT_KEY = Buffer.from('"encrypted_content":"')
const QUOTE = 34
const BACKSLASH = 92

export class Meter {
  responseId: string | null = null
  usage: TokenUsage | null = null
  serviceTier: string | null = null
  terminal: Terminal | null = null
  /** The parsed terminal event, for those who need more of it. */
  terminalEvent: unknown = null
  /** SHA-256 of every ciphertext the account produced. */
  readonly ciphertexts: string[] = []
  /** Sequence numbers are not parsed; counting events gives one above the last. */
  events = 0
  /** Deltas seen, about one a token: what a cancelled turn is charged for. */
  deltas = 0

  /** The view of an event's bytes is made for the few that are read: nine of ten are deltas. */
  see(event: SseEvent): void {
    const { type } = event
    if (type === null) return
    this.events += event.count
    if (type.endsWith('.delta')) this.deltas += event.count
    else if (type === 'response.created') this.responseId = textAfter(event.bytes, ID_KEY)
    else if (type === 'response.output_item.done') this.#noteCiphertext(event.bytes)
    else if (isTerminal(type)) this.#finish(type, event.bytes)
  }

  #noteCiphertext(bytes: Uint8Array): void {
    const text = textAfter(bytes, CIPHERTEXT_KEY)
    if (text !== null) this.ciphertexts.push(sha256(text))
  }

  #finish(type: Terminal, bytes: Uint8Array): void {
    this.terminal = type
    this.terminalEvent = eventJson(bytes)
    const response = objectOf(objectOf(this.terminalEvent).response)
    this.responseId = textOf(response.id) || this.responseId
    this.serviceTier = textOf(response.service_tier) || null
    if (isObject(response.usage)) this.usage = toTokens(response.usage)
    if (this.ciphertexts.length === 0) this.#noteOutput()
  }

  /** An answer that came as one document has no events for its items. */
  #noteOutput(): void {
    const { output } = objectOf(objectOf(this.terminalEvent).response)
    for (const { encrypted_content } of objectsOf(output))
      if (typeof encrypted_content === 'string') this.ciphertexts.push(sha256(encrypted_content))
  }
}

/** Members are read one by one: a schema over the last event of every turn would cost more than all else here. */
const toTokens = (usage: JsonObject): TokenUsage => ({
  inputTokens: countOf(usage.input_tokens),
  cachedInputTokens: countOf(objectOf(usage.input_tokens_details).cached_tokens),
  outputTokens: countOf(usage.output_tokens),
  reasoningTokens: countOf(objectOf(usage.output_tokens_details).reasoning_tokens),
})

const countOf = (value: unknown): number =>
  typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0

/** The JSON string that follows `key`, when it holds no escapes; ids and base64 never do. */
const textAfter = (bytes: Uint8Array, key: Buffer): string | null => {
  const at = placeOf(bytes, key)
  if (at === -1) return null
  const from = at + key.length
  const to = bytes.indexOf(QUOTE, from)
  if (to <= from || bytes[to - 1] === BACKSLASH) return null
  return asLatin1(bytes, from, to)
}
