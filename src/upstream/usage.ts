/** Fetches how much of its allowance an account has used, and classifies failures. */
import { AppError } from '../errors.ts'
import { PERMANENT_AUTH_CODES } from '../model/accounts/account-state.ts'
import { fromWhamUsage } from '../model/accounts/usage-reports.ts'
import type { UsageSnapshot } from '../model/accounts/usage-windows.ts'
import { type AccountCallDeps, callAsAccount, UpstreamRejection } from './account-call.ts'

const TIMEOUT_MS = 10_000
const RETRIES = 2

/** `GET /wham/usage`, at most three tries of 10 s. Throws what `ask` throws, and `upstream_error` for an empty report. */
export const fetchUsage = async (
  deps: AccountCallDeps,
  accountId: string,
  signal?: AbortSignal,
): Promise<UsageSnapshot> => {
  const report = await callAsAccount(deps, accountId, {
    path: '/wham/usage',
    timeoutMs: TIMEOUT_MS,
    retries: RETRIES,
    signal,
  })
  const snapshot = fromWhamUsage(report, deps.clock.now())
  if (!snapshot) throw new AppError('upstream_error', { message: 'The usage report from ChatGPT is empty.' })
  return snapshot
}

/** What a failed usage request means: permanent, hold for five minutes, or nothing. */
type UsageVerdict = { kind: 'auth_failed'; code: string; evidence: string } | { kind: 'hold' } | { kind: 'passing' }

/**
 * Classifies an error of `fetchUsage`. Only a permanent identity service code or the message that the account was
 * deactivated ends an account. Any other 402 or 404 may come from a wrong SLUICE_UPSTREAM_BASE_URL, which would
 * answer the same for every account (decisions §3, Side questions).
 */
export const judgeUsageFailure = (err: unknown): UsageVerdict => {
  if (!(err instanceof UpstreamRejection)) return { kind: 'passing' }
  const { status, code, reason, message: evidence } = err
  if (status < 500 && code !== null && Object.hasOwn(PERMANENT_AUTH_CODES, code))
    return { kind: 'auth_failed', code, evidence }
  if (DEACTIVATED_STATUSES.includes(status) && DEACTIVATED.test(reason ?? ''))
    return { kind: 'auth_failed', code: 'account_deactivated', evidence }
  return HELD_STATUSES.includes(status) ? { kind: 'hold' } : { kind: 'passing' }
}

/** The upstream's message for a closed account, and the statuses it was seen with. */
const DEACTIVATED = /has been deactivated/i
const DEACTIVATED_STATUSES: readonly number[] = [401, 402, 403]
const HELD_STATUSES: readonly number[] = [401, 402, 403, 404]
