/**
 * The WebSocket of a live call. It goes to the account that created the call: no other account is tried and no token is
 * renewed, because the call exists only there.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { chosenProtocol, offeredProtocols } from '../../http/cors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { accountOfCall } from '../../model/conversations/live-calls.ts'
import { extraConnectMs } from '../../upstream/dial.ts'
import { socketHeaders } from '../../upstream/headers.ts'
import type { LiveSocket } from '../../upstream/live-socket.ts'
import { socketUrl } from '../../upstream/open.ts'
import type { SocketRequest } from '../../upstream/socket.ts'
import { HandshakeRejected } from '../../upstream/socket-errors.ts'
import { withServerTiming } from '../downstream/answer.ts'
import { takePlace } from '../handlers/sockets.ts'
import type { Lease } from '../pool/live-account.ts'
import { requireOpen } from '../turn/admit.ts'
import { beginWith } from '../turn/begin.ts'
import { keyNeeds } from '../turn/continuity.ts'
import { elapsedMs, releaseRequest, type Turn } from '../turn/turn.ts'
import { getCallIds, relayedQuery, requireCallId } from './call-ids.ts'
import { LiveSession, MAX_LIVE_FRAME_BYTES } from './live-session.ts'
import { admitRelay, builtFor, noBody, type RelayRequest } from './relay.ts'

interface SidebandRoute {
  /** In the log, without the id. */
  route: string
  isNative: boolean
  /** Throws `invalid_realtime_call_id`. */
  callId: (c: Ctx) => string
  /** Under the base URL of the Realtime API. */
  path: (callId: string, search: string) => string
}

const sideband = ({ route, isNative, callId, path }: SidebandRoute) =>
  createHandlers(clientKey('always'), restricted('refuse'), async (c) => {
    if (c.req.header('upgrade')?.toLowerCase() !== 'websocket') throw new AppError('not_found')
    requireOpen(c.env)
    const unnamed = requestFor('', { isNative, route })
    const { id, accountId } = await builtFor(c, noBody(c), unnamed, async () => {
      const id = callId(c)
      return { id, accountId: await boundAccount(c, id) }
    })
    return connectTo(c, accountId, requestFor(path(id, new URL(c.req.url).search), { isNative, route }))
  })

const requestFor = (path: string, { isNative, route }: Pick<SidebandRoute, 'isNative' | 'route'>): RelayRequest => ({
  kind: 'live',
  surface: 'live',
  transport: 'websocket',
  isNative,
  route,
  path,
  accept: '*/*',
  model: null,
  headers: 'sideband',
  isCountedBefore: true,
  plan: { method: 'GET', contentType: null, timeoutMs: 0, retry: 'never', maxAccounts: 1 },
})

const boundAccount = async ({ env, var: { client } }: Ctx, callId: string): Promise<string> => {
  const keyId = client.key?.id
  const accountId = keyId === undefined ? null : await accountOfCall(env.db, { keyId, callId }, env.clock.now())
  if (accountId === null) throw new AppError('realtime_call_not_found')
  return accountId
}

const connectTo = async (c: Ctx, accountId: string, request: RelayRequest): Promise<Response> => {
  const { env } = c
  const leave = takePlace(c, false)
  const sent = { headers: false }
  let session: LiveSession
  try {
    const served = await admitRelay(c, request, noBody(c))
    const open = (_: unknown, turn: Turn) => joined(c, turn, { accountId, leave })
    session = await withServerTiming(served, beginWith(served, sent, open))
  } catch (err) {
    leave()
    throw err
  }
  sent.headers = true
  const protocol = session.protocol ?? chosenProtocol(c)
  const headers = {
    ...(protocol !== null && { 'sec-websocket-protocol': protocol }),
    'x-request-id': c.var.requestId,
  }
  if (!env.server?.upgrade(c.req.raw, { data: session, headers })) {
    session.abandon()
    throw new AppError('bad_upgrade')
  }
  return new Response(null)
}

interface Destination {
  accountId: string
  leave: () => void
}

const joined = async (c: Ctx, turn: Turn, { accountId, leave }: Destination): Promise<LiveSession> => {
  const { env } = c
  const lease = await env.pool.leaseAccount(accountId, keyNeeds(turn.client.key))
  turn.log.egressReason = env.egress.whyClosed(env.pool.get(accountId)?.egressPoolId ?? null)?.reason ?? null
  if (!lease) throw new AppError('continuity_owner_unavailable', { message: UNAVAILABLE, retryAfterSeconds: 5 })
  turn.log.accountId = accountId
  turn.log.selectMs = elapsedMs(turn.arrivedAt, env.clock.monotonic())
  try {
    const upstream = await recorded(c, turn, lease)
    releaseRequest(turn)
    return new LiveSession({ env, turn, lease, upstream, peer: env.server?.requestIP(c.req.raw) ?? null, leave })
  } catch (err) {
    lease.release()
    throw turn.signal.aborted ? turn.signal.reason : toError(err)
  }
}

