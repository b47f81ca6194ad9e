/** The body of a streamed answer: pulled by the client's socket, kept alive while the upstream thinks, ended by one terminal event. */
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Contract } from './contracts.ts'
import type { Flow } from './flow.ts'
import type { Pulse } from './pulse.ts'

/** Nothing for this long, and a keepalive goes out. */
const KEEPALIVE_MS = 8000

export interface StreamDeps {
  clock: Clock
  pulse: Pulse
  contract: Contract
  /** Runs just before the last bytes: the connection goes back to the server's own idle limit. */
  beforeClose: () => void
  /** The client left. */
  onCancel: () => void
}

/** `opening` may still be under way: then the headers went out early and its failure becomes the terminal event. */
export const eventStream = (opening: Flow | Promise<Flow>, deps: StreamDeps): ReadableStream<Uint8Array> => {
  const { clock, pulse, contract } = deps
  let flow: Flow | null = null
  let isPulling = false
  let lastSentAt = clock.monotonic()
  let unwatch = () => {}
  const close = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    unwatch()
    deps.beforeClose()
    controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        unwatch = pulse.watch((now) => {
          if (!isPulling || now - lastSentAt < KEEPALIVE_MS) return
          lastSentAt = now
          controller.enqueue(contract.keepalive)
        })
      },
      async pull(controller) {
        isPulling = true
        try {
          flow ??= await opening
          const bytes = await nextBytes(flow, contract)
          if (bytes) {
            lastSentAt = clock.monotonic()
            controller.enqueue(bytes)
          }
          if (!bytes || flow.meter.terminal !== null) close(controller)
        } catch (err) {
          controller.enqueue(contract.fail(AppError.from(err), flow?.meter ?? null))
          close(controller)
        } finally {
          isPulling = false
        }
      },
      cancel() {
        unwatch()
        deps.onCancel()
        flow?.cancel()
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
    const bytes = contract.write(events)
    if (bytes) return bytes
    if (flow.meter.terminal !== null) return null
  }
}
