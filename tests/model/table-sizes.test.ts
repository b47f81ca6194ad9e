/** The disk space of each table: counted in a small file, estimated in a large one. */
import { expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestHours, requestSpans } from '../../db/schema/requests.ts'
import { append } from '../../src/model/audit/audit.ts'
import { fileSize, type TableSizes, tableSizes } from '../../src/model/table-sizes.ts'
import { testDb } from '../support/db.ts'
import { MAY_SKIP } from '../support/postgres.ts'
import { createPostgresDb } from '../support/postgres-db.ts'

const filled = async () => {
  const { db } = testDb()
  const actor = { id: 'cli', method: null, address: null, at: 1 }
  await commit(db, async (tx) => {
    for (let n = 0; n < 600; n++)
      await append(tx, actor, 'settings_updated', { target: `key_${n}`, details: { text: 'x'.repeat(400) } })
  })
  return db
}

test('a small file is counted page by page', async () => {
  const db = await filled()
  const { tables, isExact } = await tableSizes(db)
  const { bytes, freeBytes } = await fileSize(db)
  expect([isExact, tables[0]?.name, tables[0]?.rows]).toEqual([true, 'audit_logs', 600])
  const sum = tables.reduce((total, table) => total + table.bytes, 0)
  expect(bytes - freeBytes - sum).toBeWithin(0, 20 * 4096) // the schema itself
})

test('an estimate distributes the same bytes in nearly the same way', async () => {
  const db = await filled()
  const [exact, estimate] = [await tableSizes(db), await tableSizes(db, 0)]
  expect([estimate.isExact, estimate.tables[0]?.name, estimate.tables[0]?.rows]).toEqual([false, 'audit_logs', 600])
  expect(estimate.tables.map(({ name }) => name).toSorted()).toEqual(exact.tables.map(({ name }) => name).toSorted())
  const { bytes, freeBytes } = await fileSize(db)
  const ratio = (estimate.tables[0]?.bytes ?? 0) / (bytes - freeBytes)
  expect(ratio).toBeGreaterThan(0.6)
  expect(estimate.tables.find(({ name }) => name === 'invites')).toEqual({ name: 'invites', rows: 0, bytes: 0 })
})

test.skipIf(MAY_SKIP)('PostgreSQL reports them itself', async () => {
  const db = createPostgresDb((error) => {
    throw error
  })
  const actor = { id: 'cli', method: null, address: null, at: 1 }
  await commit(db, async (tx) => {
    for (let n = 0; n < 60; n++) await append(tx, actor, 'settings_updated', { details: { text: 'x'.repeat(400) } })
  })
  const exact = await tableSizes(db)
  const { bytes, freeBytes } = await fileSize(db)
  expect([exact.isExact, freeBytes]).toEqual([true, 0])
  expect(exact.tables[0]).toEqual({ name: 'audit_logs', rows: 60, bytes: expect.any(Number) })
  expect(exact.tables[0]?.bytes).toBeWithin(60 * 400, bytes)
  expect(exact.tables.reduce((sum, table) => sum + table.bytes, 0)).toBeLessThan(bytes)
  const estimate = await tableSizes(db, 0)
  expect(estimate.isExact).toBe(false)
  expect(estimate.tables.map(({ name }) => name).sort()).toEqual(exact.tables.map(({ name }) => name).sort())
})

const SUMS = {
  requests: 17,
  errors: 1,
  cancelled: 0,
  inputTokens: 123_456,
  cachedInputTokens: 100_000,
  outputTokens: 4567,
  costMicros: 98_765,
  unpriced: 0,
}

test('an estimate counts the key of a table without row ids once, and as a part of each index', async () => {
  const { db } = testDb()
  const [accountId, keyId, model] = ['acc_0123456789abcdef', 'key_0123456789abcdef', 'gpt-5.1-codex']
  await commit(db, async (tx) => {
    for (let n = 0; n < 4000; n++) {
      const start = 1_767_225_600_000 + n * 3_600_000
      await tx
        .insert(requestHours)
        .values({ hour: start, accountId, keyId, model, ...SUMS })
        .run()
      await tx
        .insert(requestSpans)
        .values({ spanHours: 24, dimension: 'key', start, id: keyId, activeHours: 14, ...SUMS })
        .run()
    }
  })
  const getBytes = (table: string, { tables }: TableSizes) => tables.find(({ name }) => name === table)?.bytes ?? 0
  const [counted, estimated] = [await tableSizes(db), await tableSizes(db, 0)].map(
    (sizes) => getBytes('request_hours', sizes) / getBytes('request_spans', sizes),
  )
  expect((estimated ?? 0) / (counted ?? 0)).toBeWithin(0.8, 1.25)
})
