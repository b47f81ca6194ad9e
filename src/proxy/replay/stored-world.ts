/** The world of a replay from the database: accounts in use, keys, settings, and the logged requests. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { allTags } from '../../model/accounts/account-tags.ts'
import { type AccountRow, getUsage, listAccounts } from '../../model/accounts/accounts.ts'
import { capacityCredits, type UsageSnapshot, type UsageWindow, usedNow } from '../../model/accounts/usage-windows.ts'
import { Catalog } from '../../model/catalog/catalog.ts'
import { listKeys } from '../../model/keys/api-keys.ts'
import { keyScope } from '../../model/keys/key-scope.ts'
import {
  type CreditRates,
  creditRates,
  DEMAND,
  LEAST_UNITS,
  movedUnits,
  UNITS,
  uncachedUnits,
} from '../../model/log/request-units.ts'
import { readSettings } from '../../settings/store.ts'
import { fromRow } from '../pool/live-account.ts'
import { toPolicy } from '../pool/policies.ts'
import type { Arrival, ReplayAccount, ReplayKey, ReplayWorld } from './simulate.ts'
import type { ReplayWindow } from './simulated-window.ts'

/** More requests than this are represented by every second, third … conversation. */
export const MAX_ARRIVALS = 100_000

const WINDOW_MINUTES = { fiveHour: 300, weekly: 10_080, monthly: 43_200 } as const

/** Accounts in use, with their windows as last reported (`asOf: 'now'`) or unused, with the same resets by date. */
export const storedAccounts = async (
  db: Db,
  { at, asOf }: { at: number; asOf: 'now' | 'unused' },
): Promise<ReplayAccount[]> => {
  const catalog = await Catalog.open(db)
  const tags = await allTags(db)
  const usage = await getUsage(db)
  return (await listAccounts(db))
    .filter((row) => isInUse({ status: row.status }))
    .map((row) => ({
      ...fromRow(row, tags.get(row.id) ?? []),
      id: row.id,
      planType: row.planType,
      models: catalog.getModels(row.id),
      ...getWindows(row, { usage: usage.get(row.id) ?? null, at, asOf }),
    }))
}

interface AsReported {
  usage: UsageSnapshot | null
  at: number
  asOf: 'now' | 'unused'
}

/** As in pool totals, an account with a monthly allowance has no other. */
const getWindows = ({ planType }: AccountRow, reported: AsReported): Pick<ReplayAccount, 'fiveHour' | 'long'> => {
  const windows = reported.usage?.windows
  const isMonthly = capacityCredits(planType, 'monthly') > 0 && (!windows?.weekly || windows.monthly !== null)
  const getWindow = (length: keyof typeof WINDOW_MINUTES): ReplayWindow => ({
    credits: capacityCredits(planType, length),
    lengthMs: (windows?.[length]?.windowMinutes ?? WINDOW_MINUTES[length]) * MINUTE_MS,
    ...getProgress(windows?.[length] ?? null, reported, capacityCredits(planType, length)),
  })
  if (isMonthly) return { fiveHour: null, long: { length: 'monthly', ...getWindow('monthly') } }
  const fiveHour = capacityCredits(planType, 'fiveHour') > 0 ? getWindow('fiveHour') : null
  const weekly = getWindow('weekly')
  if (reported.asOf === 'now') return { fiveHour, long: { length: 'weekly', ...weekly } }
  const resetAt = weekly.resetAt && firstAfter(weekly.resetAt, weekly.lengthMs, reported.at)
  return { fiveHour: fiveHour && { ...fiveHour, resetAt: null }, long: { length: 'weekly', ...weekly, resetAt } }
}

const getProgress = (
  window: UsageWindow | null,
  { at, asOf }: AsReported,
  credits: number,
): Pick<ReplayWindow, 'usedCredits' | 'resetAt'> => {
  if (asOf === 'unused') return { usedCredits: 0, resetAt: window?.resetAt ?? null }
  const used = usedNow(window, at) ?? 0
  const isOpen = used > 0 && window?.resetAt != null && window.resetAt > at
  return { usedCredits: (credits * used) / 100, resetAt: isOpen ? window.resetAt : null }
}

const firstAfter = (resetAt: number, lengthMs: number, at: number): number =>
  resetAt - Math.ceil((resetAt - at) / lengthMs - 1) * lengthMs

