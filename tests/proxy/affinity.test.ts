/** Affinity entries survive unrelated database changes. */
import { describe, expect, test } from 'bun:test'
import { announceAll } from '../../db/commit.ts'
import { AffinityMap, conversationHash } from '../../src/proxy/pool/affinity.ts'
import { testApp } from '../support/app.ts'
import { testDb } from '../support/db.ts'

const HOUR_MS = 3_600_000

test('a commit of another process does not make it read everything again', async () => {
  const app = await testApp()
  const { affinity } = app.bindings
  const now = app.clock.now()
  affinity.remember('conversation', 'in memory only', app.members[0]!.id, { now, mixed: false })
  await announceAll(app.db)
  expect(affinity.get('conversation', 'in memory only', now, HOUR_MS)).not.toBeNull()
})

test('the sessions of an account are removed with it, however it is deleted', async () => {
  const app = await testApp({ accounts: 2 })
  const { affinity } = app.bindings
  const [gone, here] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  const now = app.clock.now()
  affinity.remember('conversation', 'a', gone.id, { now, mixed: false })
  affinity.remember('ciphertext', 'b', gone.id, { now, mixed: false })
  affinity.remember('conversation', 'c', here.id, { now, mixed: false })
  app.sqlite.run('DELETE FROM accounts WHERE id = ?', [gone.id])
  await announceAll(app.db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 0, file: 0 })
})

test('each kind has its own share of memory, most recent first', async () => {
  const { db, sqlite } = testDb()
  sqlite.run(`INSERT INTO accounts (id, email, plan_type, access_token_sealed, refresh_token_sealed, id_token_sealed,
    last_refresh_at, created_at) VALUES ('acc', 'a', 'plus', '', '', '', 0, 0)`)
  const insert = sqlite.prepare('INSERT INTO affinity (kind, key_hash, account_id, used_at) VALUES (?, ?, ?, ?)')
  for (let n = 0; n < 12; n++) insert.run('ciphertext', `c${n}`, 'acc', 1000 + n)
  insert.run('conversation', 'old', 'acc', 1)
  const affinity = new AffinityMap(5)
  await affinity.load(db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 5, file: 0 })
  expect(affinity.get('ciphertext', 'c11', 1000, HOUR_MS)).not.toBeNull()
  expect(affinity.get('ciphertext', 'c6', 1000, HOUR_MS)).toBeNull()
  affinity.remember('ciphertext', 'new', 'acc', { now: 2000, mixed: false })
  expect(affinity.get('ciphertext', 'c7', 1000, HOUR_MS)).toBeNull() // the oldest was evicted
})

