/** Writes a batch of ended turns with prepared statements and precomputed sums. */
import type { Database, Statement } from 'bun:sqlite'
import { getTableColumns, getTableName, type Table } from 'drizzle-orm'
import { toSnakeCase } from 'drizzle-orm/casing'
import { attempts, requests } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import { deltaStatement, type LimitDelta, leasePath } from '../../model/keys/reservations.ts'
import { CountedClients } from '../../model/log/counted-clients.ts'
import { isCounted } from '../../model/log/counted-requests.ts'
import { isFault } from '../../model/log/turn-fault.ts'
import { lateHourWriter } from '../../model/reports/request-spans.ts'
import type { AffinityRow } from '../pool/affinity.ts'
import type { AttemptRecord } from '../turn/turn.ts'

/** Everything stored for one ended turn, written in full or not at all. */
export interface LedgerEntry {
  row: typeof requests.$inferInsert
  attempts: readonly AttemptRecord[]
  /** The model for the hourly totals; null: not counted. */
  hourModel: string | null
  limitDeltas: readonly LimitDelta[]
  /** It failed for a reason other than the client's request. */
  isServiceFault: boolean
  affinity: readonly AffinityRow[]
}

export interface LedgerWriter {
  /** Must run inside a transaction. Skips rows of deleted accounts and keys. */
  write(entries: readonly LedgerEntry[], usage: ReadonlyMap<string, UsageSnapshot>): void
}

/** Prepares the statements on `sqlite`, whose schema must exist. */
/** `process`: the number of this process, under which it leases key limits. */
export const ledgerWriter = (sqlite: Database, process = 0): LedgerWriter => {
  const insertRequest = inserter(sqlite, requests)
  const insertAttempt = inserter(sqlite, attempts)
  const addToLimit = sqlite.prepare(deltaStatement)
  const lease = leasePath(process)
  const addToKey = sqlite.prepare(ADD_TO_KEY)
  const addToAccount = sqlite.prepare(ADD_TO_ACCOUNT)
  const addToHour = sqlite.prepare(ADD_TO_HOUR)
  const addLate = lateHourWriter(sqlite)
  const clients = new CountedClients()
  const saveAffinity = sqlite.prepare(SAVE_AFFINITY)
  const saveUsage = sqlite.prepare(SAVE_USAGE)
  return {
    write(entries, usage) {
      const counted = entries.filter(({ row }) => isCounted(row))
      for (const { row, attempts: records } of entries) {
        insertRequest(row)
        for (const record of records)
          insertAttempt({ ...record, requestRowId: row.id, considered: record.considered as unknown[] }) // as: only read
      }
      runAll(addToKey, keySums(counted))
      runAll(addToAccount, accountSums(counted))
      const hours = hourSums(counted, clients)
      runAll(addToHour, hours)
      addLate(hours)
      runAll(
        addToLimit,
        limitSums(counted).map((sum) => ({ ...sum, process: lease })),
      )
      runAll(saveAffinity, lastAffinity(entries))
      for (const [accountId, snapshot] of usage)
        saveUsage.run({ accountId, at: snapshot.at, snapshot: JSON.stringify(snapshot) })
    },
  }
}

const ADD_TO_KEY = `
UPDATE api_keys SET
  request_count = request_count + $requests,
  input_tokens = input_tokens + $inputTokens,
  cached_input_tokens = cached_input_tokens + $cachedInputTokens,
  output_tokens = output_tokens + $outputTokens,
  cost_micros = cost_micros + $costMicros,
  last_used_at = max(coalesce(last_used_at, 0), $lastUsedAt)
WHERE id = $keyId`

const ADD_TO_ACCOUNT = `
INSERT INTO account_totals (account_id, requests, input_tokens, cached_input_tokens, output_tokens, cost_micros)
SELECT $accountId, $requests, $inputTokens, $cachedInputTokens, $outputTokens, $costMicros
WHERE EXISTS (SELECT 1 FROM accounts WHERE id = $accountId)
ON CONFLICT DO UPDATE SET
  requests = requests + excluded.requests,
  input_tokens = input_tokens + excluded.input_tokens,
  cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
  output_tokens = output_tokens + excluded.output_tokens,
  cost_micros = cost_micros + excluded.cost_micros`

