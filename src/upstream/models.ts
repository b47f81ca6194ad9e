/** Fetches each account's models per native client version, and stores them as last good copies. */
import { z } from 'zod'
import { commit, type Db, notice } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { inLanes } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import { saveCatalog } from '../model/catalog/catalog.ts'
import type { ModelEntry } from '../model/catalog/catalog-entry.ts'
import { type AccountCallDeps, callAsAccount, getWhy } from './account-call.ts'

const TIMEOUT_MS = 15_000

const Answer = z.object({ models: z.array(z.unknown()) })

/**
 * `GET /codex/models`, at most 15 s. Entries are returned unchanged, except those without a slug. Throws what `ask`
 * throws, and `upstream_error` for an answer without a list.
 */
export const fetchModels = async (
  deps: AccountCallDeps,
  accountId: string,
  { version, signal }: { version: string; signal?: AbortSignal | undefined },
): Promise<ModelEntry[]> => {
  const path = `/codex/models?client_version=${encodeURIComponent(version)}`
  const answer = Answer.safeParse(await callAsAccount(deps, accountId, { path, timeoutMs: TIMEOUT_MS, signal }))
  if (!answer.success) throw new AppError('upstream_error', { message: 'ChatGPT sent no list of models.' })
  return answer.data.models.filter(isEntry)
}

const isEntry = (value: unknown): value is ModelEntry =>
  typeof value === 'object' && value !== null && 'slug' in value && typeof value.slug === 'string' && value.slug !== ''

interface RefreshDeps extends AccountCallDeps {
  db: Db
  log: Log
}

/**
 * Fetches each version for each account, four at a time, and stores the results; failed ones keep their last good copy.
 * Notifies the memory view once at the end, because it reloads everything.
 */
export const refreshCatalogs = async (
  deps: RefreshDeps,
  {
    accountIds,
    versions,
    signal,
  }: { accountIds: readonly string[]; versions: readonly string[]; signal?: AbortSignal },
): Promise<void> => {
  const at = deps.clock.now()
  const wanted = accountIds.flatMap((accountId) => versions.map((version) => ({ accountId, version })))
  let isChanged = false
  await inLanes(wanted, LANES, async (one) => {
    if (await refreshOne(deps, one, { at, signal })) isChanged = true
  })
  if (isChanged) await commit(deps.db, async (tx) => notice(tx, 'catalog'))
}

const LANES = 4

/** Whether the stored copy changed. */
const refreshOne = async (
  deps: RefreshDeps,
  { accountId, version }: { accountId: string; version: string },
  { at, signal }: { at: number; signal: AbortSignal | undefined },
): Promise<boolean> => {
  if (signal?.aborted) return false
  try {
    const models = await fetchModels(deps, accountId, { version, signal })
    return await commit(deps.db, (tx) => saveCatalog(tx, { accountId, version }, models, at))
  } catch (err) {
    if (!signal?.aborted)
      deps.log.warn('the model catalog of an account could not be fetched', {
        account: accountId,
        version,
        ...getWhy(err),
      })
    return false
  }
}
