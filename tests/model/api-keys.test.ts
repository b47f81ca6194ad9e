/** API keys as rows: stored fields, validation, and changes of limits. */
import type { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { commit, type Db, onChange } from '../../db/commit.ts'
import { users } from '../../db/schema/people.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { AppError } from '../../src/errors.ts'
import { DAY_MS, HOUR_MS } from '../../src/lib/durations.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { toApiKey } from '../../src/model/keys/api-key-view.ts'
import {
  createKey,
  deleteKey,
  getKey,
  hashKey,
  listKeys,
  regenerateKey,
  updateKey,
} from '../../src/model/keys/api-keys.ts'
import { KeyPatch, NewKey } from '../../src/model/keys/key-input.ts'
import { WINDOW_MS } from '../../src/model/keys/key-limits.ts'
import type { LedgerEntry } from '../../src/proxy/ledger/ledger-batch.ts'
import { writeLedger } from '../../src/proxy/ledger/ledger-writer.ts'
import { testDb } from '../support/db.ts'
import { aKey, anAccountRow, anActor } from '../support/keys.ts'

const NOW = Date.UTC(2026, 0, 1)

const edit = (db: Db, id: string, patch: Record<string, unknown>, at = NOW) =>
  commit(db, (tx) =>
    updateKey(tx, id, KeyPatch.parse(patch), { scope: 'all', actor: anActor(at), random: seededRandom(9) }),
  )

const spend = (db: Db, id: string, amount: number) =>
  commit(db, (tx) => tx.run(`UPDATE api_key_limits SET current_value = ${amount} WHERE key_id = '${id}'`))

type Turn = LedgerEntry['row']
const UNCHARGED = { inputTokens: null, outputTokens: null, costMicros: null }

/** Ended requests as the ledger writes them: each in the log, and in the totals of its hour. */
const turns = (
  sqlite: Database,
  keyId: string,
  some: readonly (Partial<Turn> & Pick<Turn, 'id' | 'startedAt'>)[],
): void => {
  const usual = { requestId: 'r', route: '/v1/responses', kind: 'normal', transport: 'http', model: 'strong' } as const
  const outcome = { status: 'ok', httpStatus: 200, attempts: 1, totalMs: 1, accountId: 'acc_1' } as const
  const use = { inputTokens: 100, outputTokens: 10, costMicros: 3 }
  const entries = some.map((turn): LedgerEntry => {
    const row = { ...usual, ...outcome, ...use, keyId, ...turn }
    const rest = { attempts: [], limitDeltas: [], isServiceFault: false, affinity: [] }
    return { row, hourModel: row.model, ...rest }
  })
  writeLedger(sqlite, { process: 0, entries, usage: new Map(), meters: [], rejected: [] })
}

test('a user who was disabled or deleted since the gate creates no key, which would have no owner', async () => {
  const { db } = testDb()
  const doing = { scope: 'all', random: seededRandom(1), actor: { ...anActor(NOW), id: 'usr_gone' } } as const
  const making = commit(db, (tx) => createKey(tx, NewKey.parse({ name: 'laptop' }), doing))
  await expect(making).rejects.toMatchObject({ code: 'authentication_required' })
})

/** `details.fields` of the `validation_error` that `run` throws. */
const faults = async (run: () => Promise<unknown>): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    if (error instanceof AppError && error.code === 'validation_error') return error.extra.details?.fields
    throw error
  }
  return null
}

const daily = (maxValue: number, more = {}) => ({ limitType: 'total_tokens', limitWindow: 'daily', maxValue, ...more })

