/** All API keys in memory, by hash, so that authentication and admission need no database read. */
import type { Db } from '../../../db/commit.ts'
import { hashKey, listKeys, type StoredKey } from './api-keys.ts'
import type { UsageSection } from './key-input.ts'
import { type LimitRow, leasedOf } from './key-limits.ts'
import { type KeyScope, keyScope } from './key-scope.ts'
import type { LiveLimit } from './reservations.ts'

/** A key's permissions. Frozen; a changed key gets a new policy with the same limit objects. */
export interface KeyPolicy {
  readonly id: string
  readonly name: string
  readonly ownerUserId: string | null
  /** Enabled, and its owner, if any, is active (decisions §4). */
  readonly isActive: boolean
  /** ms since epoch; null: never. */
  readonly expiresAt: number | null
  /** null: all models. */
  readonly allowedModels: ReadonlySet<string> | null
  /** Whether the native catalog hides disallowed models instead of leaving them out. */
  readonly applyToCodexModel: boolean
  readonly enforcedModel: string | null
  readonly efforts: { readonly enforced: string | null; readonly allowed: ReadonlySet<string> | null }
  readonly tier: string | null
  /** null: as the setting says. */
  readonly prohibitFastMode: StoredKey['prohibitFastMode']
  /** null: as the setting says. */
  readonly claudeModels: StoredKey['claudeModels']
  readonly trafficClass: StoredKey['trafficClass']
  readonly transport: StoredKey['transportPolicyOverride']
  readonly scope: KeyScope
  /** The only sources it may use, before accounts; null: all, where no account has the model. */
  readonly sourceIds: ReadonlySet<string> | null
  /** Marked for overflow. */
  readonly allowOverflow: boolean
  readonly usageSections: ReadonlySet<UsageSection>
  /** Live: `reservations.ts` changes their counters. */
  readonly limits: readonly LiveLimit[]
}

export class KeyRing {
  readonly #db: Db
  #policies: ReadonlyMap<string, KeyPolicy> = new Map()
  #limits: ReadonlyMap<string, LiveLimit> = new Map()

  private constructor(db: Db) {
    this.#db = db
  }

  static async open(db: Db): Promise<KeyRing> {
    const keys = new KeyRing(db)
    await keys.reload()
    return keys
  }

  /** Reloads all keys. The rows must include every ended turn. If they do not, use `preparedReload`. */
  reload(): Promise<void> {
    return this.preparedReload()()
  }

  /**
   * Returns a function that reloads all keys. Remaining limits stay the same objects, so reservations of running turns
   * survive. The stored counters, with what is settled from this call until they are read, replace those in memory: the
   * rows must then count the turns that ended before this call, and no others (`Ledger.readWritten`).
   */
  preparedReload(): () => Promise<void> {
    const before = this.#counters()
    return () => this.#reload(before)
  }

  async #reload(before: Counters): Promise<void> {
    const rows = await listKeys(this.#db, 'all')
    const limits = new Map<string, LiveLimit>()
    const policies = new Map<string, KeyPolicy>()
    for (const row of rows) {
      const live = row.limits.map((limit) => refreshed(this.#limits.get(limit.id), limit, before.get(limit.id)))
      for (const limit of live) limits.set(limit.id, limit)
      policies.set(row.keyHash, getPolicy(row, live))
    }
    this.#policies = policies
    this.#limits = limits
  }

  /** Like `preparedReload`, but only for the limits that `read` resolves to, which other processes also use. */
  preparedRefresh(read: () => Promise<readonly LimitRow[]>): () => Promise<void> {
    const before = this.#counters()
    return async () => {
      for (const row of await read()) {
        const live = this.#limits.get(row.id)
        if (live) refreshed(live, row, before.get(row.id))
      }
    }
  }

  #counters(): Counters {
    return new Map(this.#limits.values().map(({ id, settled, resetAt }) => [id, { settled, resetAt }]))
  }

  /** The number of keys, including revoked and expired ones. */
  get size(): number {
    return this.#policies.size
  }

  /** The IDs of all keys, including revoked and expired ones. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#policies.values().map(({ id }) => id))
  }

  /** A limit of any key, by its ID. */
  limit(id: string): LiveLimit | undefined {
    return this.#limits.get(id)
  }

  limits(): Iterable<LiveLimit> {
    return this.#limits.values()
  }

  /** By hex SHA-256, including revoked and expired keys. */
  byHash(hash: string): KeyPolicy | null {
    return this.#policies.get(hash) ?? null
  }

  find(plainKey: string): KeyPolicy | null {
    return this.byHash(hashKey(plainKey))
  }
}

const getPolicy = (row: StoredKey, limits: readonly LiveLimit[]): KeyPolicy =>
  Object.freeze({
    id: row.id,
    name: row.name,
    ownerUserId: row.ownerUserId,
    isActive: row.isActive && (row.ownerUserId === null || row.owner?.status === 'active'),
    expiresAt: row.expiresAt,
    allowedModels: getSet(row.allowedModels),
    applyToCodexModel: row.applyToCodexModel,
    enforcedModel: row.enforcedModel,
    efforts: Object.freeze({ enforced: row.enforcedReasoningEffort, allowed: getSet(row.allowedReasoningEfforts) }),
    tier: row.enforcedServiceTier,
    prohibitFastMode: row.prohibitFastMode,
    claudeModels: row.claudeModels,
    trafficClass: row.trafficClass,
    transport: row.transportPolicyOverride,
    scope: keyScope(row.assignedAccountIds, row.assignedTags),
    sourceIds: getSet(row.assignedSourceIds),
    allowOverflow: row.allowOverflow,
    usageSections: new Set(row.usageSections.split(',') as UsageSection[]), // as: validated when stored
    limits: Object.freeze(limits),
  })

/** What a limit had counted before its row was read. */
type Counter = Pick<LiveLimit, 'settled' | 'resetAt'>
type Counters = ReadonlyMap<string, Counter>

const getSet = (values: readonly string[] | null): ReadonlySet<string> | null => (values ? new Set(values) : null)

/** If nothing was leased in the current window, the row is still in the previous one; then memory is right. */
const refreshed = (live: LiveLimit | undefined, row: LimitRow, before: Counter | undefined): LiveLimit => {
  if (!live) return liveLimit(row)
  live.maxValue = row.maxValue
  if (row.resetAt !== live.resetAt || row.resetAt !== before?.resetAt) return live
  live.settled = row.currentValue + live.settled - before.settled
  if (row.currentValue + leasedOf(row) < row.maxValue) live.shortUntil = 0
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
  free: 0,
  shortUntil: 0,
  resetAt: row.resetAt,
})
