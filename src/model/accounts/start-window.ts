/** Starts the five-hour window of one account with a tiny request, once per reset or set time. */
import { type CommitAgainDeps, commitClaim, commitResult } from '../../../db/commit-again.ts'
import { AppError } from '../../errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { pingModel } from './ping-model.ts'
import { claimWindowStart, endWindowStart } from './window-starts.ts'

/** Sends the request and waits for its end, at most 30 s. Throws an `AppError`. */
export type Ping = (
  wanted: { accountId: string; model: string; effort: string | null },
  signal: AbortSignal,
) => Promise<void>

interface StartDeps extends CommitAgainDeps {
  log: Log
  catalog: Pick<Catalog, 'cheapest' | 'getEfforts'>
  ping: Ping
}

interface Start {
  accountId: string
  /** The reset or time that causes it, ms since epoch; a second start for it does nothing. */
  resetAt: number
  /** Null: the cheapest. */
  model: string | null
}

export type StartResult =
  | { kind: 'started'; model: string }
  /** It was started for the same reset before, or the account is gone. */
  | { kind: 'repeated' }
  | { kind: 'failed'; model: string; error: AppError }

/** What went wrong is logged and stored. Throws only if the database cannot be written. */
export const startWindow = async (
  deps: StartDeps,
  { accountId, resetAt, model: chosen }: Start,
  signal: AbortSignal,
): Promise<StartResult> => {
  const { clock, log, catalog, ping } = deps
  const { model, effort } = chosen
    ? { model: chosen, effort: catalog.getEfforts(chosen)[0] ?? null }
    : pingModel(catalog, accountId, null)
  const start = { accountId, resetAt, model, at: clock.now() }
  if (!(await commitClaim(deps, (tx, mayBeStored) => claimWindowStart(tx, start, mayBeStored))))
    return { kind: 'repeated' }
  const error = await ping({ accountId, model, effort }, signal).then(
    () => null,
    (err: unknown) => AppError.from(err),
  )
  if (error) log.warn('a window could not be started', { account: accountId, code: error.code })
  const endedAt = clock.now()
  await commitResult(deps, (tx) => endWindowStart(tx, { accountId, resetAt, at: endedAt }, error))
  return error ? { kind: 'failed', model, error } : { kind: 'started', model }
}
