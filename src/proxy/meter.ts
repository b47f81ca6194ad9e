/** Watches the events of one turn in passing: response id, usage, terminal event, ciphertext. Reads bytes; parses almost nothing. */
import { z } from 'zod'
import { eventJson, type SseEvent } from '../lib/sse.ts'
import { sha256 } from './affinity.ts'
import { objectOf, objectsOf } from './formats/responses-event.ts'

export interface TokenUsage {
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  reasoningTokens: number
}

export type Terminal = 'response.completed' | 'response.incomplete' | 'response.failed' | 'error'

const TERMINALS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
])

export const isTerminal = (type: string | null): type is Terminal => type !== null && TERMINALS.has(type)

/** Events that say nothing yet: held back, and no commitment (decisions §3 "Commit point"). Comments count among them. */
export const isHeld = (type: string | null): boolean =>
  type === null ||
  type === 'response.created' ||
  type === 'response.in_progress' ||
  type === 'response.queued' ||
  type.startsWith('codex.')

const count = z.number().nonnegative().catch(0)
const Usage = z.object({
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
  output_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
})
const TerminalEvent = z.object({
  response: z
    .object({
      id: z.string().nullish().catch(null),
      service_tier: z.string().nullish().catch(null),
      usage: Usage.nullish().catch(null),
    })
    .nullish()
    .catch(null),
})

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

  see({ type, bytes }: SseEvent): void {
    if (type === null) return
    this.events++
    if (type === 'response.created') this.responseId = textAfter(bytes, ID_KEY)
    else if (type === 'response.output_item.done') this.#noteCiphertext(bytes)
    else if (isTerminal(type)) this.#finish(type, bytes)
    else if (type.endsWith('.delta')) this.deltas++
  }

  #noteCiphertext(bytes: Uint8Array): void {
    const text = textAfter(bytes, CIPHERTEXT_KEY)
    if (text !== null) this.ciphertexts.push(sha256(text))
  }

  #finish(type: Terminal, bytes: Uint8Array): void {
    this.terminal = type
    this.terminalEvent = eventJson(bytes)
    const parsed = TerminalEvent.safeParse(this.terminalEvent)
    const response = parsed.success ? parsed.data.response : null
    this.responseId = response?.id ?? this.responseId
    this.serviceTier = response?.service_tier ?? null
    if (response?.usage) this.usage = toTokens(response.usage)
    if (this.ciphertexts.length === 0) this.#noteOutput()
  }

  /** An answer that came as one document has no events for its items. */
  #noteOutput(): void {
    const { output } = objectOf(objectOf(this.terminalEvent).response)
    for (const { encrypted_content } of objectsOf(output))
      if (typeof encrypted_content === 'string') this.ciphertexts.push(sha256(encrypted_content))
  }
}

const toTokens = (usage: z.output<typeof Usage>): TokenUsage => ({
  inputTokens: usage.input_tokens,
  cachedInputTokens: usage.input_tokens_details?.cached_tokens ?? 0,
  outputTokens: usage.output_tokens,
  reasoningTokens: usage.output_tokens_details?.reasoning_tokens ?? 0,
})

/** The JSON string that follows `key`, when it holds no escapes; ids and base64 never do. */
const textAfter = (bytes: Uint8Array, key: Buffer): string | null => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const at = buffer.indexOf(key)
  if (at === -1) return null
  const from = at + key.length
  const to = buffer.indexOf(QUOTE, from)
  if (to <= from || buffer[to - 1] === BACKSLASH) return null
  return buffer.toString('latin1', from, to)
}
