/** The statements that store a batch of ended turns, with precomputed sums. */
import type { Query, Rows } from '../../../db/connection.ts'
import { accountTotals, accountUsage, affinity } from '../../../db/schema/accounts.ts'
import { attempts, requestHours, requests } from '../../../db/schema/requests.ts'
import { inKeyOrder, insertInto, type Parameters, type Statement } from '../../../db/statements.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import { deltaStatement, type LimitDelta, leasePath } from '../../model/keys/reservations.ts'
import { CountedClients } from '../../model/log/counted-clients.ts'
import { isCounted } from '../../model/log/counted-requests.ts'
import { isFault } from '../../model/log/turn-fault.ts'
import { addLateHours, SUMMED_UNTIL } from '../../model/reports/request-spans.ts'
import type { AffinityRow } from '../pool/affinity.ts'
import type { AttemptRecord } from '../turn/turn.ts'
import { getMeterStatements, type NotedReadings, type OpenMeter, openMetersQuery, toOpenMeters } from './meter-batch.ts'
import { addRejected, type RejectedRow } from './rejections.ts'

/** Everything stored for one ended turn, written in full or not at all. */
export interface LedgerEntry {
  row: typeof requests.$inferInsert
  attempts: readonly AttemptRecord[]
  /** The model for the hourly totals. Null if the turn is not counted. */
  hourModel: string | null
  limitDeltas: readonly LimitDelta[]
  /** Whether it failed for a reason other than the client's request. */
  isServiceFault: boolean
  affinity: readonly AffinityRow[]
}

export interface LedgerBatch {
  /** The process number for leases of key limits. 0 if there is only one process. */
  process: number
  entries: readonly LedgerEntry[]
  /** Usage snapshots by account. */
  usage: ReadonlyMap<string, UsageSnapshot>
  /** In the order of time. */
  meters: readonly NotedReadings[]
  rejected: readonly RejectedRow[]
}

/** The rows that the transaction reads first. */
export interface Stored {
  /** The accounts of the batch that still exist. */
  accountIds: ReadonlySet<string>
  /** Hours that began before this time are already added up. */
  summedUntil: number
  openMeters: readonly OpenMeter[]
}

/** The queries for `Stored`. On PostgreSQL the rows they return are locked until the transaction ends. */
export const getReads = (batch: LedgerBatch): Record<keyof Read, Query> => ({
  accounts: { sql: EXISTING_ACCOUNTS, bindings: [JSON.stringify([...getAccountIds(batch)])] },
  summedUntil: SUMMED_UNTIL,
  openMeters: openMetersQuery(getAccountIds(batch)),
})

interface Read {
  accounts: Rows
  summedUntil: Rows
  openMeters: Rows
}

export const toStored = ({ accounts, summedUntil, openMeters }: Read): Stored => ({
  accountIds: new Set(accounts.map(([id]) => String(id))),
  summedUntil: Number(summedUntil[0]?.[0] ?? 0),
  openMeters: toOpenMeters(openMeters),
})

const EXISTING_ACCOUNTS = 'SELECT id FROM accounts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id'

/** Accounts that must exist for some of the rows. */
const getAccountIds = ({ entries, usage, meters }: LedgerBatch): ReadonlySet<string> => {
  const ids = new Set(usage.keys())
  for (const { accountId } of meters) ids.add(accountId)
  for (const { row, affinity: owners } of entries) {
    if (row.accountId) ids.add(row.accountId)
    for (const { accountId } of owners) ids.add(accountId)
  }
  return ids
}

/** Client names that a connection has already counted. */
export const getClients = (connection: object): CountedClients =>
  clients.getOrInsertComputed(connection, () => new CountedClients())

const clients = new WeakMap<object, CountedClients>()

