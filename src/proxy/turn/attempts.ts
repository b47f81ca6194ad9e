/**
 * The one retry loop: until the commit point a failure may go to another account, afterwards nothing is retried
 * (decisions §3 "Commit point", "Attempts").
 */
import { AppError } from '../../errors.ts'
import { untilAborted } from '../../lib/until-aborted.ts'
import { isFailing } from '../../model/accounts/account-health.ts'
import { usesPaidCredits } from '../../model/accounts/usage-windows.ts'
import { FAILURE_COOLDOWN_MS, passingFailure } from '../../upstream/credentials.ts'
import { isFrameTooLarge, mayWorkOverHttp } from '../exchange/transport.ts'
import type { Lease } from '../pool/live-account.ts'
import { isMove } from '../pool/preference.ts'
import {
  exhaustedError,
  logNoAccount,
  logUpstreamFailing,
  preferredError,
  withShorterWait,
} from './accounts-exhausted.ts'
import { AttemptFailed, attemptOn, type Exchange, openAndRead } from './attempt-one.ts'
import { getNeeds, recordedOwner } from './continuity.ts'
import type { Flow } from './flow.ts'
import { getEvidence, penalise } from './penalties.ts'
import {
  excludeAccount,
  hasAttemptsLeft,
  MAX_ACCOUNTS,
  MAX_SAME_ACCOUNT_RETRIES,
  newProgress,
  onSameAccount,
  type Progress,
  retryWithoutReasoning,
  waitBeforeRetry,
} from './progress.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { elapsedMs, type Turn } from './turn.ts'

/** Runs the turn up to its commit point. Throws the `AppError` for the client, or the turn's abort reason. */
export const attempt = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  progress = newProgress(proxyDeps, turn),
): Promise<Flow> => {
  try {
    return await attemptWith(proxyDeps, turn, { progress, exchange: openAndRead })
  } catch (err) {
    const flow = await proxyDeps.overflow.serve(proxyDeps, turn, err)
    if (flow) return flow
    throw err
  }
}

/** The same for any exchange with the upstream. */
export const attemptWith = async <Committed>(
  proxyDeps: ProxyDeps,
  turn: Turn,
  { progress, exchange }: { progress: Progress; exchange: Exchange<Committed> },
): Promise<Committed> => {
  for (;;) {
    const lease = await leaseFor(proxyDeps, turn, progress)
    try {
      const committed = await attemptOn(proxyDeps, turn, { lease, progress, exchange })
      chargeRejections(proxyDeps, progress, lease.account.id)
      return committed
    } catch (err) {
      lease.release()
      if (!(err instanceof AttemptFailed)) throw err
      await prepareNext(proxyDeps, turn, { err, id: lease.account.id, progress })
    }
  }
}

/** Another account served this request, so the earlier rejections were about those accounts, not the request. */
const chargeRejections = ({ pool, clock }: ProxyDeps, { rejectedBy }: Progress, servedBy: string): void => {
  const at = clock.now()
  for (const [id, evidence] of rejectedBy) if (id !== servedBy) pool.health(id, { kind: 'error', at, evidence })
}

/**
 * Leases the next account. With none left, throws the last failure or the pool's own error, whichever helps the client
 * more.
 */
const leaseFor = async (proxyDeps: ProxyDeps, turn: Turn, progress: Progress): Promise<Lease> => {
  const { tried, next, last } = progress
  const free = getNeeds(proxyDeps, turn, tried)
  const needs = next ? { ...free, owner: next } : free
  const began = proxyDeps.clock.monotonic()
  progress.isUpstreamFailing ??= proxyDeps.pool.isUpstreamFailing(needs)
  try {
    const lease = await proxyDeps.pool.lease(needs, turn.signal)
    const { id, health } = lease.account
    const isFirstHere = !turn.log.attempts.some(({ accountId }) => accountId === id)
    const isStillFailing = isFailing(health, proxyDeps.clock.now())
    if (isFirstHere && (health.errors > 0 || isStillFailing)) progress.wereFailing.add(id)
    if (isFirstHere && isStillFailing) progress.stillFailing.add(id)
    turn.log.accountId = lease.account.id
    turn.log.paidCredits = usesPaidCredits(lease.account.usage, proxyDeps.clock.now())
    turn.log.moved = isMove(free.owner, lease.account.id)
    turn.log.moveAvoidable = turn.log.moved && lease.moveAvoidable
    turn.log.cachedTokens = turn.log.moved ? (free.owner?.lastUse?.cachedTokens ?? 0) : 0
    turn.log.selectMs ??= elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
    return lease
  } catch (err) {
    if (!(err instanceof AppError) || turn.signal.aborted) throw err
    if (next && excludeAccount(progress, next.id)) return leaseFor(proxyDeps, turn, progress)
    if (retryWithoutReasoning(progress)) return leaseFor(proxyDeps, turn, progress)
    logNoAccount(proxyDeps, turn, { needs, err, began })
    if (turn.chain !== null && err.code !== 'no_security_work_authorized_accounts') throw chainLost(err)
    // a fixed account was required
    throw next === null ? preferredError(last, err) : exhaustedError(proxyDeps, turn, { error: last ?? err, last })
  }
}

