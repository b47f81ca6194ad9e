/**
 * The one relay: chooses an account as a turn does, sends the client's bytes with its credentials, and gives the answer back
 * untranslated. Attempts, classification, penalties, limits and the log row are those of turns.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { untilAborted } from '../../lib/until-aborted.ts'
import { isCompressed } from '../../upstream/bounded-body.ts'
import { toClientHeaders } from '../../upstream/headers.ts'
import { openTurn } from '../../upstream/open.ts'
import { type Answered, answerHeaders, STALLED_SECONDS, withServerTiming } from '../downstream/answer.ts'
import { absorbRateHeaders } from '../exchange/rate-headers.ts'
import { compressedStream, toStatusError } from '../exchange/send-attempt.ts'
import { admitTurn, prepared, readRelayBody, type TurnKindOf } from '../handlers/turn-route.ts'
import { BodyHold } from '../ingress/raw-body.ts'
import type { Relayed } from '../turn/admit.ts'
import type { Exchange } from '../turn/attempt-one.ts'
import { attemptWith } from '../turn/attempts.ts'
import { beginWith } from '../turn/begin.ts'
import type { Metered } from '../turn/meter.ts'
import type { FlowListener } from '../turn/open-answer.ts'
import { newProgress, type Progress } from '../turn/progress.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import { elapsedMs, type RelayKind, releaseRequest, type Transport, type Turn, type TurnBody } from '../turn/turn.ts'
import { RelayFlow } from './relay-flow.ts'

export { turnRoute } from '../handlers/turn-route.ts'

/** What a relayed route says of its requests. `path` is under the upstream base URL, with its query. */
export interface RelayRequest extends Relayed {
  kind: RelayKind
  /** The native client treats statuses differently from SDKs. */
  isNative: boolean
  path: string
  accept: string
  /** In the log; the path of the request when absent. */
  route?: string
  /** How the client connected; `http` when absent. */
  transport?: Transport
}

/** Reads the body within its limit and the body budget, and leaves a row in the log when that fails. */
export const readBodyFor = (c: Ctx, request: RelayRequest, maxBytes?: number): Promise<TurnBody> =>
  readRelayBody(c, getKind(request), maxBytes)

/** Runs what reads or builds the body; leaves a row in the log when that throws. The route releases the body. */
export const preparedFor = <T>(c: Ctx, raw: TurnBody, request: RelayRequest, work: () => T): T =>
  prepared(c, raw, getKind(request), work)

/** The same for work that takes time. */
export const builtFor = <T>(c: Ctx, raw: TurnBody, request: RelayRequest, work: () => Promise<T>): Promise<T> =>
  work().catch((err: unknown) =>
    preparedFor(c, raw, request, () => {
      throw err
    }),
  )

/** For requests without a body. */
export const noBody = ({ env }: Ctx): TurnBody => ({
  bytes: new Uint8Array(),
  json: {},
  hold: new BodyHold(env.bodies),
})

/** Admits the request: key policy, limits, draining. If it is rejected, logs it and throws. The route releases the body. */
export const admitRelay = (c: Ctx, request: RelayRequest, body: TurnBody): Promise<Answered> =>
  admitTurn(c, { ...getKind(request), body })

const getKind = ({ kind, isNative, path, accept, route, transport, ...relay }: RelayRequest): TurnKindOf => ({
  kind,
  isNative,
  path,
  accept,
  relay,
  ...(route !== undefined && { route }),
  ...(transport && { transport }),
})

type Open = (proxyDeps: ProxyDeps, turn: Turn) => Promise<RelayFlow>

/**
 * Relays an admitted request and streams the answer as it arrives. Throws the `AppError` of one that failed before it.
 * `open` may look at the answer before the client gets it.
 */
export const relay = async (served: Answered, open: Open = exchangeOnce): Promise<Response> => {
  const { c } = served
  const sent = { headers: false }
  const flow = await openRelay(served, sent, open)
  const headers = answerHeaders(served, flow)
  sent.headers = true
  c.set('isRelayed', true)
  c.env.server?.timeout(c.req.raw, STALLED_SECONDS)
  if (flow.hasBody) return new Response(flow.stream(), { status: flow.status, headers })
  await flow.next()
  return new Response(null, { status: flow.status, headers })
}

/** Ends an admitted request with an answer of Sluice's own, for which no account is used. */
export const answerLocally = async (served: Answered, response: Response): Promise<Response> => {
  const ended = { status: 'ok', error: null, httpStatus: response.status } as const
  await beginWith(served, { headers: false }, async () => ({
    whenEnded: (listener: FlowListener) => listener.ended(ended, NOTHING_USED),
  }))
  return response
}

export const NOTHING_USED: Metered = Object.freeze({
  responseId: null,
  usage: null,
  ciphertexts: [],
  deltas: 0,
})

/** The same for an answer that the handler reads itself: the flow must be read to its end, or ended with `fail`. */
export const openRelay = (served: Answered, sent = { headers: false }, open: Open = exchangeOnce): Promise<RelayFlow> =>
  withServerTiming(
    served,
    beginWith(served, sent, (proxyDeps, turn) => open(proxyDeps, turn)),
  )

/** One exchange with attempts, without settling the request: for routes that ask the upstream more than once. */
export const exchangeOnce = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  progress: Progress = newProgress(proxyDeps, turn),
): Promise<RelayFlow> => attemptWith(proxyDeps, turn, { progress, exchange })

const exchange: Exchange<RelayFlow> = async (proxyDeps, turn, { lease }, controller) => {
  const plan = turn.relay! // only relayed turns come here
  turn.log.phase = 'connect'
  turn.log.isSent = false
  const credentials = await untilAborted(proxyDeps.credentials.fresh(lease.account.id), controller.signal)
  turn.log.upstreamTransport = 'http'
  turn.log.isSent = true
  const response = await openTurn(proxyDeps.upstream, credentials, {
    method: plan.method,
    path: turn.path,
    headers: turn.headers,
    body: plan.method === 'GET' ? null : (turn.body?.bytes ?? null),
    contentType: plan.contentType,
    accept: turn.accept,
    attempt: controller,
    connectTimeoutMs: turn.settings.connectTimeoutSeconds * 1000,
  })
  if (!response.ok && !plan.answers?.includes(response.status))
    throw await toStatusError(proxyDeps, response, credentials)
  if (isCompressed(response)) throw compressedStream(response)
  turn.log.connectMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
  absorbRateHeaders(proxyDeps, lease.account.id, response.headers)
  turn.log.phase = 'stream'
  turn.capture?.answered(response.status, response.headers)
  if (!plan.isRepeated) releaseRequest(turn)
  return new RelayFlow(proxyDeps, turn, {
    lease,
    response,
    controller,
    passedOn: toClientHeaders(response.headers, lease.account.id),
  })
}