/** The routing settings, and everything else of a world but its accounts and arrivals. */
export const storedPolicy = async (db: Db, rates: CreditRates): Promise<Pick<ReplayWorld, 'policy' | 'affinityMs'>> => {
  const settings = (await readSettings(db)).values
  return {
    policy: { ...toPolicy(settings), rates },
    affinityMs: settings.conversationAffinityMaxAgeDays * DAY_MS,
  }
}

export interface StoredArrivals {
  arrivals: Arrival[]
  rates: CreditRates
  /** How many requests were logged. Each arrival represents `each` of them. */
  requests: number
  each: number
}

/** The logged requests from `from` (ms) to `to`, excluded. */
export const storedArrivals = async (db: Db, from: number, to: number): Promise<StoredArrivals> => {
  const within = sql`${requests.startedAt} >= ${from} AND ${requests.startedAt} < ${to} AND ${DEMAND}`
  const [counted] = await db.all<{ n: number }>(sql`SELECT count(*) AS n FROM ${requests} WHERE ${within}`)
  const requestCount = counted?.n ?? 0
  const each = Math.max(1, Math.ceil(requestCount / MAX_ARRIVALS))
  const rates = await creditRates(db, from, to)
  const rows = await db.all<LoggedRow>(sql`
    SELECT ${requests.startedAt} AS at, ${requests.totalMs} AS "durationMs",
      ${requests.conversationHash} AS conversation, ${requests.model} AS model, ${requests.keyId} AS "keyId",
      ${requests.serviceTier} AS "serviceTier", coalesce(${requests.inputTokens}, 0) AS "inputTokens",
      coalesce(${requests.cachedInputTokens}, 0) AS "cachedInputTokens",
      coalesce(${requests.outputTokens}, 0) AS "outputTokens", ${UNITS} AS units
    FROM ${requests} WHERE ${within} AND ${oneIn(each)} ORDER BY ${requests.startedAt}, ${requests.id}`)
  return { arrivals: await getArrivals(rows, { db, rates, each }), rates, requests: requestCount, each }
}

interface LoggedRow {
  at: number
  durationMs: number
  conversation: string | null
  model: string | null
  keyId: string | null
  serviceTier: string | null
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  units: number | null
}

/** Whole conversations, by two random characters of their hash. */
const oneIn = (each: number) => {
  if (each === 1) return sql`TRUE`
  const key = sql`coalesce(${requests.conversationHash}, ${requests.id})`
  const digit = (place: number) => sql`instr(${BASE64}, substr(${key}, ${place}, 1))`
  return sql`(${digit(-3)} * 64 + ${digit(-2)}) % ${each} = 0`
}
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Requests without reported tokens count as the average of their model. */
const getArrivals = async (
  rows: readonly LoggedRow[],
  { db, rates, each }: { db: Db; rates: CreditRates; each: number },
): Promise<Arrival[]> => {
  const keys = await storedKeys(db)
  const averages = averageUnits(rows)
  const conversations = new Map<string, number>()
  return rows.map((row) => {
    const { at, durationMs, conversation, model, keyId, units, cachedInputTokens } = row
    const used = (units ?? averages.get(model) ?? LEAST_UNITS) * each
    return {
      at,
      durationMs,
      conversation:
        conversation === null ? null : conversations.getOrInsertComputed(conversation, () => conversations.size),
      model,
      key: keys.get(keyId ?? '') ?? null,
      short: used * rates.short,
      long: used * rates.long,
      cached: cachedInputTokens === 0 ? null : getCached(row, { used, each }),
    }
  })
}

const getCached = (row: LoggedRow, { used, each }: { used: number; each: number }): Arrival['cached'] => ({
  tokens: row.cachedInputTokens * each,
  units: used,
  moveUnits: uncachedUnits(row, row) * each,
  extraUnits: Math.max(0, movedUnits(row, row) * each - used),
})

const averageUnits = (rows: readonly LoggedRow[]): Map<string | null, number> => {
  const known = Map.groupBy(
    rows.filter(({ units }) => units !== null),
    ({ model }) => model,
  )
  const average = (of: readonly LoggedRow[]) => of.reduce((sum, { units }) => sum + (units ?? 0), 0) / of.length
  return new Map([...known].map(([model, of]) => [model, average(of)]))
}

const storedKeys = async (db: Db): Promise<ReadonlyMap<string, ReplayKey>> =>
  new Map(
    (await listKeys(db, 'all')).map(({ id, assignedAccountIds, assignedTags, ownerUserId, trafficClass }) => [
      id,
      {
        scope: keyScope(assignedAccountIds, assignedTags),
        ownerUserId,
        isOpportunistic: trafficClass === 'opportunistic',
      },
    ]),
  )
