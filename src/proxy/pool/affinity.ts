/**
 * Which account owns a conversation, a piece of ciphertext or an uploaded file. Held in memory, written behind by the ledger and loaded
 * at start, so owners survive a restart. Keys are SHA-256; session ids and ciphertext are not stored.
 */
import { and, desc, eq, gte, inArray } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { accounts, affinity } from '../../../db/schema/accounts.ts'
import { Openings } from './conversation-fingerprint.ts'
import { isCacheKept } from './move-price.ts'

const KINDS = ['conversation', 'ciphertext', 'file'] as const
type AffinityKind = (typeof KINDS)[number]

export interface Owner {
  accountId: string
  /** A conversation still carries ciphertext of an earlier owner; ciphertext no longer leads to its account. */
  mixed: boolean
  usedAt: number
  /** What a request of a conversation used, and what a move would cost (`LastUse`). 0 if not known. */
  units: number
  moveUnits: number
  cachedTokens: number
  /** When that request was served. */
  cachedAt: number
}

type Use = Pick<Owner, 'units' | 'moveUnits' | 'cachedTokens'>

/** The use is absent in rows of other kinds and in those that nodes of earlier releases send. */
export interface AffinityRow extends Omit<Owner, keyof Use | 'cachedAt'>, Partial<Use> {
  kind: AffinityKind
  keyHash: string
}

const ROW = z.object({
  kind: z.enum(KINDS),
  keyHash: z.string(),
  accountId: z.string(),
  mixed: z.boolean(),
  usedAt: z.number(),
  units: z.number().optional(),
  moveUnits: z.number().optional(),
  cachedTokens: z.number().optional(),
})
/** Nodes of releases that only knew `remembered` send the bare row. */
const CHANGE = z.union([
  z.discriminatedUnion('change', [
    ROW.extend({ change: z.literal('remembered') }),
    z.object({ change: z.literal('forgotten'), kind: z.enum(KINDS), keyHash: z.string() }),
    z.object({ change: z.literal('detached'), keyHash: z.string() }),
    z.object({ change: z.literal('first requests forgotten'), accountId: z.string() }),
  ]),
  ROW.extend({ change: z.undefined().optional() }).transform((row) => ({ ...row, change: 'remembered' as const })),
])

/** What other processes have to know; one of them serves the next request. About 250 bytes as JSON. */
export type AffinityChange = z.output<typeof CHANGE>

const NO_USE: Use = Object.freeze({ units: 0, moveUnits: 0, cachedTokens: 0 })

/** Per kind; about 200 bytes each. */
const MAX_ENTRIES = 100_000
/** `usedAt` is written again only when the stored one is older than this. */
const TOUCH_MS = 60_000

