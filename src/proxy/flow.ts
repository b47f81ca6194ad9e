/** A turn past its commit point: the events still to come, watched by the meter, guarded against silence, settled exactly once. */
import { AppError } from '../errors.ts'
import type { SseEvent } from '../lib/sse.ts'
import { classify, failureFromEvent, failureFromThrown } from './classify.ts'
import type { FreshStream } from './first-events.ts'
import { isTerminal, Meter } from './meter.ts'
import { penalise } from './penalties.ts'
import type { Plane } from './plane.ts'
import { absorbRateEvent } from './rate-headers.ts'
import { ClientGone, type Turn } from './turn.ts'

/** How a turn ended, as far as its stream tells. */
export interface FlowEnd {
  status: 'ok' | 'error' | 'cancelled'
  error: AppError | null
}

export class Flow {
  readonly meter = new Meter()
  readonly headers: Headers
  readonly accountId: string
  readonly #plane: Plane
  readonly #turn: Turn
  readonly #fresh: FreshStream
  readonly #unwatch: () => void
  #first: readonly SseEvent[] | null
  #lastReadAt: number
  #ended = false
  /** Called once, with the lease already given back. Set by who serves the turn. */
  onEnd: (end: FlowEnd) => void = () => {}

  constructor(plane: Plane, turn: Turn, fresh: FreshStream & { first: readonly SseEvent[] }) {
    this.#plane = plane
    this.#turn = turn
    this.#fresh = fresh
    this.#first = fresh.first
    this.headers = fresh.headers
    this.accountId = fresh.lease.account.id
    this.#lastReadAt = plane.clock.monotonic()
    this.#unwatch = plane.pulse.watch((now) => this.#guard(now))
  }

  /** Silence and the length of the whole stream are limits of the upstream, so they end the attempt, not the client. */
  #guard(now: number): void {
    const { streamIdleTimeoutSeconds, streamTimeoutSeconds } = this.#turn.settings
    const isSilent = now - this.#lastReadAt > streamIdleTimeoutSeconds * 1000
    const isTooLong = now - this.#turn.arrivedAt > streamTimeoutSeconds * 1000
    if (isSilent || isTooLong) this.#fresh.controller.abort(new AppError('upstream_timeout'))
  }

  /**
   * The next events; null after the terminal one. Events behind the terminal one are dropped. Throws the `AppError` of a
   * stream that broke or ended without one; the turn is settled by then.
   */
  async next(): Promise<readonly SseEvent[] | null> {
    if (this.#ended) return null
    const first = this.#first
    this.#first = null
    const events = first ?? (await this.#read())
    this.#lastReadAt = this.#plane.clock.monotonic()
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!
      this.meter.see(event)
      if (isTerminal(event.type)) {
        this.#terminal(event)
        return i === events.length - 1 ? events : events.slice(0, i + 1)
      }
      if (event.type === 'codex.rate_limits' && !first) absorbRateEvent(this.#plane, this.accountId, event)
    }
    return events
  }

  async #read(): Promise<readonly SseEvent[]> {
    let error: AppError
    try {
      const batch = await this.#fresh.stream.read()
      if (batch) return batch.events
      error = new AppError('stream_incomplete')
    } catch (cause) {
      if (this.#turn.signal.aborted) throw this.#cancelled(cause)
      error = classify(failureFromThrown(cause, 'stream'), this.#plane.clock.now()).error
    }
    this.#plane.pool.health(this.accountId, { kind: 'error', at: this.#plane.clock.now() })
    this.#end({ status: 'error', error })
    throw error
  }

  /** Draining aborts a turn with an `AppError` the client gets; a client that left gets nothing. */
  #cancelled(cause: unknown): AppError {
    const { reason } = this.#turn.signal
    const error = reason instanceof AppError ? reason : new AppError('stream_incomplete', { cause })
    this.#end({ status: 'cancelled', error: reason instanceof AppError ? reason : null })
    return error
  }

  #terminal(event: SseEvent): void {
    const at = this.#plane.clock.now()
    this.#fresh.stream.drain()
    if (event.type === 'response.completed' || event.type === 'response.incomplete') {
      this.#plane.pool.health(this.accountId, { kind: 'success', at })
      this.#plane.pool.apply(this.accountId, { kind: 'succeeded', at })
      this.#end({ status: 'ok', error: null })
      return
    }
    const failure = failureFromEvent(this.meter.terminalEvent, at)
    const classified = failure && classify(failure, at)
    if (classified) penalise(this.#plane, this.accountId, { failure, penalty: classified.penalty })
    this.#end({ status: 'error', error: classified?.error ?? new AppError('upstream_error') })
  }

  /** The client left. After the terminal event that is the normal end and changes nothing. */
  cancel(): void {
    if (this.#ended) return
    this.#fresh.controller.abort(new ClientGone())
    this.#fresh.stream.cancel()
    this.#end({ status: 'cancelled', error: null })
  }

  #end(end: FlowEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#unwatch()
    this.#fresh.lease.release()
    this.onEnd(end)
  }
}
