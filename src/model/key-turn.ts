/** What became of one turn of a key, looked up by the request id it was sent with. */
import { and, desc, eq, gte } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'

/** Reads by the index over a key's rows, from `since` (ms) on. Undefined: the request was refused before it became a turn. */
export const keyTurn = (db: Db, keyId: string, requestId: string, since: number) =>
  db
    .select()
    .from(requests)
    .where(and(eq(requests.keyId, keyId), gte(requests.startedAt, since), eq(requests.requestId, requestId)))
    .orderBy(desc(requests.startedAt))
    .get()
