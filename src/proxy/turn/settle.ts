/** Settles a turn, exactly once: charges limits, records owners, and writes one ledger entry. */
import { type AppError, anthropicStatus } from '../../errors.ts'
import { isMessagesPath } from '../../http/model-path.ts'
import type { CapturedEnd } from '../../model/captures/recorder.ts'
import { audioCostMicros, costMicros, type TokenUsage } from '../../model/catalog/pricing.ts'
import type { Use } from '../../model/keys/reservations.ts'
import { requestUnits, uncachedUnits } from '../../model/log/request-units.ts'
import type { Shares } from '../../model/shares/shares.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AffinityMap } from '../pool/affinity.ts'
import type { Pool } from '../pool/pool.ts'
import { sourceCostMicros } from '../sources/cost.ts'
import { type HealthDeps, recordSourceHealth } from '../sources/record-health.ts'
import { rememberOwners } from './continuity.ts'
import type { Metered } from './meter.ts'
import type { FlowEnd } from './open-answer.ts'
import { type AttemptRecord, ClientGone, elapsedMs, releaseRequest, type Turn } from './turn.ts'

interface SettleDeps extends HealthDeps {
  affinity: AffinityMap
  ledger: Ledger
  pool: Pick<Pool, 'offers' | 'get'>
  shares: Pick<Shares, 'end'>
}

interface Outcome extends FlowEnd {
  httpStatus: number
  /** Null when no stream was committed. */
  meter: Metered | null
}

/** The end of a turn that failed before its commit point. */
export const toFailedEnd = (turn: Turn, error: AppError): FlowEnd =>
  turn.signal.reason instanceof ClientGone ? { status: 'cancelled', error: null } : { status: 'error', error }

/** The status the client got, or would have got: headers already sent say 200. */
export const getStatus = (turn: Turn, { status, error, httpStatus = 200 }: FlowEnd, hasHeaders: boolean): number => {
  if (hasHeaders || status === 'ok') return httpStatus
  if (status === 'cancelled') return 499
  return error === null ? 500 : errorStatus(turn, error)
}

/** The status of an answer that is this error. */
export const errorStatus = ({ route }: Turn, error: AppError): number =>
  isMessagesPath(route) ? anthropicStatus(error) : error.status

export const settle = (deps: SettleDeps, turn: Turn, outcome: Outcome): void => {
  const { clock, affinity, ledger, pool } = deps
  releaseRequest(turn)
  turn.recording?.release()
  turn.capture?.end(getEnd(outcome))
  if (turn.opening !== null) affinity.openings.end(turn.opening)
  const { log } = turn
  const now = clock.now()
  const { meter } = outcome
  const { usage, cost, use } = getCharge(turn, outcome)
  log.source?.charge?.(cost ?? 0)
  if (log.source && outcome.status !== 'cancelled') recordSourceHealth(deps, log.source.id, outcome.error)
  if (outcome.status === 'ok') log.phase = 'finish'
  // A prewarm answered here used no account, even if one was leased.
  const isOurs = outcome.status === 'ok' && log.upstreamTransport === null
  const attempts = isOurs ? [] : log.attempts
  const accountId = isOurs ? null : log.accountId
  if (turn.getFirst !== null && outcome.status === 'ok' && accountId !== null)
    affinity.openings.note(turn.getFirst, accountId, now)
  const units =
    usage && log.source === null && outcome.status !== 'error' ? requestUnits({ ...usage, costMicros: cost }) : null
  deps.shares.end(turn.client.key?.ownerUserId ?? null, { id: turn.id, at: turn.startedAt, units })
  const asked = attempts.filter(({ accountId }) => accountId !== null).length
  ledger.record({
    row: {
      id: turn.id,
      requestId: turn.requestId,
      startedAt: turn.startedAt,
      route: turn.route,
      kind: turn.kind,
      transport: turn.transport,
      upstreamTransport: log.upstreamTransport,
      keyId: turn.client.key?.id ?? null,
      unrecognizedKey: turn.client.hasUnrecognizedKey,
      accountId,
      sourceId: log.source?.id ?? null,
      overflow: log.source?.isOverflow ?? false,
      model: turn.model,
      reasoningEffort: turn.reasoningEffort,
      serviceTier: turn.serviceTier,
      responseId: meter?.responseId ?? null,
      conversationHash: turn.conversation,
      moved: log.moved,
      moveAvoidable: log.moveAvoidable,
      movedTokens: usage ? Math.min(log.cachedTokens, Math.max(0, usage.inputTokens - usage.cachedInputTokens)) : 0,
      paidCredits: accountId !== null && log.paidCredits,
      borrowed: log.borrowed && accountId !== null,
      status: outcome.status,
      httpStatus: outcome.httpStatus,
      phase: outcome.status === 'ok' ? null : log.phase,
      errorCode: outcome.error ? (outcome.error.extra.upstream?.code ?? outcome.error.code) : null,
      errorMessage: turn.surface === 'file' && outcome.error?.extra.upstream ? null : (outcome.error?.message ?? null),
      egressReason: outcome.status === 'error' ? log.egressReason : null,
      inputTokens: usage?.inputTokens ?? null,
      cachedInputTokens: usage?.cachedInputTokens ?? null,
      outputTokens: usage?.outputTokens ?? null,
      reasoningTokens: usage?.reasoningTokens ?? null,
      costMicros: cost,
      clientIp: turn.client.ip,
      userAgent: turn.userAgent,
      attempts: asked,
      admitMs: log.admitMs,
      selectMs: log.selectMs,
      connectMs: log.connectMs,
      firstEventMs: log.firstEventMs,
      totalMs: elapsedMs(turn.arrivedAt, clock.monotonic()),
    },
    attempts,
    // Made-up names must not grow the hourly totals: counted only if the upstream accepted the model or an account
    // offers it.
    hourModel: meter !== null || log.source !== null || pool.offers(turn.model) ? turn.model : null,
    limitDeltas: turn.reservation.settle(use),
    isServiceFault: isServiceFault(turn, outcome),
    affinity: [...log.owned, ...getOwnerRows(deps, turn, { meter, accountId, cost, now })],
  })
}

