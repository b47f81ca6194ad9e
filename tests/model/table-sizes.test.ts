/** The disk space of each table: counted in a small file, estimated in a large one. */
import { expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestHours, requestSpans } from '../../db/schema/requests.ts'
import { append } from '../../src/model/audit/audit.ts'
import { fileSize, type TableSizes, tableSizes } from '../../src/model/table-sizes.ts'
import { testDb } from '../support/db.ts'

const filled = () => {
  const { db } = testDb()
  const actor = { id: 'cli', method: null, address: null, at: 1 }
  commit(db, (tx) => {
    for (let n = 0; n < 600; n++)
      append(tx, actor, 'settings_updated', { target: `key_${n}`, details: { text: 'x'.repeat(400) } })
  })
  return db
}

test('a small file is counted page by page', () => {
  const db = filled()
  const { tables, isExact } = tableSizes(db)
  const { bytes, freeBytes } = fileSize(db)
  expect([isExact, tables[0]?.name, tables[0]?.rows]).toEqual([true, 'audit_logs', 600])
  const sum = tables.reduce((total, table) => total + table.bytes, 0)
  expect(bytes - freeBytes - sum).toBeWithin(0, 20 * 4096) // the schema itself
})

test('an estimate distributes the same bytes in nearly the same way', () => {
  const db = filled()
  const [exact, estimate] = [tableSizes(db), tableSizes(db, 0)]
  expect([estimate.isExact, estimate.tables[0]?.name, estimate.tables[0]?.rows]).toEqual([false, 'audit_logs', 600])
  expect(estimate.tables.map(({ name }) => name).toSorted()).toEqual(exact.tables.map(({ name }) => name).toSorted())
  const { bytes, freeBytes } = fileSize(db)
  const ratio = (estimate.tables[0]?.bytes ?? 0) / (bytes - freeBytes)
  expect(ratio).toBeGreaterThan(0.6)
  expect(estimate.tables.find(({ name }) => name === 'invites')).toEqual({ name: 'invites', rows: 0, bytes: 0 })
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

test('an estimate counts the key of a table without row ids once, and as a part of each index', () => {
  const { db } = testDb()
  const [accountId, keyId, model] = ['acc_0123456789abcdef', 'key_0123456789abcdef', 'gpt-5.1-codex']
  commit(db, (tx) => {
    for (let n = 0; n < 4000; n++) {
      const start = 1_767_225_600_000 + n * 3_600_000
      tx.insert(requestHours)
        .values({ hour: start, accountId, keyId, model, ...SUMS })
        .run()
      tx.insert(requestSpans)
        .values({ spanHours: 24, dimension: 'key', start, id: keyId, activeHours: 14, ...SUMS })
        .run()
    }
  })
  const getBytes = (table: string, { tables }: TableSizes) => tables.find(({ name }) => name === table)?.bytes ?? 0
  const [counted, estimated] = [tableSizes(db), tableSizes(db, 0)].map(
    (sizes) => getBytes('request_hours', sizes) / getBytes('request_spans', sizes),
  )
  expect((estimated ?? 0) / (counted ?? 0)).toBeWithin(0.8, 1.25)
})