const ADD_TO_HOUR = `
INSERT INTO request_hours (hour, account_id, key_id, model, client, source_id, requests, errors, cancelled, input_tokens,
  cached_input_tokens, output_tokens, cost_micros, unpriced)
VALUES ($hour, $accountId, $keyId, $model, $client, $sourceId, $requests, $errors, $cancelled, $inputTokens,
  $cachedInputTokens, $outputTokens, $costMicros, $unpriced)
ON CONFLICT DO UPDATE SET
  requests = requests + excluded.requests,
  errors = errors + excluded.errors,
  cancelled = cancelled + excluded.cancelled,
  input_tokens = input_tokens + excluded.input_tokens,
  cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
  output_tokens = output_tokens + excluded.output_tokens,
  cost_micros = cost_micros + excluded.cost_micros,
  unpriced = unpriced + excluded.unpriced`

const SAVE_AFFINITY = `
INSERT INTO affinity (kind, key_hash, account_id, mixed, used_at)
SELECT $kind, $keyHash, $accountId, $mixed, $usedAt WHERE EXISTS (SELECT 1 FROM accounts WHERE id = $accountId)
ON CONFLICT DO UPDATE SET account_id = excluded.account_id, mixed = excluded.mixed, used_at = excluded.used_at`

/** The pool has merged earlier snapshots, and this is the only writer. */
const SAVE_USAGE = `
INSERT INTO account_usage (account_id, at, snapshot)
SELECT $accountId, $at, $snapshot WHERE EXISTS (SELECT 1 FROM accounts WHERE id = $accountId)
ON CONFLICT DO UPDATE SET at = excluded.at, snapshot = excluded.snapshot`

type Value = string | number | null
type Parameters = Record<string, Value>

const runAll = (statement: Statement, rows: Iterable<object>): void => {
  for (const row of rows) statement.run(row as Parameters) // as: an interface has no index signature
}

/** Inserts all columns, with values encoded as drizzle does; building a query per row costs twenty times as much. */
const inserter = <T extends Table>(sqlite: Database, table: T) => {
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([property]) => toSnakeCase(property))
  const marks = columns.map(() => '?')
  const statement = sqlite.prepare(`INSERT INTO ${getTableName(table)} (${names}) VALUES (${marks})`)
  return (row: T['$inferInsert']): void => {
    const given: Record<string, unknown> = row
    const values = columns.map(([property, column]) => {
      const value = given[property] ?? column.default ?? null
      return (value === null ? null : column.mapToDriverValue(value)) as Value // as: text, integer and real columns only
    })
    statement.run(...values)
  }
}

const keySums = (entries: readonly LedgerEntry[]) => {
  const sums = new Map<string, Sum & { keyId: string; lastUsedAt: number }>()
  for (const { row } of entries) {
    const { keyId } = row
    if (!keyId) continue
    const sum = sums.getOrInsertComputed(keyId, () => ({ keyId, ...NOTHING, lastUsedAt: 0 }))
    add(sum, row)
    sum.lastUsedAt = Math.max(sum.lastUsedAt, row.startedAt)
  }
  return sums.values()
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
  return sums.values()
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
  /** Requests that cost something whose price is not known: they are missing from the cost. */
  unpriced: number
}

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
    const sum = sums.getOrInsertComputed(name, () => ({ ...place, ...NOTHING, errors: 0, cancelled: 0, unpriced: 0 }))
    add(sum, row)
    if (isFault(row)) sum.errors++
    if (status === 'cancelled') sum.cancelled++
    if (isUnpriced(row)) sum.unpriced++
  }
  return [...sums.values()]
}

/** Images and transcriptions always cost something, also where the upstream reports no usage. */
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
  return [...sums.values()]
}

const lastAffinity = (entries: readonly LedgerEntry[]): Iterable<AffinityRow> => {
  const rows = new Map<string, AffinityRow>()
  for (const row of entries.flatMap((entry) => entry.affinity)) rows.set(`${row.kind}\0${row.keyHash}`, row)
  return rows.values()
}
