/** The body of a streamed answer: pulled by the client's socket, kept alive while the upstream thinks, ended by one terminal event. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Contract } from './contracts.ts'
import type { Flow } from './flow.ts'
import type { Pulse } from './pulse.ts'
import { ClientGone } from './turn.ts'

/** Nothing for this long, and a keepalive goes out. */
const KEEPALIVE_MS = 8000

export interface StreamDeps {
  clock: Clock
  pulse: Pulse
  contract: Contract
  /** Runs just before the last bytes: the connection goes back to the server's own idle limit. */
  beforeClose: () => void
  /** Aborts with `ClientGone` when the client has left. */
  signal: AbortSignal
  /** The client left: ends the turn. */
  onCancel: () => void
}

/** `opening` may still be under way: then the headers went out early and its failure becomes the terminal event. */
export const eventStream = (opening: Flow | Promise<Flow>, deps: StreamDeps): ReadableStream<Uint8Array> => {
  const { clock, pulse, contract, signal } = deps
  let flow: Flow | null = null
  let isPulling = false
  let isOver = false
  let lastSentAt = clock.monotonic()
  let unwatch = () => {}
  const stop = () => {
    isOver = true
    unwatch()
  }
  type Controller = ReadableStreamDefaultController<Uint8Array>
  const send = (controller: Controller, bytes: Uint8Array | null) => {
    if (isOver || !bytes) return
    lastSentAt = clock.monotonic()
    controller.enqueue(bytes)
  }
  const close = (controller: Controller) => {
    if (isOver) return
    stop()
    deps.beforeClose()
    controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        unwatch = pulse.watch((now) => {
          if (isPulling && now - lastSentAt >= KEEPALIVE_MS) send(controller, contract.keepalive)
        })
        // A runtime that never starts reading never cancels either.
        signal.addEventListener('abort', () => void (signal.reason instanceof ClientGone && stop()), { once: true })
      },
      async pull(controller) {
        isPulling = true
        try {
          flow ??= await opening
          const bytes = await nextBytes(flow, contract)
          send(controller, bytes)
          if (!bytes || flow.meter.terminal !== null) close(controller)
        } catch (err) {
          const error = AppError.from(err)
          flow?.fail(error) // a fault of our own must not keep the account's slot
          send(controller, contract.fail(error, flow?.meter ?? null))
          close(controller)
        } finally {
          isPulling = false
        }
      },
      cancel() {
        stop()
        deps.onCancel()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Events that mean nothing to this client are passed over. Null at the end. */
const nextBytes = async (flow: Flow, contract: Contract): Promise<Uint8Array | null> => {
  for (;;) {
    const events = await flow.next()
    if (events === null) return null
    const bytes = contract.write(events, flow.meter)
    if (bytes) return bytes
    if (flow.meter.terminal !== null) return null
  }
}
