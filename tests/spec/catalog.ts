/** Gives an app the catalogs of its stand-in accounts, as the background job would have fetched them. */
import { commit, notice } from '../../db/commit.ts'
import { saveCatalog } from '../../src/model/catalog/catalog.ts'
import type { ModelEntry } from '../../src/model/catalog/catalog-entry.ts'
import { PINNED_CLIENT_VERSION } from '../../src/model/catalog/client-version.ts'
import type { TestApp } from '../support/app.ts'
import { catalogFor } from '../support/upstream/models.ts'

/** Every account's own catalog. */
export const fetchCatalogs = async ({
  db,
  members,
  clock,
}: Pick<TestApp, 'db' | 'members'> & { clock: Pick<TestApp['clock'], 'now'> }): Promise<void> => {
  for (const { id, sim } of members) await store({ db, clock }, id, catalogFor(sim, PINNED_CLIENT_VERSION))
}

/** These entries for one account, instead of those of the stand-in. */
export const store = async (
  { db, clock }: { db: TestApp['db']; clock: Pick<TestApp['clock'], 'now'> },
  accountId: string,
  models: readonly ModelEntry[],
): Promise<void> => {
  await commit(db, async (tx) => {
    await saveCatalog(tx, { accountId, version: PINNED_CLIENT_VERSION }, models, clock.now())
    notice(tx, 'catalog')
  })
}

interface NativeEntry {
  slug: string
  context_window: number
  max_context_window: number
  [member: string]: unknown
}

export const nativeModels = async (app: TestApp): Promise<NativeEntry[]> => {
  const response = await app.ask('GET /backend-api/codex/models')
  return ((await response.json()) as { models: NativeEntry[] }).models // as: tests check the fields they use
}

interface PublicEntry {
  id: string
  [member: string]: unknown
}

export const publicModels = async (app: TestApp, headers: Record<string, string> = {}): Promise<PublicEntry[]> => {
  const response = await app.ask('GET /v1/models', { headers })
  return ((await response.json()) as { data: PublicEntry[] }).data // as: tests check the fields they use
}
