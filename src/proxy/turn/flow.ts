/** A turn past its commit point: the remaining events, metered, limited in silence and length, settled exactly once. */
import { AppError } from '../../errors.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { type Batch, isTerminal, type Terminal, type UpstreamStream } from '../../upstream/stream.ts'
import {
  classify,
  endedEarly,
  failureFromEvent,
  failureFromThrown,
  type UpstreamFailure,
} from '../exchange/classify.ts'
import { absorbRateEvent } from '../exchange/rate-headers.ts'
import { noUsage, sourceFailure } from '../sources/source-errors.ts'
import { Meter } from './meter.ts'
import { type FlowEnd, OpenAnswer, type Slot } from './open-answer.ts'
import { penalise } from './penalties.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { elapsedMs, releaseRequest, type Turn } from './turn.ts'

export interface FreshStream {
  lease: Slot
  stream: UpstreamStream
  controller: AbortController
  /** The upstream headers the client gets. All of them would stay in memory as long as the stream. */
  headers: Readonly<Record<string, string>>
  /** The token the attempt used; null at a model source. */
  accessToken: string | null
  /** Reads the events; one for Responses events when absent. */
  meter?: Meter
}

/** Hands the stream over to a flow that begins with `first`. */
export const commitTo = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  begun: { fresh: FreshStream; first: readonly SseEvent[] },
): Flow => {
  turn.log.firstEventMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
  turn.log.phase = 'stream'
  releaseRequest(turn)
  return new Flow(proxyDeps, turn, begun)
}

export class Flow extends OpenAnswer {
  readonly meter: Meter
  /** Null: a model source serves the turn. */
  readonly accountId: string | null
  /** Upstream headers for the client. */
  readonly headers: Readonly<Record<string, string>>
  readonly #fresh: FreshStream
  #first: readonly SseEvent[] | null
  /** Reads the next batch ahead, so that a complete answer leaves in the first write. */
  #ahead: Promise<Batch | null> | null = null
  #arrived: Batch | null = null
  /** Since when we wait for the upstream; while the client is not reading, upstream silence does not count. */
  #askedAt: number | null = null

  /** `first` is separate so that the first chunks do not stay in memory as long as the stream. */
  constructor(proxyDeps: ProxyDeps, turn: Turn, { first, fresh }: { first: readonly SseEvent[]; fresh: FreshStream }) {
    super(proxyDeps, turn, fresh)
    this.accountId = fresh.lease.account?.id ?? null
    this.meter = fresh.meter ?? new Meter()
    this.#fresh = fresh
    this.#first = first
    this.headers = fresh.headers
    this.watch()
    if (!this.end && !isTerminal(first.at(-1)?.type ?? null)) this.#readAhead()
  }

