/** Requests over time under the filters of the log. */
import type { Database } from 'bun:sqlite'
import { beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { commit, type Db } from '../../db/commit.ts'
import { rejectedClients } from '../../db/schema/rejections.ts'
import { requestHours, requests } from '../../db/schema/requests.ts'
import { RejectedQuery } from '../../src/model/log/rejected-clients.ts'
import { type LogHistogram, logHistogram, rejectedHistogram } from '../../src/model/log/request-histogram.ts'
import { LogQuery } from '../../src/model/log/request-log-query.ts'
import { addUpHours } from '../../src/model/reports/request-spans.ts'
import { testDb } from '../support/db.ts'
import { getPlans } from '../support/query-plans.ts'

const NOW = Date.UTC(2026, 0, 10, 12)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const ALL = { scope: 'all' as const, sensitive: true }

let db: Db
let sqlite: Database

beforeEach(() => {
  ;({ db, sqlite } = testDb())
})

type Row = typeof requests.$inferInsert

/** As the ledger does it: the row, and its hour. */
const add = async (msAgo: number, row: Partial<Row> = {}) => {
  const startedAt = NOW - msAgo
  const { status = 'ok', model = 'gpt-5.5' } = row
  const tokens = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costMicros: 0, unpriced: 0 }
  await commit(db, async (tx) => {
    const id = `r${msAgo}-${(await tx.all(sql`SELECT 1 FROM requests`)).length}`
    await tx
      .insert(requests)
      .values({
        id,
        requestId: id,
        startedAt,
        route: '/v1/responses',
        kind: 'normal',
        transport: 'http',
        status,
        model,
        httpStatus: 200,
        attempts: 1,
        totalMs: 10,
        ...row,
      })
      .run()
    const errors = status === 'error' ? 1 : 0
    const cancelled = status === 'cancelled' ? 1 : 0
    await tx
      .insert(requestHours)
      .values({
        hour: startedAt - (startedAt % HOUR),
        accountId: id,
        keyId: '',
        model: model ?? '',
        requests: 1,
        errors,
        cancelled,
        ...tokens,
      })
      .run()
  })
}

const ask = (asked: Record<string, unknown> = {}) => logHistogram(db, LogQuery.parse(asked), ALL, NOW)
const since = (ms: number) => new Date(NOW - ms).toISOString()
const filled = (found: LogHistogram | null) =>
  found?.bars.flatMap(({ completed, cancelled, errors }, index) =>
    completed + cancelled + errors === 0
      ? []
      : [[(NOW - Date.parse(found.from) - index * found.stepMs) / MINUTE, completed, cancelled, errors]],
  )

test('an empty log has none, nor has a range before the log begins', async () => {
  expect(await ask()).toBeNull()
  await add(HOUR)
  expect(await ask({ until: since(DAY) })).toBeNull()
  expect(await ask({ since: since(HOUR), until: since(2 * HOUR) })).toBeNull()
})

test('an hour is shown per minute, with incomplete requests', async () => {
  await add(HOUR)
  await add(30 * MINUTE)
  await add(30 * MINUTE, { status: 'error' })
  await add(30 * MINUTE, { status: 'cancelled' })
  await add(MINUTE / 2)
  const found = await ask({ since: since(HOUR) })
  expect(found?.stepMs).toBe(MINUTE)
  expect(filled(found)).toEqual([
    [60, 1, 0, 0],
    [30, 1, 1, 1],
    [1, 1, 0, 0],
  ])
})

test('only requests of the selected kinds are shown', async () => {
  await add(30 * MINUTE)
  await add(20 * MINUTE, { kind: 'image' })
  await add(10 * MINUTE, { kind: 'control', status: 'error' })
  expect(filled(await ask({ since: since(HOUR), kind: 'image' }))).toEqual([[20, 1, 0, 0]])
  expect(filled(await ask({ since: since(HOUR), kind: ['image', 'control'] }))).toEqual([
    [20, 1, 0, 0],
    [10, 0, 0, 1],
  ])
})

