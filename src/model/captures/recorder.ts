/** Records one request for the captures it belongs to. All calls return immediately; writing happens later, or not at all. */
import { getPieces, type SseEvent } from '../../lib/sse.ts'
import type { Capture } from './capture.ts'
import type { CapturedSource, RecordHead } from './records.ts'
import { redactedHeaders, redactedTarget } from './redact.ts'

/** A request in one capture. */
export interface CaptureEntry {
  readonly capture: Capture
  readonly id: string
  /** Bytes that could not be written in time. */
  droppedBytes: number
  /** Its file exists. */
  isWritten: boolean
  /** It was deleted while it ran, so nothing more is written. */
  isGone: boolean
}

/** Takes records in order. */
export interface CaptureSink {
  open(capture: Capture, id: string): CaptureEntry
  write(entry: CaptureEntry, head: RecordHead, pieces: readonly Uint8Array[]): void
  close(entry: CaptureEntry): void
  now(): number
}

export interface CapturedRequest {
  id: string
  method: string
  /** Path with its query. */
  target: string
  transport: string
  requestKind: string
  model: string | null
  keyId: string | null
  headers: Headers
  body: Uint8Array
}

export interface CapturedEnd {
  status: string
  httpStatus: number
  errorCode: string | null
  errorMessage: string | null
}

interface Scopes {
  /** Captures of the request's key. */
  byKey: readonly Capture[]
  /** Captures of accounts, one of which may serve it. */
  byAccount: readonly Capture[]
}

const NO_PIECES: readonly Uint8Array[] = []

export class CaptureRecorder {
  readonly #sink: CaptureSink
  /** Kept while an account may still be chosen. */
  #request: CapturedRequest | null
  readonly #byAccount: readonly Capture[]
  readonly #entries: CaptureEntry[] = []
  /** Those that record the current attempt. */
  #current: CaptureEntry[] = []

  constructor(sink: CaptureSink, request: CapturedRequest, { byKey, byAccount }: Scopes) {
    this.#sink = sink
    this.#request = request
    this.#byAccount = byAccount
    for (const capture of byKey) this.#begin(capture, request)
    if (byAccount.length === 0) this.#request = null
  }

  /** An attempt on this account begins. */
  attempt(accountId: string): void {
    this.#current = [...this.#ofKey, ...this.#byAccount.flatMap((capture) => this.#entryFor(capture, accountId))]
    this.#write({ kind: 'attempt', at: this.#sink.now(), accountId })
  }

  /** A model source serves the request. Captures of accounts do not record that. */
  sourceAttempt({ id, name }: CapturedSource): void {
    this.#current = this.#ofKey
    this.#write({ kind: 'attempt', at: this.#sink.now(), accountId: null, source: { id, name } })
  }

  /** Headers of the answer. */
  answered(status: number, headers: Headers): void {
    if (this.#current.length > 0)
      this.#write({ kind: 'answered', at: this.#sink.now(), status, headers: redactedHeaders(headers) })
  }

  /** Events of the answer as they arrived. */
  events(events: readonly SseEvent[]): void {
    if (this.#current.length > 0) this.#write({ kind: 'answer', at: this.#sink.now() }, getPieces(events))
  }

  /** Bytes of the answer. */
  bytes(bytes: Uint8Array): void {
    if (this.#current.length > 0) this.#write({ kind: 'answer', at: this.#sink.now() }, [bytes])
  }

  /** The attempt failed. */
  failed(code: string | null, message: string): void {
    this.#write({ kind: 'failed', at: this.#sink.now(), code, message })
  }

  /** No further account will be chosen, so the body need not stay in memory. */
  releaseRequest(): void {
    this.#request = null
  }

  /** The request is over. */
  end(end: CapturedEnd): void {
    this.#request = null
    const at = this.#sink.now()
    for (const entry of this.#entries) {
      this.#sink.write(entry, { kind: 'end', at, ...end, droppedBytes: entry.droppedBytes }, NO_PIECES)
      this.#sink.close(entry)
    }
  }

  get #ofKey(): CaptureEntry[] {
    return this.#entries.filter(({ capture }) => capture.keyId !== null)
  }

  #entryFor(capture: Capture, accountId: string): CaptureEntry[] {
    if (capture.accountId !== accountId) return []
    const entry = this.#entries.find((one) => one.capture === capture)
    if (entry) return [entry]
    return this.#request ? [this.#begin(capture, this.#request)] : []
  }

  #begin(capture: Capture, request: CapturedRequest): CaptureEntry {
    const { id, headers, target, body, ...facts } = request
    const entry = this.#sink.open(capture, id)
    const at = this.#sink.now()
    const head = {
      kind: 'request',
      at,
      ...facts,
      target: redactedTarget(target),
      headers: redactedHeaders(headers),
    } as const
    this.#sink.write(entry, { ...head, bodyBytes: body.length }, NO_PIECES)
    if (body.length > 0) this.#sink.write(entry, { kind: 'body', at }, [body])
    this.#entries.push(entry)
    return entry
  }

  #write(head: RecordHead, pieces: readonly Uint8Array[] = NO_PIECES): void {
    for (const entry of this.#current) this.#sink.write(entry, head, pieces)
  }
}
