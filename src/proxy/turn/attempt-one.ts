/** One attempt of a request on one leased account: runs its exchange with the upstream up to the commit point, and judges a failure. */
import { AppError } from '../../errors.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { untilAborted } from '../../lib/until-aborted.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { getEgressReason } from '../../model/egress/route.ts'
import { toClientHeaders } from '../../upstream/headers.ts'
import {
  type Classified,
  classify,
  endedEarly,
  failureFromEvent,
  failureFromResponse,
  failureFromThrown,
  type UpstreamFailure,
} from '../exchange/classify.ts'
import { absorbRateEvent, absorbRateHeaders } from '../exchange/rate-headers.ts'
import { sendAttempt, UpstreamStatusError } from '../exchange/send-attempt.ts'
import type { Lease } from '../pool/live-account.ts'
import { CapturedStream } from './capture.ts'
import { bodyFor, withoutReasoning } from './continuity.ts'
import { commitTo, type Flow, type FreshStream } from './flow.ts'
import { isHeld } from './meter.ts'
import type { Progress } from './progress.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { type AttemptRecord, elapsedMs, type Turn } from './turn.ts'

/** Why an attempt failed. `classified` decides what happens next. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: UpstreamFailure
  readonly classified: Classified
  /** The token the attempt used; another turn may refresh it in the meantime. */
  readonly accessToken: string | null

  constructor(failure: UpstreamFailure, at: number, accessToken: string | null = null) {
    super(failure.message)
    this.failure = failure
    this.classified = classify(failure, at)
    this.accessToken = accessToken
  }
}

export interface AttemptOptions {
  lease: Lease
  progress: Readonly<Pick<Progress, 'refreshed' | 'dropReasoning' | 'deadline' | 'byHttp'>>
}

/** Opens the upstream and resolves at the commit point with what then holds the lease. Rejects with `UpstreamStatusError` or with what the transport throws. */
export type Exchange<Committed> = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  options: AttemptOptions,
  controller: AbortController,
) => Promise<Committed>

/** Resolves with what the exchange committed to. Throws `AttemptFailed`, or the turn's abort reason. */
export const attemptOn = async <Committed>(
  proxyDeps: ProxyDeps,
  turn: Turn,
  options: AttemptOptions & { exchange: Exchange<Committed> },
): Promise<Committed> => {
  const { clock } = proxyDeps
  const controller = new AbortController()
  const began: Began = { at: clock.now(), monotonic: clock.monotonic() }
  const onAbort = () => controller.abort(turn.signal.reason)
  turn.signal.addEventListener('abort', onAbort)
  turn.capture?.attempt(options.lease.account.id)
  const limit = Math.max(0, Math.min(firstEventMs(turn), options.progress.deadline - began.monotonic))
  const cancelLimit = clock.after(limit, () => controller.abort(new AppError('upstream_timeout')))
  try {
    const committed = await options.exchange(proxyDeps, turn, options, controller)
    record(proxyDeps, turn, options.lease, { began, outcome: 'ok', failure: null })
    return committed
  } catch (cause) {
    const err = cause instanceof UpstreamStatusError ? refused(proxyDeps, turn, options.lease.account.id, cause) : cause
    controller.abort(err)
    if (turn.signal.aborted) {
      record(proxyDeps, turn, options.lease, { began, outcome: 'cancelled', failure: null })
      throw turn.signal.reason
    }
    const failed = err instanceof AttemptFailed ? err : new AttemptFailed(failureFromThrown(err), clock.now())
    if (failed.failure.where === 'status' || failed.failure.where === 'event') turn.log.phase = 'upstream'
    record(proxyDeps, turn, options.lease, { began, outcome: 'failed', failure: failed.failure })
    throw failed
  } finally {
    cancelLimit()
    turn.signal.removeEventListener('abort', onAbort) // the flow adds its own listener
  }
}

/** When the attempt began: `at` in ms since epoch, `monotonic` on the monotonic clock. */
interface Began {
  at: number
  monotonic: number
}

interface Ended {
  began: Began
  outcome: AttemptRecord['outcome']
  failure: UpstreamFailure | null
}

/** ChatGPT may name the file in its errors, and names of files are not logged. */
const hidesWords = ({ surface }: Turn, { where }: UpstreamFailure): boolean => surface === 'file' && where === 'status'

const record = ({ clock }: ProxyDeps, turn: Turn, lease: Lease, { began, outcome, failure }: Ended): void => {
  const { log } = turn
  log.egressReason = getEgressReason(failure?.body)
  if (failure) turn.capture?.failed(failure.code, failure.message)
  log.attempts.push({
    n: log.attempts.length + 1,
    accountId: lease.account.id,
    startedAt: began.at,
    durationMs: elapsedMs(began.monotonic, clock.monotonic()),
    outcome,
    upstreamStatus: outcome === 'ok' ? 200 : (failure?.status ?? null),
    code: failure?.code ?? null,
    message: failure === null || hidesWords(turn, failure) ? null : failure.message,
    considered: lease.considered,
  })
}

