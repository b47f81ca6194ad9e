/** One attempt at a secret: charged to the client's budget before checking, and recorded when wrong. */
import { commit } from '../../db/commit.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError, type Code } from '../errors.ts'
import { append } from '../model/audit/audit.ts'
import { budgetClient } from './failure-budget.ts'
import { getActor, type Principal } from './principal.ts'

/** Errors that mean the secret was wrong. All others refund the attempt. */
const WRONG: readonly Code[] = [
  'invalid_credentials',
  'invalid_totp_code',
  'invalid_bootstrap_token',
  'invalid_passkey',
  'invalid_key',
]

interface Attempt {
  /** The 429 of this route. */
  limited: Code
  /** What was attempted, for the audit log: `password`, `totp`, `step_up` … */
  method: string
  /** The user whose secret it is; null when unknown. */
  target: string | null
}

/**
 * Runs `check`, which throws when the secret was wrong. Of many parallel attempts, only as many run as the budget
 * allows (spec §8). Throws `limited`, and what `check` does.
 */
export const attempt = async <T>(c: Ctx, tried: Attempt, check: () => T | Promise<T>): Promise<T> => {
  const giveBack = await c.env.failures.take(budgetClient(c), tried.limited)
  try {
    const value = await check()
    await giveBack()
    return value
  } catch (err) {
    if (err instanceof AppError && WRONG.includes(err.code)) await recordFailure(c, tried, err.code)
    else await giveBack()
    throw err
  }
}

/**
 * Never records the input: users type passwords into name fields. The actor is anonymous unless signed in, because the
 * owner of the secret need not be the one typing.
 */
const recordFailure = async (c: Ctx, { method, target }: Attempt, reason: Code): Promise<void> => {
  const principal = c.get('principal') as Principal | undefined // as: someone signing in has passed no gate
  const actor =
    principal?.kind === 'account'
      ? { ...getActor(principal, c), method }
      : { id: 'anonymous', method, address: c.var.clientIp, at: c.env.clock.now() }
  await commit(c.env.db, (tx) => append(tx, actor, 'login_failed', { target, details: { method, reason } }))
}
