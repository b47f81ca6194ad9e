/**
 * Which transport a turn uses upstream: the setting, or under `auto` what fits client and model (spec §1.10). Attempts,
 * accounts and conversations go to HTTP when upstream sockets fail but HTTP may work (decisions §3 "Transport
 * pairings"); that never counts against an account.
 */

import { MINUTE_MS } from '../../lib/durations.ts'
import { getObjects, isObject } from '../../lib/json.ts'
import { socketUrl } from '../../upstream/open.ts'
import { HandshakeRejected, SocketClosed } from '../../upstream/socket-errors.ts'
import type { LiveAccount } from '../pool/live-account.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Transport, Turn } from '../turn/turn.ts'
import { getKind, type Kind } from './failure-kind.ts'
import type { UpstreamFailure } from './upstream-failure.ts'

/**
 * The upstream accepts frames up to 16 MiB (assumed). Frames are measured before sending; the body is a little smaller.
 */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024
const MAX_AUTO_FRAME_BYTES = 14 * 1024 * 1024

interface Circumstances {
  bytes: number
  /** Sockets failed recently or in this turn. */
  isOnHttp: boolean
  modelPrefersSockets: boolean
}

export const transportFor = (turn: Turn, { bytes, isOnHttp, modelPrefersSockets }: Circumstances): Transport => {
  const setting = getRequiredTransport(turn) ?? turn.settings.upstreamStreamTransport
  const canUseSocket = turn.accept === 'text/event-stream' && bytes <= MAX_FRAME_BYTES && !isOnHttp
  if (setting === 'http' || !canUseSocket) return 'http'
  // A socket client continues responses that only its upstream socket knows, so it stays on one where possible.
  if (setting === 'websocket' || turn.transport === 'websocket') return 'websocket'
  if (bytes > MAX_AUTO_FRAME_BYTES || hasImages(turn)) return 'http'
  return modelPrefersSockets || isNative(turn.headers) ? 'websocket' : 'http'
}

/** A key may override the setting for HTTP clients; a socket client would lose the response it continues. */
const getRequiredTransport = ({ client, transport }: Turn): Transport | null => {
  const wish = transport === 'http' ? client.key?.transport : null
  if (wish === 'always_http') return 'http'
  return wish === 'always_websocket' ? 'websocket' : null
}

const NATIVE_ORIGINATORS: ReadonlySet<string> = new Set([
  'Codex Desktop',
  'codex_atlas',
  'codex_chatgpt_desktop',
  'codex_cli_rs',
  'codex_exec',
  'codex_sdk_ts',
  'codex_vscode',
])
const NATIVE_HEADERS = ['x-codex-turn-state', 'x-codex-turn-metadata', 'x-codex-beta-features'] as const

/** Whether the headers are those of the Codex CLI or its IDE extension. */
const isNative = (headers: Turn['headers']): boolean =>
  NATIVE_ORIGINATORS.has(headers.originator ?? '') || NATIVE_HEADERS.some((name) => headers[name] !== undefined)

/** Input images are megabytes large, and so are generated ones. */
const hasImages = ({ body }: Turn): boolean => {
  if (!body) return false
  const { tools, input } = body.json
  return (
    getObjects(tools).some(({ type }) => type === 'image_generation') ||
    getObjects(input).some(({ content, output }) => isImageList(content) || isImageList(output))
  )
}

const isImageList = (parts: unknown): boolean =>
  Array.isArray(parts) && parts.some((part) => isObject(part) && part.type === 'input_image')

/** Statuses of an upstream or intermediary that does not support sockets; 426 is ChatGPT's own. */
const NO_SOCKETS_HERE: ReadonlySet<number> = new Set([403, 404, 405, 426, 501])
const REFUSED_MS = 10 * MINUTE_MS
const FAILED_MS = 2 * MINUTE_MS
/** Consecutive failed handshakes and turns before an account uses HTTP. */
const MAX_FAILURES = 3
const MAX_CONVERSATIONS = 10_000

