/** Polls the reset credits of every account in use once a minute. A failure is only logged. */
import { inLanes } from '../lib/lanes.ts'
import type { Random } from '../lib/random.ts'
import type { Work } from '../lib/schedule.ts'
import { type AccountState, isInUse } from '../model/accounts/account-state.ts'
import type { ResetCredits } from '../model/accounts/reset-credits.ts'
import { getWhy, UpstreamRejection } from '../upstream/account-call.ts'
import { fetchResetCredits } from '../upstream/reset-credits.ts'
import { type JobDeps, toAccountCallDeps } from './context.ts'

export const RESET_CREDITS_INTERVAL_MS = 60_000
const LANES = 4
/** After a 402 or 404: the answer is about the address or the plan and will not change within a minute. */
const HOLD_MS = 300_000

export interface ResetCreditsDeps extends Pick<JobDeps, 'upstream' | 'credentials' | 'clock' | 'log'> {
  pool: { all(): readonly { readonly id: string; state: AccountState; row: { chatgptAccountId: string | null } }[] }
  resetCredits: ResetCredits
  random: Pick<Random, 'float'>
  /** Called after each listing. */
  redeemByRule?: (accountId: string) => Promise<void>
}

/** The job; its first run starts at a random time within the first minute, so that processes started together spread out. */
export const resetCreditsJob = (deps: ResetCreditsDeps): Work => {
  const failing: Failing = new Map()
  let isFirst = true
  return async (signal) => {
    if (isFirst) await deps.clock.sleep(deps.random.float() * RESET_CREDITS_INTERVAL_MS, signal)
    isFirst = false
    await pollResetCredits(deps, failing, signal)
  }
}

/** Accounts whose last poll failed, logged once → the monotonic time (ms) of the next poll. */
export type Failing = Map<string, number>

/** One round. `failing` is kept between rounds. */
export const pollResetCredits = async (
  deps: ResetCreditsDeps,
  failing: Failing,
  signal: AbortSignal,
): Promise<void> => {
  const ids = deps.pool
    .all()
    .flatMap((account) => (isInUse(account.state) && account.row.chatgptAccountId ? account.id : []))
  const asked = new Set(ids)
  deps.resetCredits.keepOnly(asked)
  for (const id of failing.keys()) if (!asked.has(id)) failing.delete(id)
  const due = ids.filter((id) => (failing.get(id) ?? 0) <= deps.clock.monotonic())
  await inLanes(due, LANES, (id) => pollAccount(deps, { id, failing, signal }))
}

const pollAccount = async (
  deps: ResetCreditsDeps,
  { id, failing, signal }: { id: string; failing: Failing; signal: AbortSignal },
): Promise<void> => {
  signal.throwIfAborted()
  try {
    deps.resetCredits.set(id, await fetchResetCredits(toAccountCallDeps(deps), id, signal))
    failing.delete(id)
    await deps.redeemByRule?.(id)
  } catch (err) {
    signal.throwIfAborted()
    if (!failing.has(id))
      deps.log.warn('the reset credits of an account could not be read', { account: id, ...getWhy(err) })
    failing.set(id, isHeld(err) ? deps.clock.monotonic() + HOLD_MS : 0)
  }
}

const isHeld = (err: unknown): boolean => err instanceof UpstreamRejection && (err.status === 402 || err.status === 404)
