/** What became of one turn of a key, looked up by the request id it was sent with. */
import { and, desc, eq, gte } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'

interface KeyTurn {
  /** Of the log row. */
  id: string
  /** null: no account was reached. */
  accountId: string | null
  model: string | null
  attempts: number
  inputTokens: number | null
  outputTokens: number | null
  costMicros: number | null
  /** From the arrival of the request. */
  firstEventMs: number | null
  totalMs: number
}

/** Reads by the index over a key's rows, from `since` (ms) on. null: the request was refused before it became a turn. */
export const keyTurn = (db: Db, keyId: string, requestId: string, since: number): KeyTurn | null => {
  const row = db
    .select()
    .from(requests)
    .where(and(eq(requests.keyId, keyId), gte(requests.startedAt, since), eq(requests.requestId, requestId)))
    .orderBy(desc(requests.startedAt))
    .get()
  if (!row) return null
  return {
    id: row.id,
    accountId: row.accountId,
    model: row.model,
    attempts: row.attempts,
    inputTokens: row.inputTokens,
    outputTokens: row.outputTokens,
    costMicros: row.costMicros,
    firstEventMs: row.firstEventMs,
    totalMs: row.totalMs,
  }
}
