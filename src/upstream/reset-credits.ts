/** Lists and redeems the reset credits of an account. */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { ResetCredit } from '../model/accounts/reset-credits.ts'
import { type AccountCallDeps, callAsAccount, UpstreamRejection } from './account-call.ts'

const TIMEOUT_MS = 10_000

/**
 * `GET /wham/rate-limit-reset-credits`, one try of at most 10 s; unreadable credits are left out. Throws what `ask`
 * throws, and `upstream_error` for an answer without a list.
 */
export const fetchResetCredits = async (
  deps: AccountCallDeps,
  accountId: string,
  signal?: AbortSignal,
): Promise<ResetCredit[]> => {
  const question = { path: '/wham/rate-limit-reset-credits', timeoutMs: TIMEOUT_MS, signal }
  const { data } = CreditsReport.safeParse(await callAsAccount(withoutRenewal(deps), accountId, question))
  if (!data) throw new AppError('upstream_error', { message: 'ChatGPT sent no list of reset credits.' })
  return data.credits.filter((credit) => credit !== null)
}

/** Only `reset` changes anything. */
const REDEEM_CODES = ['reset', 'nothing_to_reset', 'no_credit', 'already_redeemed'] as const
type RedeemCode = (typeof REDEEM_CODES)[number]

export interface Redeemed {
  code: RedeemCode
  windowsReset: number
  /** ms since epoch */
  redeemedAt: number | null
}

/**
 * `POST /wham/rate-limit-reset-credits/consume`, one try of at most 10 s; repeating the same `requestId` redeems once.
 * Throws what `ask` throws, and `upstream_error` for an answer without a result.
 */
export const redeemResetCredit = async (
  deps: AccountCallDeps,
  accountId: string,
  { creditId, requestId }: { creditId: string; requestId: string },
): Promise<Redeemed> => {
  const json = { credit_id: creditId, redeem_request_id: requestId }
  const question = { path: '/wham/rate-limit-reset-credits/consume', timeoutMs: TIMEOUT_MS, json }
  const { data } = RedeemReport.safeParse(await callAsAccount(deps, accountId, question))
  if (!data) throw new AppError('upstream_error', { message: 'ChatGPT did not say whether the reset credit was used.' })
  return { code: data.code, windowsReset: data.windows_reset, redeemedAt: data.credit?.redeemed_at ?? null }
}

/** A 401 here does not refresh: polled every minute, it would spend one refresh token after another. */
const withoutRenewal = (deps: AccountCallDeps): AccountCallDeps => ({
  ...deps,
  credentials: {
    fresh: (id) => deps.credentials.fresh(id),
    refresh: () => Promise.reject(new UpstreamRejection(401, null, null)),
  },
})

/** ISO 8601 on the wire (client-protocol §8); anything else is unknown. */
const Time = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number())
  .nullish()
  .transform((ms) => ms ?? null)
  .catch(null)

const Words = z.string().nullish().catch(null)

const Credit = z
  .object({
    id: z.string().min(1),
    status: z.string(),
    expires_at: Time,
    reset_type: Words,
    title: Words,
    description: Words,
    granted_at: Time,
    redeem_started_at: Time,
    redeemed_at: Time,
  })
  .transform(
    (credit): ResetCredit => ({
      id: credit.id,
      status: credit.status,
      expiresAt: credit.expires_at,
      resetType: credit.reset_type ?? null,
      title: credit.title ?? null,
      description: credit.description ?? null,
      grantedAt: credit.granted_at,
      redeemStartedAt: credit.redeem_started_at,
      redeemedAt: credit.redeemed_at,
    }),
  )

const CreditsReport = z.object({ credits: z.array(Credit.nullable().catch(null)) })

const RedeemReport = z.object({
  code: z.enum(REDEEM_CODES),
  windows_reset: z.number().int().min(0).catch(0),
  credit: z.object({ redeemed_at: Time }).nullish().catch(null),
})
