/**
 * Collects from the events of a turn: response id, usage, terminal event, ciphertext. Reads bytes and parses almost
 * nothing.
 */
import { asLatin1, getPlace } from '../../lib/bytes.ts'
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import type { TokenUsage } from '../../model/catalog/pricing.ts'
import { isTerminal, type Terminal } from '../../upstream/stream.ts'
import { sha256 } from '../pool/affinity.ts'

/** Events without content, comments included: held back, and not a commitment (decisions §3 "Commit point"). */
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

/** What settling a request needs to know of its answer. */
export interface Metered extends Pick<Meter, 'responseId' | 'usage' | 'ciphertexts' | 'deltas'> {
  /** How long the transcribed audio is; null: ChatGPT did not say. */
  audioSeconds?: number | null
}

export class Meter {
  responseId: string | null = null
  usage: TokenUsage | null = null
  terminal: Terminal | null = null
  /** The parsed terminal event, for callers that need more of it. */
  terminalEvent: unknown = null
  /** SHA-256 of each ciphertext the account produced. */
  readonly ciphertexts: string[] = []
  /** Sequence numbers are not parsed; the event count is one above the last. */
  events = 0
  /** Deltas seen, about one per token: the charge for a cancelled turn. */
  deltas = 0

  /** Whether the answer reported its usage. */
  get hasUsage(): boolean {
    return this.usage !== null
  }

  /** Avoids `event.bytes` where possible: it creates a view, and nine of ten events are deltas. */
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
    const response = getObject(getObject(this.terminalEvent).response)
    this.responseId = getText(response.id) || this.responseId
    if (isObject(response.usage)) this.usage = toTokens(response.usage)
    if (this.ciphertexts.length === 0) this.#noteOutput()
  }

  /** An answer that arrived as one document has no item events. */
  #noteOutput(): void {
    const { output } = getObject(getObject(this.terminalEvent).response)
    for (const { encrypted_content } of getObjects(output))
      if (typeof encrypted_content === 'string') this.ciphertexts.push(sha256(encrypted_content))
  }
}

/** Token counts as the Responses API and the Images API report them. Members are read one by one: a schema over the last event of every turn would cost more than all else here. */
export const toTokens = (usage: JsonObject): TokenUsage => ({
  inputTokens: getCount(usage.input_tokens),
  cachedInputTokens: getCount(getObject(usage.input_tokens_details).cached_tokens),
  outputTokens: getCount(usage.output_tokens),
  reasoningTokens: getCount(getObject(usage.output_tokens_details).reasoning_tokens),
})

export const getCount = (value: unknown): number =>
  typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0

/** The JSON string after `key`, if it has no escapes; ids and base64 never do. */
const textAfter = (bytes: Uint8Array, key: Buffer): string | null => {
  const at = getPlace(bytes, key)
  if (at === -1) return null
  const from = at + key.length
  const to = bytes.indexOf(QUOTE, from)
  if (to <= from || bytes[to - 1] === BACKSLASH) return null
  return asLatin1(bytes, from, to)
}
