/** The keys in memory: the effect of a changed key, or of its counters, on running requests. */
import { describe, expect, test } from 'bun:test'
import { commit, type Db } from '../../db/commit.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { deleteKey, regenerateKey, updateKey } from '../../src/model/keys/api-keys.ts'
import { KeyPatch } from '../../src/model/keys/key-input.ts'
import { WINDOW_MS } from '../../src/model/keys/key-limits.ts'
import { type KeyPolicy, KeyRing } from '../../src/model/keys/key-ring.ts'
import { deltaStatement, type LimitDelta, leasePath } from '../../src/model/keys/reservations.ts'
import { testDb } from '../support/db.ts'
import { aKey, anActor } from '../support/keys.ts'
import { reserveAlone as reserve } from '../support/reserve.ts'

const NOW = Date.UTC(2026, 0, 1)
const doing = { scope: 'all' as const, actor: anActor(NOW), random: seededRandom(5) }
const estimate = { model: 'strong', inputTokens: 10, outputTokens: 5, costMicros: 1 }
const limits = [{ limitType: 'total_tokens', limitWindow: 'daily', maxValue: 100 }]

const edit = (db: Db, id: string, patch: Record<string, unknown>) =>
  commit(db, (tx) => updateKey(tx, id, KeyPatch.parse(patch), doing))

const open = async (input: Record<string, unknown> = { limits }) => {
  const { db, sqlite } = testDb()
  const { row, key } = await aKey(db, input, { at: NOW })
  const ring = await KeyRing.open(db)
  const flush = (deltas: readonly LimitDelta[]) => {
    for (const { keyId: _, ...delta } of deltas) sqlite.query(deltaStatement).run({ ...delta, process: leasePath(0) })
  }
  return { db, sqlite, id: row.id, hash: row.keyHash, key, ring, flush, policy: () => ring.find(key)! }
}

const counters = ({ limits }: KeyPolicy) => limits.map(({ settled, reserved }) => [settled, reserved])

describe('finding', () => {
  test('finds a key by its secret or its hash, and by nothing else', async () => {
    const { ring, key, hash, id } = await open()
    expect(ring.find(key)?.id).toBe(id)
    expect(ring.byHash(hash)).toBe(ring.find(key))
    for (const wrong of ['', key.slice(0, -1), `${key} `, hash, 'sk-clb-']) expect(ring.find(wrong)).toBeNull()
  })

  test('the fields of a policy', async () => {
    const { policy } = await open({
      allowedModels: ['strong'],
      enforcedModel: 'strong',
      allowedReasoningEfforts: ['low', 'high'],
      enforcedServiceTier: 'fast',
      assignedAccountIds: [],
      usageSections: 'upstream_limits',
      expiresAt: '2026-01-01T00:00:00Z',
    })
    expect(policy()).toMatchObject({ enforcedModel: 'strong', tier: 'priority', isActive: true, expiresAt: NOW })
    expect([...policy().allowedModels!]).toEqual(['strong'])
    expect([...policy().efforts.allowed!]).toEqual(['low', 'high'])
    expect(policy().scope).toEqual({ accountIds: new Set(), tags: new Set() })
    expect([...policy().usageSections]).toEqual(['upstream_limits'])
    expect(Object.isFrozen(policy())).toBe(true)
  })

  test('null means everything, and so does an empty allowlist', async () => {
    const { policy } = await open({ allowedModels: [] })
    expect(policy()).toMatchObject({ allowedModels: null, scope: null, efforts: { enforced: null, allowed: null } })
  })

  test('changes take effect after a reload: edited, regenerated, deleted', async () => {
    const { db, id, key, ring } = await open()
    await edit(db, id, { isActive: false })
    expect(ring.find(key)?.isActive).toBe(true)
    await ring.reload()
    expect(ring.find(key)?.isActive).toBe(false)
    const renewed = await commit(db, (tx) => regenerateKey(tx, id, doing))
    await ring.reload()
    expect([ring.find(key), ring.find(renewed.key)?.id]).toEqual([null, id])
    await commit(db, (tx) => deleteKey(tx, id, doing))
    await ring.reload()
    expect(ring.find(renewed.key)).toBeNull()
  })
})

describe('a reload during requests', () => {
  test('keeps their reservations, and their settlement reaches the new policy', async () => {
    const { db, id, ring, policy } = await open()
    const before = policy()
    const reservation = reserve(before, estimate, NOW)
    await edit(db, id, { limits: [{ ...limits[0], maxValue: 500 }] })
    await ring.reload()
    expect(policy()).not.toBe(before)
    expect(policy().limits[0]).toMatchObject({ maxValue: 500, reserved: 15 })
    reservation.settle(estimate)
    expect(counters(policy())).toEqual([[15, 0]])
  })

  test('takes the counters from the rows, which the ledger has completed', async () => {
    const { ring, policy, flush } = await open()
    flush(reserve(policy(), estimate, NOW).settle(estimate))
    const running = reserve(policy(), estimate, NOW)
    await ring.reload()
    expect(counters(policy())).toEqual([[15, 15]])
    flush(running.settle({ ...estimate, inputTokens: 20 }))
    await ring.reload()
    expect(counters(policy())).toEqual([[40, 0]])
  })

  test('applies a reset of the use', async () => {
    const { db, id, ring, policy, flush } = await open()
    flush(reserve(policy(), estimate, NOW).settle(estimate))
    await edit(db, id, { resetUsage: true })
    await ring.reload()
    expect(counters(policy())).toEqual([[0, 0]])
  })

  test('does not restore a window that has ended in memory', async () => {
    const { ring, policy, flush } = await open()
    flush(reserve(policy(), estimate, NOW).settle(estimate))
    const running = reserve(policy(), estimate, NOW + WINDOW_MS.daily)
    await ring.reload()
    expect(policy().limits[0]).toMatchObject({ settled: 0, reserved: 15, resetAt: NOW + 2 * WINDOW_MS.daily })
    flush(running.settle(estimate))
    await ring.reload()
    expect(counters(policy())).toEqual([[15, 0]])
  })

  test('does not restore a window created while the clock was ahead', async () => {
    const { ring, policy, flush } = await open()
    flush(reserve(policy(), estimate, NOW + 365 * WINDOW_MS.daily).settle(estimate))
    const running = reserve(policy(), estimate, NOW)
    await ring.reload()
    expect(counters(policy())).toEqual([[0, 15]])
    flush(running.settle(estimate))
    await ring.reload()
    expect(policy().limits[0]).toMatchObject({ settled: 15, reserved: 0, resetAt: NOW + WINDOW_MS.daily })
  })

  test('a removed limit is not settled', async () => {
    const { db, id, ring, policy, flush, sqlite } = await open()
    const running = reserve(policy(), estimate, NOW)
    await edit(db, id, { limits: [] })
    await ring.reload()
    flush(running.settle(estimate))
    expect(policy().limits).toEqual([])
    expect(sqlite.query('SELECT count(*) AS n FROM api_key_limits').get()).toEqual({ n: 0 })
  })
})