interface Served {
  meter: Metered | null
  accountId: string | null
  cost: number | null
  now: number
}

/** An account deleted while it served owns nothing, because no request could return to it. */
const getOwnerRows = ({ affinity, pool }: SettleDeps, turn: Turn, { meter, accountId, cost, now }: Served) => {
  if (turn.relay !== null || meter === null || accountId === null || !pool.get(accountId)) return []
  const { usage, ciphertexts } = meter
  const use = usage && {
    units: requestUnits({ ...usage, costMicros: cost }),
    moveUnits: uncachedUnits(usage, turn),
    cachedTokens: Math.min(usage.inputTokens, usage.cachedInputTokens),
  }
  return rememberOwners(affinity, turn, { accountId, ciphertexts, now, use })
}

const getEnd = ({ status, httpStatus, error }: Outcome): CapturedEnd => ({
  status,
  httpStatus,
  errorCode: error && (error.extra.upstream?.code ?? error.code),
  errorMessage: error?.message ?? null,
})

/** A failing model source says nothing about ChatGPT. */
const isServiceFault = ({ log }: Turn, { error }: Outcome): boolean =>
  log.source === null && error !== null && (error.status >= 500 || error.code === 'upstream_error')

/** `use` null: no limit is charged. */
const getCharge = (
  turn: Turn,
  outcome: Outcome,
): { usage: TokenUsage | null; cost: number | null; use: Use | null } => {
  const { model, serviceTier, log } = turn
  const usage = chargeable(turn, outcome)
  const audioSeconds = outcome.meter?.audioSeconds ?? null
  const cost = log.source
    ? sourceCostMicros(log.source.model, { usage, audioSeconds })
    : // The tier that was sent: responses do not reliably name the one that served.
      getCost(model, { usage, serviceTier, audioSeconds })
  if (usage) return { usage, cost, use: { ...usage, costMicros: cost } }
  return { usage, cost, use: reachedUpstream(turn, outcome) ? { ...NO_TOKENS, costMicros: cost ?? 0 } : null }
}

const getCost = (
  model: string | null,
  {
    usage,
    serviceTier,
    audioSeconds,
  }: { usage: TokenUsage | null; serviceTier: string | null; audioSeconds: number | null },
): number | null => {
  if (model === null) return null
  if (usage) return costMicros(usage, model, serviceTier)
  return audioSeconds === null ? null : audioCostMicros(audioSeconds, model)
}

/**
 * What the turn is charged: the usage the upstream reported or, for a turn cut off while the upstream worked on it, the
 * reserved input and the output seen (decisions §3 "Cancelled turns", "Accounting"). Free: rejected, unsent and prewarm
 * turns.
 */
const chargeable = (turn: Turn, outcome: Outcome): TokenUsage | null => {
  const { meter } = outcome
  if (meter?.usage) return meter.usage
  if (turn.kind === 'prewarm' || turn.relay !== null || !wasWorkedOn(turn, outcome)) return null
  // It does not report any. The budget of overflow needs an amount, also after a restart.
  if (turn.log.source?.isOverflow === false && outcome.status === 'ok') return null
  return {
    inputTokens: turn.estimate.inputTokens,
    cachedInputTokens: 0,
    outputTokens: meter?.deltas ?? 0,
    reasoningTokens: 0,
  }
}

/** It was answered, or the client left while the upstream or a source worked on it or between two polls of a file. */
const wasWorkedOn = ({ log: { isSent, attempts, source } }: Turn, { meter, status }: Outcome): boolean => {
  if (meter !== null) return true
  return status === 'cancelled' && isSent && (source !== null || CHARGED_OUTCOMES.has(attempts.at(-1)?.outcome))
}

const CHARGED_OUTCOMES: ReadonlySet<AttemptRecord['outcome'] | undefined> = new Set(['ok', 'cancelled'])

/** A request that is relayed or served by a model source counts as one, whether or not the upstream reports its tokens. */
const reachedUpstream = (turn: Turn, outcome: Outcome): boolean =>
  (turn.relay !== null || turn.log.source !== null) && wasWorkedOn(turn, outcome)

const NO_TOKENS: Use = Object.freeze({ inputTokens: 0, outputTokens: 0, costMicros: 0 })
