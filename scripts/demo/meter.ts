/** Readings of the weekly meters in the demo's week, which fit its requests, with some use elsewhere. */
import { HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import type { MeterReading } from '../../src/model/accounts/meter-readings.ts'
import type { LedgerEntry } from '../../src/proxy/ledger/ledger-batch.ts'
import type { NotedReadings } from '../../src/proxy/ledger/meter-batch.ts'
import { DEMO_ACCOUNTS, type DemoAccount } from './pool.ts'
import { WEEK_MS } from './week.ts'

const READ_EVERY_MS = 20 * MINUTE_MS
const SHARE_ELSEWHERE = 0.11
/** When the accounts are used elsewhere, before the end of the week. */
const ELSEWHERE_MS = [130, 60, 14].map((hours) => hours * HOUR_MS)

export interface DemoWeek {
  entries: readonly LedgerEntry[]
  accountIds: ReadonlyMap<string, string>
  now: number
}

/** In the order of the entries. */
export const meterNotes = (week: DemoWeek): NotedReadings[] =>
  DEMO_ACCOUNTS.flatMap((account) => accountNotes(account, week)).toSorted((a, b) => a.after - b.after)

interface Meter {
  used: number
  resetAt: number
  readAt: number
}

const accountNotes = (account: DemoAccount, { entries, accountIds, now }: DemoWeek): NotedReadings[] => {
  const accountId = accountIds.get(account.name) ?? ''
  const own = entries.flatMap(({ row }, index) => (row.accountId === accountId ? [{ index, row }] : []))
  const startedAt = now + account.weeklyResetMs - WEEK_MS
  const current = own.filter(({ row }) => row.startedAt >= startedAt)
  const cost = current.reduce((sum, { row }) => sum + (row.costMicros ?? 0), 0)
  /** The requests before which the account was used elsewhere. */
  const after = new Set(ELSEWHERE_MS.map((ago) => own.find(({ row }) => row.startedAt >= now - ago)?.index))
  const inWindow = current.filter(({ index }) => after.has(index)).length
  const last = current.at(-1)
  if (!last || cost === 0) return []
  const elsewhere = (account.weeklyPercent * SHARE_ELSEWHERE) / Math.max(1, inWindow)
  const price = cost / (account.weeklyPercent - elsewhere * inWindow)
  const meter: Meter = { used: 20, resetAt: startedAt, readAt: 0 }
  const notes: NotedReadings[] = []
  const note = (place: number, at: number, { used, resetAt }: Meter) => {
    meter.readAt = at
    const usedPercent = Math.round(used * 10) / 10
    const reading: MeterReading = {
      window: 'weekly',
      at,
      usedPercent,
      windowMinutes: WEEK_MS / MINUTE_MS,
      resetAt,
      running: 0,
    }
    notes.push({ accountId, after: place, readings: [reading] })
  }
  for (const { index, row } of own) {
    const at = row.startedAt
    if (at >= meter.resetAt) Object.assign(meter, { used: 0, resetAt: startedAt + WEEK_MS })
    if (after.has(index)) {
      note(index, at - 2 * MINUTE_MS, meter)
      meter.used += elsewhere
      note(index, at - MINUTE_MS, meter)
    }
    meter.used = Math.min(100, meter.used + (row.costMicros ?? 0) / price)
    if (at - meter.readAt >= READ_EVERY_MS || index === last.index)
      note(index + 1, Math.round(at + (row.totalMs ?? 0)) + MINUTE_MS, meter)
  }
  return notes
}