/** Conversations whose socket failed recently, with the monotonic time. */
export class FailedSockets {
  readonly #failedAt = new Map<string, number>()

  note(conversation: string, now: number): void {
    this.#failedAt.delete(conversation) // set() alone keeps the old place in the eviction order
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
 * Whether this turn uses HTTP on this account. An open connection is not dropped because another one failed. An HTTP
 * client whose socket failed before has fallen back by itself (Codex CLI 0.169).
 */
export const isOnHttp = ({ clock, failedSockets }: ProxyDeps, turn: Turn, { id, httpUntil }: LiveAccount): boolean => {
  const { session, transport, conversation, arrivedAt } = turn
  if (transport === 'http' && conversation !== null && failedSockets.failedBefore(conversation, arrivedAt)) return true
  return httpUntil > clock.now() && session?.accountAt(clock.monotonic()) !== id
}

/**
 * After a handshake failed with `err`: whether the attempt continues over HTTP. `isRenewed`: the token is known to be
 * valid.
 */
export const shouldFallBackToHttp = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { account, err, isRenewed }: { account: LiveAccount; err: unknown; isRenewed: boolean },
): boolean => {
  const status = err instanceof HandshakeRejected ? err.status : null
  if (status === null && wouldBypassProxy(proxyDeps, turn)) return false
  if (status !== null && !NO_SOCKETS_HERE.has(status) && !(status === 401 && isRenewed)) {
    if (status >= 500) recordSocketFailure(proxyDeps, turn, account)
    return false
  }
  if (status === null) recordSocketFailure(proxyDeps, turn, account, isTimeout(err) ? MAX_FAILURES : 1)
  else account.httpUntil = proxyDeps.clock.now() + REFUSED_MS
  proxyDeps.log.info('ChatGPT did not accept a WebSocket, using HTTP', {
    account: account.id,
    status: status ?? 0,
    err,
  })
  return true
}

/** Counts a handshake without answer or with a 5xx, or a turn that ended with its socket, as `failures` failures. */
export const recordSocketFailure = (proxyDeps: ProxyDeps, turn: Turn, account: LiveAccount, failures = 1): void => {
  if (wouldBypassProxy(proxyDeps, turn)) return
  const { clock, failedSockets } = proxyDeps
  if (turn.conversation !== null) failedSockets.note(turn.conversation, clock.monotonic())
  account.socketFailures += failures
  // The count is not reset, so that one more failure is enough afterwards.
  if (account.socketFailures >= MAX_FAILURES) account.httpUntil = Math.max(account.httpUntil, clock.now() + FAILED_MS)
}

/** Another timeout would cost a turn the same time again. */
const isTimeout = (err: unknown): boolean => err instanceof Error && 'code' in err && err.code === 'upstream_timeout'

/** When only sockets use a proxy and it is down, its traffic must not bypass it (spec §1.11). */
const wouldBypassProxy = ({ upstream: { dial, baseUrl }, pool, getRoute }: ProxyDeps, { path, log }: Turn): boolean => {
  const route = getRoute(pool.get(log.accountId ?? '')?.egressPoolId ?? null)
  return dial.isProxied(socketUrl(baseUrl, path), route) && !dial.isProxied(baseUrl + path, route)
}

/** Whether HTTP might succeed: the handshake got a 5xx, or the socket closed without an error from ChatGPT. */
export const mayWorkOverHttp = (proxyDeps: ProxyDeps, turn: Turn, failure: UpstreamFailure): boolean =>
  turn.log.upstreamTransport === 'websocket' &&
  failure.where !== 'event' &&
  SOCKET_KINDS.has(getKind(failure)) &&
  (isFrameTooLarge(failure) || !wouldBypassProxy(proxyDeps, turn))

const SOCKET_KINDS: ReadonlySet<Kind> = new Set(['transient', 'network', 'closed'])

/** The upstream closed the socket because our frame was too large. */
export const isFrameTooLarge = ({ body }: UpstreamFailure): boolean => body instanceof SocketClosed && body.isTooLarge
