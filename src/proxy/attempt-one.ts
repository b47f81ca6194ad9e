/** One attempt of a turn on one leased account: opens the upstream, reads up to the commit point, and judges a failure. */
import { AppError } from '../errors.ts'
import { untilAborted } from '../lib/until-aborted.ts'
import type { AccountCredentials } from '../upstream/headers.ts'
import { openTurn } from '../upstream/open.ts'
import { DocumentStream, SseStream } from '../upstream/stream.ts'
import { type Classified, classify, failureFromResponse, failureFromThrown, type UpstreamFailure } from './classify.ts'
import { bodyFor, withoutReasoning } from './continuity.ts'
import { readToCommit } from './first-events.ts'
import type { Flow } from './flow.ts'
import type { Plane } from './plane.ts'
import type { Lease } from './pool.ts'
import { absorbRateHeaders } from './rate-headers.ts'
import { elapsedMs, type Turn } from './turn.ts'

const ERROR_BODY_BYTES = 64 * 1024

/** What one attempt failed with. `classified` decides what happens next. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: UpstreamFailure
  readonly classified: Classified
  /** The token the upstream answered to; another turn may renew it meanwhile. */
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
  dropReasoning: boolean
  /** `clock.monotonic()` at which the turn's time before the commit point is up. */
  deadline: number
}

/** Resolves with the committed flow, which holds the lease. Throws `AttemptFailed`, or the turn's abort reason. */
export const attemptOn = async (plane: Plane, turn: Turn, options: AttemptOptions): Promise<Flow> => {
  const { clock } = plane
  const controller = new AbortController()
  const startedAt = clock.now()
  const began = clock.monotonic()
  const onAbort = () => controller.abort(turn.signal.reason)
  turn.signal.addEventListener('abort', onAbort, { once: true })
  const limit = Math.max(0, Math.min(firstEventMs(turn), options.deadline - began))
  const cancelLimit = clock.after(limit, () => controller.abort(new AppError('upstream_timeout')))
  const record = (outcome: 'ok' | 'failed' | 'cancelled', failure: UpstreamFailure | null) =>
    turn.log.attempts.push({
      n: turn.log.attempts.length + 1,
      accountId: options.lease.account.id,
      startedAt,
      durationMs: elapsedMs(began, clock.monotonic()),
      outcome,
      upstreamStatus: outcome === 'ok' ? 200 : (failure?.status ?? null),
      code: failure?.code ?? null,
      message: failure?.message ?? null,
      considered: options.lease.considered,
    })
  try {
    const flow = await openAndRead(plane, turn, { ...options, controller })
    record('ok', null)
    return flow
  } catch (err) {
    controller.abort(err)
    if (turn.signal.aborted) {
      record('cancelled', null)
      throw turn.signal.reason
    }
    const failed =
      err instanceof AttemptFailed ? err : new AttemptFailed(failureFromThrown(err, 'headers'), clock.now())
    record('failed', failed.failure)
    throw failed
  } finally {
    cancelLimit()
    turn.signal.removeEventListener('abort', onAbort) // from the commit on the flow listens itself
  }
}

const firstEventMs = ({ kind, settings }: Turn): number =>
  (kind === 'compaction' ? settings.compactTimeoutSeconds : settings.firstEventTimeoutSeconds) * 1000

const openAndRead = async (
  plane: Plane,
  turn: Turn,
  { lease, dropReasoning, controller }: AttemptOptions & { controller: AbortController },
): Promise<Flow> => {
  turn.log.phase = 'connect'
  const { account } = lease
  const credentials = await untilAborted(plane.credentials.fresh(account.id), controller.signal)
  const response = await openTurn(plane.upstream, credentials, {
    path: turn.path,
    headers: turn.headers,
    body: dropReasoning ? withoutReasoning(turn) : bodyFor(plane, turn, account.id),
    accept: turn.accept,
    attempt: controller,
    connectTimeoutMs: turn.settings.connectTimeoutSeconds * 1000,
  })
  turn.log.connectMs = elapsedMs(turn.arrivedAt, plane.clock.monotonic())
  absorbRateHeaders(plane, account.id, response.headers)
  const { status, headers, body } = response
  if (status !== 200 || !body) throw await refused(plane, response, credentials)
  turn.log.phase = 'first_event'
  const stream =
    turn.accept === 'application/json'
      ? new DocumentStream(response)
      : new SseStream(body, plane.clock, turn.passesDeltas)
  return readToCommit(plane, turn, { lease, stream, controller, headers, accessToken: credentials.accessToken })
}

/** The body is read whole: an unread one keeps its connection (runtime note 3.6). */
const refused = async (plane: Plane, response: Response, credentials: AccountCredentials): Promise<AttemptFailed> => {
  const text = (await response.text()).slice(0, ERROR_BODY_BYTES)
  const at = plane.clock.now()
  return new AttemptFailed(
    failureFromResponse(response.status, response.headers, text, at),
    at,
    credentials.accessToken,
  )
}