/** Skips rows of deleted accounts; those of deleted keys change nothing. `clients` remembers the names it counted. */
export const getStatements = (
  { process, entries, usage, meters, rejected }: LedgerBatch,
  { accountIds, summedUntil, openMeters }: Stored,
  clients: CountedClients,
): Statement[] => {
  const exists = ({ accountId }: { accountId: string }) => accountIds.has(accountId)
  const counted = entries.filter(({ row }) => isCounted(row))
  const hours = hourSums(counted, clients)
  const lease = leasePath(process)
  return [
    intoRequests(entries.map(({ row }) => row)),
    intoAttempts(entries.flatMap(getAttempts)),
    { sql: ADD_TO_KEY, rows: keySums(counted) },
    intoTotals(accountSums(counted).filter(exists)),
    intoHours(hours),
    addLateHours(hours, summedUntil),
    { sql: deltaStatement, rows: limitSums(counted).map((sum) => ({ ...sum, process: lease })) },
    intoAffinity(lastAffinity(entries).filter(exists)),
    intoUsage(getUsage(usage).filter(exists)),
    ...getMeterStatements({ entries, meters }, openMeters, exists),
    addRejected(rejected),
  ]
}

const intoRequests = insertInto(requests)
const intoAttempts = insertInto(attempts)

const ADD_TO_KEY = `
UPDATE api_keys SET
  request_count = request_count + $requests,
  input_tokens = input_tokens + $inputTokens,
  cached_input_tokens = cached_input_tokens + $cachedInputTokens,
  output_tokens = output_tokens + $outputTokens,
  cost_micros = cost_micros + $costMicros,
  last_used_at = CASE WHEN last_used_at > $lastUsedAt THEN last_used_at ELSE $lastUsedAt END
WHERE id = $keyId`

const intoTotals = insertInto(accountTotals, {
  onConflict: `ON CONFLICT (account_id) DO UPDATE SET
  requests = account_totals.requests + excluded.requests,
  input_tokens = account_totals.input_tokens + excluded.input_tokens,
  cached_input_tokens = account_totals.cached_input_tokens + excluded.cached_input_tokens,
  output_tokens = account_totals.output_tokens + excluded.output_tokens,
  cost_micros = account_totals.cost_micros + excluded.cost_micros`,
})

const intoHours = insertInto(requestHours, {
  onConflict: `ON CONFLICT (hour, account_id, key_id, model, client, source_id) DO UPDATE SET
  requests = request_hours.requests + excluded.requests,
  errors = request_hours.errors + excluded.errors,
  cancelled = request_hours.cancelled + excluded.cancelled,
  input_tokens = request_hours.input_tokens + excluded.input_tokens,
  cached_input_tokens = request_hours.cached_input_tokens + excluded.cached_input_tokens,
  output_tokens = request_hours.output_tokens + excluded.output_tokens,
  cost_micros = request_hours.cost_micros + excluded.cost_micros,
  unpriced = request_hours.unpriced + excluded.unpriced,
  moves = request_hours.moves + excluded.moves,
  avoidable_moves = request_hours.avoidable_moves + excluded.avoidable_moves,
  moved_tokens = request_hours.moved_tokens + excluded.moved_tokens`,
})

const intoAffinity = insertInto(affinity, {
  onConflict: `ON CONFLICT (kind, key_hash) DO UPDATE SET
  account_id = excluded.account_id, mixed = excluded.mixed, used_at = excluded.used_at,
  units = excluded.units, move_units = excluded.move_units, cached_tokens = excluded.cached_tokens`,
})

/** The pool has merged earlier snapshots, and this is the only writer. */
const intoUsage = insertInto(accountUsage, {
  onConflict: 'ON CONFLICT (account_id) DO UPDATE SET at = excluded.at, snapshot = excluded.snapshot',
})

const getAttempts = ({ row, attempts: records }: LedgerEntry): (typeof attempts.$inferInsert)[] =>
  records.map((record) => ({ ...record, requestRowId: row.id, considered: record.considered as unknown[] })) // as: only read

const getUsage = (usage: LedgerBatch['usage']) =>
  inKeyOrder(new Map([...usage].map(([accountId, snapshot]) => [accountId, { accountId, at: snapshot.at, snapshot }])))

const keySums = (entries: readonly LedgerEntry[]): Parameters[] => {
  const sums = new Map<string, Sum & { keyId: string; lastUsedAt: number }>()
  for (const { row } of entries) {
    const { keyId } = row
    if (!keyId) continue
    const sum = sums.getOrInsertComputed(keyId, () => ({ keyId, ...NOTHING, lastUsedAt: 0 }))
    add(sum, row)
    sum.lastUsedAt = Math.max(sum.lastUsedAt, row.startedAt)
  }
  return inKeyOrder(sums)
}