describe('a new key', () => {
  test('is shown once; only its hash and prefix are stored', async () => {
    const { db, sqlite } = testDb()
    const { row, key } = await aKey(db)
    expect(key).toMatch(/^sk-clb-[\w-]{43}$/)
    expect(row.keyPrefix).toBe(key.slice(0, 15))
    expect(row.keyHash).toBe(createHash('sha256').update(key).digest('hex'))
    expect(Buffer.from(sqlite.serialize()).includes(key)).toBe(false)
  })

  test('with only a name allows everything', async () => {
    const { db } = testDb()
    expect(toApiKey((await aKey(db, {}, { at: NOW })).row, NOW)).toMatchObject({
      name: 'laptop',
      isActive: true,
      allowedModels: null,
      assignedAccountIds: null,
      accountAssignmentScopeEnabled: false,
      trafficClass: 'foreground',
      usageSections: 'upstream_limits,account_pool_usage',
      createdAt: '2026-01-01T00:00:00.000Z',
      expiresAt: null,
      limits: [],
      usageSummary: { requestCount: 0, totalTokens: 0, cachedInputTokens: 0, totalCostUsd: 0 },
    })
  })

  test('starts each limit with a full window from now', async () => {
    const { db } = testDb()
    const limits = [daily(500), { limitType: 'cost_usd', limitWindow: 'monthly', maxValue: 7, modelFilter: 'strong' }]
    expect(toApiKey((await aKey(db, { limits }, { at: NOW })).row, NOW).limits).toMatchObject([
      {
        limitType: 'cost_usd',
        maxValue: 7,
        currentValue: 0,
        modelFilter: 'strong',
        resetAt: '2026-01-31T00:00:00.000Z',
      },
      { limitType: 'total_tokens', maxValue: 500, modelFilter: null, resetAt: '2026-01-02T00:00:00.000Z' },
    ])
  })

  test.each([
    ['5h', 5],
    ['daily', 24],
    ['7d', 168],
    ['weekly', 168],
    ['monthly', 720],
  ])('a window called %s ends after %p hours', async (limitWindow, hours) => {
    const { limits } = (await aKey(testDb().db, { limits: [daily(1, { limitWindow })] }, { at: NOW })).row
    expect(limits.map(({ resetAt }) => (resetAt - NOW) / 3_600_000)).toEqual([hours])
  })

  test('never shows its hash', async () => {
    const { db } = testDb()
    const { row } = await aKey(db)
    expect(JSON.stringify(toApiKey(row, NOW))).not.toContain(row.keyHash)
  })
})

describe('the fields of a key', () => {
  test.each<[string, Record<string, unknown>]>([
    ['an empty name', { name: '  ' }],
    ['a name over 128', { name: 'x'.repeat(129) }],
    ['an unknown field', { weeklyTokenLimit: 5 }],
    ['an unknown effort', { enforcedReasoningEffort: 'heroic' }],
    ['an empty list of efforts', { allowedReasoningEfforts: [] }],
    ['none in a list of efforts', { allowedReasoningEfforts: ['none'] }],
    ['an unknown tier', { enforcedServiceTier: 'gold' }],
    ['an unknown usage section', { usageSections: 'secrets' }],
    ['an expiry without a zone', { expiresAt: '2026-01-01T00:00:00' }],
    ['a limit of zero', { limits: [daily(0)] }],
    ['a limit of half a token', { limits: [daily(1.5)] }],
    ['a limit in credits, which nothing counts', { limits: [daily(1, { limitType: 'credits' })] }],
    ['the same limit twice', { limits: [daily(1), daily(2, { modelFilter: '' })] }],
    ['a scope of model sources without names', { assignedSourceIds: [''] }],
  ])('%s is rejected', (_, input) => {
    expect(NewKey.safeParse({ name: 'ok', ...input }).success).toBe(false)
  })

  test('different spellings are normalized', () => {
    expect(
      NewKey.parse({
        name: ' laptop ',
        enforcedServiceTier: 'Fast',
        enforcedReasoningEffort: 'HIGH',
        usageSections: 'upstream_limits, upstream_limits',
        allowedModels: ['strong', 'strong'],
        expiresAt: '2026-01-01T02:00:00+02:00',
      }),
    ).toEqual({
      name: 'laptop',
      enforcedServiceTier: 'priority',
      enforcedReasoningEffort: 'high',
      usageSections: 'upstream_limits',
      allowedModels: ['strong'],
      expiresAt: NOW,
    })
  })

  test('a patch does not fill in omitted fields', () => {
    expect(KeyPatch.parse({})).toEqual({})
  })

  test('contradicting fields are rejected, even across a patch', async () => {
    const { db } = testDb()
    expect(await faults(() => aKey(db, { allowedModels: ['fast'], enforcedModel: 'strong' }))).toHaveProperty(
      'enforcedModel',
    )
    expect(
      await faults(() => aKey(db, { enforcedReasoningEffort: 'low', allowedReasoningEfforts: ['low'] })),
    ).toHaveProperty('allowedReasoningEfforts')
    const { id } = (await aKey(db, { enforcedModel: 'strong' })).row
    expect(await faults(() => edit(db, id, { allowedModels: ['fast'] }))).toHaveProperty('enforcedModel')
    expect((await getKey(db, id, 'all')).allowedModels).toBeNull()
    expect(await listKeys(db, 'all')).toHaveLength(1)
  })

  test('accounts must exist', async () => {
    const { db } = testDb()
    await anAccountRow(db, 'acc_1')
    expect(await faults(() => aKey(db, { assignedAccountIds: ['acc_1', 'acc_2'] }))).toEqual({
      assignedAccountIds: ['There is no account acc_2.'],
    })
    expect((await aKey(db, { assignedAccountIds: ['acc_1'] })).row.assignedAccountIds).toEqual(['acc_1'])
  })

  test('a key whose account was deleted can still be edited', async () => {
    const { db } = testDb()
    await anAccountRow(db, 'acc_1')
    const { id } = (await aKey(db, { assignedAccountIds: ['acc_1'] })).row
    await commit(db, (tx) => tx.run(`DELETE FROM accounts`))
    expect((await edit(db, id, { name: 'renamed' })).name).toBe('renamed')
    expect((await edit(db, id, { name: 'saved', assignedAccountIds: ['acc_1'] })).name).toBe('saved')
    expect(await faults(() => edit(db, id, { assignedAccountIds: ['acc_1', 'acc_2'] }))).toEqual({
      assignedAccountIds: ['There is no account acc_2.'],
    })
  })
})

