/** `/dashboard` for users who see only their own keys: their use, their keys, and what the pool has left. */
import { type OwnOverview, OwnOverviewPage, type OwnRange, type PoolLeft } from '../../views/overview/own.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { reply } from '../http/reply.tsx'
import { viewerZone } from '../http/viewer-clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import { localDate } from '../lib/zoned-days.ts'
import { shownKey } from '../model/keys/api-key-view.ts'
import { listKeys, type StoredKey } from '../model/keys/api-keys.ts'
import { keyState } from '../model/keys/key-list.ts'
import type { KeyPolicy } from '../model/keys/key-ring.ts'
import { remainingPercent } from '../model/overview/pool-usage.ts'
import { ReportQuery } from '../model/reports/reports.ts'
import type { ViewScope } from '../model/users/view-scope.ts'
import { canChangeKeys } from './keys/keys.ts'
import { toReader } from './reader-for-caller.ts'
import { getHiddenFields } from './visibility.ts'

export const OWN_RANGES = ['today', '7d', '30d'] as const satisfies readonly OwnRange[]

const DAYS: Record<OwnRange, number> = { today: 1, '7d': 7, '30d': 30 }

export const showOwnOverview = async (c: Ctx, scope: ViewScope, range: OwnRange) => {
  const now = c.env.clock.now()
  const timezone = viewerZone(c) ?? 'UTC'
  const end_date = localDate(now, timezone)
  const start_date = iso(Date.parse(end_date) - (DAYS[range] - 1) * DAY_MS).slice(0, 10)
  const query = ReportQuery.parse({ start_date, end_date, timezone })
  const hiddenFields = getHiddenFields(c.var.principal)
  const reader = toReader(c)
  const [{ summary, comparison }, chart] = await Promise.all([
    reader.report(query, hiddenFields, now),
    reader.reportBars({ query, chart: { measure: 'requests', stack: 'none' } }, hiddenFields, now),
  ])
  const rows = await listKeys(c.env.db, scope)
  const keys = rows.map((row) => shownKey(row, now, scope))
  const value: OwnOverview = {
    generatedAt: iso(now),
    range,
    timezone,
    summary,
    comparison,
    chart,
    keys: keys.map((key) => ({ ...key, state: keyState(key) })),
    pool: poolLeft(c, rows),
    canCreate: canChangeKeys(c),
  }
  return reply(c, value, OwnOverviewPage)
}

/** The pool of the first active key that shows it. */
const poolLeft = (c: Ctx, rows: readonly StoredKey[]): PoolLeft[] | null => {
  const policies = rows.flatMap(({ keyHash }) => c.env.keys.byHash(keyHash) ?? [])
  return (
    policies
      .values()
      .filter(({ isActive }) => isActive)
      .map((policy) => poolLeftFor(c, policy))
      .find(Boolean) ?? null
  )
}

/** What the accounts of a key have left in each window; null: hidden from its client, or unknown. */
export const poolLeftFor = ({ env: { clientLimits } }: Ctx, policy: KeyPolicy): PoolLeft[] | null => {
  if (!policy.usageSections.has('account_pool_usage') || clientLimits.hidesPool(policy)) return null
  const left = clientLimits.forScope(policy.scope).windows.flatMap((window): PoolLeft[] => {
    const percent = remainingPercent(window)
    return percent === null
      ? []
      : [{ window: window.window, remainingPercent: percent, resetAt: isoOrNull(window.resetAt) }]
  })
  return left.length === 0 ? null : left
}
