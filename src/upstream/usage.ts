/** Asks how much of its allowance an account has used, and reads from a refusal what it says about the account. */
import { AppError } from '../errors.ts'
import { PERMANENT_AUTH_CODES } from '../model/account-state.ts'
import { fromWhamUsage } from '../model/usage-reports.ts'
import type { UsageSnapshot } from '../model/usage-windows.ts'
import { type AskDeps, ask, UpstreamRefusal } from './ask.ts'

const TIMEOUT_MS = 10_000
const RETRIES = 2

/** `GET /wham/usage`, at most 10 s a try and three tries. Throws what `ask` throws, and `upstream_error` for an empty report. */
export const fetchUsage = async (deps: AskDeps, accountId: string, signal?: AbortSignal): Promise<UsageSnapshot> => {
  const report = await ask(deps, accountId, { path: '/wham/usage', timeoutMs: TIMEOUT_MS, retries: RETRIES, signal })
  const snapshot = fromWhamUsage(report, deps.clock.now())
  if (!snapshot) throw new AppError('upstream_error', { message: 'The usage report of the upstream says nothing.' })
  return snapshot
}

/** What a failed question about usage means: for good, for five minutes, or nothing. */
type UsageVerdict = { kind: 'auth_failed'; code: string; evidence: string } | { kind: 'hold' } | { kind: 'passing' }

/**
 * Reads the error of `fetchUsage` (domain logic §1.3). A bare 404 is no verdict on an account: a wrong
 * CODEX_LB_UPSTREAM_BASE_URL answers it for every one of them.
 */
export const judgeUsageFailure = (err: unknown): UsageVerdict => {
  if (!(err instanceof UpstreamRefusal)) return { kind: 'passing' }
  const { status, code, reason, message: evidence } = err
  if (code !== null && Object.hasOwn(PERMANENT_AUTH_CODES, code)) return { kind: 'auth_failed', code, evidence }
  if (DEACTIVATED.test(reason ?? '') || status === 402 || (status === 404 && code !== null))
    return { kind: 'auth_failed', code: 'account_deactivated', evidence }
  return status === 401 || status === 403 || status === 404 ? { kind: 'hold' } : { kind: 'passing' }
}

const DEACTIVATED = /account has been deactivated/i
