/** Medians, reasoning tokens and conversations of days, from a digest of each hour and the log of the last two. */

import { and, asc, gte, lt } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { type Histogram, requestDigests, requests } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { readFact, writeFact } from '../facts.ts'
import { counted } from '../log/counted-requests.ts'
import type { Span } from './report-sums.ts'

export interface DayDigest {
  reasoningTokens: number
  conversations: number
  /** Null: no request had one. Within 10 %, as all medians here. */
  medianFirstTokenMs: number | null
  medianTokensPerSecond: number | null
}

const BUCKETS = 64
/** The lower bound of the first bucket. Each bucket is a fifth higher than the one before. */
const LOWEST = { firstTokenMs: 10, tokensPerSecond: 0.1 }
const STEP = 1.2

const getBucket = (value: number, lowest: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.floor(Math.log(value / lowest) / Math.log(STEP))))

/** The middle of a bucket. */
const getMiddle = (bucket: number, lowest: number): number => lowest * STEP ** (bucket + 0.5)

const FACT = 'hours_digested_up_to'

const digestedUpTo = async (db: Db): Promise<number> => Number((await readFact(db, FACT)) ?? 0)

/** Lets `digestHour` start over, for rows that are stored late. Hours that have a digest keep it. */
export const restartDigests = (tx: Tx): Promise<void> => writeFact(tx, FACT, '0')

/** Adds the digest of the next hour with requests, up to `before` (a full hour, ms since epoch). Returns whether there may be more. */
export const digestHour = async (tx: Tx, before: number): Promise<boolean> => {
  const from = await digestedUpTo(tx)
  const next = from >= before ? undefined : await firstFrom(tx, from)
  if (next === undefined || next >= before) {
    if (from < before) await writeFact(tx, FACT, String(before))
    return false
  }
  const hour = next - (next % HOUR_MS)
  const digest = await getDigest(tx, { from: hour, to: hour + HOUR_MS })
  const row = {
    hour,
    reasoningTokens: digest.reasoningTokens,
    firstToken: [...digest.firstToken],
    speed: [...digest.speed],
    conversations: [...digest.conversations],
  }
  await tx.insert(requestDigests).values(row).onConflictDoNothing().run()
  await writeFact(tx, FACT, String(hour + HOUR_MS))
  return true
}

const firstFrom = async (db: Db, from: number): Promise<number | undefined> =>
  (
    await db
      .select({ at: requests.startedAt })
      .from(requests)
      .where(gte(requests.startedAt, from))
      .orderBy(asc(requests.startedAt))
      .limit(1)
      .get()
  )?.at

interface Digest {
  reasoningTokens: number
  firstToken: Map<number, number>
  speed: Map<number, number>
  conversations: Set<string>
}

const newDigest = (): Digest => ({
  reasoningTokens: 0,
  firstToken: new Map(),
  speed: new Map(),
  conversations: new Set(),
})

const getDigest = async (db: Db, { from, to }: Span): Promise<Digest> => {
  const digest = newDigest()
  const { status, firstEventMs, totalMs, outputTokens, reasoningTokens, conversationHash } = requests
  const rows = await db
    .select({ status, firstEventMs, totalMs, outputTokens, reasoningTokens, conversationHash })
    .from(requests)
    .where(and(gte(requests.startedAt, from), lt(requests.startedAt, to), counted()))
    .all()
  for (const row of rows) {
    digest.reasoningTokens += row.reasoningTokens ?? 0
    if (row.conversationHash !== null) digest.conversations.add(row.conversationHash.slice(0, 8))
    if (row.status !== 'ok' || row.firstEventMs === null) continue
    addOne(digest.firstToken, getBucket(row.firstEventMs, LOWEST.firstTokenMs))
    const seconds = (row.totalMs - row.firstEventMs) / 1000
    if (seconds > 0 && row.outputTokens)
      addOne(digest.speed, getBucket(row.outputTokens / seconds, LOWEST.tokensPerSecond))
  }
  return digest
}

const addOne = (histogram: Map<number, number>, bucket: number, count = 1): void => {
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + count)
}

/** One per day, and all days together. An hour belongs to the day in which it begins. */
export const getDigests = async (db: Db, days: readonly Span[]): Promise<{ days: DayDigest[]; total: DayDigest }> => {
  const upTo = await digestedUpTo(db)
  const all = newDigest()
  const found = await mapInOrder(days, async ({ from, to }) => {
    const day = newDigest()
    const stored = await db
      .select()
      .from(requestDigests)
      .where(and(gte(requestDigests.hour, from), lt(requestDigests.hour, Math.min(to, upTo))))
      .all()
    for (const row of stored) addDigest(day, row)
    if (to > upTo) addDigest(day, await getDigest(db, { from: Math.max(from, upTo), to }))
    addDigest(all, day)
    return shown(day)
  })
  return { days: found, total: shown(all) }
}

interface Addend {
  reasoningTokens: number
  firstToken: Iterable<Histogram[number]>
  speed: Iterable<Histogram[number]>
  conversations: Iterable<string>
}

const addDigest = (to: Digest, { reasoningTokens, firstToken, speed, conversations }: Addend): void => {
  to.reasoningTokens += reasoningTokens
  for (const [bucket, count] of firstToken) addOne(to.firstToken, bucket, count)
  for (const [bucket, count] of speed) addOne(to.speed, bucket, count)
  for (const hash of conversations) to.conversations.add(hash)
}

const shown = ({ reasoningTokens, firstToken, speed, conversations }: Digest): DayDigest => ({
  reasoningTokens,
  conversations: conversations.size,
  medianFirstTokenMs: getMedian(firstToken, LOWEST.firstTokenMs),
  medianTokensPerSecond: getMedian(speed, LOWEST.tokensPerSecond),
})

const getMedian = (histogram: ReadonlyMap<number, number>, lowest: number): number | null => {
  const sorted = [...histogram].toSorted(([a], [b]) => a - b)
  const half = sorted.reduce((sum, [, count]) => sum + count, 0) / 2
  let passed = 0
  for (const [bucket, count] of sorted) {
    passed += count
    if (passed >= half) return getMiddle(bucket, lowest)
  }
  return null
}