/**
 * A turn with `previous_response_id` is tied to one connection. This error makes the client send the whole
 * conversation, which any account can serve (Codex CLI 0.169).
 */
const chainLost = (cause: AppError): AppError => new AppError('previous_response_not_found', { cause })

interface Step {
  err: AttemptFailed
  id: string
  progress: Progress
}

/** Charges the account and prepares the next attempt, or throws the error for the client. */
const prepareNext = async (proxyDeps: ProxyDeps, turn: Turn, step: Step): Promise<void> => {
  const { err, id, progress } = step
  if (await isRetriedForItsSocket(proxyDeps, turn, step)) return
  const { verdict, penalty, error } = err.classified
  penalise(proxyDeps, id, {
    failure: err.failure,
    penalty: wasCutShort(proxyDeps, step) ? null : penalty,
    model: turn.model,
    surface: turn.surface,
  })
  progress.waits.set(id, error.extra.retryAfterSeconds ?? Number.POSITIVE_INFINITY)
  if (error.code !== 'usage_limit_reached') progress.last = withShorterWait(error, Math.min(...progress.waits.values()))
  if (verdict === 'refused' && turn.surface === 'turn') recordRejection(proxyDeps, step)
  if (verdict === 'same_account' || verdict === 'slow_account') progress.slow.add(id)
  // the next attempt needs a new connection
  if (verdict !== 'give_up' && verdict !== 'encrypted_owner') turn.session?.drop()
  if (verdict !== 'give_up' && turn.chain !== null) {
    if (verdict === 'refresh') await untilAborted(renew(proxyDeps, turn, step), turn.signal)
    throw chainLost(error)
  }
  if (
    verdict === 'give_up' ||
    proxyDeps.clock.monotonic() >= progress.deadline ||
    wouldFailEverywhere(proxyDeps, turn, step)
  )
    throw error
  if (!mayBeSentAgain(turn, err)) throw error
  if (verdict === 'encrypted_owner') refreshReasoningOwners(proxyDeps, turn, step)
  else if (verdict === 'refresh' && (await untilAborted(renew(proxyDeps, turn, step), turn.signal)))
    progress.next = onSameAccount(id)
  else if (shouldRetryAccount(proxyDeps, turn, step)) {
    await waitBeforeRetry(proxyDeps, turn, progress)
    progress.next = onSameAccount(id)
  } else if (!excludeAccount(progress, id) && !retryWithoutReasoning(progress))
    throw exhaustedError(proxyDeps, turn, { error, last: progress.last })
}

/** A relayed request may have taken effect upstream, and then only one that changes nothing may be sent again. */
const mayBeSentAgain = ({ relay, log }: Turn, { failure }: AttemptFailed): boolean => {
  if (relay === null || relay.retry === 'idempotent') return true
  if (relay.retry === 'never') return false
  const { where, status, code } = failure
  const wasRejected = where === 'status' && status !== null && status >= 400 && status < 500 && status !== 408
  return !log.isSent || where === 'connect' || code === 'upstream_unreachable' || wasRejected
}

/**
 * Retries a failed socket once, then uses HTTP on the same account, which is charged only if HTTP fails too. A frame
 * that was too large goes by HTTP immediately.
 */
const isRetriedForItsSocket = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { err, id, progress }: Step,
): Promise<boolean> => {
  const { failure } = err
  if (turn.chain !== null || progress.byHttp.has(id) || !mayWorkOverHttp(proxyDeps, turn, failure)) return false
  if (proxyDeps.clock.monotonic() >= progress.deadline) return false
  turn.session?.drop()
  const isTooLarge = isFrameTooLarge(failure)
  if (isTooLarge || progress.sameAccountRetries >= MAX_SAME_ACCOUNT_RETRIES - 1) progress.byHttp.add(id)
  if (!isTooLarge) await waitBeforeRetry(proxyDeps, turn, progress)
  progress.next = onSameAccount(id)
  return true
}

/** Counts against the account only if another one serves this turn. */
const recordRejection = ({ pool, clock }: ProxyDeps, { err, id, progress }: Step): void => {
  progress.rejectedBy.set(id, getEvidence(err.failure))
  pool.health(id, { kind: 'unserved', at: clock.now(), lostConnection: null })
}

