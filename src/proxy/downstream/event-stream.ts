/**
 * The body of a streamed answer: pulled by the client's socket, kept alive while the upstream is silent, ended by one
 * terminal event.
 */
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { SseEvent } from '../../lib/sse.ts'
import type { Batch } from '../../upstream/stream.ts'
import type { Flow } from '../turn/flow.ts'
import { ClientGone } from '../turn/turn.ts'
import type { Contract } from './contracts.ts'
import type { StreamTimer, Watcher } from './stream-timer.ts'

/** A keepalive is sent after this much silence. */
const KEEPALIVE_MS = 8000

interface StreamDeps {
  clock: Clock
  pulse: StreamTimer
  contract: Contract
  /** The turn's. A client that disconnects aborts it with `ClientGone`. */
  turnAbort: AbortController
}

const NOTHING: readonly Uint8Array[] = []

const isSpoken = ({ type }: SseEvent): boolean => type !== null

type Controller = ReadableStreamDefaultController<Uint8Array>

/** `opening` may still be pending: headers were then sent early, and its failure becomes the terminal event. */
export const eventStream = (opening: Flow | Promise<Flow>, deps: StreamDeps): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(new EventSource(opening, deps), { highWaterMark: 0 })

class EventSource implements UnderlyingDefaultSource<Uint8Array>, Watcher, EventListenerObject {
  #opening: Flow | Promise<Flow>
  readonly #deps: StreamDeps
  #controller: Controller | null = null
  #isPulling = false
  #lastSentAt: number

  constructor(opening: Flow | Promise<Flow>, deps: StreamDeps) {
    this.#opening = opening
    this.#deps = deps
    this.#lastSentAt = deps.clock.monotonic()
  }

  /**
   * The runtime sends headers only with the first bytes of the body, so this always sends some: the events so far, or a
   * keepalive.
   */
  start(controller: Controller): void {
    this.#controller = controller
    if (this.#opening instanceof Promise || !this.#passFirst(this.#opening)) this.#send([this.#deps.contract.keepalive])
    if (!this.#controller) return // it was already complete
    this.#deps.pulse.watch(this)
    this.#deps.turnAbort.signal.addEventListener('abort', this)
  }

  #passFirst(flow: Flow): boolean {
    try {
      return this.#pass(flow, flow.first())
    } catch (err) {
      this.#fail(flow, err)
      return true
    }
  }

  /** Not async: it runs for every event of every slow stream, and async frames would be most of the garbage. */
  pull(): Promise<void> | void {
    this.#isPulling = true
    const opening = this.#opening
    return opening instanceof Promise ? opening.then(this.#onOpen, this.#onBreak) : this.#pullFrom(opening)
  }

  readonly #onOpen = (flow: Flow): Promise<void> | void => {
    this.#opening = flow
    return this.#pullFrom(flow)
  }

  #pullFrom(flow: Flow): Promise<void> | void {
    try {
      const next = flow.next()
      return next instanceof Promise ? next.then(this.#onEvents, this.#onBreak) : this.#onEvents(next)
    } catch (err) {
      this.#onBreak(err)
    }
  }

  readonly #onEvents = (events: Batch | null): Promise<void> | void => {
    const flow = this.#opening as Flow // as: its events are here
    try {
      if (!this.#pass(flow, events)) return this.#pullFrom(flow)
      this.#isPulling = false
    } catch (err) {
      this.#onBreak(err)
    }
  }

  readonly #onBreak = (cause: unknown): void => {
    this.#isPulling = false
    this.#fail(this.#opening instanceof Promise ? null : this.#opening, cause)
  }

  /** False when the events mean nothing to this client and more are needed. */
  #pass(flow: Flow, events: Batch | null): boolean {
    const pieces = events ? this.#deps.contract.write(events, flow.meter) : NOTHING
    const isOver = events === null || flow.meter.terminal !== null
    this.#send(pieces, events?.some(isSpoken))
    if (isOver) this.#close()
    return isOver || pieces.length > 0
  }

  #fail(flow: Flow | null, cause: unknown): void {
    const error = AppError.from(cause)
    flow?.fail(error) // an internal error must not keep the account's slot
    try {
      this.#send([this.#deps.contract.fail(error, flow?.meter ?? null)])
    } finally {
      this.#close()
    }
  }

  cancel(): void {
    this.#stop()
    this.#deps.turnAbort.abort(new ClientGone())
  }

  /** The turn's abort signal: needed because a runtime that never starts reading never cancels either. */
  handleEvent(): void {
    if (this.#deps.turnAbort.signal.reason instanceof ClientGone) this.#stop()
  }

  beat(now: number): void {
    const { keepalive, keepaliveMs = KEEPALIVE_MS } = this.#deps.contract
    if (this.#isPulling && now - this.#lastSentAt >= keepaliveMs) this.#send([keepalive])
  }

  /** `isHeard`: more than comments, which do not reset the native client's timeout (decisions §3 "Keepalive"). */
  #send(pieces: readonly Uint8Array[], isHeard = true): void {
    if (!this.#controller || pieces.length === 0) return
    if (isHeard) this.#lastSentAt = this.#deps.clock.monotonic()
    for (const bytes of pieces) this.#controller.enqueue(bytes)
  }

  #close(): void {
    const controller = this.#controller
    if (!controller) return
    this.#stop()
    controller.close()
  }

  #stop(): void {
    this.#controller = null
    this.#deps.pulse.unwatch(this)
  }
}
