/** Polls usage and models of accounts new to this process immediately, instead of within minutes. */
import { inLanes } from '../lib/lanes.ts'
import { isInUse } from '../model/accounts/account-state.ts'
import { fetchCatalogsOf } from './catalog.ts'
import type { JobDeps } from './context.ts'
import { pollAccount } from './usage.ts'

const LANES = 4

/** Polls accounts that are not in `met`, including ones that are added later. */
export const pollNewAccounts = async (deps: JobDeps, met: Set<string>, signal: AbortSignal): Promise<void> => {
  for (;;) {
    const ids = findNewAccounts(deps, met)
    if (ids.length === 0) return
    for (const id of ids) met.add(id)
    await greetAccounts(deps, ids, signal)
  }
}

const findNewAccounts = ({ pool }: Pick<JobDeps, 'pool'>, met: ReadonlySet<string>): string[] =>
  pool.all().flatMap((account) => (isInUse(account.state) && !met.has(account.id) ? [account.id] : []))

const greetAccounts = async (deps: JobDeps, ids: readonly string[], signal: AbortSignal): Promise<void> => {
  await Promise.all([inLanes(ids, LANES, (id) => pollAccount(deps, id, signal)), fetchCatalogsOf(deps, ids, signal)])
}
