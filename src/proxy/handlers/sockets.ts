/** The WebSocket side of the Responses routes. Gates run at the handshake, so a rejection is an ordinary HTTP answer. */
import { isLocal } from '../../auth/caller.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { chosenProtocol } from '../../http/cors.ts'
import { CAPABILITY_HEADER, clientKey, restricted, toAuthRequest } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getClient } from '../../lib/client-ip.ts'
import type { Claim } from '../../lib/concurrency-limits.ts'
import { contractOptions } from '../downstream/contracts.ts'
import { nativeFrames, publicFrames } from '../downstream/frame-contract.ts'
import { type Handshake, SocketSession } from '../downstream/socket-session.ts'
import { conversationHash } from '../pool/affinity.ts'
import { requireOpen } from '../turn/admit.ts'

const TURN_STATE = 'x-codex-turn-state'

const openSocket = (isNative: boolean) =>
  createHandlers(clientKey('optional'), restricted('narrow'), (c) => {
    if (c.req.header('upgrade')?.toLowerCase() !== 'websocket') throw new AppError('not_found')
    requireOpen(c.env)
    const isRestricted = c.req.header(CAPABILITY_HEADER) !== undefined
    const canFallBack = isNative && !isRestricted
    requireSockets(c, canFallBack)
    if (isOfSource(c)) throw new AppError('upgrade_required', { message: SOURCE_NEEDS_HTTP })
    const leave = takePlace(c, canFallBack)
    const session = new SocketSession(getHandshake(c, { isNative, isRestricted, leave }))
    const protocol = chosenProtocol(c)
    const headers = {
      ...(protocol !== null && { 'sec-websocket-protocol': protocol }),
      'x-request-id': c.var.requestId,
      ...(isNative && c.env.clientLimits.headersFor(c.get('client').key, null)),
      [TURN_STATE]: c.req.header(TURN_STATE) ?? c.env.random.id('turn'),
    }
    // Headers for the 101 are set here: those set by middleware do not reach it (Bun 1.4.5).
    if (!c.env.server?.upgrade(c.req.raw, { data: session, headers })) {
      leave()
      throw new AppError('bad_upgrade')
    }
    return new Response(null)
  })

/** A turn of this conversation was for a model source, a moment ago. */
const isOfSource = ({ env, req, var: { client } }: Ctx): boolean => {
  const thread = conversationHash(req.raw.headers, null, client.key?.id ?? null)
  return thread !== null && env.proxyDeps.sourceThreads.failedBefore(thread, env.clock.monotonic())
}

const SOURCE_NEEDS_HTTP = 'The model of this conversation is served by a model source. Use HTTP POST.'

/** After a 426, and only then, the native client silently continues over HTTP (Codex CLI 0.169). */
const requireSockets = ({ env }: Ctx, canFallBack: boolean): void => {
  if (canFallBack && env.settings.current().upstreamStreamTransport === 'http') throw new AppError('upgrade_required')
}

/**
 * Counts the socket for its key and for the client's address or IPv6 /64; returns the function that releases it. Throws
 * `too_many_sockets`: 426 where the client then continues over HTTP, 429 otherwise.
 */
export const takePlace = ({ env, var: { client, clientIp } }: Ctx, canFallBack: boolean): (() => void) => {
  const { socketsPerKey, socketsPerClient } = env.settings.current()
  const claims: Claim[] = []
  if (client.key) claims.push({ of: `socket key ${client.key.id}`, most: socketsPerKey })
  if (clientIp !== null) claims.push({ of: `socket client ${getClient(clientIp)}`, most: socketsPerClient })
  const full = claims.find(({ of, most }) => env.seats.taken(of) >= most)
  if (full)
    throw new AppError('too_many_sockets', {
      message: `This ${full.of.startsWith('socket key') ? 'API key' : 'client'} has reached its limit of ${full.most} open sockets. Close one, or send requests over HTTP.`,
      ...(canFallBack ? { status: 426 } : { retryAfterSeconds: 30 }),
    })
  return env.seats.take(claims) ?? (() => {})
}

/** Copied, because the request object is invalid after the upgrade. */
const getHandshake = (c: Ctx, { isNative, isRestricted, leave }: HandshakeKind): Handshake => {
  const { env, req } = c
  const isHere = isLocal(c)
  return {
    env,
    headers: new Headers(req.raw.headers),
    route: req.path,
    isNative,
    isRestricted,
    authRequest: { ...toAuthRequest(c, 'optional'), isLocal: () => isHere },
    peer: env.server?.requestIP(req.raw) ?? null,
    leave,
    contract: (client, model) => (isNative ? nativeFrames : publicFrames)(contractOptions(env, client, model)),
  }
}

type HandshakeKind = Pick<Handshake, 'isNative' | 'isRestricted' | 'leave'>

export const nativeSocket = openSocket(true)
export const publicSocket = openSocket(false)
