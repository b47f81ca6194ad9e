/** Whose API keys a reader may see. Every read of keys, requests and usage takes one, so that none can forget it. */
import { eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'

/** `all`, the keys of one user, or one key. Keys without an owner and requests without a key are in no user's own scope. */
export type ViewScope = 'all' | { readonly ownerUserId: string } | { readonly keyId: string }

/** Limits rows to keys in scope; `keyId` is a column with the id of a key. Undefined: no limit. */
export const keyIdInScope = (scope: ViewScope, keyId: SQLWrapper): SQL | undefined =>
  scope === 'all' ? undefined : sql`${keyId} IN (SELECT id FROM ${apiKeys} WHERE ${keyInScope(scope)})`

/** The same for rows of the keys table. */
export const keyInScope = (scope: ViewScope): SQL | undefined => {
  if (scope === 'all') return undefined
  return 'keyId' in scope ? eq(apiKeys.id, scope.keyId) : eq(apiKeys.ownerUserId, scope.ownerUserId)
}

/** The ids of the keys in scope; null: all. */
export const getKeyIds = async (db: Db, scope: ViewScope): Promise<string[] | null> =>
  scope === 'all'
    ? null
    : (await db.select({ id: apiKeys.id }).from(apiKeys).where(keyInScope(scope)).all()).map(({ id }) => id)