const firstEventMs = ({ kind, relay, settings }: Turn): number =>
  relay?.timeoutMs ??
  (kind === 'compaction' ? settings.compactTimeoutSeconds : settings.firstEventTimeoutSeconds) * 1000

/** The exchange of a model turn. */
export const openAndRead: Exchange<Flow> = async (
  proxyDeps,
  turn,
  { lease, progress: { refreshed, dropReasoning, byHttp } },
  controller,
) => {
  turn.log.phase = 'connect'
  turn.log.isSent = false
  turn.log.isShortened = false
  const { account } = lease
  const credentials = await untilAborted(proxyDeps.credentials.fresh(account.id), controller.signal)
  const bytes = dropReasoning ? withoutReasoning(turn) : bodyFor(proxyDeps, turn, account.id)
  turn.log.isShortened = dropReasoning || bytes !== turn.body?.bytes
  const {
    headers,
    stream: answer,
    accessToken,
  } = await sendAttempt(proxyDeps, turn, {
    account,
    credentials,
    bytes,
    isRenewed: refreshed.has(account.id),
    byHttp: byHttp.has(account.id),
    controller,
  })
  turn.log.connectMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
  absorbRateHeaders(proxyDeps, account.id, headers)
  turn.log.phase = 'first_event'
  turn.capture?.answered(200, headers)
  const stream = turn.capture ? new CapturedStream(answer, turn.capture) : answer
  return readToCommit(proxyDeps, turn, {
    lease,
    stream,
    controller,
    headers: toClientHeaders(headers, account.id),
    accessToken,
  })
}

const refused = (proxyDeps: ProxyDeps, turn: Turn, accountId: string, refusal: UpstreamStatusError): AttemptFailed => {
  const { status, headers, text, accessToken } = refusal
  const at = proxyDeps.clock.now()
  absorbRateHeaders(proxyDeps, accountId, headers)
  turn.capture?.answered(status, headers)
  turn.capture?.bytes(encodeUtf8(text))
  const failure = failureFromResponse(status, headers, text, at)
  return new AttemptFailed({ ...failure, ...factsAboutRoute(turn, failure) }, at, accessToken)
}

const factsAboutRoute = ({ path, relay }: Turn, failure: UpstreamFailure): Partial<UpstreamFailure> => {
  const { status, code } = failure
  if (relay === null) return status === 404 && path.endsWith('/compact') ? { isUnexplained: false } : {} // compact.ts takes the other route then
  if (relay.isBlockedByPages && status === 403 && failure.isUnexplained) return { isBlocked: true }
  const words = relay.hidesWords ? { message: `ChatGPT answered with status ${status}.` } : {}
  if (relay.passesErrors) return { ...words, isUnexplained: false }
  const isMissing = (status === 404 || status === 405) && code === null
  return relay.isRoutePerAccount && isMissing ? { isRouteMissing: true } : {}
}

/** How many bytes of events without content are held back. */
const HOLD_BYTES = 64 * 1024

/** Resolves at the first event that commits. Rejects with the attempt's failure. */
export const readToCommit = async (proxyDeps: ProxyDeps, turn: Turn, fresh: FreshStream): Promise<Flow> => {
  const held: SseEvent[] = []
  let heldBytes = 0
  for (;;) {
    const batch = await fresh.stream.read()
    if (batch === null) throw new AttemptFailed(endedEarly, proxyDeps.clock.now())
    for (const event of batch)
      if (event.type === 'codex.rate_limits' && fresh.lease.account)
        absorbRateEvent(proxyDeps, fresh.lease.account.id, event)
    for (const [index, event] of batch.entries()) {
      if (!isHeld(event.type) || heldBytes >= HOLD_BYTES) {
        if (isFailure(event.type)) throw failed(proxyDeps, event, fresh.accessToken)
        return commitTo(proxyDeps, turn, { fresh, first: [...held, ...batch.slice(index)] })
      }
      held.push(event)
      heldBytes += event.bytes.length
    }
  }
}

const isFailure = (type: string | null): boolean => type === 'response.failed' || type === 'error'

const failed = ({ clock }: ProxyDeps, event: SseEvent, accessToken: string | null): Error => {
  const at = clock.now()
  return new AttemptFailed(failureFromEvent(eventJson(event.bytes), at) ?? endedEarly, at, accessToken)
}