/** Whether another account would fail the same way: overloaded model, unlisted model, or upstream down. */
const wouldFailEverywhere = (proxyDeps: ProxyDeps, turn: Turn, { err, id, progress }: Step): boolean => {
  const { verdict, penalty } = err.classified
  if (verdict === 'overloaded') return recordOverload(proxyDeps, turn, progress)
  if (verdict === 'blocked') return isBlockedAgain(progress)
  if (penalty?.kind === 'model_unsupported') return turn.surface === 'turn' && proxyDeps.pool.isUnlisted(turn.model)
  const isFault = verdict === 'refused' || progress.slow.has(id)
  if (!progress.isUpstreamFailing || !progress.stillFailing.has(id)) return false
  if (!isFault || progress.unread !== null) return false
  logUpstreamFailing(proxyDeps, turn, progress.tried)
  return true
}

const isBlockedAgain = (progress: Progress): boolean => {
  const isSecond = progress.isBlocked
  progress.isBlocked = true
  return isSecond
}

/** True when two accounts have reported it, for this request or for a recent one. */
const recordOverload = ({ pool }: ProxyDeps, { model }: Turn, progress: Progress): boolean => {
  const isSecond = progress.isOverloaded || pool.isOverloaded(model)
  if (isSecond && model !== null) pool.noteOverload(model)
  progress.isOverloaded = true
  return isSecond
}

/** Earlier accounts used up the time, so a timeout in the remainder says nothing about this account. */
const wasCutShort = ({ clock }: ProxyDeps, { err, progress }: Step): boolean =>
  err.classified.verdict === 'slow_account' && progress.tried.size > 0 && clock.monotonic() >= progress.deadline

/** Whether to retry the same account; a slow one only when no other is available. */
const shouldRetryAccount = (proxyDeps: ProxyDeps, turn: Turn, { err, id, progress }: Step): boolean => {
  const { verdict } = err.classified
  if (progress.isUpstreamFailing || progress.sameAccountRetries >= MAX_SAME_ACCOUNT_RETRIES) return false
  if (progress.wereFailing.has(id)) return false
  if ((proxyDeps.pool.get(id)?.health.backoffUntil ?? 0) > proxyDeps.clock.now()) return false
  if (verdict !== 'slow_account') return verdict === 'same_account'
  const tried = new Set([...progress.tried, id])
  return (
    hasAttemptsLeft({ ...progress, tried }) &&
    proxyDeps.pool.explain(getNeeds(proxyDeps, turn, tried)).kind !== 'chosen'
  )
}

/**
 * One forced refresh per account and turn. A model request whose token is rejected right after it means the account needs
 * sign-in; a relayed route may reject the tokens of every account, which says nothing about them.
 */
const renew = async (
  { pool, credentials, clock }: ProxyDeps,
  { surface }: Turn,
  { err, id, progress }: Step,
): Promise<boolean> => {
  if (progress.refreshed.has(id)) {
    const evidence = 'rejected right after its token was refreshed'
    const isModelRequest = surface === 'turn' || surface === 'ping'
    if (isModelRequest)
      pool.apply(id, { kind: 'auth_failed', at: clock.now(), code: 'account_auth_invalidated', evidence })
    return false
  }
  progress.refreshed.add(id)
  if (err.accessToken === null) return false
  return credentials.refresh(id, err.accessToken).then(
    () => true,
    (cause: unknown) => {
      const failure = passingFailure(cause) // other failures were charged where they happened
      if (!failure) return false
      const evidence = `Its token was rejected and could not be refreshed: ${failure.message}`
      pool.health(id, { kind: 'error', at: clock.now(), evidence, lacksToken: true })
      progress.slow.add(id)
      const retryAfterSeconds = FAILURE_COOLDOWN_MS / 1000
      progress.last = new AppError('upstream_auth_failed', { message: NOT_RENEWED, cause, retryAfterSeconds })
      return false
    },
  )
}

const NOT_RENEWED = 'The token of the account was rejected and could not be refreshed yet.'

/**
 * Tries the account that produced the ciphertext, otherwise retries once without any reasoning (decisions §3 "Encrypted
 * content").
 */
const refreshReasoningOwners = (proxyDeps: ProxyDeps, turn: Turn, { err, id, progress }: Step): void => {
  const owner = recordedOwner(proxyDeps, turn)
  const isLastAccount = progress.tried.size + 1 >= MAX_ACCOUNTS
  const mayMove = turn.fileOwner === null && !isLastAccount
  if (owner !== null && owner !== id && !progress.tried.has(owner) && mayMove) {
    progress.tried.add(id)
    progress.next = { id: owner, hard: true }
    if (!turn.isAnchored) progress.unread = id
  } else if (!progress.dropReasoning && !turn.isAnchored) {
    progress.dropReasoning = true
    progress.next = onSameAccount(id)
    proxyDeps.log.info('left out reasoning that the account cannot read', { request: turn.requestId, account: id })
  } else throw err.classified.error
}
