/** Days and longer spans equal the sum of their hours, so a report is the same from both, and reads far less. */
import type { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { commit, type Db } from '../../db/commit.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { runStatements } from '../../db/statements.ts'
import { addUpCompletedHours } from '../../src/jobs/sums.ts'
import { HOUR_MS } from '../../src/lib/durations.ts'
import { ReportQuery, report as readReport } from '../../src/model/reports/reports.ts'
import { addLateHours, addUpHours, getSummedUntil, type HourSum } from '../../src/model/reports/request-spans.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import { holdsAwaited } from '../support/property.ts'
import { getPlans } from '../support/query-plans.ts'

const DAY_MS = 24 * HOUR_MS
const START = Date.parse('2026-02-01T00:00Z')
const DAYS = 70
const NOW = START + DAYS * DAY_MS
const EVERYTHING = { scope: 'all' as const, hidesAccounts: false, hidesKeys: false }

const hourSum = (hour: number, over: Partial<HourSum> = {}): HourSum => ({
  hour,
  accountId: 'acc_a',
  keyId: 'key_a',
  model: 'gpt-5.5',
  requests: 1,
  errors: 0,
  cancelled: 0,
  inputTokens: 100,
  cachedInputTokens: 50,
  outputTokens: 10,
  costMicros: 1_000_000,
  unpriced: 0,
  ...over,
})

const add = (db: Db, sums: readonly HourSum[]): Promise<void> =>
  commit(db, async (tx) => {
    for (const sum of sums) await tx.insert(requestHours).values(sum).onConflictDoNothing().run()
  })

const addAll = async (db: Db, before: number, rows = 500): Promise<void> => {
  while (await commit(db, (tx) => addUpHours(tx, { before, rows })));
}

const report = (db: Db, query: Record<string, string | undefined>) =>
  readReport(db, ReportQuery.parse(query), EVERYTHING, NOW)

const someHour = fc.record({
  hour: fc.nat({ max: DAYS * 24 - 1 }).map((n) => START + n * HOUR_MS),
  accountId: fc.constantFrom('', 'acc_a', 'acc_b', 'acc_c'),
  keyId: fc.constantFrom('', 'key_a', 'key_b'),
  model: fc.constantFrom('', 'gpt-5.5', 'gpt-5.4'),
  client: fc.constantFrom('', 'codex_exec', 'OpenAI'),
  sourceId: fc.constantFrom('', 'src_a', 'src_b'),
  requests: fc.integer({ min: 1, max: 9 }),
})

describe('a report', () => {
  test('is the same before and after its hours were added up, in any zone and range, up to any hour', async () => {
    const zones = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/St_Johns', 'Pacific/Kiritimati']
    const { db, sqlite } = testDb()
    const places = fc.tuple(fc.nat({ max: DAYS - 1 }), fc.nat({ max: DAYS - 1 }))
    await holdsAwaited(
      fc.asyncProperty(
        fc.array(someHour, { minLength: 1, maxLength: 60 }),
        fc.constantFrom(...zones),
        places,
        fc.nat({ max: DAYS * 24 }),
        async (hours, timezone, [a, b], upTo) => {
          forgetSpans(sqlite)
          sqlite.run('DELETE FROM request_hours')
          await add(
            db,
            hours.map(({ hour, ...over }) => hourSum(hour, over)),
          )
          const date = (n: number) => new Date(START + n * DAY_MS).toISOString().slice(0, 10)
          const query = { start_date: date(Math.min(a, b)), end_date: date(Math.max(a, b)), timezone }
          const before = await report(db, query)
          await addAll(db, START + upTo * HOUR_MS, 7)
          expect(await getSummedUntil(db)).toBe(START + upTo * HOUR_MS)
          expect(await report(db, query)).toEqual(before)
        },
      ),
      40,
    )
  })

  test('with a filter for everything equals the one without filters', async () => {
    const { db, sqlite } = testDb()
    await holdsAwaited(
      fc.asyncProperty(
        fc.array(someHour, { minLength: 1, maxLength: 40 }),
        fc.constantFrom('UTC', 'Asia/Kolkata'),
        async (hours, timezone) => {
          forgetSpans(sqlite)
          sqlite.run('DELETE FROM request_hours')
          await add(
            db,
            hours.map(({ hour, ...over }) => hourSum(hour, { ...over, model: 'gpt-5.5' })),
          )
          await addAll(db, NOW)
          const query = { start_date: '2026-02-03', end_date: '2026-04-01', timezone }
          expect(withoutDigests(await report(db, { ...query, model: 'gpt-5.5' }))).toEqual(
            withoutDigests(await report(db, query)),
          )
        },
      ),
      40,
    )
  })

  test('includes what the ledger adds to an already added-up hour', async () => {
    const { db, sqlite } = testDb()
    await add(db, [hourSum(START), hourSum(START + 5 * DAY_MS, { accountId: 'acc_b' })])
    await addAll(db, NOW)
    const late = [
      hourSum(START + HOUR_MS, { accountId: 'acc_b', errors: 1 }),
      hourSum(START + 6 * DAY_MS + 23 * HOUR_MS, { keyId: '', model: 'gpt-5.4', requests: 4 }),
    ]
    await add(db, late)
    runStatements(sqlite, [addLateHours(late, await getSummedUntil(db))])
    const query = { start_date: '2026-02-01', end_date: '2026-04-01', timezone: 'Europe/Berlin' }
    const summed = await report(db, query)
    expect(summed.summary).toMatchObject({ requests: 7, errors: 1, activeAccounts: 2 })
    expect(summed.daily[0]).toMatchObject({ requests: 2, activeAccounts: 2 })
    forgetSpans(sqlite)
    expect(await report(db, query)).toEqual(summed)
  })
})

const forgetSpans = (sqlite: Database): void => {
  sqlite.run("DELETE FROM facts WHERE name = 'hours_added_up_to'")
  sqlite.run('DELETE FROM request_spans')
}

test('hours not added up yet are left out by the ledger', async () => {
  const { db, sqlite } = testDb()
  await addAll(db, START + DAY_MS)
  runStatements(sqlite, [addLateHours([hourSum(START + DAY_MS)], await getSummedUntil(db))])
  expect(countRows(sqlite)).toBe(0)
})

test('a clock set back adds no hour twice', async () => {
  const { db, sqlite } = testDb()
  await add(db, [hourSum(START)])
  await addAll(db, NOW)
  const rows = countRows(sqlite)
  expect(await commit(db, (tx) => addUpHours(tx, { before: START, rows: 10 }))).toBe(false)
  expect([await getSummedUntil(db), countRows(sqlite), rows]).toEqual([NOW, rows, 12])
})

const countRows = (sqlite: Database): number =>
  sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM request_spans').get()?.n ?? 0

test('a batch reads about the requested number of rows, and always a whole hour', async () => {
  const { db } = testDb()
  const crowded = Array.from({ length: 20 }, (_, n) => hourSum(START, { keyId: `key_${n}` }))
  await add(db, [...crowded, ...Array.from({ length: 30 }, (_, n) => hourSum(START + (n + 1) * HOUR_MS))])
  const steps: number[] = []
  while (await commit(db, (tx) => addUpHours(tx, { before: NOW, rows: 10 })))
    steps.push(((await getSummedUntil(db)) - START) / HOUR_MS)
  expect(steps).toEqual([1, 11, 21])
  expect(await getSummedUntil(db)).toBe(NOW)
})

test('the job leaves the current hour and the one before it for late requests', async () => {
  const { db } = testDb()
  const now = NOW + 20 * 60_000
  await add(
    db,
    [1, 2, 3].map((ago) => hourSum(NOW - ago * HOUR_MS)),
  )
  await addUpCompletedHours({ db, clock: new ManualClock(now) }, new AbortController().signal)
  expect(await getSummedUntil(db)).toBe(NOW - HOUR_MS)
})

test('the job pauses after each batch', async () => {
  const { db } = testDb()
  const hours = 1200
  await add(
    db,
    Array.from({ length: hours }, (_, n) => hourSum(START + n * HOUR_MS)),
  )
  const clock = new ManualClock(START + (hours + 1) * HOUR_MS)
  const running = addUpCompletedHours({ db, clock }, new AbortController().signal)
  await clock.advance(0)
  const seen: number[] = []
  for (let slice = 0; slice < 3; slice++) {
    seen.push(((await getSummedUntil(db)) - START) / HOUR_MS)
    await clock.advance(20)
  }
  await running
  expect(seen).toEqual([500, 1000, 1200])
})

describe('the rows that a report reads', () => {
  test.each([
    {},
    { timezone: 'Europe/Berlin' },
    { account_id: 'acc_a' },
    { api_key_id: 'key_a' },
    { model: 'gpt-5.5' },
  ])('for a year with %o no table is scanned completely', async (over) => {
    const { db, sqlite } = testDb()
    await addAll(db, NOW)
    const year = { start_date: '2025-04-13', end_date: '2026-04-12', ...over }
    const plans = await getPlans(sqlite, /request_(hours|spans)/, () => report(db, year))
    expect(plans.filter((detail) => /^SCAN request_/.test(detail))).toEqual([])
    expect(plans.some((detail) => /^SEARCH request_/.test(detail))).toBe(true)
  })

  test('for a year of two hundred busy accounts are a few thousand rows of totals', async () => {
    const { db, sqlite } = testDb()
    sqlite.run(`WITH RECURSIVE h(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM h WHERE n < ${64 * 24 - 1}),
        a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 20)
      INSERT INTO request_hours SELECT h.n * ${HOUR_MS}, 'acc_' || a.n, 'key', 'm', 'codex_exec', '', 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0 FROM h, a`)
    await addAll(db, 64 * DAY_MS)
    const rows = (spanHours: number, dimension: string) =>
      sqlite
        .query<{ n: number }, [number, string]>(
          'SELECT count(*) AS n FROM request_spans WHERE span_hours = ? AND dimension = ?',
        )
        .get(spanHours, dimension)?.n
    expect([rows(1, 'all'), rows(24, 'account'), rows(768, 'account')]).toEqual([64 * 24, 64 * 20, 2 * 20])
  })
})

const OF_DIGESTS = new Set(['reasoningTokens', 'conversations', 'medianFirstTokenMs', 'medianTokensPerSecond'])

/** Digests have no dimensions, so narrowed reports leave their figures out. */
const withoutDigests = (shown: Awaited<ReturnType<typeof report>>): unknown =>
  JSON.parse(JSON.stringify(shown, (name, value) => (OF_DIGESTS.has(name) ? undefined : value)))
