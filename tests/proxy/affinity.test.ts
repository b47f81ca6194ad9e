/** Affinity entries survive unrelated database changes. */
import { describe, expect, test } from 'bun:test'
import { announceAll } from '../../db/commit.ts'
import { AffinityMap, conversationHash } from '../../src/proxy/pool/affinity.ts'
import { testApp } from '../support/app.ts'
import { testDb } from '../support/db.ts'

const HOUR_MS = 3_600_000

test('a commit of another process does not make it read everything again', () => {
  const app = testApp()
  const { affinity } = app.bindings
  const now = app.clock.now()
  affinity.remember('conversation', 'in memory only', app.members[0]!.id, { now, mixed: false })
  announceAll(app.db)
  expect(affinity.get('conversation', 'in memory only', now, HOUR_MS)).not.toBeNull()
})

test('the sessions of an account are removed with it, however it is deleted', () => {
  const app = testApp({ accounts: 2 })
  const { affinity } = app.bindings
  const [gone, here] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  const now = app.clock.now()
  affinity.remember('conversation', 'a', gone.id, { now, mixed: false })
  affinity.remember('ciphertext', 'b', gone.id, { now, mixed: false })
  affinity.remember('conversation', 'c', here.id, { now, mixed: false })
  app.sqlite.run('DELETE FROM accounts WHERE id = ?', [gone.id])
  announceAll(app.db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 0, file: 0 })
})

test('each kind has its own share of memory, most recent first', () => {
  const { db, sqlite } = testDb()
  sqlite.run(`INSERT INTO accounts (id, email, plan_type, access_token_sealed, refresh_token_sealed, id_token_sealed,
    last_refresh_at, created_at) VALUES ('acc', 'a', 'plus', '', '', '', 0, 0)`)
  const insert = sqlite.prepare('INSERT INTO affinity (kind, key_hash, account_id, used_at) VALUES (?, ?, ?, ?)')
  for (let n = 0; n < 12; n++) insert.run('ciphertext', `c${n}`, 'acc', 1000 + n)
  insert.run('conversation', 'old', 'acc', 1)
  const affinity = new AffinityMap(5)
  affinity.load(db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 5, file: 0 })
  expect(affinity.get('ciphertext', 'c11', 1000, HOUR_MS)).not.toBeNull()
  expect(affinity.get('ciphertext', 'c6', 1000, HOUR_MS)).toBeNull()
  affinity.remember('ciphertext', 'new', 'acc', { now: 2000, mixed: false })
  expect(affinity.get('ciphertext', 'c7', 1000, HOUR_MS)).toBeNull() // the oldest was evicted
})

describe('the owner of a session', () => {
  const NOW = 1_000_000
  const remember = (
    affinity: AffinityMap,
    key: string,
    more: { account?: string; now?: number; mixed?: boolean } = {},
  ) =>
    affinity.remember('conversation', key, more.account ?? 'acc', { now: more.now ?? NOW, mixed: more.mixed ?? false })

  test('is stored again when it changes, or a minute later', () => {
    const affinity = new AffinityMap()
    expect(remember(affinity, 'a')).toMatchObject({ kind: 'conversation', keyHash: 'a', accountId: 'acc', usedAt: NOW })
    expect(remember(affinity, 'a', { now: NOW + 59_999 })).toBeNull()
    expect(remember(affinity, 'a', { now: NOW + 60_000 })).toMatchObject({ usedAt: NOW + 60_000 })
    expect(remember(affinity, 'a', { now: NOW + 60_001, mixed: true })).toMatchObject({ mixed: true })
    expect(remember(affinity, 'a', { now: NOW + 60_002, mixed: true, account: 'b' })).toMatchObject({ accountId: 'b' })
  })

  test('expires after the time in the settings', () => {
    const affinity = new AffinityMap()
    remember(affinity, 'a')
    expect(affinity.get('conversation', 'a', NOW + HOUR_MS, HOUR_MS)).not.toBeNull()
    expect(affinity.get('conversation', 'a', NOW + HOUR_MS + 1, HOUR_MS)).toBeNull()
  })

  test('is taken over from another process, unless a newer one is known', () => {
    const [before, after] = [new AffinityMap(), new AffinityMap(2)]
    before.onRemembered = (row) => after.adopt(row)
    remember(before, 'a')
    remember(before, 'a', { now: NOW + 1 }) // unchanged
    expect(after.get('conversation', 'a', NOW, HOUR_MS)).toMatchObject({ accountId: 'acc', usedAt: NOW })
    remember(after, 'a', { account: 'b', now: NOW + HOUR_MS })
    remember(before, 'a', { now: NOW + HOUR_MS - 1 })
    expect(after.get('conversation', 'a', NOW, HOUR_MS)?.accountId).toBe('b')
    remember(before, 'c')
    remember(before, 'd')
    const known = ['a', 'c', 'd'].filter((key) => after.get('conversation', key, NOW, HOUR_MS) !== null)
    expect(known).toEqual(['c', 'd'])
  })

  test('is evicted when it is the least recently used', () => {
    const affinity = new AffinityMap(2)
    remember(affinity, 'a')
    remember(affinity, 'b')
    remember(affinity, 'a', { now: NOW + HOUR_MS })
    remember(affinity, 'c', { now: NOW + HOUR_MS })
    const known = ['a', 'b', 'c'].filter((key) => affinity.get('conversation', key, NOW, HOUR_MS) !== null)
    expect(known).toEqual(['a', 'c'])
  })
})

test('a conversation is named by its headers in order, then by the cache key, and by nothing empty', () => {
  const named = (headers: Record<string, string>, cacheKey: unknown = null, keyId: string | null = null) =>
    conversationHash(new Headers(headers), cacheKey, keyId)
  const one = named({}, 'one')
  expect([named({}), named({}, ''), named({}, 7), named({ 'session-id': '' }, '')]).toEqual([null, null, null, null])
  for (const name of ['session-id', 'session_id', 'x-codex-session-id', 'conversation_id', 'x-codex-conversation-id'])
    expect(named({ [name]: 'one', 'thread-id': 'two' }, 'three')).toBe(one)
  for (const name of ['thread-id', 'x-session-affinity', 'x-session-id'])
    expect(named({ [name]: 'one' }, 'two')).toBe(one)
  expect(named({}, 'one', 'key_a')).not.toBe(one)
})
