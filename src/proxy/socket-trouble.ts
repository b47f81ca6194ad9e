/**
 * What goes by HTTP because upstream sockets fail while HTTP may work: attempts, accounts and conversations (decisions §3
 * "Transport pairings"). Nothing here counts against an account.
 */
import { MINUTE_MS } from '../lib/durations.ts'
import { HandshakeRefused } from '../upstream/handshake-refused.ts'
import { socketUrl } from '../upstream/open.ts'
import { SocketClosed } from '../upstream/socket-closed.ts'
import { type Kind, kindOf } from './failure-kind.ts'
import type { LiveAccount } from './live-account.ts'
import type { Plane } from './plane.ts'
import type { Turn } from './turn.ts'
import type { UpstreamFailure } from './upstream-failure.ts'

/** What the service, or something on the way to it, answers that lets no sockets through; 426 is the service's own. */
const NO_SOCKETS_HERE: ReadonlySet<number> = new Set([403, 404, 405, 426, 501])
const REFUSED_MS = 10 * MINUTE_MS
const FAILED_MS = 2 * MINUTE_MS
/** Handshakes and turns in a row that died before an account goes by HTTP. */
const MAX_FAILURES = 3
const MAX_CONVERSATIONS = 10_000

/** The conversations whose socket failed lately, and when on the monotonic clock. */
export class FailedSockets {
  readonly #failedAt = new Map<string, number>()

  note(conversation: string, now: number): void {
    this.#failedAt.delete(conversation) // set() alone would keep the old place in the order of eviction
    this.#failedAt.set(conversation, now)
    if (this.#failedAt.size > MAX_CONVERSATIONS) this.#failedAt.delete(this.#failedAt.keys().next().value!) // size > 0
  }

  /** Whether one failed within two minutes before `at`. */
  failedBefore(conversation: string, at: number): boolean {
    const failedAt = this.#failedAt.get(conversation)
    return failedAt !== undefined && failedAt <= at && at - failedAt < FAILED_MS
  }
}

/**
 * Whether this turn goes by HTTP on this account. A connection that is still open is not given up for the failure of another
 * one. A client that comes over HTTP after its socket failed has fallen back by itself (client protocol §4).
 */
export const isOnHttp = ({ clock, failedSockets }: Plane, turn: Turn, { id, httpUntil }: LiveAccount): boolean => {
  const { session, transport, conversation, arrivedAt } = turn
  if (transport === 'http' && conversation !== null && failedSockets.failedBefore(conversation, arrivedAt)) return true
  return httpUntil > clock.now() && session?.accountAt(clock.monotonic()) !== id
}

/** A handshake failed with `err`: whether the attempt goes on by HTTP at once. `isRenewed`: its token is known to be good. */
export const goesOnByHttp = (
  plane: Plane,
  turn: Turn,
  { account, err, isRenewed }: { account: LiveAccount; err: unknown; isRenewed: boolean },
): boolean => {
  const status = err instanceof HandshakeRefused ? err.status : null
  if (status === null && wouldBypassProxy(plane, turn)) return false
  if (status !== null && !NO_SOCKETS_HERE.has(status) && !(status === 401 && isRenewed)) {
    if (status >= 500) noteSocketFailure(plane, turn, account)
    return false
  }
  if (status === null) noteSocketFailure(plane, turn, account, isTimeout(err) ? MAX_FAILURES : 1)
  else account.httpUntil = plane.clock.now() + REFUSED_MS
  plane.log.info('ChatGPT did not accept a WebSocket, using HTTP', { account: account.id, status: status ?? 0, err })
  return true
}

/** A handshake got no answer, or a 5xx, or a turn died with its socket. `failures`: as how many it counts. */
export const noteSocketFailure = (plane: Plane, turn: Turn, account: LiveAccount, failures = 1): void => {
  if (wouldBypassProxy(plane, turn)) return
  const { clock, failedSockets } = plane
  if (turn.conversation !== null) failedSockets.note(turn.conversation, clock.monotonic())
  account.socketFailures += failures
  // Afterwards the count stays, so that one more failure is enough.
  if (account.socketFailures >= MAX_FAILURES) account.httpUntil = Math.max(account.httpUntil, clock.now() + FAILED_MS)
}

/** Each further one would cost a turn as many seconds again. */
const isTimeout = (err: unknown): boolean => err instanceof Error && 'code' in err && err.code === 'upstream_timeout'

/** A proxy for sockets alone that is down: what cannot pass it must not go around it (spec §1.11). */
const wouldBypassProxy = ({ upstream: { dial, baseUrl } }: Plane, { path }: Turn): boolean =>
  dial.isProxied(socketUrl(baseUrl, path)) && !dial.isProxied(baseUrl + path)

/** Whether HTTP might serve what failed: the handshake met a 5xx, or the socket died without a word of the service. */
export const isOfSocketsAlone = (plane: Plane, turn: Turn, failure: UpstreamFailure): boolean =>
  turn.log.upstreamTransport === 'websocket' &&
  failure.where !== 'event' &&
  SOCKET_KINDS.has(kindOf(failure)) &&
  (isFrameTooLarge(failure) || !wouldBypassProxy(plane, turn))

const SOCKET_KINDS: ReadonlySet<Kind> = new Set(['transient', 'network', 'closed'])

/** The service closed the socket because of the size of our frame. */
export const isFrameTooLarge = ({ body }: UpstreamFailure): boolean => body instanceof SocketClosed && body.isTooLarge
