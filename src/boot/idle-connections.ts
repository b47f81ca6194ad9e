/** Closes kept connections during a drain, so that clients send their next request elsewhere. */
import type { Clock } from '../lib/clock.ts'

/**
 * A client or load balancer would send its next request on a connection whose stream began before the drain, although
 * this server rejects requests now. Short, because it may do so at once.
 */
const BEAT_MS = 2
/**
 * The runtime also closes a connection whose request has arrived but has not been read, and the client gets a reset
 * (Bun 1.4.5). After a delay the timer runs before the sockets are read, so a late beat closes nothing.
 */
const LATE_MS = 4 * BEAT_MS

/** Until the returned function is called. */
export const closeIdleConnections = (
  server: Pick<Bun.Server<unknown>, 'closeIdleConnections'>,
  clock: Pick<Clock, 'every' | 'monotonic'>,
): (() => void) => {
  let last = clock.monotonic()
  return clock.every(BEAT_MS, () => {
    const now = clock.monotonic()
    const isLate = now - last > LATE_MS
    last = now
    if (!isLate) server.closeIdleConnections()
  })
}