export class AffinityMap {
  readonly openings = new Openings()
  readonly #maxEntries: number
  readonly #owners: Record<AffinityKind, Map<string, Owner>> = {
    conversation: new Map(),
    ciphertext: new Map(),
    file: new Map(),
  }
  #accountIds: ReadonlySet<string> = new Set()
  /** Receives what this process changes. */
  onChange: ((change: AffinityChange) => void) | null = null

  /** At most `maxEntries` of each kind. */
  constructor(maxEntries = MAX_ENTRIES) {
    this.#maxEntries = maxEntries
  }

  /** Loads the rows used since then, newest last. */
  async load(db: Db, since = 0): Promise<void> {
    for (const kind of KINDS) {
      const rows = await db
        .select()
        .from(affinity)
        .where(
          and(
            eq(affinity.kind, kind),
            gte(affinity.usedAt, since),
            inArray(affinity.accountId, db.select({ id: accounts.id }).from(accounts)),
          ),
        )
        .orderBy(desc(affinity.usedAt))
        .limit(this.#maxEntries)
        .all()
      for (const row of rows.reverse()) this.adopt(row)
    }
  }

  /** Takes over an owner that is stored already, unless a newer one is known. */
  adopt({ kind, keyHash, accountId, mixed, usedAt, ...row }: AffinityRow): void {
    const { units = 0, moveUnits = 0, cachedTokens = 0 } = row
    const owners = this.#owners[kind]
    const before = owners.get(keyHash)
    if (before && before.usedAt > usedAt) return
    owners.delete(keyHash)
    const use = getUse(before, { accountId, now: usedAt, use: { units, moveUnits, cachedTokens } })
    this.#set(kind, keyHash, { accountId, mixed, usedAt, ...use })
  }

  /** Does what another process did. Messages that this release does not know are ignored. */
  apply(message: unknown): void {
    const { data: change } = CHANGE.safeParse(message)
    if (!change) return
    if (change.change === 'remembered') this.adopt(change)
    if (change.change === 'forgotten') this.#owners[change.kind].delete(change.keyHash)
    if (change.change === 'detached') this.#detach(change.keyHash)
    if (change.change === 'first requests forgotten') this.openings.forget(change.accountId)
  }

  #set(kind: AffinityKind, keyHash: string, owner: Owner): void {
    const owners = this.#owners[kind]
    owners.set(keyHash, owner)
    if (owners.size > this.#maxEntries) owners.delete(owners.keys().next().value!) // size > 0
  }

  /** Drops what deleted accounts owned. Returns early when no account is gone. */
  keepOnly(accountIds: ReadonlySet<string>): void {
    const hasLost = [...this.#accountIds].some((id) => !accountIds.has(id))
    this.#accountIds = accountIds
    if (!hasLost) return
    this.openings.keepOnly(accountIds)
    for (const owners of Object.values(this.#owners))
      for (const [keyHash, { accountId }] of owners) if (!accountIds.has(accountId)) owners.delete(keyHash)
  }

  get(kind: AffinityKind, keyHash: string, now: number, maxAgeMs: number): Owner | null {
    const owner = this.#owners[kind].get(keyHash)
    return owner && now - owner.usedAt <= maxAgeMs ? owner : null
  }

  /**
   * Returns the row to write, or null when the stored row is still correct. `use` null: not known. It is stored with the
   * row, and earlier if a move has become twice as expensive.
   */
  remember(
    kind: AffinityKind,
    keyHash: string,
    accountId: string,
    { now, mixed, use = null }: { now: number; mixed: boolean; use?: Use | null },
  ): AffinityRow | null {
    const owners = this.#owners[kind]
    const before = owners.get(keyHash)
    const isSame = before !== undefined && before.accountId === accountId && before.mixed === mixed
    const known = getUse(before, { accountId, now, use })
    if (isSame && now - before.usedAt < TOUCH_MS && known.moveUnits <= 2 * before.moveUnits) {
      Object.assign(before, known)
      return null
    }
    owners.delete(keyHash) // set() alone keeps the old place in the eviction order
    this.#set(kind, keyHash, { accountId, mixed, usedAt: now, ...known })
    const { cachedAt: _, ...stored } = known
    const row = { kind, keyHash, accountId, mixed, usedAt: now, ...stored }
    this.onChange?.({ change: 'remembered', ...row })
    return row
  }

  /** The row was deleted. */
  forget(kind: AffinityKind, keyHash: string): void {
    this.#owners[kind].delete(keyHash)
    this.onChange?.({ change: 'forgotten', kind, keyHash })
  }

  /** The account was released: this ciphertext is still its own, but conversations do not follow it. */
  detach(keyHash: string): void {
    this.#detach(keyHash)
    this.onChange?.({ change: 'detached', keyHash })
  }

  #detach(keyHash: string): void {
    const owner = this.#owners.ciphertext.get(keyHash)
    if (owner) owner.mixed = true
  }

  forgetFirstRequests(accountId: string): void {
    this.openings.forget(accountId)
    this.onChange?.({ change: 'first requests forgotten', accountId })
  }

  counts(): Record<AffinityKind, number> {
    const { conversation, ciphertext, file } = this.#owners
    return { conversation: conversation.size, ciphertext: ciphertext.size, file: file.size }
  }
}

/** The use by which a move is priced, after a request on the account. `use` null: not known. */
const getUse = (
  before: Owner | undefined,
  { accountId, now, use }: { accountId: string; now: number; use: Use | null },
): Use & Pick<Owner, 'cachedAt'> => {
  const isKept = before?.accountId === accountId && (use === null || isCacheKept(before, { ...use, now }))
  const { units, moveUnits, cachedTokens } = isKept ? before : (use ?? NO_USE)
  return { units, moveUnits, cachedTokens, cachedAt: isKept ? before.cachedAt : now }
}

export const sha256 = (text: string | Uint8Array): string => Bun.CryptoHasher.hash('sha256', text, 'base64url')

/** Headers that name a conversation, most stable first. Sub-agents share the first two with their root. */
const SESSION_HEADERS = [
  'session-id',
  'session_id',
  'x-codex-session-id',
  'conversation_id',
  'x-codex-conversation-id',
  'thread-id',
  'x-session-affinity',
  'x-session-id',
]

/** Hash of the conversation a request belongs to, scoped by its key. Null when the client names none. */
export const conversationHash = (headers: Headers, promptCacheKey: unknown, keyId: string | null): string | null => {
  for (const name of SESSION_HEADERS) {
    const value = headers.get(name)
    if (value) return threadHash(value, keyId)
  }
  return typeof promptCacheKey === 'string' && promptCacheKey !== '' ? threadHash(promptCacheKey, keyId) : null
}

/** The same for a thread that is named elsewhere. */
export const threadHash = (name: string, keyId: string | null): string => sha256(`${keyId ?? ''}\0${name}`)
