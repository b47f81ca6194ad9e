/** The audit chain verifies while it is intact, and the first modified row is named. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit, type Db, engineOf, type Tx } from '../../db/commit.ts'
import { auditLogs, facts } from '../../db/schema/system.ts'
import { type AuditEvent, append } from '../../src/model/audit/audit.ts'
import { type AuditRow, getHash, readHead } from '../../src/model/audit/audit-chain.ts'
import { purgeAuditLog } from '../../src/model/audit/audit-purge.ts'
import { verifyAuditLog, verifyChain } from '../../src/model/audit/audit-verify.ts'
import { testDb } from '../support/db.ts'

const DAY_MS = 86_400_000
const START = Date.UTC(2026, 0, 1)

let db: Db

beforeEach(() => {
  db = testDb().db
})

/** One row a day. */
const write = async (days: number, from = 0, event: AuditEvent = 'settings_updated') => {
  for (let day = from; day < from + days; day++)
    await commit(db, (tx) =>
      append(
        tx,
        { id: 'usr_a', name: 'anna', role: 'admin', method: 'password', address: '::1', at: START + day * DAY_MS },
        event,
        {
          target: `usr_${day}`,
          details: { day, nested: { list: [1, undefined, 'ä'], left: undefined } },
        },
      ),
    )
}
const tamper = (change: (tx: Tx) => Promise<unknown>) => commit(db, async (tx) => void (await change(tx)))
const set = (id: number, values: Partial<AuditRow>) =>
  tamper((tx) => tx.update(auditLogs).set(values).where(eq(auditLogs.id, id)).run())
const remove = (id: number) => tamper((tx) => tx.delete(auditLogs).where(eq(auditLogs.id, id)).run())
const purge = (days: number, limit = 500) =>
  commit(db, (tx) => purgeAuditLog(tx, { before: START + days * DAY_MS, limit, now: START + 100 * DAY_MS }))
const brokenAt = (rowId: number | null) => ({ isWhole: false, rowId })

describe('an unmodified chain', () => {
  test('is valid when it is empty, short, and longer than a batch', async () => {
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 0, unchained: 0, purgedThroughId: null })
    await write(1)
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 1, unchained: 0, purgedThroughId: null })
    await write(1100, 1)
    expect(await verifyAuditLog(db)).toMatchObject({ isWhole: true, rows: 1101 })
  })

  test('has no gap after a rolled-back change', async () => {
    await write(2)
    await expect(
      commit(db, async (tx) => {
        await append(tx, { id: 'cli', method: 'cli', address: null, at: START }, 'logout')
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    await write(2, 2)
    expect(await verifyAuditLog(db)).toMatchObject({ isWhole: true, rows: 4 })
  })

  test('counts rows of a release without hashes separately, and detects their removal', async () => {
    const old = { at: START, event: 'logout', actor: 'usr_a', severity: 'info' } as const
    await tamper((tx) => tx.insert(auditLogs).values([old, old]).run())
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 2, unchained: 2, purgedThroughId: null })
    await write(3)
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 5, unchained: 2, purgedThroughId: null })
    await remove(2)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(null))
    await write(1, 3)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(null))
  })

  test('does not depend on the batch size', async () => {
    await write(7)
    const rows = await db.select().from(auditLogs).all()
    for (const size of [1, 2, 3, 7, 10]) {
      const slices = Array.from({ length: Math.ceil(7 / size) }, (_, at) => rows.slice(at * size, (at + 1) * size))
      expect(await verifyChain(slices, await readHead(db))).toMatchObject({ isWhole: true, rows: 7 })
    }
  })
})