const accountSums = (entries: readonly LedgerEntry[]) => {
  const sums = new Map<string, Sum & { accountId: string }>()
  for (const { row } of entries) {
    const { accountId } = row
    if (accountId)
      add(
        sums.getOrInsertComputed(accountId, () => ({ accountId, ...NOTHING })),
        row,
      )
  }
  return inKeyOrder(sums)
}

interface HourSum extends Sum {
  hour: number
  accountId: string
  keyId: string
  model: string
  client: string
  sourceId: string
  errors: number
  cancelled: number
  /** Whether the request has a cost but no known price, so that its cost is missing. */
  unpriced: number
  moves: number
  avoidableMoves: number
  movedTokens: number
}

const NO_COUNTS = { errors: 0, cancelled: 0, unpriced: 0, moves: 0, avoidableMoves: 0, movedTokens: 0 }

const hourSums = (entries: readonly LedgerEntry[], clients: CountedClients): readonly HourSum[] => {
  const sums = new Map<string, HourSum>()
  for (const { row, hourModel } of entries) {
    const { startedAt, accountId, keyId, sourceId, status } = row
    const hour = startedAt - (startedAt % HOUR_MS)
    const place = {
      hour,
      accountId: accountId ?? '',
      keyId: keyId ?? '',
      model: hourModel ?? '',
      client: clients.countedAs(row.userAgent ?? null, hour),
      sourceId: sourceId ?? '',
    }
    const name = `${place.hour}\0${place.accountId}\0${place.keyId}\0${place.model}\0${place.client}\0${place.sourceId}`
    const sum = sums.getOrInsertComputed(name, () => ({ ...place, ...NOTHING, ...NO_COUNTS }))
    add(sum, row)
    if (isFault(row)) sum.errors++
    if (status === 'cancelled') sum.cancelled++
    if (isUnpriced(row)) sum.unpriced++
    if (row.moved) addMove(sum, row)
  }
  return inKeyOrder(sums)
}

const addMove = (sum: HourSum, { moveAvoidable, movedTokens }: LedgerEntry['row']): void => {
  sum.moves++
  if (moveAvoidable) sum.avoidableMoves++
  sum.movedTokens += movedTokens ?? 0
}

/** Images and transcriptions always have a cost, even if the upstream reports no usage. */
const isUnpriced = ({ kind, status, inputTokens, costMicros }: LedgerEntry['row']): boolean => {
  if ((costMicros ?? null) !== null) return false
  return (inputTokens ?? null) !== null || (status === 'ok' && (kind === 'image' || kind === 'audio'))
}

const NOTHING = Object.freeze({ requests: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costMicros: 0 })
type Sum = { -readonly [Name in keyof typeof NOTHING]: number }

const add = (sum: Sum, row: LedgerEntry['row']): void => {
  sum.requests++
  sum.inputTokens += row.inputTokens ?? 0
  sum.cachedInputTokens += row.cachedInputTokens ?? 0
  sum.outputTokens += row.outputTokens ?? 0
  sum.costMicros += row.costMicros ?? 0
}

/** Adds up the deltas of one limit and window; their order does not matter to `deltaStatement`. */
const limitSums = (entries: readonly LedgerEntry[]): Omit<LimitDelta, 'keyId'>[] => {
  const sums = new Map<string, Omit<LimitDelta, 'keyId'>>()
  for (const { keyId: _, ...added } of entries.flatMap((entry) => entry.limitDeltas)) {
    const name = `${added.limitId}\0${added.resetAt}`
    const sum = sums.getOrInsertComputed(name, () => ({ ...added, delta: 0, leased: 0 }))
    sum.delta += added.delta
    sum.leased += added.leased
  }
  return inKeyOrder(sums)
}

const lastAffinity = (entries: readonly LedgerEntry[]): AffinityRow[] => {
  const rows = new Map<string, AffinityRow>()
  for (const row of entries.flatMap((entry) => entry.affinity)) rows.set(`${row.kind}\0${row.keyHash}`, row)
  return inKeyOrder(rows)
}