describe('the use of the last request', () => {
  const NOW = 1_000_000
  const remember = (affinity: AffinityMap, moveUnits: number | null, now = NOW, accountId = 'acc') =>
    affinity.remember('conversation', 'a', accountId, {
      ...{
        now,
        mixed: false,
        use: moveUnits === null ? null : { units: 8, moveUnits, cachedTokens: moveUnits * 1_000 },
      },
    })
  const get = (affinity: AffinityMap) => affinity.get('conversation', 'a', NOW, HOUR_MS)

  test('is kept in memory at once, and stored within a minute or when it has doubled', () => {
    const affinity = new AffinityMap()
    expect(remember(affinity, 0)).toMatchObject({ units: 8, moveUnits: 0 })
    expect(remember(affinity, 20)).toMatchObject({ moveUnits: 20 })
    expect(remember(affinity, 40)).toBeNull()
    expect(get(affinity)).toMatchObject({ moveUnits: 40 })
    expect(remember(affinity, 81)).toMatchObject({ moveUnits: 81 })
    expect(remember(affinity, 5)).toBeNull()
    expect(remember(affinity, 90, NOW + 60_000)).toMatchObject({ moveUnits: 90 })
  })

  test('stays if a later request reports none, but not on another account', () => {
    const affinity = new AffinityMap()
    remember(affinity, 20)
    remember(affinity, null)
    expect(get(affinity)).toMatchObject({ units: 8, moveUnits: 20 })
    remember(affinity, null, NOW, 'other')
    expect(get(affinity)).toMatchObject({ accountId: 'other', units: 0, moveUnits: 0 })
  })

  test('is taken over from another process, and unknown from one of an earlier release', () => {
    const affinity = new AffinityMap()
    const row = { kind: 'conversation', keyHash: 'a', accountId: 'acc', mixed: false, usedAt: NOW } as const
    affinity.adopt({ ...row, units: 8, moveUnits: 20, cachedTokens: 20_000 })
    expect(get(affinity)).toMatchObject({ units: 8, moveUnits: 20, cachedTokens: 20_000 })
    affinity.adopt({ ...row, accountId: 'other' })
    expect(get(affinity)).toMatchObject({ accountId: 'other', units: 0, moveUnits: 0 })
  })

  test('is that of the largest cache of the last five minutes on the account', () => {
    const MINUTE_MS = 60_000
    const affinity = new AffinityMap()
    const price = () => get(affinity)?.moveUnits
    remember(affinity, 200)
    remember(affinity, 1, NOW + 1_000) // a title
    expect(price()).toBe(200)
    expect(remember(affinity, 0, NOW + 2 * MINUTE_MS)).toMatchObject({ units: 8, moveUnits: 200 })
    affinity.adopt({
      ...{ kind: 'conversation', keyHash: 'a', accountId: 'acc', mixed: false, usedAt: NOW + 3 * MINUTE_MS },
      ...{ units: 5, moveUnits: 1 },
    })
    expect(price()).toBe(200)
    remember(affinity, 150, NOW + 5 * MINUTE_MS - 1)
    expect(price()).toBe(200)
    remember(affinity, 150, NOW + 5 * MINUTE_MS) // sub-agents do not extend it
    expect(price()).toBe(150)
    remember(affinity, 1, NOW + 5 * MINUTE_MS + 1, 'other')
    expect(price()).toBe(1)
  })
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
    before.onChange = (change) => after.apply(change)
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

  test('is forgotten by other processes, too', () => {
    const [before, after] = [new AffinityMap(), new AffinityMap()]
    before.onChange = (change) => after.apply(change)
    remember(before, 'a')
    before.remember('ciphertext', 'a', 'acc', { now: NOW, mixed: false })
    before.forget('conversation', 'a')
    expect(after.get('conversation', 'a', NOW, HOUR_MS)).toBeNull()
    before.detach('a')
    expect(after.get('ciphertext', 'a', NOW, HOUR_MS)).toMatchObject({ accountId: 'acc', mixed: true })
  })

  test('is taken over from a node of an earlier release, which sends the bare row', () => {
    const affinity = new AffinityMap()
    affinity.apply({ kind: 'conversation', keyHash: 'a', accountId: 'acc', mixed: false, usedAt: NOW })
    expect(affinity.get('conversation', 'a', NOW, HOUR_MS)).toMatchObject({ accountId: 'acc', units: 0, moveUnits: 0 })
    affinity.apply({ kind: 'ciphertext', keyHash: 'b', accountId: 'acc', mixed: true, usedAt: NOW })
    expect(affinity.get('ciphertext', 'b', NOW, HOUR_MS)).toMatchObject({ mixed: true })
  })

  test.each([
    [null],
    ['remembered'],
    [{}],
    [{ change: 'renamed', kind: 'conversation', keyHash: 'a' }],
    [{ change: 'forgotten', kind: 'image', keyHash: 'a' }],
    [{ kind: 'image', keyHash: 'a', accountId: 'other', mixed: false, usedAt: NOW + 1 }],
    [{ change: 'remembered', kind: 'conversation', keyHash: 'a', accountId: 'other', usedAt: 'now' }],
    [{ change: 'remembered again', kind: 'conversation', keyHash: 'a', accountId: 'b', mixed: true, usedAt: NOW + 1 }],
  ])('does not change with a message that this release does not know: %j', (message) => {
    const affinity = new AffinityMap()
    remember(affinity, 'a')
    affinity.apply(message)
    expect(affinity.get('conversation', 'a', NOW, HOUR_MS)).toMatchObject({ accountId: 'acc', usedAt: NOW })
    expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 0, file: 0 })
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
