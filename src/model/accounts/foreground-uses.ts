/** When foreground requests last used each account, from the log, so that a restart does not forget it. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requests } from '../../../db/schema/requests.ts'

/**
 * By account id, in ms since epoch; only uses since `since`. The log has a request when it ends. Keys count by the class
 * they have now. Reads an index from its newest row until the first match.
 */
export const foregroundUses = async (db: Db, since: number): Promise<Map<string, number>> => {
  const opportunistic = sql`(SELECT ${apiKeys.id} FROM ${apiKeys} WHERE ${apiKeys.trafficClass} = 'opportunistic')`
  const last = sql`(
    SELECT ${requests.startedAt} FROM ${requests}
    WHERE ${requests.accountId} = ${accounts.id} AND ${requests.startedAt} > ${since}
      AND ${requests.kind} NOT IN ('control', 'file', 'warmup')
      AND (${requests.keyId} IS NULL OR ${requests.keyId} NOT IN ${opportunistic})
    ORDER BY ${requests.startedAt} DESC LIMIT 1)`
  // In a `select()` from one table Drizzle drops the table of a column, and `accounts.id` would be the id of the request.
  const rows = await db.all<{ id: string; at: number | null }>(
    sql`SELECT ${accounts.id} AS id, ${last} AS at FROM ${accounts}`,
  )
  return new Map(rows.flatMap(({ id, at }) => (at === null ? [] : [[id, at] as const])))
}
