/** A turn past its commit point: the events still to come, watched by the meter, guarded against silence, settled exactly once. */
import { AppError } from '../errors.ts'
import type { SseEvent } from '../lib/sse.ts'
import type { Batch } from '../upstream/stream.ts'
import { isTerminal } from '../upstream/terminal.ts'
import { classify, failureFromEvent, failureFromThrown, type UpstreamFailure } from './classify.ts'
import { endedEarly, type FreshStream } from './first-events.ts'
import { Meter } from './meter.ts'
import { penalise } from './penalties.ts'
import type { Plane } from './plane.ts'
import type { Watcher } from './pulse.ts'
import { absorbRateEvent } from './rate-headers.ts'
import { ClientGone, type Turn } from './turn.ts'

/** How a turn ended, as far as its stream tells. */
export interface FlowEnd {
  status: 'ok' | 'error' | 'cancelled'
  error: AppError | null
}

interface FlowListener {
  ended(end: FlowEnd, meter: Meter): void
}

export class Flow implements Watcher, EventListenerObject {
  readonly meter = new Meter()
  /** Of the upstream's answer, for the client. */
  readonly headers: Readonly<Record<string, string>>
  readonly accountId: string
  readonly #plane: Plane
  readonly #turn: Turn
  readonly #fresh: FreshStream
  #first: readonly SseEvent[] | null
  /** What follows them, asked for at once: of an answer that has come whole it leaves in the same write. */
  #ahead: Promise<Batch | null> | null = null
  #arrived: Batch | null = null
  /** Since when the upstream is asked for more; a client that does not read is no silence of the upstream. */
  #askedAt: number | null = null
  #end: FlowEnd | null = null
  #listener: FlowListener | null = null

  /** `first` is kept apart: what it holds of the first chunks must not stay in memory as long as the stream. */
  constructor(plane: Plane, turn: Turn, { first, fresh }: { first: readonly SseEvent[]; fresh: FreshStream }) {
    this.#plane = plane
    this.#turn = turn
    this.#fresh = fresh
    this.#first = first
    this.headers = fresh.headers
    this.accountId = fresh.lease.account.id
    plane.pulse.watch(this)
    turn.signal.addEventListener('abort', this)
    if (turn.signal.aborted) this.handleEvent()
    else if (!isTerminal(first.at(-1)?.type ?? null)) this.#readAhead()
  }

