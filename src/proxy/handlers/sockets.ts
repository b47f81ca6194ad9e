/** The WebSocket side of the Responses routes: the gates run at the handshake, so a refusal is an ordinary HTTP answer. */
import { isLocal } from '../../auth/caller.ts'
import type { Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { CAPABILITY_HEADER, clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { demandOpen } from '../admit.ts'
import { nativeFrames, publicFrames } from '../frame-contract.ts'
import { type Handshake, SocketSession } from '../socket-session.ts'
import { contractOptions } from './responses.ts'

const TURN_STATE = 'x-codex-turn-state'

const openSocket = (isNative: boolean) =>
  createHandlers(clientKey('optional'), restricted('narrow'), (c) => {
    if (c.req.header('upgrade')?.toLowerCase() !== 'websocket') throw new AppError('not_found')
    demandOpen(c.env)
    const isRestricted = c.req.header(CAPABILITY_HEADER) !== undefined
    demandSockets(c, isNative && !isRestricted)
    const session = new SocketSession(handshakeOf(c, { isNative, isRestricted }))
    const headers = {
      'x-request-id': c.var.requestId,
      [TURN_STATE]: c.req.header(TURN_STATE) ?? c.env.random.id('turn'),
    }
    // Headers of the 101 must be given here: those that middleware sets do not reach it (runtime note 2.6).
    if (!c.env.server?.upgrade(c.req.raw, { data: session, headers })) throw new AppError('bad_upgrade')
    return new Response(null)
  })

/** 426 is the one answer after which the native client goes on over HTTP at once and without a word (client protocol §1.15). */
const demandSockets = ({ env }: Ctx, canFallBack: boolean): void => {
  if (canFallBack && env.settings.current().upstreamStreamTransport === 'http') throw new AppError('upgrade_required')
}

/** Copied, because the request is gone after the upgrade. */
const handshakeOf = (c: Ctx, { isNative, isRestricted }: Pick<Handshake, 'isNative' | 'isRestricted'>): Handshake => {
  const { env, req } = c
  const { clientIp, peer } = c.var
  const isHere = isLocal(c)
  return {
    env,
    headers: new Headers(req.raw.headers),
    route: req.path,
    isNative,
    isRestricted,
    knock: {
      authorization: req.header('authorization') ?? null,
      capability: req.header(CAPABILITY_HEADER) ?? null,
      isLocal: () => isHere,
      ip: clientIp,
      peer,
      unauthenticatedCidrs: env.env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS,
      keys: env.keys,
      need: 'optional',
    },
    contract: (client) => (isNative ? nativeFrames : publicFrames)(contractOptions(env, client)),
  }
}

export const nativeSocket = openSocket(true)
export const publicSocket = openSocket(false)
