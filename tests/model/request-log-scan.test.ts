/** A page of the log reads a bounded number of rows, says where it stopped, and can be continued there. */

import { describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { newRequests, requestLogs } from '../../src/model/log/request-log.ts'
import { LogQuery } from '../../src/model/log/request-log-query.ts'
import { MAX_SCANNED } from '../../src/model/log/request-log-scan.ts'
import { testDb } from '../support/db.ts'
import { getPlans } from '../support/query-plans.ts'

const SIGHT = { scope: 'all' as const, sensitive: true }

/** Row `n` started `n` ms after the epoch and took a millisecond; 1 is the oldest. */
const getLog = async (count: number) => {
  const { db, sqlite } = testDb()
  await commit(db, async (tx) => {
    await tx.run(sql`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms, model, account_id)
      SELECT printf('r%06d', n), printf('req-of-the-client-%06d', n), n, '/', 'normal', 'http', 'ok', 200, 1, 1,
        CASE n WHEN 1 THEN 'rare' ELSE 'usual' END, 'acc_' || (n % 2) FROM n`)
  })
  const find = (asked: Record<string, unknown>) => requestLogs(db, LogQuery.parse(asked), SIGHT)
  return { db, sqlite, find }
}

test('a search without a match stops after fifty thousand rows and can be continued', async () => {
  const { find } = await getLog(MAX_SCANNED + 5)
  const first = await find({ search: 'rare' })
  expect(first).toMatchObject({ requests: [], total: null, hasMore: true, searchedTo: new Date(6).toISOString() })
  const second = await find({ search: 'rare', cursor: first.nextCursor })
  expect(second.requests.map(({ id }) => id)).toEqual(['r000001'])
  expect(second).toMatchObject({ hasMore: false, searchedTo: null })
})

test('the whole log is not counted, and a full page does not say that the search stopped', async () => {
  const { find } = await getLog(MAX_SCANNED + 5)
  expect(await find({})).toMatchObject({ total: null, moreThan: 10_000, hasMore: true, searchedTo: null })
  expect(await find({ search: 'usual' })).toMatchObject({ total: null, moreThan: null, searchedTo: null })
})

test('an index finds a model or request id however old it is', async () => {
  const { find } = await getLog(MAX_SCANNED + 5)
  for (const asked of [{ model: 'rare' }, { search: 'req-of-the-client-000001' }])
    expect(await find(asked)).toMatchObject({ requests: [{ id: 'r000001' }], total: 1, searchedTo: null })
})

test('a request id finds whole ids; a part of one is searched as text', async () => {
  const { find } = await getLog(20)
  expect((await find({ search: 'req-of-the-client-00001' })).total).toBe(10)
  expect((await find({ search: 'req-of-the-client-000010' })).total).toBe(1)
})

test('the newer direction takes the rows next to the position, not the newest', async () => {
  const { find } = await getLog(10)
  const page = await find({ limit: 3, cursor: (await find({ limit: 8 })).nextCursor })
  expect(page.requests.map(({ id }) => id)).toEqual(['r000002', 'r000001'])
  const back = await find({ limit: 3, newer: page.prevCursor })
  expect(back.requests.map(({ id }) => id)).toEqual(['r000005', 'r000004', 'r000003'])
  const end = await find({ limit: 9, newer: back.prevCursor })
  expect(end.requests).toHaveLength(5)
  expect([end.prevCursor, end.hasMore]).toEqual([null, true])
})

test('one account with other filters keeps their order and omits none', async () => {
  const { find } = await getLog(50)
  const seen: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await find({ accountId: 'acc_1', search: 'usual', limit: 7, ...(cursor && { cursor }) })
    seen.push(...page.requests.map(({ id }) => id))
    cursor = page.nextCursor
  }
  expect(seen).toEqual(Array.from({ length: 24 }, (_, place) => `r0000${String(49 - place * 2).padStart(2, '0')}`))
})

test('rows with the same time are neither repeated nor omitted if the search stops among them', async () => {
  const { find, sqlite } = await getLog(MAX_SCANNED + 100)
  sqlite.run('UPDATE requests SET started_at = 7777 WHERE started_at BETWEEN 50 AND 180')
  sqlite.run("UPDATE requests SET model = 'rare' WHERE started_at = 7777")
  for (const asked of [{ search: 'rare' }, { search: 'rare', accountId: 'acc_1' }]) {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await find({ ...asked, limit: 40, ...(cursor && { cursor }) })
      seen.push(...page.requests.map(({ id }) => id))
      cursor = page.nextCursor
    }
    expect(new Set(seen)).toHaveLength(seen.length)
    expect(seen).toHaveLength('accountId' in asked ? 67 : 133)
  }
})

test('a full page is counted, unless more would have to be read than a page may', async () => {
  const { find } = await getLog(MAX_SCANNED + 5)
  const since = new Date(MAX_SCANNED - 5).toISOString()
  expect(await find({ model: 'usual', limit: 5 })).toMatchObject({ total: null, moreThan: 10_000 })
  expect(await find({ model: 'usual', search: 'client-05000', limit: 5 })).toMatchObject({
    total: null,
    moreThan: null,
  })
  expect((await find({ since, limit: 5 })).total).toBe(11)
  expect((await find({ since, accountId: 'acc_1', limit: 5 })).total).toBe(6)
  expect((await find({ since, limit: 5, offset: 8 })).total).toBe(11)
  expect((await find({ since: new Date(30_000).toISOString(), limit: 5 })).total).toBeNull()
})

