/** Adds up the requests of conversations: by account, key and model, at most so many of each. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { isFaultCondition } from '../log/turn-fault.ts'
import { countIf, smaller, total } from '../sums.ts'

/** Sums of requests that agree in account, key, model and effort. */
export interface Part {
  conversationId: string
  accountId: string | null
  keyId: string | null
  model: string | null
  effort: string | null
  requests: number
  /** ms since epoch, like the next. */
  first: number
  last: number
  errors: number
  cancelled: number
  moves: number
  avoidableMoves: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costMicros: number
  /** Input tokens that were not cached, of requests that moved the conversation. */
  movedTokens: number
  /** The durations of all requests added up. */
  elapsedMs: number
}

/** What was read of one conversation. */
export interface Reach {
  conversationId: string
  /** Only requests after it were added up, ms since epoch; null: all. */
  floor: number | null
  /** How many of its requests are in the log. */
  requests: number
  first: number
}

/** `most` newest requests of each. Only the index is read to find where they begin. */
export const getReach = async (db: Db, conversationIds: readonly string[], most: number): Promise<Reach[]> => {
  const ids = JSON.stringify(conversationIds)
  const of = sql`FROM ${requests} WHERE ${requests.conversationHash} = chosen.value`
  return db.all<Reach>(sql`
    SELECT chosen.value AS "conversationId",
      (SELECT ${requests.startedAt} ${of} ORDER BY ${requests.startedAt} DESC LIMIT 1 OFFSET ${most}) AS floor,
      (SELECT count(*) ${of}) AS requests,
      (SELECT min(${requests.startedAt}) ${of}) AS first
    FROM json_each(${ids}) AS chosen`)
}

/** Rows are spread over the file and cost about two microseconds each. */
export const getParts = async (db: Db, reach: readonly Reach[]): Promise<Part[]> => {
  const chosen = JSON.stringify(reach.map(({ conversationId, floor }) => [conversationId, floor ?? -1]))
  const { inputTokens, cachedInputTokens } = requests
  return db.all<Part>(sql`
    SELECT conversation_hash AS "conversationId", account_id AS "accountId", key_id AS "keyId", model,
      reasoning_effort AS effort, count(*) AS requests, min(started_at) AS first, max(started_at) AS last,
      ${countIf(isFaultCondition())} AS errors, count(*) FILTER (WHERE status = 'cancelled') AS cancelled, sum(moved) AS moves,
      sum(move_avoidable) AS "avoidableMoves",
      coalesce(sum(${inputTokens}), 0) AS "inputTokens",
      ${total(smaller(cachedInputTokens, inputTokens))} AS "cachedInputTokens",
      coalesce(sum(coalesce(output_tokens, reasoning_tokens)), 0) AS "outputTokens",
      coalesce(sum(cost_micros), 0) AS "costMicros",
      sum(moved_tokens) AS "movedTokens",
      sum(total_ms) AS "elapsedMs"
    FROM json_each(${chosen}) AS chosen CROSS JOIN ${requests}
    WHERE conversation_hash = json_extract(chosen.value, '$[0]')
      AND started_at > CAST(json_extract(chosen.value, '$[1]') AS BIGINT)
    GROUP BY 1, 2, 3, 4, 5`)
}

type Sum = 'requests' | 'errors' | 'cancelled' | 'moves' | 'inputTokens' | 'cachedInputTokens' | 'outputTokens'

export const getSum = (
  parts: readonly Part[],
  name: Sum | 'costMicros' | 'avoidableMoves' | 'movedTokens' | 'elapsedMs',
): number => parts.reduce((sum, part) => sum + part[name], 0)

/** Most requests first; parts without a value are left out. */
export const countRequestsBy = (
  parts: readonly Part[],
  name: 'accountId' | 'keyId' | 'model',
): { id: string; requests: number }[] => {
  const counts = new Map<string, number>()
  for (const part of parts) {
    const id = part[name]
    if (id !== null) counts.set(id, (counts.get(id) ?? 0) + part.requests)
  }
  return [...counts]
    .map(([id, count]) => ({ id, requests: count }))
    .toSorted((a, b) => b.requests - a.requests || (a.id < b.id ? -1 : 1))
}

/** The cached share of the input, 0 to 1. Null: no usage was reported. */
export const cachedShare = (parts: readonly Part[]): number | null => {
  const input = getSum(parts, 'inputTokens')
  return input === 0 ? null : getSum(parts, 'cachedInputTokens') / input
}
