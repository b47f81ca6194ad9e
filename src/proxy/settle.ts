/** The one end of every turn: limits charged, owners remembered, one record to the ledger. Runs exactly once. */
import type { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { costMicros } from '../model/pricing.ts'
import type { Use } from '../model/reservations.ts'
import type { AffinityMap } from './affinity.ts'
import { rememberOwners } from './continuity.ts'
import type { Ledger } from './ledger.ts'
import type { Meter, TokenUsage } from './meter.ts'
import { ClientGone, elapsedMs, releaseBody, type Turn } from './turn.ts'

export interface SettleDeps {
  clock: Clock
  affinity: AffinityMap
  ledger: Ledger
}

export interface Outcome {
  status: 'ok' | 'error' | 'cancelled'
  httpStatus: number
  error: AppError | null
  /** Null when no stream was ever committed. */
  meter: Meter | null
}

/** The outcome of a turn that failed before its commit point. */
export const failedOutcome = (turn: Turn, err: unknown, error: AppError): Outcome =>
  err instanceof ClientGone || turn.signal.reason instanceof ClientGone
    ? { status: 'cancelled', httpStatus: 499, error: null, meter: null }
    : { status: 'error', httpStatus: error.status, error, meter: null }

export const settle = ({ clock, affinity, ledger }: SettleDeps, turn: Turn, outcome: Outcome): void => {
  if (turn.log.isSettled) return
  turn.log.isSettled = true
  releaseBody(turn)
  const { log } = turn
  const now = clock.now()
  const { meter } = outcome
  const usage = chargeable(turn, outcome)
  const serviceTier = meter?.serviceTier ?? turn.serviceTier
  const cost = usage && turn.model !== null ? costMicros(usage, turn.model, serviceTier) : null
  const use: Use | null = usage && { ...usage, costMicros: cost }
  const hasServed = outcome.status === 'ok' && log.accountId !== null && meter !== null
  if (outcome.status === 'ok') log.phase = 'finish'
  ledger.record({
    row: {
      id: turn.id,
      requestId: turn.requestId,
      startedAt: turn.startedAt,
      route: turn.route,
      kind: turn.kind,
      transport: 'http',
      upstreamTransport: log.attempts.length > 0 ? 'http' : null,
      keyId: turn.client.key?.id ?? null,
      accountId: log.accountId,
      model: turn.model,
      reasoningEffort: turn.reasoningEffort,
      serviceTier,
      responseId: meter?.responseId ?? null,
      conversationHash: turn.conversation,
      moved: log.moved,
      status: outcome.status,
      httpStatus: outcome.httpStatus,
      phase: outcome.status === 'ok' ? null : log.phase,
      errorCode: outcome.error ? (outcome.error.extra.upstream?.code ?? outcome.error.code) : null,
      errorMessage: outcome.error?.message ?? null,
      inputTokens: usage?.inputTokens ?? null,
      cachedInputTokens: usage?.cachedInputTokens ?? null,
      outputTokens: usage?.outputTokens ?? null,
      reasoningTokens: usage?.reasoningTokens ?? null,
      costMicros: cost,
      clientIp: turn.client.ip,
      userAgent: turn.userAgent,
      attempts: log.attempts.length,
      admitMs: log.admitMs,
      selectMs: log.selectMs,
      connectMs: log.connectMs,
      firstEventMs: log.firstEventMs,
      totalMs: elapsedMs(turn.arrivedAt, clock.monotonic()),
    },
    attempts: log.attempts,
    limitDeltas: turn.reservation.settle(use),
    affinity: hasServed
      ? rememberOwners(affinity, turn, { accountId: log.accountId!, ciphertexts: meter.ciphertexts, now }) // hasServed says so
      : [],
  })
}

/**
 * What the turn is charged with: the usage the upstream stated, or, for one that was committed and broke off, what was
 * reserved for input and what was seen of output (decisions §3 "Cancelled turns"). Nothing when nothing was committed.
 */
const chargeable = (turn: Turn, { meter, status }: Outcome): TokenUsage | null => {
  if (meter?.usage) return meter.usage
  if (!meter || status === 'ok') return null
  return {
    inputTokens: turn.estimate.inputTokens,
    cachedInputTokens: 0,
    outputTokens: meter.deltas,
    reasoningTokens: 0,
  }
}