  #readAhead(): void {
    this.#ahead = this.#ask()
    this.#ahead.then(this.#onArrival, () => this.#onArrival(null)) // who reads on is told
  }

  readonly #onArrival = (batch: Batch | null): void => {
    this.#askedAt = null
    if (this.#first !== null) this.#arrived = batch
  }

  /** Null while it runs. */
  get end(): FlowEnd | null {
    return this.#end
  }

  /** Told once, with the lease already given back; at once when the flow has ended. */
  whenEnded(listener: FlowListener): void {
    if (this.#end) listener.ended(this.#end, this.meter)
    else this.#listener = listener
  }

  /** Silence and the length of the whole stream are limits of the upstream, so they end the attempt, not the client. */
  beat(now: number): void {
    if (this.#end) return // by another watcher of the same beat
    const { streamIdleTimeoutSeconds, streamTimeoutSeconds } = this.#turn.settings
    const isSilent = this.#askedAt !== null && now - this.#askedAt > streamIdleTimeoutSeconds * 1000
    const isTooLong = now - this.#turn.arrivedAt > streamTimeoutSeconds * 1000
    if (!isSilent && !isTooLong) return
    const error = new AppError('upstream_timeout')
    if (isSilent) this.#penalise(failureFromThrown(error, 'stream'))
    this.fail(error)
  }

  /** What `next` gives at first, which is there already: the events up to the commit point. */
  first(): Batch | null {
    if (this.#end) return this.#afterEnd(this.#end)
    const first = this.#first && this.#seen(this.#first, true)
    const arrived = this.#arrived
    this.#first = null
    this.#arrived = null
    if (!first || !arrived || this.#end) return first
    this.#ahead = null
    return [...first, ...this.#seen(arrived, false)]
  }

  /**
   * The next events; null after the terminal one. Events behind the terminal one are dropped. Throws, or rejects with, the
   * `AppError` of a stream that broke or ended without one; the turn is settled by then.
   */
  next(): Promise<Batch | null> | Batch | null {
    if (this.#end || this.#first !== null) return this.first()
    const next = this.#ahead ?? this.#ask()
    this.#ahead = null
    return next.then(this.#onBatch, this.#onBreak)
  }

  #ask(): Promise<Batch | null> {
    this.#askedAt = this.#plane.clock.monotonic()
    return this.#fresh.stream.read()
  }

  readonly #onBatch = (batch: Batch | null): Batch | null => {
    this.#askedAt = null
    if (this.#end) return this.#afterEnd(this.#end)
    return batch ? this.#seen(batch, false) : this.#broken(endedEarly)
  }

  readonly #onBreak = (cause: unknown): null => {
    this.#askedAt = null
    return this.#end ? this.#afterEnd(this.#end) : this.#broken(failureFromThrown(cause, 'stream'))
  }

  #seen(events: Batch, isFirst: boolean): Batch {
    for (let i = 0; i < events.length; i++) {
      const event = events[i]! // i < length
      this.meter.see(event)
      if (this.meter.terminal !== null) {
        this.#terminal(event.type)
        return i === events.length - 1 ? events : events.slice(0, i + 1)
      }
      if (event.type === 'codex.rate_limits' && !isFirst) absorbRateEvent(this.#plane, this.accountId, event)
    }
    return events
  }

  /** What ended it while nobody was reading is told at the next read. */
  #afterEnd({ error }: FlowEnd): null {
    if (error && this.meter.terminal === null) throw error
    return null
  }

  #broken(failure: UpstreamFailure): never {
    this.#penalise(failure)
    const { error } = classify(failure, this.#plane.clock.now())
    this.fail(error)
    throw error
  }

  #terminal(type: string | null): void {
    const at = this.#plane.clock.now()
    this.#fresh.stream.drain()
    if (type === 'response.completed' || type === 'response.incomplete') {
      if (this.#turn.log.upstreamTransport !== null) {
        this.#plane.pool.health(this.accountId, { kind: 'success', at })
        this.#plane.pool.apply(this.accountId, { kind: 'succeeded', at })
      }
      this.#finish({ status: 'ok', error: null })
      return
    }
    const failure = failureFromEvent(this.meter.terminalEvent, at)
    if (failure) this.#penalise(failure)
    this.#finish({ status: 'error', error: failure ? classify(failure, at).error : new AppError('upstream_error') })
  }

  #penalise(failure: UpstreamFailure): void {
    const { penalty } = classify(failure, this.#plane.clock.now())
    penalise(this.#plane, this.accountId, { failure, penalty, model: this.#turn.model })
  }

  /** The turn's signal. Draining aborts a turn with an `AppError` the client gets; a client that left gets nothing. */
  handleEvent(): void {
    const reason: unknown = this.#turn.signal.reason
    if (reason instanceof AppError) this.fail(reason)
    else this.cancel()
  }

  /** The client left. After the terminal event that is the normal end and changes nothing. */
  cancel(): void {
    this.#cut(new ClientGone(), { status: 'cancelled', error: null })
  }

  /** Ends it from our side; who reads gets the error. Nothing happens after the end. */
  fail(error: AppError): void {
    this.#cut(error, { status: 'error', error })
  }

  #cut(reason: Error, end: FlowEnd): void {
    if (this.#end) return
    this.#finish(end)
    this.#fresh.controller.abort(reason)
    this.#fresh.stream.cancel()
  }

  #finish(end: FlowEnd): void {
    this.#end = end
    this.#plane.pulse.unwatch(this)
    this.#turn.signal.removeEventListener('abort', this)
    this.#fresh.lease.release()
    this.#listener?.ended(end, this.meter)
  }
}
