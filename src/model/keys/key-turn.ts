/** Finds a request of a key by its request id. */
import { and, desc, eq, gte } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'

/** Uses the index on the key's rows, from `since` (ms). Undefined: the request was rejected early and not logged. */
export const keyTurn = (db: Db, keyId: string, requestId: string, since: number) =>
  db
    .select()
    .from(requests)
    .where(and(eq(requests.keyId, keyId), gte(requests.startedAt, since), eq(requests.requestId, requestId)))
    .orderBy(desc(requests.startedAt))
    .get()
