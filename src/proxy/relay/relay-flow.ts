/** The answer of a relayed request past its commit point: pulled by the client, watched for silence and length, ended exactly once. */
import { AppError, openAiError } from '../../errors.ts'
import { getObject, isObject } from '../../lib/json.ts'
import { type SseEvent, SseScanner } from '../../lib/sse.ts'
import { eventJson, frame } from '../../lib/sse-payload.ts'
import { classify, endedEarly, failureFromThrown } from '../exchange/classify.ts'
import type { Lease } from '../pool/live-account.ts'
import { type Metered, toTokens } from '../turn/meter.ts'
import { type FlowEnd, OpenAnswer } from '../turn/open-answer.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import type { RelayPlan } from './plan.ts'
import { UsageReader } from './usage-reader.ts'

/** The upstream headers that the client gets. */
const KEPT_HEADERS = [
  'cache-control',
  'content-type',
  'etag',
  'last-modified',
  'location',
  'openai-processing-ms',
  'request-id',
  'x-request-id',
]

interface Committed {
  lease: Lease
  response: Response
  controller: AbortController
  /** Headers of the upstream that are rewritten for the client (`upstream/headers.ts`). */
  passedOn: Readonly<Record<string, string>>
}

type Chunk = { done: false; value: Uint8Array } | { done: true; value?: undefined }

export class RelayFlow extends OpenAnswer {
  readonly accountId: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly meter: { -readonly [Fact in keyof Metered]: Metered[Fact] } = {
    responseId: null,
    usage: null,
    ciphertexts: [],
    deltas: 0,
  }
  readonly #plan: RelayPlan
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null
  readonly #events: SseScanner | null
  readonly #usage: UsageReader | null
  #readingSince: number | null = null
  /** How the stream says that it ends; null: it does not say so. */
  #terminal: 'ok' | 'error' | null = null

  constructor(proxyDeps: ProxyDeps, turn: Turn, { lease, response, controller, passedOn }: Committed) {
    super(proxyDeps, turn, { lease, controller })
    this.accountId = lease.account.id
    this.#plan = turn.relay! // every relayed turn has one
    this.status = response.status
    this.headers = { ...keptHeaders(response.headers), ...passedOn }
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    this.#events = isStream ? new SseScanner() : null
    this.#usage = !isStream && this.#plan.readsUsage ? new UsageReader() : null
    this.#reader = response.body?.getReader() ?? null
    this.watch()
  }

  get hasBody(): boolean {
    return this.#reader !== null
  }

  /** The body for the client, read from the upstream only as fast as the client takes it. A stream that breaks ends with one `error` event. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const bytes = await this.next()
            if (bytes === null) controller.close()
            else controller.enqueue(bytes)
          } catch (err) {
            if (!this.#events) return controller.error(err)
            controller.enqueue(errorEvent(AppError.from(err)))
            controller.close()
          }
        },
        cancel: () => this.cancel(),
      },
      { highWaterMark: 0 },
    )
  }

  /** The whole body, for answers that are read here. Throws `upstream_error` above `maxBytes`, and the error of an answer that broke off. */
  async bytes(maxBytes: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let length = 0
    for (let part = await this.next(); part !== null; part = await this.next()) {
      parts.push(part)
      length += part.length
      if (length <= maxBytes) continue
      const error = new AppError('upstream_error', { message: 'The answer of ChatGPT is too large.' })
      this.fail(error)
      throw error
    }
    return Buffer.concat(parts)
  }

  /** The next bytes, whole events of a stream; null at the end. Rejects with the `AppError` of an answer that broke off. */
  async next(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.end) return this.#afterEnd(this.end)
      const chunk = await this.#read()
      if (this.end) return this.#afterEnd(this.end)
      if (chunk.done) return this.#finished()
      if (!this.#events) {
        this.#usage?.push(chunk.value)
        return chunk.value
      }
      const bytes = this.#seen(this.#events.push(chunk.value))
      if (bytes) return bytes
    }
  }

  async #read(): Promise<Chunk> {
    if (!this.#reader) return { done: true }
    this.#readingSince = this.proxyDeps.clock.monotonic()
    try {
      const chunk = await this.#reader.read()
      if (chunk.value) this.turn.capture?.bytes(chunk.value)
      return chunk
    } catch (cause) {
      if (this.end) return { done: true }
      const { error } = classify(failureFromThrown(cause, 'stream'), this.proxyDeps.clock.now())
      this.fail(error)
      throw error
    } finally {
      this.#readingSince = null
    }
  }

  /** Null where there is nothing to send yet. Events behind the terminal one are dropped. */
  #seen(events: readonly SseEvent[]): Uint8Array | null {
    const { getEnd } = this.#plan
    for (const [index, { type, bytes }] of events.entries()) {
      const terminal = (type !== null && getEnd?.(type)) || null
      if (!terminal) continue
      this.#terminal = terminal
      const event = getObject(eventJson(bytes))
      if (this.#plan.readsUsage && isObject(event.usage)) this.meter.usage = toTokens(event.usage)
      this.finish(terminal === 'ok' ? this.#good() : { status: 'error', error: statedError(event) })
      this.stopReading() // nothing behind it matters
      return joined(events.slice(0, index + 1))
    }
    return events.length > 0 ? joined(events) : null
  }

  #finished(): null {
    if (this.#events && this.#plan.getEnd && this.#terminal === null) {
      const { error } = classify(endedEarly, this.proxyDeps.clock.now())
      this.fail(error)
      throw error
    }
    const usage = this.#usage?.usage
    if (usage) this.meter.usage = toTokens(usage)
    this.finish(this.#good())
    return null
  }

  #good(): FlowEnd {
    return { status: 'ok', error: null, httpStatus: this.status < 400 ? this.status : 200 }
  }

  /** What ended it from outside is reported at the next read; an error that the stream states itself is in the stream. */
  #afterEnd({ error }: FlowEnd): null {
    if (error && this.#terminal === null) throw error
    return null
  }

  beat(now: number): void {
    const { settings, arrivedAt } = this.turn
    const isSilent = this.#readingSince !== null && now - this.#readingSince > settings.streamIdleTimeoutSeconds * 1000
    if (isSilent || now - arrivedAt > this.#plan.timeoutMs) this.fail(new AppError('upstream_timeout'))
  }

  protected override stopReading(): void {
    void this.#reader?.cancel().catch(() => {}) // it may be gone already
  }
}

const keptHeaders = (headers: Headers): Record<string, string> => {
  const kept: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = headers.get(name)
    if (value !== null) kept[name] = value
  }
  return kept
}

const joined = (events: readonly SseEvent[]): Uint8Array => Buffer.concat(events.map(({ bytes }) => bytes))

const statedError = (event: Record<string, unknown>): AppError => {
  const { message, code, type } = getObject(event.error ?? event)
  return new AppError('upstream_error', {
    ...(typeof message === 'string' && { message }),
    upstream: { code: typeof code === 'string' ? code : null, type: typeof type === 'string' ? type : null },
  })
}

const errorEvent = (err: AppError): Uint8Array => frame({ type: 'error', error: openAiError(err) })
