/** All API keys in memory, found by hash: what authentication and admission ask, so that a turn reads no database. */
import type { Db } from '../../db/commit.ts'
import { hashKey, listKeys, type StoredKey } from './api-keys.ts'
import type { UsageSection } from './key-input.ts'
import type { LimitRow } from './key-limits.ts'
import type { LiveLimit } from './reservations.ts'

/** What a key may do. Frozen; a change to the key makes a new policy, with the same limit objects in it. */
export interface KeyPolicy {
  readonly id: string
  readonly name: string
  /** Switched on, and its owner, if it has one, is active (decisions §4). */
  readonly isActive: boolean
  /** ms since epoch; null: never. */
  readonly expiresAt: number | null
  /** null: every model. */
  readonly allowedModels: ReadonlySet<string> | null
  /** Whether the native catalog hides the models that are not allowed instead of leaving them out. */
  readonly applyToCodexModel: boolean
  readonly enforcedModel: string | null
  readonly efforts: { readonly enforced: string | null; readonly allowed: ReadonlySet<string> | null }
  readonly tier: string | null
  readonly trafficClass: StoredKey['trafficClass']
  readonly transport: StoredKey['transportPolicyOverride']
  /** Account ids; null: every account. */
  readonly scope: ReadonlySet<string> | null
  readonly usageSections: ReadonlySet<UsageSection>
  /** Live: `reservations.ts` moves their counters. */
  readonly limits: readonly LiveLimit[]
}

export class KeyRing {
  readonly #db: Db
  #policies: ReadonlyMap<string, KeyPolicy> = new Map()
  #limits: ReadonlyMap<string, LiveLimit> = new Map()

  constructor(db: Db) {
    this.#db = db
    this.reload()
  }

  /**
   * Reads all keys again. A limit that still exists stays the same object, so what running turns hold survives. The
   * ledger must be flushed before: the counters of the rows replace those in memory.
   */
  reload(): void {
    const limits = new Map<string, LiveLimit>()
    const policies = new Map<string, KeyPolicy>()
    for (const row of listKeys(this.#db)) {
      const live = row.limits.map((limit) => refreshed(this.#limits.get(limit.id), limit))
      for (const limit of live) limits.set(limit.id, limit)
      policies.set(row.keyHash, policyOf(row, live))
    }
    this.#policies = policies
    this.#limits = limits
  }

  /** How many keys there are, revoked and expired ones too. */
  get size(): number {
    return this.#policies.size
  }

  /** By hex SHA-256; the policy of a revoked or expired key, too. */
  byHash(hash: string): KeyPolicy | null {
    return this.#policies.get(hash) ?? null
  }

  find(plainKey: string): KeyPolicy | null {
    return this.byHash(hashKey(plainKey))
  }
}

const policyOf = (row: StoredKey, limits: readonly LiveLimit[]): KeyPolicy =>
  Object.freeze({
    id: row.id,
    name: row.name,
    isActive: row.isActive && (row.ownerUserId === null || row.owner?.status === 'active'),
    expiresAt: row.expiresAt,
    allowedModels: setOf(row.allowedModels),
    applyToCodexModel: row.applyToCodexModel,
    enforcedModel: row.enforcedModel,
    efforts: Object.freeze({ enforced: row.enforcedReasoningEffort, allowed: setOf(row.allowedReasoningEfforts) }),
    tier: row.enforcedServiceTier,
    trafficClass: row.trafficClass,
    transport: row.transportPolicyOverride,
    scope: setOf(row.assignedAccountIds),
    usageSections: new Set(row.usageSections.split(',') as UsageSection[]), // as: checked when it was stored
    limits: Object.freeze(limits),
  })

const setOf = (values: readonly string[] | null): ReadonlySet<string> | null => (values ? new Set(values) : null)

/** The row's window may be another than memory's, where nothing has been settled since that began; then memory is right. */
const refreshed = (live: LiveLimit | undefined, row: LimitRow): LiveLimit => {
  if (!live) return liveLimit(row)
  live.maxValue = row.maxValue
  if (row.resetAt === live.resetAt) live.settled = row.currentValue
  return live
}

const liveLimit = (row: LimitRow): LiveLimit => ({
  id: row.id,
  keyId: row.keyId,
  type: row.limitType,
  window: row.limitWindow,
  modelFilter: row.modelFilter,
  maxValue: row.maxValue,
  settled: row.currentValue,
  reserved: 0,
  resetAt: row.resetAt,
})
