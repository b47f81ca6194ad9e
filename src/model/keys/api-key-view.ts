/** An API key as dashboard clients see it: camelCase, ISO times, never a hash. */
import { iso, isoOrNull } from '../../lib/iso.ts'
import type { ViewScope } from '../users/view-scope.ts'
import { getPolicy, keyVersion, type StoredKey } from './api-keys.ts'
import { isRunning, type LimitRow, resetAfter } from './key-limits.ts'

export type ApiKey = ReturnType<typeof toApiKey>
/** Answer to creating or regenerating a key: the only place with the key itself. */
export type ShownKey = ApiKey & { key: string }

/** The wire shape at `now` (ms): a limit whose window has passed shows zero and its next reset. */
export const toApiKey = (row: StoredKey, now: number) => ({
  id: row.id,
  version: keyVersion(row),
  name: row.name,
  keyPrefix: row.keyPrefix,
  isActive: row.isActive,
  deactivatedReason: row.deactivatedReason ?? (row.expiresAt !== null && row.expiresAt <= now ? 'expired' : null),
  ownerUserId: row.ownerUserId,
  /** null: no owner. A key works only while its owner is active. */
  owner: row.owner,
  createdAt: iso(row.createdAt),
  expiresAt: isoOrNull(row.expiresAt),
  lastUsedAt: isoOrNull(row.lastUsedAt),
  ...getPolicy(row),
  accountAssignmentScopeEnabled: row.assignedAccountIds !== null || row.assignedTags !== null,
  sourceAssignmentScopeEnabled: row.assignedSourceIds !== null,
  limits: row.limits.map((limit) => toLimit(limit, now)),
  usageSummary: {
    requestCount: row.requestCount,
    totalTokens: row.inputTokens + row.outputTokens,
    cachedInputTokens: row.cachedInputTokens,
    totalCostUsd: row.costMicros / 1e6,
  },
  pooledRemainingPercentPrimary: null,
  pooledRemainingPercentSecondary: null,
  pooledCapacityCreditsPrimary: null,
})

/** The same for readers in `scope`: users who see only their own keys get no account ids. */
export const shownKey = (row: StoredKey, now: number, scope: ViewScope): ApiKey => {
  const key = toApiKey(row, now)
  return scope === 'all' ? key : { ...key, assignedAccountIds: null, assignedTags: null }
}

const toLimit = (limit: LimitRow, now: number) => {
  const { resetAt, limitWindow } = limit
  return {
    id: limit.id,
    limitType: limit.limitType,
    limitWindow,
    maxValue: limit.maxValue,
    currentValue: isRunning(now, resetAt, limitWindow) ? limit.currentValue : 0,
    modelFilter: limit.modelFilter || null,
    resetAt: iso(resetAfter(now, resetAt, limitWindow)),
  }
}
