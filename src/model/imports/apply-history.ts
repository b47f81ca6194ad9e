/** Stores the request log of another program, in small commits that continue where an interrupted import stopped. */
import { eq, sql } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { accountTotals } from '../../../db/schema/accounts.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requestHours, requests } from '../../../db/schema/requests.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import { readFact, writeFact } from '../facts.ts'
import { restartDigests } from '../reports/request-digests.ts'
import { restartSums } from '../reports/request-spans.ts'
import type { FoundHistory, HourTotal, LoggedRequest } from './codex-lb-history.ts'

interface Storing {
  db: Db
  clock: Pick<Clock, 'sleep'>
  random: Random
  actor: Actor
  /** The ID of the account here. Null if it is not imported. */
  accountOf: (foreignId: string) => string | null
}

const factOf = (origin: string): string => `imported_log_${origin}`

/** The ID in the log up to which the log of this installation was imported. 0 if it was not. */
export const readImportedUpTo = async (db: Db, origin: string): Promise<number> =>
  Number((await readFact(db, factOf(origin))) ?? 0)

/** The pause after each commit, which leaves the database to others. */
const PAUSE_MS = 5

/** Throws `validation_error` if another copy of the log was imported after this one was read. */
export const storeHistory = async (history: FoundHistory, storing: Storing): Promise<void> => {
  const { db, clock, actor } = storing
  const { origin, after, parts, requests: count, rows } = history
  const keys = await getKeyIds(db, history)
  const places = { ...storing, keyOf: (id: string) => keys.get(id) ?? null }
  const done = await readImportedUpTo(db, origin)
  if (done !== after && !parts.some(({ lastId }) => lastId === done))
    throw new AppError('validation_error', {
      message: 'Another copy of this request log was imported in the meantime. Start the import again.',
    })
  for (const part of parts.filter(({ lastId }) => lastId > done)) {
    await commit(db, async (tx) => {
      await storeHours(tx, part.hours, places)
      await storeRows(tx, part.rows, places)
      await writeFact(tx, factOf(origin), String(part.lastId))
    })
    await clock.sleep(PAUSE_MS)
  }
  await commit(db, async (tx) => {
    await restartDigests(tx)
    await append(tx, actor, 'request_log_imported', { details: { requests: count, rows } })
  })
}

interface Places extends Storing {
  keyOf: (foreignId: string) => string | null
}

const getKeyIds = async (db: Db, { keyHashes }: FoundHistory): Promise<ReadonlyMap<string, string>> => {
  const stored = await db.select({ id: apiKeys.id, hash: apiKeys.keyHash }).from(apiKeys).all()
  const byHash = new Map(stored.map(({ id, hash }) => [hash, id]))
  return new Map([...keyHashes].flatMap(([id, hash]) => (byHash.has(hash) ? [[id, byHash.get(hash) ?? '']] : [])))
}

const storeHours = async (tx: Tx, hours: readonly HourTotal[], { accountOf, keyOf }: Places): Promise<void> => {
  if (hours.length === 0) return
  await restartSums(tx)
  for (const hour of hours) {
    const row = { ...hour, accountId: accountOf(hour.accountId) ?? '', keyId: keyOf(hour.keyId) ?? '' }
    await tx.insert(requestHours).values(row).onConflictDoUpdate(ADD_TO_HOUR).run()
    await addToTotals(tx, row)
  }
}

const ADD_TO_HOUR = {
  target: [
    requestHours.hour,
    requestHours.accountId,
    requestHours.keyId,
    requestHours.model,
    requestHours.client,
    requestHours.sourceId,
  ],
  set: {
    requests: sql`${requestHours.requests} + excluded.requests`,
    errors: sql`${requestHours.errors} + excluded.errors`,
    cancelled: sql`${requestHours.cancelled} + excluded.cancelled`,
    inputTokens: sql`${requestHours.inputTokens} + excluded.input_tokens`,
    cachedInputTokens: sql`${requestHours.cachedInputTokens} + excluded.cached_input_tokens`,
    outputTokens: sql`${requestHours.outputTokens} + excluded.output_tokens`,
    costMicros: sql`${requestHours.costMicros} + excluded.cost_micros`,
    unpriced: sql`${requestHours.unpriced} + excluded.unpriced`,
  },
}

/** Adds to the totals of all time that the account and the key have. */
const addToTotals = async (tx: Tx, { accountId, keyId, ...sums }: HourTotal): Promise<void> => {
  const { requests: count, inputTokens, cachedInputTokens, outputTokens, costMicros } = sums
  if (accountId !== '')
    await tx
      .insert(accountTotals)
      .values({ accountId, requests: count, inputTokens, cachedInputTokens, outputTokens, costMicros })
      .onConflictDoUpdate({
        target: accountTotals.accountId,
        set: {
          requests: sql`${accountTotals.requests} + excluded.requests`,
          inputTokens: sql`${accountTotals.inputTokens} + excluded.input_tokens`,
          cachedInputTokens: sql`${accountTotals.cachedInputTokens} + excluded.cached_input_tokens`,
          outputTokens: sql`${accountTotals.outputTokens} + excluded.output_tokens`,
          costMicros: sql`${accountTotals.costMicros} + excluded.cost_micros`,
        },
      })
      .run()
  if (keyId !== '')
    await tx
      .update(apiKeys)
      .set({
        requestCount: sql`${apiKeys.requestCount} + ${count}`,
        inputTokens: sql`${apiKeys.inputTokens} + ${inputTokens}`,
        cachedInputTokens: sql`${apiKeys.cachedInputTokens} + ${cachedInputTokens}`,
        outputTokens: sql`${apiKeys.outputTokens} + ${outputTokens}`,
        costMicros: sql`${apiKeys.costMicros} + ${costMicros}`,
      })
      .where(eq(apiKeys.id, keyId))
      .run()
}

const storeRows = async (tx: Tx, rows: readonly LoggedRequest[], { random, accountOf, keyOf }: Places) => {
  if (rows.length === 0) return
  const own = rows.map((row) => ({
    ...row,
    id: random.orderedId('trn', row.startedAt),
    accountId: row.accountId ? accountOf(row.accountId) : null,
    keyId: row.keyId ? keyOf(row.keyId) : null,
  }))
  await tx.insert(requests).values(own).run()
}
