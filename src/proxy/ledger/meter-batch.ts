/** The usage meter readings of a ledger batch, each with exactly the requests that ended before it. */
import type { Query, Rows } from '../../../db/connection.ts'
import { type MeterWindow, meterOpen, meterReadings } from '../../../db/schema/meter.ts'
import { inKeyOrder, insertInto, type Statement } from '../../../db/statements.ts'
import { isNewReading, type MeterReading } from '../../model/accounts/meter-readings.ts'
import type { LedgerEntry } from './ledger-batch.ts'

export interface NotedReadings {
  accountId: string
  /** The number of entries in the batch that ended before the readings. */
  after: number
  readings: readonly MeterReading[]
}

/** A meter's last reading, and the requests that ended since then. */
export type OpenMeter = typeof meterOpen.$inferSelect

/** The open meters of these accounts. */
export const openMetersQuery = (accountIds: Iterable<string>): Query => ({
  sql: OPEN_METERS,
  bindings: [JSON.stringify([...accountIds])],
})

const OPEN_METERS = `
SELECT account_id, "window", at, used_percent, window_minutes, reset_at, running, priced_micros, tokens, requests, unpriced
FROM meter_open WHERE account_id IN (SELECT value FROM json_each(?)) ORDER BY account_id, "window"`

export const toOpenMeters = (rows: Rows): OpenMeter[] =>
  rows.map(([accountId, window, at, used, minutes, resetAt, running, micros, tokens, requests, unpriced]) => ({
    accountId: String(accountId),
    window: String(window) as MeterWindow, // as: written below only
    at: Number(at),
    usedPercent: Number(used),
    windowMinutes: Number(minutes),
    resetAt: resetAt === null ? null : Number(resetAt),
    running: Number(running),
    pricedMicros: Number(micros),
    tokens: Number(tokens),
    requests: Number(requests),
    unpriced: Number(unpriced),
  }))

interface MeterBatch {
  entries: readonly LedgerEntry[]
  /** Ordered by time. */
  meters: readonly NotedReadings[]
}

/** `open` are the open meters before the batch. Skips accounts that do not exist. */
export const getMeterStatements = (
  { entries, meters }: MeterBatch,
  open: readonly OpenMeter[],
  exists: (account: { accountId: string }) => boolean,
): Statement[] => {
  const known = Map.groupBy(
    open.map((meter) => ({ ...meter })),
    ({ accountId }) => accountId,
  )
  const changed = new Map<string, OpenMeter>()
  const note = (meter: OpenMeter) => changed.set(`${meter.accountId}\0${meter.window}`, meter)
  const rows: (typeof meterReadings.$inferInsert)[] = []
  const settle = (from: number, to: number) => {
    for (const { row } of entries.slice(from, to))
      for (const meter of (!row.paidCredits && known.get(row.accountId ?? '')) || []) {
        addWork(meter, row)
        note(meter)
      }
  }
  let settled = 0
  for (const { accountId, after, readings } of meters.filter(exists)) {
    settle(settled, after)
    settled = Math.max(settled, after)
    const own = known.getOrInsertComputed(accountId, () => [])
    for (const reading of readings) {
      const last = own.find(({ window }) => window === reading.window) ?? null
      if (!isNewReading(last, reading)) continue
      const { pricedMicros, tokens, requests, unpriced } = last ?? NO_WORK
      rows.push({
        accountId,
        ...reading,
        pricedMicrosHere: pricedMicros,
        tokensHere: tokens,
        requestsHere: requests,
        unpricedHere: unpriced,
      })
      const meter = Object.assign(last ?? {}, { accountId, ...reading, ...NO_WORK })
      if (last === null) own.push(meter)
      note(meter)
    }
  }
  settle(settled, entries.length)
  return [intoReadings(rows), intoOpen(inKeyOrder(changed).filter(exists))]
}

const NO_WORK = { pricedMicros: 0, tokens: 0, requests: 0, unpriced: 0 }

/** Whether the meter counts the request. It counts warm-ups, but not requests on paid credits. */
const addWork = (meter: OpenMeter, row: LedgerEntry['row']): void => {
  const tokens = (row.inputTokens ?? 0) + (row.outputTokens ?? 0)
  meter.pricedMicros += row.costMicros ?? 0
  meter.tokens += tokens
  meter.requests++
  if (tokens > 0 && (row.costMicros ?? null) === null) meter.unpriced++
}

const intoReadings = insertInto(meterReadings, { except: 'id' })

const intoOpen = insertInto(meterOpen, {
  onConflict: `ON CONFLICT (account_id, "window") DO UPDATE SET
  at = excluded.at, used_percent = excluded.used_percent, window_minutes = excluded.window_minutes,
  reset_at = excluded.reset_at, running = excluded.running, priced_micros = excluded.priced_micros,
  tokens = excluded.tokens, requests = excluded.requests, unpriced = excluded.unpriced`,
})
