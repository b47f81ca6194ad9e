/** One try at a secret: taken from the client's budget before anything is looked at, and written down when it was wrong. */
import { commit } from '../../db/commit.ts'
import type { Ctx } from '../bindings.ts'
import { AppError, type Code } from '../errors.ts'
import { append } from '../model/audit.ts'
import { budgetClient } from './failure-budget.ts'
import { actorOf, type Principal } from './principal.ts'

/** What says that the secret itself was wrong. Everything else gives the try back. */
const WRONG: readonly Code[] = [
  'invalid_credentials',
  'invalid_totp_code',
  'invalid_bootstrap_token',
  'invalid_passkey',
]

interface Attempt {
  /** The 429 of this route. */
  limited: Code
  /** What was tried, for the audit log: `password`, `totp`, `step_up` … */
  method: string
  /** Whose secret it is; null: nobody's that is known. */
  target: string | null
}

/**
 * Runs `check`, which throws when the secret was wrong. Of many at once only as many run as the budget has (spec §8).
 * Throws `limited`, and what `check` does.
 */
export const attempt = async <T>(c: Ctx, tried: Attempt, check: () => T | Promise<T>): Promise<T> => {
  const giveBack = c.env.failures.take(budgetClient(c), tried.limited)
  try {
    const value = await check()
    giveBack()
    return value
  } catch (err) {
    if (err instanceof AppError && WRONG.includes(err.code)) recordFailure(c, tried, err.code)
    else giveBack()
    throw err
  }
}

/**
 * Never what was typed: people type passwords where names belong. Whose secret it is did not do it, unless they are signed
 * in as themselves.
 */
const recordFailure = (c: Ctx, { method, target }: Attempt, reason: Code): void => {
  const principal = c.get('principal') as Principal | undefined // as: who signs in has passed no gate
  const actor =
    principal?.kind === 'account'
      ? { ...actorOf(principal, c), method }
      : { id: 'anonymous', method, address: c.var.clientIp, at: c.env.clock.now() }
  commit(c.env.db, (tx) => append(tx, actor, 'login_failed', { target, details: { method, reason } }))
}
