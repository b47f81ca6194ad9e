/** The log summed up for the overview: time slots with results by account, and the state of keys and accounts. */

import { and, count, desc, eq, gt, gte, isNotNull, lt, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accountEvents } from '../../../db/schema/history.ts'
import { apiKeyLimits, apiKeys, type LimitType, type LimitWindow } from '../../../db/schema/keys.ts'
import { attempts, requestHours, requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { counted } from '../log/counted-requests.ts'
import { type RejectedLately, rejectedLately } from '../log/rejected-clients.ts'
import { isFaultCondition } from '../log/turn-fault.ts'
import { countIf, smaller, total } from '../sums.ts'
import { type ErrorGroup, errorGroups } from './overview-errors.ts'
import { slotsOfHours } from './overview-hours.ts'
import { SLOT_MS } from './overview-slots.ts'

/** What happened in a part of the period. */
export interface Slot {
  /** Its start, ms since epoch. */
  at: number
  requests: number
  errors: number
  /** Cancelled by the client. */
  cancelled: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costMicros: number
  /** Conversations with a request in the slot; null: not counted in long slots. */
  conversations: number | null
  /** Requests that reached a first event. */
  begun: number
  /** A sample of their times to it, in ms. */
  firstEventMs: readonly number[]
  /**
   * Requests each account answered or failed, including failures before another account answered. Requests that the
   * client cancelled or had to resend count as neither.
   */
  accounts: ReadonlyMap<string, { ok: number; errors: number }>
}

/** When an account's state changed (ms since epoch); by account, oldest first. */
export type StateChange = { at: number; isActive: boolean }

export interface Present {
  /** Conversations with a request in the last hour, and in the one before. */
  conversations: { now: number; before: number }
  keys: KeyFact[]
  /** Errors of the period, newest first. */
  errors: ErrorGroup[]
  rejected: RejectedLately[]
  stateChanges: ReadonlyMap<string, readonly StateChange[]>
}

export interface KeyFact {
  id: string
  name: string
  isActive: boolean
  expiresAt: number | null
  limits: { type: LimitType; window: LimitWindow; used: number; max: number; resetAt: number }[]
}

/** Enough for a stable median and 95th percentile; more would only be slower. */
const SAMPLE = 100
/** State changes read; in a healthy pool older ones are more than a day back. */
const EVENTS_SEEN = 5000

/** The slots from `from` up to, not including, `to`, both multiples of `slotMs`; empty ones included. */
export const overviewSlots = async (db: Db, from: number, to: number, slotMs: number = SLOT_MS): Promise<Slot[]> => {
  if (slotMs >= HOUR_MS) return slotsOfHours(db, { from, to, slotMs, firstEvents })
  const span = { from, to, slotMs }
  const groups = Map.groupBy(await outcomes(db, span), ({ slot }) => slot * slotMs)
  const failed = Map.groupBy(await passedOn(db, span), ({ slot }) => slot * slotMs)
  const talks = new Map((await conversations(db, span)).map((row) => [row.slot * slotMs, row.conversations]))
  const starts = Array.from({ length: Math.ceil((to - from) / slotMs) }, (_, index) => from + index * slotMs)
  return mapInOrder(starts, async (at) => {
    const rows = groups.get(at) ?? []
    const sum = (of: (row: Outcome) => number) => rows.reduce((total, row) => total + of(row), 0)
    return {
      at,
      requests: sum((row) => row.requests),
      errors: sum((row) => row.faults),
      cancelled: sum((row) => (row.status === 'cancelled' ? row.requests : 0)),
      inputTokens: sum((row) => row.inputTokens),
      cachedInputTokens: sum((row) => row.cachedInputTokens),
      outputTokens: sum((row) => row.outputTokens),
      costMicros: sum((row) => row.costMicros),
      conversations: talks.get(at) ?? 0,
      begun: sum((row) => row.begun),
      firstEventMs: rows.length === 0 ? [] : await firstEvents(db, at, at + slotMs),
      accounts: byAccount(rows, failed.get(at) ?? []),
    }
  })
}

/** State as of `now` (ms), and errors and changes in the `spanMs` before. */
export const overviewPresent = async (db: Db, now: number, spanMs: number = DAY_MS): Promise<Present> => ({
  conversations: {
    now: await conversationsIn(db, now - HOUR_MS, now + 1),
    before: await conversationsIn(db, now - 2 * HOUR_MS, now - HOUR_MS),
  },
  keys: await keyFacts(db),
  errors: await errorGroups(db, now - spanMs),
  rejected: await rejectedLately(db, now),
  stateChanges: await stateChanges(db, now - spanMs),
})

/** When the first known request began (ms since epoch): in the log, or in the hourly totals, which are kept longer. */
export const overviewBegin = async (db: Db): Promise<number | null> => {
  const row = await db.select({ at: requests.startedAt }).from(requests).orderBy(requests.startedAt).limit(1).get()
  const hour = (
    await db.select({ hour: requestHours.hour }).from(requestHours).orderBy(requestHours.hour).limit(1).get()
  )?.hour
  if (!row || hour === undefined) return row?.at ?? hour ?? null
  return row.at - hour < HOUR_MS ? row.at : hour
}

/** Whether there is a key, and whether any request was answered: for the setup checklist. */
export const firstSteps = async (db: Db): Promise<{ hasKey: boolean; hasAnswered: boolean }> => ({
  hasKey: (await db.select({ id: apiKeys.id }).from(apiKeys).limit(1).get()) !== undefined,
  hasAnswered:
    (await db.select({ hour: requestHours.hour }).from(requestHours).where(ANSWERED).limit(1).get()) !== undefined,
})

/** The totals stay when log rows are deleted. */
const ANSWERED = gt(requestHours.requests, sql`${requestHours.errors} + ${requestHours.cancelled}`)

interface Span {
  from: number
  to: number
  slotMs: number
}

const within = ({ from, to }: Pick<Span, 'from' | 'to'>) =>
  and(gte(requests.startedAt, from), lt(requests.startedAt, to), counted())
const getSlot = ({ slotMs }: Span) => sql<number>`${requests.startedAt} / ${sql.raw(String(slotMs))}`

type Outcome = Awaited<ReturnType<typeof outcomes>>[number]

const outcomes = (db: Db, span: Span) =>
  db
    .select({
      slot: getSlot(span).as('slot'),
      accountId: requests.accountId,
      status: requests.status,
      requests: count(),
      begun: count(requests.firstEventMs),
      faults: countIf(isFaultCondition()),
      inputTokens: total(requests.inputTokens),
      cachedInputTokens: total(smaller(requests.cachedInputTokens, requests.inputTokens)),
      outputTokens: total(requests.outputTokens),
      costMicros: total(requests.costMicros),
    })
    .from(requests)
    .where(within(span))
    .groupBy(sql`slot`, requests.accountId, requests.status)
    .all()

/** A reached limit or an ended sign-in blocks the account but is not an error. */
const BLOCKS = sql`(401, 402, 429)`
const BLOCK_CODES = sql`('usage_limit_reached', 'rate_limit_exceeded', 'insufficient_quota', 'usage_not_included')`

/** Failed attempts before another account ended the request. */
const passedOn = (db: Db, span: Span) =>
  db
    .select({ slot: getSlot(span).as('slot'), accountId: attempts.accountId, errors: count() })
    .from(requests)
    .innerJoin(attempts, eq(attempts.requestRowId, requests.id))
    .where(
      and(
        within(span),
        gt(requests.attempts, 1),
        eq(attempts.outcome, 'failed'),
        isNotNull(attempts.accountId),
        sql`${attempts.accountId} IS DISTINCT FROM ${requests.accountId}`,
        sql`coalesce(${attempts.upstreamStatus}, 0) NOT IN ${BLOCKS}`,
        sql`coalesce(${attempts.code}, '') NOT IN ${BLOCK_CODES}`,
      ),
    )
    .groupBy(sql`slot`, attempts.accountId)
    .all()

const byAccount = (rows: readonly Outcome[], failed: Awaited<ReturnType<typeof passedOn>>): Slot['accounts'] => {
  const found = new Map<string, { ok: number; errors: number }>()
  for (const { accountId, errors } of failed) if (accountId !== null) found.set(accountId, { ok: 0, errors })
  for (const { accountId, status, requests: turns, faults } of rows) {
    if (accountId === null || (status !== 'ok' && faults === 0)) continue
    const sum = found.getOrInsertComputed(accountId, () => ({ ok: 0, errors: 0 }))
    if (status === 'ok') sum.ok += turns
    sum.errors += faults
  }
  return found
}

const conversations = (db: Db, span: Span) =>
  db
    .select({
      slot: getSlot(span).as('slot'),
      conversations: sql<number>`count(DISTINCT ${requests.conversationHash})`,
    })
    .from(requests)
    .where(within(span))
    .groupBy(sql`slot`)
    .all()

const conversationsIn = async (db: Db, from: number, to: number): Promise<number> =>
  (
    await db
      .select({ conversations: sql<number>`count(DISTINCT ${requests.conversationHash})` })
      .from(requests)
      .where(within({ from, to }))
      .get()
  )?.conversations ?? 0

const firstEvents = async (db: Db, from: number, to: number): Promise<number[]> =>
  (
    await db
      .select({ firstEventMs: sql<number>`${requests.firstEventMs}` })
      .from(requests)
      .where(and(within({ from, to }), isNotNull(requests.firstEventMs)))
      .orderBy(desc(requests.startedAt))
      .limit(SAMPLE)
      .all()
  ).map((row) => row.firstEventMs)

export const keyFacts = async (db: Db): Promise<KeyFact[]> => {
  const limits = Map.groupBy(await db.select().from(apiKeyLimits).all(), ({ keyId }) => keyId)
  return (await db.select().from(apiKeys).all()).map(({ id, name, isActive, expiresAt }) => ({
    id,
    name,
    isActive,
    expiresAt,
    limits: (limits.get(id) ?? []).map((limit) => ({
      type: limit.limitType,
      window: limit.limitWindow,
      used: limit.currentValue,
      max: limit.maxValue,
      resetAt: limit.resetAt,
    })),
  }))
}

/** Changes of each account since `since`, and the last one before, which gives the state at that time. */
const stateChanges = async (db: Db, since: number): Promise<Present['stateChanges']> => {
  const newest = (
    await db
      .select({
        accountId: accountEvents.accountId,
        at: accountEvents.at,
        kind: accountEvents.kind,
        result: accountEvents.result,
      })
      .from(accountEvents)
      .orderBy(desc(accountEvents.id))
      .limit(EVENTS_SEEN)
      .all()
  )
    .filter(({ kind }) => kind === 'state')
    .reverse()
  const groups = Map.groupBy(newest, ({ accountId }) => accountId)
  return new Map(
    [...groups].map(([id, rows]) => {
      const standing = Math.max(
        0,
        rows.findLastIndex(({ at }) => at < since),
      )
      return [id, rows.slice(standing).map(({ at, result }) => ({ at, isActive: result === 'active' }))]
    }),
  )
}
