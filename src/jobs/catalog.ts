/** Keeps each account's model catalog fresh, for every native client version in use. */
import { commit } from '../../db/commit.ts'
import { isInUse } from '../model/accounts/account-state.ts'
import { dropOldCatalogs } from '../model/catalog/catalog.ts'
import { refreshCatalogs } from '../upstream/models.ts'
import { type JobDeps, toAccountCallDeps } from './context.ts'

export const CATALOG_INTERVAL_MS = 300_000

export const fetchCatalogs = async (deps: JobDeps, signal: AbortSignal): Promise<void> => {
  const accountIds = deps.pool.all().flatMap(({ id, state }) => (isInUse(state) ? id : []))
  await fetchCatalogsOf(deps, accountIds, signal)
  await commit(deps.db, (tx) => dropOldCatalogs(tx, deps.catalog.versions()))
}

export const fetchCatalogsOf = (deps: JobDeps, accountIds: readonly string[], signal: AbortSignal): Promise<void> =>
  refreshCatalogs(
    { ...toAccountCallDeps(deps), db: deps.db, log: deps.log },
    { accountIds, versions: deps.catalog.versions(), signal },
  )
