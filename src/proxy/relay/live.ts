/**
 * Creates live calls: the client's offer goes to one account, once, and the call is bound to that account before the client
 * hears of it. Media then flows between the client and OpenAI; `sideband.ts` relays the WebSocket of the call.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { bindCall } from '../../model/conversations/live-calls.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import { callIdIn, relayedQuery } from './call-ids.ts'
import { admitRelay, exchangeOnce, type RelayRequest, readBodyFor, relay, turnRoute } from './relay.ts'
import type { RelayFlow } from './relay-flow.ts'

const MAX_BODY_BYTES = 16 * 1024 * 1024
const TIMEOUT_MS = 120_000

/** Assumed: ChatGPT has both routes under its base URL, and both answer with a `Location` of the Realtime API. */
const REALTIME_PATH = '/codex/realtime/calls'
const LIVE_PATH = '/codex/live'

const requestFor = (c: Ctx, path: string, isNative: boolean): RelayRequest => {
  const query = relayedQuery(new URL(c.req.url).search)
  return {
    kind: 'live',
    surface: 'live',
    isNative,
    path: query === '' ? path : `${path}?${query}`,
    accept: c.req.header('accept') ?? '*/*',
    model: null,
    headers: 'live',
    plan: {
      method: 'POST',
      contentType: c.req.header('content-type') ?? null,
      timeoutMs: TIMEOUT_MS,
      retry: 'never',
      maxAccounts: 1,
      passesErrors: true,
      hidesWords: true,
    },
  }
}

const createCall = (path: string, { isNative }: { isNative: boolean }) =>
  turnRoute(
    async (c) => {
      const request = requestFor(c, path, isNative)
      const body = await readBodyFor(c, request, MAX_BODY_BYTES)
      return relay(await admitRelay(c, request, body), (proxyDeps, turn) => createBound(c, proxyDeps, turn))
    },
    { key: 'always' },
  )

/** The client connects to the call immediately, so its account is on disk before the answer leaves. */
const createBound = async ({ env }: Ctx, proxyDeps: ProxyDeps, turn: Turn): Promise<RelayFlow> => {
  const flow = await exchangeOnce(proxyDeps, turn)
  try {
    const callId = callIdIn(flow.headers.location)
    const keyId = turn.client.key?.id
    if (callId === null || keyId === undefined) throw new AppError('realtime_call_binding_failed')
    const isBound = await bindCall(env.db, { keyId, callId }, { accountId: flow.accountId, now: env.clock.now() })
    if (!isBound) throw new AppError('realtime_call_binding_failed')
    return flow
  } catch (cause) {
    turn.log.phase = 'upstream' // nothing was streamed, so nothing is charged
    const error = cause instanceof AppError ? cause : new AppError('realtime_call_binding_failed', { cause })
    flow.fail(error)
    throw error
  }
}

export const nativeCall = createCall(REALTIME_PATH, { isNative: true })
export const publicCall = createCall(REALTIME_PATH, { isNative: false })
export const nativeLive = createCall(LIVE_PATH, { isNative: true })
export const publicLive = createCall(LIVE_PATH, { isNative: false })
