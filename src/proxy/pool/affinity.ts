/**
 * Which account owns a conversation, a piece of ciphertext or an uploaded file. Held in memory, written behind by the ledger and loaded
 * at start, so owners survive a restart. Keys are SHA-256; session ids and ciphertext are not stored.
 */
import { and, desc, eq, gte, inArray } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accounts, affinity } from '../../../db/schema/accounts.ts'
import { Openings } from './conversation-fingerprint.ts'

const KINDS = ['conversation', 'ciphertext', 'file'] as const
type AffinityKind = (typeof KINDS)[number]

export interface Owner {
  accountId: string
  /** A conversation still carries ciphertext of an earlier owner; ciphertext no longer leads to its account. */
  mixed: boolean
  usedAt: number
}

export interface AffinityRow extends Owner {
  kind: AffinityKind
  keyHash: string
}

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
  /** Receives each new owner, for the process that serves the next request. */
  onRemembered: ((row: AffinityRow) => void) | null = null

  /** At most `maxEntries` of each kind. */
  constructor(maxEntries = MAX_ENTRIES) {
    this.#maxEntries = maxEntries
  }

  /** Loads the rows used since then, newest last. */
  load(db: Db, since = 0): void {
    for (const kind of KINDS) {
      const rows = db
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
  adopt({ kind, keyHash, accountId, mixed, usedAt }: AffinityRow): void {
    const owners = this.#owners[kind]
    if ((owners.get(keyHash)?.usedAt ?? 0) > usedAt) return
    owners.delete(keyHash)
    this.#set(kind, keyHash, { accountId, mixed, usedAt })
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

  /** Returns the row to write, or null when the stored row is still correct. */
  remember(
    kind: AffinityKind,
    keyHash: string,
    accountId: string,
    { now, mixed }: { now: number; mixed: boolean },
  ): AffinityRow | null {
    const owners = this.#owners[kind]
    const before = owners.get(keyHash)
    if (before && before.accountId === accountId && before.mixed === mixed && now - before.usedAt < TOUCH_MS)
      return null
    owners.delete(keyHash) // set() alone keeps the old place in the eviction order
    this.#set(kind, keyHash, { accountId, mixed, usedAt: now })
    const row = { kind, keyHash, accountId, mixed, usedAt: now }
    this.onRemembered?.(row)
    return row
  }

  /** The row was deleted. */
  forget(kind: AffinityKind, keyHash: string): void {
    this.#owners[kind].delete(keyHash)
  }

  /** The account was released: this ciphertext is still its own, but conversations do not follow it. */
  detach(keyHash: string): void {
    const owner = this.#owners.ciphertext.get(keyHash)
    if (owner) owner.mixed = true
  }

  forgetFirstRequests(accountId: string): void {
    this.openings.forget(accountId)
  }

  counts(): Record<AffinityKind, number> {
    const { conversation, ciphertext, file } = this.#owners
    return { conversation: conversation.size, ciphertext: ciphertext.size, file: file.size }
  }
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