describe('changing limits', () => {
  test('an unchanged limit keeps its use and its reset, a removed one is deleted', async () => {
    const { db } = testDb()
    const { row } = await aKey(db, { limits: [daily(100), daily(5, { limitType: 'requests' })] }, { at: NOW })
    await spend(db, row.id, 42)
    const { limits } = await edit(db, row.id, { limits: [daily(900)] }, NOW + 1000)
    expect(limits).toEqual([
      { ...row.limits.find(({ limitType }) => limitType === 'total_tokens')!, maxValue: 900, currentValue: 42 },
    ])
  })

  test('a limit of another model is a different limit', async () => {
    const { db } = testDb()
    const strong = daily(100, { modelFilter: 'strong' })
    const { row } = await aKey(db, { limits: [strong] }, { at: NOW })
    await spend(db, row.id, 42)
    const { limits } = await edit(db, row.id, { limits: [daily(100), strong] }, NOW + 1000)
    expect(limits.map(({ modelFilter, currentValue }) => [modelFilter, currentValue])).toEqual([
      ['', 0],
      ['strong', 42],
    ])
  })

  test('a patch without limits keeps them', async () => {
    const { db } = testDb()
    const { row } = await aKey(db, { limits: [daily(100)] })
    await spend(db, row.id, 42)
    expect((await edit(db, row.id, { name: 'renamed' })).limits).toEqual([{ ...row.limits[0]!, currentValue: 42 }])
  })

  test.each([0, 1, 20 * 60_000])(
    'a new limit starts with the use of its window, %d ms after a full hour',
    async (ms) => {
      const at = NOW + ms
      const { db, sqlite } = testDb()
      const { id } = (await aKey(db)).row
      const since = at - WINDOW_MS.daily
      turns(sqlite, id, [
        { id: 'in', startedAt: at - 1000 },
        { id: 'first', startedAt: since },
        { id: 'other-model', startedAt: at - 1000, model: 'fast' },
        { id: 'cancelled', startedAt: since + HOUR_MS, status: 'cancelled' },
        { id: 'failed', startedAt: at - 1000, status: 'error', ...UNCHARGED },
        { id: 'never-asked', startedAt: at - 1000, status: 'cancelled', accountId: null, ...UNCHARGED },
        { id: 'too-old', startedAt: since - 1 },
        { id: 'stranger', startedAt: at - 1000, keyId: 'key_other' },
        { id: 'prewarm', startedAt: at - 1000, kind: 'prewarm', accountId: null, ...UNCHARGED },
        { id: 'early-prewarm', startedAt: since, kind: 'prewarm', accountId: null, ...UNCHARGED },
      ])
      const limit = (limitType: string, modelFilter?: string) => daily(999, { limitType, modelFilter })
      const wanted = [limit('requests'), limit('total_tokens', 'strong'), limit('cost_usd')]
      const { limits } = await edit(db, id, { limits: wanted }, at)
      expect(Object.fromEntries(limits.map(({ limitType, currentValue }) => [limitType, currentValue]))).toEqual({
        requests: 4,
        total_tokens: 330,
        cost_usd: 12,
      })
    },
  )

  test('a new limit starts with the use of whole hours even if the log was deleted', async () => {
    const { db, sqlite } = testDb()
    const { id } = (await aKey(db)).row
    const days = [1, 5, 10, 20, 40]
    turns(
      sqlite,
      id,
      days.map((n) => ({ id: `d${n}`, startedAt: NOW - n * DAY_MS })),
    )
    sqlite.run('DELETE FROM requests WHERE started_at < ?', [NOW - 7 * DAY_MS])
    const monthly = { limitWindow: 'monthly', maxValue: 9000 }
    const limits = ['requests', 'input_tokens', 'output_tokens'].map((limitType) => ({ limitType, ...monthly }))
    expect(
      (await edit(db, id, { limits })).limits.map(({ limitType, currentValue }) => [limitType, currentValue]),
    ).toEqual([
      ['input_tokens', 400],
      ['output_tokens', 40],
      ['requests', 4],
    ])
  })

  test('a request that failed midway does not count for a new limit, but its tokens do', async () => {
    const { db, sqlite } = testDb()
    const { id } = (await aKey(db)).row
    turns(sqlite, id, [{ id: 'midway', startedAt: NOW - 1000, status: 'error' }])
    const { limits } = await edit(db, id, { limits: [daily(999), daily(999, { limitType: 'requests' })] })
    expect(limits.map(({ limitType, currentValue }) => [limitType, currentValue])).toEqual([
      ['requests', 0],
      ['total_tokens', 110],
    ])
  })

  test('resetUsage sets every limit to zero in its running window', async () => {
    const { db } = testDb()
    const { row } = await aKey(db, { limits: [daily(100)] }, { at: NOW })
    await spend(db, row.id, 42)
    expect((await edit(db, row.id, { resetUsage: true }, NOW + 1000)).limits).toEqual(row.limits)
  })

  test('a passed window is shown as zero with its next reset', async () => {
    const { db } = testDb()
    const { row } = await aKey(db, { limits: [daily(100)] }, { at: NOW })
    await spend(db, row.id, 42)
    const later = toApiKey(await getKey(db, row.id, 'all'), NOW + 1.5 * WINDOW_MS.daily).limits[0]
    expect(later).toMatchObject({ currentValue: 0, resetAt: '2026-01-03T00:00:00.000Z' })
    const longBefore = toApiKey(await getKey(db, row.id, 'all'), NOW - 365 * WINDOW_MS.daily).limits[0]
    expect(longBefore).toMatchObject({ currentValue: 0, resetAt: '2025-01-02T00:00:00.000Z' })
  })
})

