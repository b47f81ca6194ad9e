/** Charges an account for an upstream failure. */
import type { Clock } from '../../lib/clock.ts'
import type { Penalty, UpstreamFailure } from '../exchange/classify.ts'
import type { Pool } from '../pool/pool.ts'
import type { Surface } from '../pool/selection-needs.ts'

const EVIDENCE_CHARS = 300

export const penalise = (
  { pool, clock }: { pool: Pool; clock: Clock },
  accountId: string,
  { failure, penalty, model, surface }: Charge,
): void => {
  if (!penalty || !isCharged(surface, penalty)) return
  const at = clock.now()
  const evidence = getEvidence(failure)
  if (penalty.kind === 'connection') pool.health(accountId, { kind: 'unserved', at, lostConnection: evidence })
  else if (penalty.kind === 'transient') {
    pool.health(accountId, { kind: 'error', at, evidence })
    pool.health(accountId, { kind: 'unserved', at, lostConnection: null })
  } else if (penalty.kind === 'route_missing') pool.rejectRoute(accountId, surface)
  else if (penalty.kind === 'model_unsupported') {
    if (model !== null) pool.rejectModel(accountId, model)
  } else if (penalty.kind === 'auth_failed')
    pool.apply(accountId, { kind: 'auth_failed', at, code: penalty.code, evidence })
  else {
    const { resetsAt: resetAt, retryAfterMs } = failure
    const refusal = { at, evidence, resetAt, retryAfterMs, cause: getCause(failure) }
    if (penalty.kind !== 'model_limited') pool.apply(accountId, { kind: penalty.kind, ...refusal })
    else if (model !== null) pool.limitModel(accountId, model, { kind: 'rate_limited', ...refusal })
  }
}

interface Charge {
  failure: UpstreamFailure
  penalty: Penalty | null
  model: string | null
  surface: Surface
}

/**
 * A relayed route that fails says nothing about how the account serves turns, so its failures do not count against the
 * account's health. Images, audio and warm-ups use the account's allowance; the other surfaces do not.
 */
const isCharged = (surface: Surface, { kind }: Penalty): boolean => {
  if (surface === 'turn' || kind === 'auth_failed' || kind === 'route_missing') return true
  return (
    (surface === 'image' || surface === 'audio' || surface === 'ping') && kind !== 'transient' && kind !== 'connection'
  )
}

/** Status, code and message of the upstream. */
export const getEvidence = (failure: UpstreamFailure): string => {
  const cause = getCause(failure)
  return `${failure.status ?? failure.where}${cause ? ` ${cause}` : ''}: ${failure.message}`.slice(0, EVIDENCE_CHARS)
}

/** The upstream's message within `getEvidence` text for a failure with this cause; null when it has none. */
export const getUpstreamMessage = (evidence: string | null, cause: string | null): string | null => {
  const mark = ` ${cause}: `
  const at = evidence?.indexOf(mark) ?? -1
  return evidence !== null && at > 0 ? evidence.slice(at + mark.length) || null : null
}

const getCause = ({ code, type }: UpstreamFailure): string | null => code ?? type
