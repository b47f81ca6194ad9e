/** Asks which reset credits an account has. */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { ResetCredit } from '../model/reset-credits.ts'
import { type AskDeps, ask, UpstreamRefusal } from './ask.ts'

const TIMEOUT_MS = 10_000

/**
 * `GET /wham/rate-limit-reset-credits`, one try of at most 10 s; a credit that cannot be read is left out. Throws what
 * `ask` throws, and `upstream_error` for an answer without a list.
 */
export const fetchResetCredits = async (
  deps: AskDeps,
  accountId: string,
  signal?: AbortSignal,
): Promise<ResetCredit[]> => {
  const question = { path: '/wham/rate-limit-reset-credits', timeoutMs: TIMEOUT_MS, signal }
  const { data } = CreditsReport.safeParse(await ask(withoutRenewal(deps), accountId, question))
  if (!data) throw new AppError('upstream_error', { message: 'The upstream did not list the reset credits.' })
  return data.credits.filter((credit) => credit !== null)
}

/** A 401 here renews nothing: asked every minute, it would spend one refresh token after the other. */
const withoutRenewal = (deps: AskDeps): AskDeps => ({
  ...deps,
  credentials: {
    fresh: (id) => deps.credentials.fresh(id),
    refresh: () => Promise.reject(new UpstreamRefusal(401, null, null)),
  },
})

/** ISO 8601 on the wire (client-protocol §8); what is not a time is unknown. */
const Time = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number())
  .nullish()
  .transform((ms) => ms ?? null)
  .catch(null)

const Credit = z
  .object({ id: z.string().min(1), status: z.string(), expires_at: Time })
  .transform(({ id, status, expires_at }): ResetCredit => ({ id, status, expiresAt: expires_at }))

const CreditsReport = z.object({ credits: z.array(Credit.nullable().catch(null)) })
