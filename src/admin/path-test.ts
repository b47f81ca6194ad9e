/** `/path-test`: what a browser measures to learn whether streams and sockets get through whatever stands before us. */
import type { Context } from 'hono'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import type { Clock } from '../lib/clock.ts'

/**
 * When an event is sent, ms from the beginning: eight together within two seconds show whether they are held back, the
 * others, at the pace of a silent model's keepalives, how long a connection may last.
 */
const SCHEDULE_MS = [
  0,
  250,
  500,
  750,
  1000,
  1250,
  1500,
  1750,
  2000,
  ...Array.from({ length: 11 }, (_, n) => 10_000 + n * 8000),
]

const MAX_AT_ONCE = 32
const ID = /^[\w-]{8,64}$/

/**
 * The two routes, which know of each other: the stream tells what the handshake of the same id looked like when it
 * arrived, because a browser is not told why a socket failed.
 */
export const pathTest = () => {
  const watched = new Map<string, (hasUpgrade: boolean) => void>()

  /** Server-sent events `{n, atMs, last}`, and `{upgrade}` when the handshake came. Throws `busy`. */
  const stream = createHandlers(requires('dashboard:read'), (c) => {
    if (watched.size >= MAX_AT_ONCE) throw new AppError('busy', { retryAfterSeconds: 30 })
    const id = testId(c)
    const body = ticking(c.env.clock, {
      begun: (say) => watched.set(id, (upgrade) => say({ upgrade })),
      ended: () => watched.delete(id),
    })
    return c.body(body, 200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  })

  /** Looks at the handshake and refuses it: what a socket needs is in its request. */
  const socket = createHandlers(requires('dashboard:read'), (c) => {
    watched.get(testId(c))?.(c.req.header('upgrade')?.toLowerCase() === 'websocket')
    throw new AppError('not_found', { status: 426, message: 'This address only looks at the handshake.' })
  })

  return { stream, socket }
}

/** Made up by the browser for one measurement. Throws `validation_error`. */
const testId = (c: Context<AppEnv>): string => {
  const id = c.req.query('id') ?? ''
  if (!ID.test(id)) throw new AppError('validation_error', { param: 'id' })
  return id
}

interface Watch {
  begun: (say: (event: Record<string, unknown>) => void) => void
  ended: () => void
}

const encoder = new TextEncoder()

const ticking = (clock: Clock, { begun, ended }: Watch): ReadableStream<Uint8Array> => {
  let cancel = () => {}
  return new ReadableStream({
    start(controller) {
      const say = (event: Record<string, unknown>) =>
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`))
      const tick = (n: number): void => {
        const atMs = SCHEDULE_MS[n] ?? 0
        const next = SCHEDULE_MS[n + 1]
        say({ n, atMs, last: next === undefined })
        if (next !== undefined) cancel = clock.after(next - atMs, () => tick(n + 1))
        else {
          ended()
          controller.close()
        }
      }
      begun(say)
      tick(0)
    },
    cancel() {
      cancel()
      ended()
    },
  })
}
