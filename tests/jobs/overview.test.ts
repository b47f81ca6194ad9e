/** The overview of a busy server is read before a user opens it; that of an idle one is not. */
import { expect, test } from 'bun:test'
import { readAhead } from '../../src/jobs/overview.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import { getPlans } from '../support/query-plans.ts'

const setUp = (turns: number, agoMs: number) => {
  const { db, sqlite } = testDb()
  const clock = new ManualClock()
  sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${turns})
    INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
    SELECT 'r' || n, 'r', ${clock.now() - agoMs} - n, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n`)
  let reads = 0
  const figures = { now: async () => void reads++ }
  return { sqlite, run: () => readAhead({ db, clock, figures }), reads: () => reads }
}

test.each([
  ['many requests of the last two days', 5001, 3_600_000, 1],
  ['few turns', 5000, 3_600_000, 0],
  ['many requests of long ago', 6000, 3 * 86_400_000, 0],
] as const)('%s', async (_, turns, agoMs, expected) => {
  const { run, reads } = setUp(turns, agoMs)
  await run()
  expect(reads()).toBe(expected)
})

test('an index tells whether there are many', async () => {
  const { sqlite, run } = setUp(10, 0)
  expect(await getPlans(sqlite, /"requests"/, async () => void run())).toEqual([
    'SEARCH requests USING COVERING INDEX requests_started (started_at>?)',
  ])
})
