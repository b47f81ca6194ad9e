/** API key names for the log, and key lookup by id. */
import { eq } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { keyInScope, type ViewScope } from '../users/view-scope.ts'

export const keyNames = (db: Db, scope: ViewScope): Promise<{ id: string; name: string }[]> =>
  db.select({ id: apiKeys.id, name: apiKeys.name }).from(apiKeys).where(keyInScope(scope)).all()

/** The hash by which the key ring finds it; null: no such key. */
export const getKeyHash = async (db: Db, id: string): Promise<string | null> =>
  (await db.select({ keyHash: apiKeys.keyHash }).from(apiKeys).where(eq(apiKeys.id, id)).get())?.keyHash ?? null
