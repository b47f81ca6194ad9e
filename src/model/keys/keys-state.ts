/** Whether anything about the keys in a scope changed, for live updates. */
import type { Db } from '../../../db/commit.ts'
import { getVersion } from '../edit-version.ts'
import type { ViewScope } from '../users/view-scope.ts'
import { listKeys } from './api-keys.ts'

/** A value that changes with the keys in scope, their limits, and each of their requests. */
export const keysState = async (db: Db, scope: ViewScope): Promise<string> =>
  getVersion((await listKeys(db, scope)).map((key) => JSON.stringify(key)))