const UNAVAILABLE = 'The account of this call is not available.'

/** Connects, and adds the attempt to the log. */
const recorded = async (c: Ctx, turn: Turn, lease: Lease): Promise<LiveSocket> => {
  const { clock } = c.env
  const attempt = { n: 1, accountId: lease.account.id, startedAt: clock.now(), considered: lease.considered }
  const began = clock.monotonic()
  const note = (outcome: 'ok' | 'failed' | 'cancelled', upstreamStatus: number | null, error: AppError | null) =>
    turn.log.attempts.push({
      ...attempt,
      outcome,
      upstreamStatus,
      durationMs: elapsedMs(began, clock.monotonic()),
      code: error?.code ?? null,
      message: error?.message ?? null,
    })
  turn.log.phase = 'connect'
  try {
    const upstream = await connected(c, turn, lease)
    turn.log.connectMs = elapsedMs(turn.arrivedAt, clock.monotonic())
    turn.log.phase = 'stream'
    note('ok', 101, null)
    return upstream
  } catch (err) {
    const status = err instanceof HandshakeRejected ? err.status : null
    if (turn.signal.aborted) note('cancelled', null, null)
    else note('failed', status, toError(err))
    throw err
  }
}

const connected = async (c: Ctx, turn: Turn, lease: Lease): Promise<LiveSocket> => {
  const { env } = c
  const controller = new AbortController()
  const abort = () => controller.abort(turn.signal.reason)
  turn.signal.addEventListener('abort', abort)
  if (turn.signal.aborted) abort()
  try {
    const credentials = await env.proxyDeps.credentials.fresh(lease.account.id)
    const url = socketUrl(env.env.REALTIME_BASE_URL, turn.path)
    turn.log.upstreamTransport = 'websocket'
    turn.log.isSent = true
    return await opened({
      url,
      headers: socketHeaders(turn.headers, credentials),
      agent: await env.proxyDeps.upstream.dial.socketAgent(url, credentials.route),
      clock: env.clock,
      timeoutMs: turn.settings.connectTimeoutSeconds * 1000 + extraConnectMs(credentials.route),
      signal: controller.signal,
      protocols: offeredProtocols(c),
      maxFrameBytes: MAX_LIVE_FRAME_BYTES,
    })
  } finally {
    turn.signal.removeEventListener('abort', abort)
  }
}

const opened = async (request: SocketRequest): Promise<LiveSocket> => {
  const { openLiveSocket } = await import('../../upstream/live-socket.ts')
  return openLiveSocket(request)
}

/** Statuses that would make the client doubt its own key. */
const ABOUT_THE_ACCOUNT: ReadonlySet<number> = new Set([401, 403])

const toError = (cause: unknown): AppError => {
  if (cause instanceof AppError && cause.code === 'continuity_owner_unavailable') return cause
  if (cause instanceof HandshakeRejected) {
    const isPassed = cause.status >= 400 && cause.status <= 599 && !ABOUT_THE_ACCOUNT.has(cause.status)
    return new AppError('upstream_websocket_handshake_failed', isPassed ? { status: cause.status } : {})
  }
  if (cause instanceof Error && cause.name === 'SubprotocolMismatch')
    return new AppError('upstream_websocket_subprotocol_mismatch')
  return new AppError('realtime_live_unavailable', { cause })
}

const livePath = (callId: string) => `/v1/live/${callId}`

const inPath = (c: Ctx): string => {
  if (getCallIds(new URL(c.req.url).search).length > 0) return requireCallId(undefined)
  return requireCallId(c.req.param('callId'))
}

const inQuery = (c: Ctx): string => {
  const [id, ...others] = getCallIds(new URL(c.req.url).search)
  return requireCallId(others.length > 0 ? undefined : id)
}

export const nativeSideband = sideband({
  route: '/backend-api/codex/{call_id}',
  isNative: true,
  callId: inPath,
  path: livePath,
})
export const publicSideband = sideband({
  route: '/v1/live/{call_id}',
  isNative: false,
  callId: inPath,
  path: livePath,
})
export const realtimeSideband = sideband({
  route: '/v1/realtime',
  isNative: false,
  callId: inQuery,
  path: (callId, search) => {
    const rest = relayedQuery(search)
    return `/v1/realtime?${rest}${rest === '' ? '' : '&'}call_id=${callId}`
  },
})
