/** What a streamed turn and a relayed answer share past their commit point: how they end, exactly once, with the lease released. */
import { AppError } from '../../errors.ts'
import type { Watcher } from '../downstream/stream-timer.ts'
import type { Metered } from './meter.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { ClientGone, type Turn } from './turn.ts'

/** How a turn ended, judging by its stream. */
export interface FlowEnd {
  status: 'ok' | 'error' | 'cancelled'
  error: AppError | null
  /** Status of a relayed response; 200 when absent. */
  httpStatus?: number
}

export interface FlowListener {
  ended(end: FlowEnd, meter: Metered): void
}

/** What a running answer occupies: an account's slot, or a place at a model source. */
export interface Slot {
  /** Null: a model source serves the turn. */
  readonly account: { readonly id: string } | null
  /** Repeated calls do nothing. */
  release(): void
}

interface Opened {
  lease: Pick<Slot, 'release'>
  /** Aborts the exchange with the upstream. */
  controller: AbortController
}

export abstract class OpenAnswer implements Watcher, EventListenerObject {
  abstract readonly meter: Metered
  protected readonly proxyDeps: ProxyDeps
  protected readonly turn: Turn
  readonly #lease: Opened['lease']
  readonly #controller: AbortController
  #end: FlowEnd | null = null
  #listener: FlowListener | null = null

  constructor(proxyDeps: ProxyDeps, turn: Turn, { lease, controller }: Opened) {
    this.proxyDeps = proxyDeps
    this.turn = turn
    this.#lease = lease
    this.#controller = controller
  }

  abstract beat(now: number): void

  /** Stops reading the upstream, whose connection may be gone already. */
  protected abstract stopReading(): void

  /** Called at the end of construction. The turn may have been aborted before. */
  protected watch(): void {
    this.proxyDeps.pulse.watch(this)
    this.turn.signal.addEventListener('abort', this)
    if (this.turn.signal.aborted) this.handleEvent()
  }

  /** Null while it runs. */
  get end(): FlowEnd | null {
    return this.#end
  }

  /** Calls the listener once, after the lease is released; immediately when the answer has ended. */
  whenEnded(listener: FlowListener): void {
    if (this.#end) listener.ended(this.#end, this.meter)
    else this.#listener = listener
  }

  /** The turn's abort signal. Draining aborts with an `AppError` for the client; a client that disconnected gets nothing. */
  handleEvent(): void {
    const reason: unknown = this.turn.signal.reason
    if (reason instanceof AppError) this.fail(reason)
    else this.cancel()
  }

  /** The client disconnected. No effect after the end. */
  cancel(): void {
    this.#cut(new ClientGone(), { status: 'cancelled', error: null })
  }

  /** Ends the answer from our side; the reader gets the error. No effect after the end. */
  fail(error: AppError): void {
    this.#cut(error, { status: 'error', error })
  }

  #cut(reason: Error, end: FlowEnd): void {
    if (this.#end) return
    this.finish(end)
    this.#controller.abort(reason)
    this.stopReading()
  }

  /** No effect after the end. */
  protected finish(end: FlowEnd): void {
    if (this.#end) return
    this.#end = end
    this.proxyDeps.pulse.unwatch(this)
    this.turn.signal.removeEventListener('abort', this)
    this.#lease.release()
    this.#listener?.ended(end, this.meter)
  }
}
