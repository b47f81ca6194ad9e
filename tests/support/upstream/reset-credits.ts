/** Redeeming a reset credit at the stand-in upstream: each works once, and a repeated request is one redemption. */
import type { Account } from './accounts.ts'
import { apiError } from './refusal.ts'
import { isJson } from './script.ts'

/** account → request id → the credit it redeemed. */
const redeemed = new WeakMap<Account, Map<string, string>>()

/**
 * The body of `POST /wham/rate-limit-reset-credits/consume`; a redeemed credit sets every window of the account to
 * unused. Rejects a body of another format with 400.
 * The body of `POST /wham/rate-limit-reset-credits/consume`; a redeemed credit sets every window of the account back to
 * nothing used. Refuses a body of another shape with 400.
 */
export function consumeResetCredit(account: Account, body: unknown, now: number): Record<string, unknown> {
  const { creditId, requestId } = read(body)
  const credit = account.resetCredits.find(({ id }) => id === creditId)
  const requests = redeemed.get(account) ?? new Map<string, string>()
  redeemed.set(account, requests)
  if (requests.get(requestId) === creditId) return answer('already_redeemed', 0, creditId, credit?.redeemedAt ?? null)
  const isGood = credit && (credit.status ?? 'available') === 'available' && (credit.expiresAt ?? Infinity) > now
  if (!isGood) return answer('no_credit', 0, creditId, null)
  const windows = [account.usage?.primary, account.usage?.secondary].filter((window) => window !== undefined)
  const used = windows.filter(({ usedPercent }) => usedPercent > 0)
  if (account.usage && used.length === 0) return answer('nothing_to_reset', 0, creditId, null)
  requests.set(requestId, creditId)
  account.setResetCredits(
    account.resetCredits.map((one) => (one === credit ? { ...one, status: 'redeemed', redeemedAt: now } : one)),
  )
  for (const window of used) window.usedPercent = 0
  return answer('reset', used.length, creditId, now)
}

function read(body: unknown): { creditId: string; requestId: string } {
  const { credit_id: creditId, redeem_request_id: requestId } = isJson(body) ? body : {}
  if (typeof creditId !== 'string' || typeof requestId !== 'string' || requestId.trim() === '')
    throw apiError(400, 'invalid_value', 'credit_id and redeem_request_id are required.')
  return { creditId, requestId }
}

function answer(code: string, windowsReset: number, id: string, redeemedAt: number | null): Record<string, unknown> {
  const at = redeemedAt === null ? null : new Date(redeemedAt).toISOString()
  return { code, windows_reset: windowsReset, credit: { id, status: at === null ? null : 'redeemed', redeemed_at: at } }
}