  #readAhead(): void {
    this.#ahead = this.#ask()
    this.#ahead.then(this.#onArrival, () => this.#onArrival(null)) // the next read reports the error
  }

  readonly #onArrival = (batch: Batch | null): void => {
    this.#askedAt = null
    if (this.#first !== null) this.#arrived = batch
  }

  /** Silence and total length are limits on the upstream, so exceeding them is an upstream error. */
  beat(now: number): void {
    if (this.end) return // ended by another watcher of the same beat
    const { streamIdleTimeoutSeconds, streamTimeoutSeconds } = this.turn.settings
    const { source } = this.turn.log
    const idleMs = source ? source.timeoutMs : streamIdleTimeoutSeconds * 1000
    const isSilent = this.#askedAt !== null && now - this.#askedAt > idleMs
    const isTooLong = now - this.turn.arrivedAt > streamTimeoutSeconds * 1000
    if (!isSilent && !isTooLong) return
    const failure = failureFromThrown(new AppError('upstream_timeout'), 'stream')
    if (isSilent) this.#penalise(failure)
    this.fail(this.#getError(failure))
  }

  /** What the first `next` would return without waiting: the events up to the commit point. */
  first(): Batch | null {
    if (this.end) return this.#afterEnd(this.end)
    const first = this.#first && this.#seen(this.#first, true)
    const arrived = this.#arrived
    this.#first = null
    this.#arrived = null
    if (!first || !arrived || this.end) return first
    this.#ahead = null
    return [...first, ...this.#seen(arrived, false)]
  }

  /**
   * The next events; null after the terminal one, and events after it are dropped. Throws or rejects with the
   * `AppError` of a stream that broke off; the turn is settled by then.
   */
  next(): Promise<Batch | null> | Batch | null {
    if (this.end || this.#first !== null) return this.first()
    const next = this.#ahead ?? this.#ask()
    this.#ahead = null
    return next.then(this.#onBatch, this.#onBreak)
  }

  #ask(): Promise<Batch | null> {
    this.#askedAt = this.proxyDeps.clock.monotonic()
    return this.#fresh.stream.read()
  }

  readonly #onBatch = (batch: Batch | null): Batch | null => {
    this.#askedAt = null
    if (this.end) return this.#afterEnd(this.end)
    return batch ? this.#seen(batch, false) : this.#broken(endedEarly)
  }

  readonly #onBreak = (cause: unknown): null => {
    this.#askedAt = null
    return this.end ? this.#afterEnd(this.end) : this.#broken(failureFromThrown(cause, 'stream'))
  }

  #seen(events: Batch, isFirst: boolean): Batch {
    for (let i = 0; i < events.length; i++) {
      const event = events[i]! // i < length
      this.meter.see(event)
      if (this.meter.terminal !== null) {
        if (this.#lacksUsage()) return events.slice(0, i)
        this.#terminal(this.meter.terminal)
        return i === events.length - 1 ? events : events.slice(0, i + 1)
      }
      if (event.type === 'codex.rate_limits' && !isFirst && this.accountId !== null)
        absorbRateEvent(this.proxyDeps, this.accountId, event)
    }
    return events
  }

  /** Reports an error that happened between reads. */
  #afterEnd({ error }: FlowEnd): null {
    if (error && this.meter.terminal === null) throw error
    return null
  }

  #broken(failure: UpstreamFailure): never {
    this.#penalise(failure)
    const error = this.#getError(failure)
    this.fail(error)
    throw error
  }

  #getError(failure: UpstreamFailure): AppError {
    const { source } = this.turn.log
    return source ? sourceFailure(source, failure) : classify(failure, this.proxyDeps.clock.now()).error
  }

  /** Ends an answer without the usage that the key's limits need, before its terminal event. */
  #lacksUsage(): boolean {
    const { source } = this.turn.log
    if (!source?.demandsUsage || this.meter.hasUsage || !isSuccess(this.meter.terminal)) return false
    this.meter.terminal = null // the client gets the error in its place
    this.fail(noUsage(source))
    return true
  }

  #terminal(type: Terminal): void {
    const at = this.proxyDeps.clock.now()
    this.#fresh.stream.drain()
    if (isSuccess(type)) {
      if (this.turn.log.upstreamTransport !== null && this.accountId !== null) {
        this.proxyDeps.pool.health(this.accountId, { kind: 'success', at })
        this.proxyDeps.pool.apply(this.accountId, { kind: 'succeeded', at })
      }
      this.finish({ status: 'ok', error: null })
      return
    }
    const failure = failureFromEvent(this.meter.terminalEvent, at)
    if (failure) this.#penalise(failure)
    this.finish({ status: 'error', error: failure ? this.#getError(failure) : new AppError('upstream_error') })
  }

  #penalise(failure: UpstreamFailure): void {
    if (this.accountId === null) return
    const { penalty } = classify(failure, this.proxyDeps.clock.now())
    penalise(this.proxyDeps, this.accountId, { failure, penalty, model: this.turn.model, surface: this.turn.surface })
  }

  protected override stopReading(): void {
    this.#fresh.stream.cancel()
  }
}

const isSuccess = (type: Terminal | null): boolean => type === 'response.completed' || type === 'response.incomplete'