describe('a modified chain', () => {
  beforeEach(() => write(6))

  test('a log emptied without its stored end is not a new one, nor are later entries', async () => {
    await tamper((tx) => tx.delete(auditLogs).run())
    await tamper((tx) => tx.delete(facts).where(eq(facts.name, 'audit_head')).run())
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(null))
    await write(2)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(engineOf(db) === 'postgres' ? 6 : 7))
  })

  test.each([
    ['when', { at: START }],
    ['what', { event: 'logout' }],
    ['who', { actor: 'usr_b' }],
    ['the name', { actorName: 'bob' }],
    ['the role', { actorRole: 'viewer' }],
    ['whom', { target: null }],
    ['how', { method: 'passkey' }],
    ['from where', { address: '192.0.2.1' }],
    ['how grave', { severity: 'info' }],
    ['the details', { details: { day: 9 } }],
  ] satisfies [string, Partial<AuditRow>][])('changing %s is detected', async (_name, change) => {
    await set(4, change)
    expect(await verifyAuditLog(db)).toMatchObject({ ...brokenAt(4), problem: 'its content was changed' })
  })

  test('a row removed from the middle is detected at the next', async () => {
    await remove(3)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(4))
  })

  test('removing the oldest row is detected', async () => {
    await remove(1)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(2))
  })

  test('removing the newest row is detected, immediately and after others were written', async () => {
    await remove(6)
    expect(await verifyAuditLog(db)).toMatchObject({
      ...brokenAt(6),
      problem: 'it was the newest entry and is missing',
    })
    await write(2, 6)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(7))
  })

  test('removing all rows is detected', async () => {
    await tamper((tx) => tx.delete(auditLogs).run())
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(6))
  })

  test.each([
    [2, 3],
    [1, 6],
    [5, 6],
  ])('swapping rows %d and %d is detected at the first', async (a, b) => {
    const row = (id: number) => db.select().from(auditLogs).where(eq(auditLogs.id, id)).get()
    const [one, other] = [await row(a), await row(b)]
    await set(a, { ...other, id: a })
    await set(b, { ...one, id: b })
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(a))
  })

  test('a rewritten newest row, and one appended to it, are detected though their hashes fit', async () => {
    const newest = (await db.select().from(auditLogs).where(eq(auditLogs.id, 6)).get())!
    const notTheEnd = 'it is not the entry the log ended with'
    const behind = { ...newest, id: 7, previousHash: newest.hash }
    await tamper((tx) =>
      tx
        .insert(auditLogs)
        .values({ ...behind, hash: getHash(behind) })
        .run(),
    )
    expect(await verifyAuditLog(db)).toMatchObject({ ...brokenAt(7), problem: notTheEnd })
    await remove(7)
    await set(6, { actor: 'usr_b', hash: getHash({ ...newest, actor: 'usr_b' }) })
    expect(await verifyAuditLog(db)).toMatchObject({ ...brokenAt(6), problem: notTheEnd })
  })

  test('without the stored end nothing is proven, and starting over does not help', async () => {
    await tamper((tx) => tx.delete(facts).run())
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(1))
    await write(1, 6)
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(1))
  })
})

describe('a purge', () => {
  beforeEach(() => write(6))

  test('removes the oldest rows and leaves a valid chain', async () => {
    expect(await purge(4)).toBe(4)
    const rows = await db.select().from(auditLogs).all()
    expect(rows.map(({ id, event }) => [id, event])).toEqual([
      [5, 'settings_updated'],
      [6, 'settings_updated'],
      [7, 'audit_purged'],
    ])
    expect(rows[2]).toMatchObject({
      actor: 'system',
      details: { throughId: 4, lastHash: rows[0]?.previousHash, count: 4 },
    })
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 3, unchained: 0, purgedThroughId: 4 })
  })

  test('works in batches, on everything, and repeatedly', async () => {
    expect([await purge(5, 2), await purge(5, 2), await purge(5, 2)]).toEqual([2, 2, 1])
    expect(await verifyAuditLog(db)).toMatchObject({ isWhole: true, purgedThroughId: 5 })
    await write(3, 101)
    expect(await purge(200)).toBe(7)
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 1, unchained: 0, purgedThroughId: 12 })
  })

  test('is not done for anchors alone, and stops before a recent row with an old id', async () => {
    expect(await purge(6)).toBe(6)
    expect(await purge(1000)).toBe(0)
    await write(1, 300)
    await write(2, 0)
    expect(await purge(200)).toBe(0)
    expect(await verifyAuditLog(db)).toMatchObject({ isWhole: true, rows: 4 })
  })

  test('hides no later modification', async () => {
    await purge(3)
    await remove(4)
    expect(await verifyAuditLog(db)).toMatchObject({
      ...brokenAt(5),
      problem: 'entries before it were removed, and not by retention',
    })
  })

  test('changing a remaining row, or the anchor, is detected', async () => {
    await purge(3)
    const anchor = await db.select().from(auditLogs).where(eq(auditLogs.id, 7)).get()
    await set(5, { address: '192.0.2.1' })
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(5))
    await set(5, { address: '::1' })
    await set(7, { details: { ...anchor?.details, lastHash: 'other' } })
    expect(await verifyAuditLog(db)).toMatchObject(brokenAt(7))
  })

  test('is rolled back with its transaction', async () => {
    await expect(
      commit(db, async (tx) => {
        await purgeAuditLog(tx, { before: START + 4 * DAY_MS, limit: 500, now: START })
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(await verifyAuditLog(db)).toEqual({ isWhole: true, rows: 6, unchained: 0, purgedThroughId: null })
  })
})
