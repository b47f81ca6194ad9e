/** What the accounts have done since they were added. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accounts, accountTotals } from '../../../db/schema/accounts.ts'
import { requestHours, requests } from '../../../db/schema/requests.ts'
import { counted } from '../log/counted-requests.ts'

export interface AccountUse {
  requestCount: number
  totalTokens: number
  cachedInputTokens: number
  /** Cost at list price; requests without a known price are not counted. */
  totalCostUsd: number
}

export const NO_USE: AccountUse = Object.freeze({
  requestCount: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  totalCostUsd: 0,
})

/** By account id; accounts without requests are missing. */
export const getUses = async (db: Db): Promise<Map<string, AccountUse>> =>
  new Map(
    (await db.select().from(accountTotals).all()).map(
      ({ accountId, requests, inputTokens, cachedInputTokens, outputTokens, costMicros }) => [
        accountId,
        {
          requestCount: requests,
          totalTokens: inputTokens + outputTokens,
          cachedInputTokens,
          totalCostUsd: costMicros / 1e6,
        },
      ],
    ),
  )

/** When each account started its last request (ms since epoch). Known to the hour only once the log no longer has it. */
export const getLastUses = async (db: Db): Promise<Map<string, number>> => {
  const fromLog = sql`(
    SELECT ${requests.startedAt} FROM ${requests} WHERE ${requests.accountId} = ${accounts.id} AND ${counted()}
    ORDER BY ${requests.startedAt} DESC LIMIT 1)`
  const fromHours = sql`(
    SELECT max(${requestHours.hour}) FROM ${requestHours} WHERE ${requestHours.accountId} = ${accounts.id})`
  // In a `select()` from one table Drizzle drops the table of a column, and `accounts.id` would be the id of the request.
  const rows = await db.all<{ id: string; at: number | null }>(
    sql`SELECT ${accounts.id} AS id, coalesce(${fromLog}, ${fromHours}) AS at FROM ${accounts}`,
  )
  return new Map(rows.flatMap(({ id, at }) => (at === null ? [] : [[id, at] as const])))
}