test.each([
  [{ conversation_id: 'talk', apiKeyId: 'key' }, 'requests_conversation'],
  [{ apiKeyId: 'key', accountId: 'acc_1' }, 'requests_key'],
  [{ accountId: 'acc_1', model: 'usual' }, 'requests_account'],
  [{ model: 'usual', reasoningEffort: 'high' }, 'requests_model'],
  [{ model: ['usual', 'rare'] }, 'requests_started'],
  [{ reasoningEffort: 'high' }, 'requests_started'],
  [{ modelOption: 'usual:::high' }, 'requests_started'],
  [{ status: ['ok', 'failed'] }, 'requests_started'],
  [{ search: 'usual' }, 'requests_started'],
  [{ search: 'req-of-the-client-000001', model: 'usual' }, 'requests_request'],
])('%o uses %s', async (asked, index) => {
  const { find, sqlite } = await getLog(10)
  const steps = (await getPlans(sqlite, /AS fits/, () => find(asked))).filter((step) =>
    /^(SCAN|SEARCH) requests /.test(step),
  )
  expect(steps).toEqual([expect.stringContaining(` ${index}`)])
})

describe('the table rows are not read', () => {
  test.each([
    { status: 'failed' },
    { status: 'cancelled' },
    { code: 'server_error' },
    { status: 'failed', accountId: 'acc_1', model: 'usual', apiKeyId: 'key' },
    { code: 'server_error', model: ['usual', 'rare'], since: '1970-01-01T00:00:00Z' },
  ])('for %o, which the index of unsuccessful requests answers', async (asked) => {
    const { find, sqlite } = await getLog(10)
    const steps = (await getPlans(sqlite, /"requests"/, () => find(asked))).filter((step) =>
      /^(SCAN|SEARCH) requests /.test(step),
    )
    expect(steps.length).toBeGreaterThan(0)
    expect(steps.filter((step) => !step.includes('USING COVERING INDEX requests_trouble'))).toEqual([])
  })

  test('when searching for the end and counting', async () => {
    const { find, sqlite } = await getLog(30_010)
    const plans = await getPlans(sqlite, /count|OFFSET/, () => find({ accountId: 'acc_1', search: 'nowhere' }))
    expect(plans).toContain('SEARCH requests USING COVERING INDEX requests_account (account_id=?)')
    expect(plans).toContain('SEARCH requests USING COVERING INDEX requests_account (account_id=? AND started_at>?)')
  })
})

test('filters that the index of unsuccessful requests cannot answer find the same', async () => {
  const { find, sqlite } = await getLog(60)
  sqlite.run(`UPDATE requests SET status = 'error', error_code = 'server_error', reasoning_effort = 'high'
    WHERE started_at % 3 = 0`)
  const totals = await mapInOrder(
    [
      { status: 'failed' },
      { status: 'failed', reasoningEffort: 'high' },
      { code: 'server_error', search: 'usual' },
      { status: 'failed', accountId: 'acc_1' },
      { status: 'failed', accountId: 'acc_1', search: 'usual' },
    ],
    async (asked) => (await find(asked)).total,
  )
  expect(totals).toEqual([20, 20, 20, 10, 10])
})

test('new requests are limited and filtered', async () => {
  const { db } = await getLog(500)
  const since = (after: number, asked = {}) => newRequests(db, LogQuery.parse(asked), SIGHT, after)
  expect(await since(0)).toHaveLength(200)
  expect((await since(498)).map(({ id }) => id)).toEqual(['r000500', 'r000499', 'r000498'])
  expect((await since(0, { model: 'rare' })).map(({ id }) => id)).toEqual(['r000001'])
})

test('if there are more new requests than a response holds, the most recently begun are last, so that a list has no gap', async () => {
  const { db, sqlite } = await getLog(500)
  sqlite.run('UPDATE requests SET total_ms = 1000 WHERE id = ?', ['r000007'])
  const told = (await newRequests(db, LogQuery.parse({}), SIGHT, 0)).map(({ id }) => id)
  expect(told).toEqual(Array.from({ length: 200 }, (_, place) => `r000${500 - place}`))
})

test('a rare match is found among many new requests', async () => {
  const { db, sqlite } = await getLog(14_000)
  sqlite.run("UPDATE requests SET status = 'error' WHERE started_at % 100 = 0")
  expect(await newRequests(db, LogQuery.parse({ status: 'failed' }), SIGHT, 0)).toHaveLength(140)
})

test('new requests are found by their index, latest end first', async () => {
  const { db, sqlite } = await getLog(5)
  const steps = await getPlans(sqlite, /total_ms/, () =>
    newRequests(db, LogQuery.parse({ status: 'failed' }), SIGHT, 3),
  )
  expect(steps).toContain('SEARCH requests USING INDEX requests_ended (<expr>>?)')
  expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toHaveLength(1) // the first of the matches, by its start
})