test('the axis begins with the first request, and no bar is lost at either end', async () => {
  await add(25 * MINUTE)
  await add(0)
  for (const asked of [{}, { since: since(7 * DAY) }, { since: since(30 * DAY), status: 'ok' }]) {
    const found = await ask(asked)
    expect([found?.stepMs, filled(found)?.length]).toEqual([MINUTE, 2])
  }
})

test.each([true, false])('a month is shown by hours, with or without hourly totals (%p)', async (isAddedUp) => {
  for (let day = 0; day < 29; day++) await add(day * DAY + HOUR / 2, { status: day % 2 ? 'error' : 'ok' })
  await add(HOUR / 2, { status: 'cancelled' })
  if (isAddedUp) while (await commit(db, (tx) => addUpHours(tx, { before: NOW - 5 * DAY, rows: 10 })));
  const found = await ask()
  expect(found?.stepMs).toBe(12 * HOUR)
  const bars = found?.bars ?? []
  expect(bars.length).toBeLessThanOrEqual(101)
  expect(bars.reduce((sum, { completed }) => sum + completed, 0)).toBe(15)
  expect(bars.reduce((sum, { errors }) => sum + errors, 0)).toBe(14)
  expect(bars.reduce((sum, { cancelled }) => sum + cancelled, 0)).toBe(1)
  expect(filled(found)).toEqual(filled(await ask({ search: '/v1' })))
})

test('without filters no row is read: one index has the times, another the errors', async () => {
  await add(5 * MINUTE, { status: 'error' })
  const plans = await getPlans(sqlite, /% /, () => ask())
  expect(plans.filter((step) => step.includes('requests'))).toEqual([
    expect.stringContaining('USING COVERING INDEX requests_started'),
    expect.stringContaining('USING COVERING INDEX requests_trouble'),
  ])
})

describe('filters of the log hold', () => {
  beforeEach(async () => {
    await add(10 * MINUTE, { model: 'gpt-5.4' })
    await add(5 * MINUTE, { status: 'error', errorCode: 'upstream_error' })
    await add(3 * MINUTE, { firstEventMs: 12_000 })
    await add(2 * MINUTE, { firstEventMs: 9_000 })
  })

  test.each<[Record<string, unknown>, number[]]>([
    [{ model: 'gpt-5.4' }, [10]],
    [{ status: 'failed' }, [5]],
    [{ code: 'upstream_error' }, [5]],
    [{ slow: 'true' }, [3]],
    [{ slow: 'false' }, [10, 5, 3, 2]],
    [{ search: 'upstream_err' }, [5]],
    [{ model: 'none' }, []],
  ])('%p', async (asked, minutes) => {
    expect(filled(await ask(asked))?.map(([at]) => at)).toEqual(minutes)
  })
})

test.each([
  { asked: { status: 'ok' }, most: 30_000 },
  { asked: { search: '/' }, most: 25_000 },
])('requests beyond the $most examined are not counted, and the histogram says so', async ({ asked, most }) => {
  await commit(db, (tx) =>
    tx.run(sql`WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 50099)
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
      SELECT printf('r%06d', n), 'r', ${NOW} - n * 1000, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n`),
  )
  const found = await ask(asked)
  expect(found?.bars.reduce((sum, { completed }) => sum + completed, 0)).toBe(most)
  expect(found?.countedFrom).toBe(since((most - 1) * 1000))
  expect((await ask())?.countedFrom).toBeNull()
})

test('rejected clients are counted as often as they were rejected', async () => {
  const row = { client: '192.0.2.7', reason: 'unknown_key', route: '/v1/models', keyStart: null, keyId: null } as const
  await commit(db, (tx) =>
    tx
      .insert(rejectedClients)
      .values([
        { ...row, minute: NOW - 30 * MINUTE, lastAt: NOW - 30 * MINUTE, count: 7 },
        { ...row, minute: NOW - MINUTE, lastAt: NOW - MINUTE, count: 2, client: '192.0.2.8' },
      ])
      .run(),
  )
  const found = async (asked = {}) => filled(await rejectedHistogram(db, RejectedQuery.parse(asked), ALL, NOW))
  expect(await found()).toEqual([
    [30, 0, 0, 7],
    [1, 0, 0, 2],
  ])
  expect(await found({ search: '2.8' })).toEqual([[1, 0, 0, 2]])
})