describe('disabling', () => {
  test('a revoked key says so and can be restored', async () => {
    const { db } = testDb()
    const { id } = (await aKey(db)).row
    expect(await edit(db, id, { isActive: false })).toMatchObject({ isActive: false, deactivatedReason: 'manual' })
    expect(await edit(db, id, { isActive: true })).toMatchObject({ isActive: true, deactivatedReason: null })
  })

  const anOwner = (db: Db, status: 'active' | 'disabled') =>
    commit(db, async (tx) => {
      await tx
        .insert(users)
        .values({ id: 'usr_1', username: 'anna', roleId: 'role_operator', status, createdAt: 0 })
        .run()
      await tx.run(`UPDATE api_keys SET owner_user_id = 'usr_1', is_active = 0, deactivated_reason = 'owner_disabled'`)
    })

  test('the key of a disabled owner cannot be enabled, but permanently revoked', async () => {
    const { db } = testDb()
    const { id } = (await aKey(db)).row
    await anOwner(db, 'disabled')
    expect(await faults(() => edit(db, id, { isActive: true }))).toHaveProperty('isActive')
    expect((await edit(db, id, { isActive: false })).deactivatedReason).toBe('manual')
  })

  test('the key of a re-enabled owner can be enabled manually', async () => {
    const { db } = testDb()
    const { id } = (await aKey(db)).row
    await anOwner(db, 'active')
    expect(await edit(db, id, { isActive: true })).toMatchObject({ isActive: true, deactivatedReason: null })
  })

  test('an expired key shows its reason', async () => {
    const { db } = testDb()
    const { row } = await aKey(db, { expiresAt: '2026-01-01T00:00:00Z' })
    expect(toApiKey(row, NOW - 1).deactivatedReason).toBeNull()
    expect(toApiKey(row, NOW).deactivatedReason).toBe('expired')
  })
})

describe('regenerating and deleting', () => {
  test('regenerating changes the secret and nothing else', async () => {
    const { db } = testDb()
    const { row, key } = await aKey(db, { limits: [daily(1)] })
    const renewed = await commit(db, (tx) =>
      regenerateKey(tx, row.id, { scope: 'all', actor: anActor(NOW), random: seededRandom(2) }),
    )
    expect(renewed.key).not.toBe(key)
    expect(renewed.row).toEqual({ ...row, keyHash: hashKey(renewed.key), keyPrefix: renewed.key.slice(0, 15) })
  })

  test('deleting removes the limits, too', async () => {
    const { db, sqlite } = testDb()
    const { id } = (await aKey(db, { limits: [daily(1)] })).row
    await commit(db, (tx) => deleteKey(tx, id, { scope: 'all', actor: anActor(NOW) }))
    expect(await listKeys(db, 'all')).toEqual([])
    expect(sqlite.query('SELECT count(*) AS n FROM api_key_limits').get()).toEqual({ n: 0 })
  })

  test('an unknown key is not found', async () => {
    const { db } = testDb()
    const doing = { scope: 'all' as const, actor: anActor(NOW), random: seededRandom(1) }
    const notFound = expect.objectContaining({ code: 'not_found' })
    await expect(commit(db, (tx) => updateKey(tx, 'key_x', {}, doing))).rejects.toThrow(notFound)
    await expect(commit(db, (tx) => regenerateKey(tx, 'key_x', doing))).rejects.toThrow(notFound)
    await expect(commit(db, (tx) => deleteKey(tx, 'key_x', doing))).rejects.toThrow(notFound)
  })
})

test('every change is audited without the secret, and announced', async () => {
  const { db } = testDb()
  const announced: string[][] = []
  onChange(db, async (topics) => announced.push([...topics]))
  const { row, key } = await aKey(db)
  await edit(db, row.id, { name: 'renamed' })
  const renewed = await commit(db, (tx) =>
    regenerateKey(tx, row.id, { scope: 'all', actor: anActor(NOW), random: seededRandom(2) }),
  )
  await commit(db, (tx) => deleteKey(tx, row.id, { scope: 'all', actor: anActor(NOW) }))
  const log = await db.select().from(auditLogs).all()
  expect(log.map(({ event, target }) => [event, target])).toEqual([
    ['api_key_created', row.id],
    ['api_key_updated', row.id],
    ['api_key_regenerated', row.id],
    ['api_key_deleted', row.id],
  ])
  expect(JSON.stringify(log)).not.toContain(key.slice(15))
  expect(JSON.stringify(log)).not.toContain(renewed.key.slice(15))
  expect(announced).toEqual([['keys'], ['keys'], ['keys'], ['keys']])
})

test('an edit is recorded as what it changed, however many fields the form has', async () => {
  const { db } = testDb()
  const limits = [{ limitType: 'total_tokens', limitWindow: 'weekly', maxValue: 5 }]
  const { id } = (await aKey(db, { allowedModels: ['gpt-5.5'], limits })).row
  const form = { name: 'laptop', isActive: true, allowedModels: ['gpt-5.5'], limits, enforcedServiceTier: null }
  for (const patch of [{}, form, { resetUsage: false }]) await edit(db, id, patch)
  await edit(db, id, { ...form, enforcedServiceTier: 'fast', resetUsage: true })
  await edit(db, id, { ...form, enforcedServiceTier: 'priority', limits: [{ ...limits[0], maxValue: 6 }] })
  const edits = await db.select().from(auditLogs).where(eq(auditLogs.event, 'api_key_updated')).all()
  expect(edits.map(({ details }) => details)).toEqual([
    { changed: ['enforcedServiceTier', 'resetUsage'] },
    { changed: ['limits'] },
  ])
})
