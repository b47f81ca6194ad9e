/** Medians, reasoning tokens and conversations of reports: the same from hourly digests as from the log. */
import { expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestDigests, requests } from '../../db/schema/requests.ts'
import { addUpCompletedHours } from '../../src/jobs/sums.ts'
import { type DayDigest, getDigests } from '../../src/model/reports/request-digests.ts'
import { advanceClockDuring, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const never = new AbortController().signal

interface Row {
  /** ms after the start of the clock */
  at: number
  firstEventMs?: number | null
  totalMs?: number
  outputTokens?: number
  reasoningTokens?: number
  talk?: string
  status?: 'ok' | 'error'
  kind?: 'normal' | 'warmup'
}

let number = 0
const add = async (app: TestApp, rows: readonly Row[]) => {
  const start = app.clock.now()
  await commit(app.db, async (tx) => {
    for (const { at, talk, firstEventMs = 400, totalMs = 2400, status = 'ok', kind = 'normal', ...tokens } of rows)
      await tx
        .insert(requests)
        .values({
          id: `r${String(++number).padStart(6, '0')}`,
          requestId: `req_${number}`,
          startedAt: start + at,
          ...{ route: '/v1/responses', kind, transport: 'http', status, httpStatus: 200, attempts: 1 },
          conversationHash: talk?.padEnd(64, '0') ?? null,
          ...{ firstEventMs, totalMs, outputTokens: 100, ...tokens },
        })
        .run()
  })
}

const days = (app: TestApp, count: number) => {
  const from = app.clock.now() - (app.clock.now() % DAY_MS)
  return Array.from({ length: count }, (_, n) => ({ from: from + n * DAY_MS, to: from + (n + 1) * DAY_MS }))
}
const about = (value: number | null | undefined, expected: number) => {
  expect((value ?? 0) / expected).toBeGreaterThan(0.9)
  expect((value ?? 0) / expected).toBeLessThan(1.1)
}

test('the log and its digests give the same, day by day', async () => {
  const app = await testApp({ accounts: 0 })
  await add(
    app,
    Array.from({ length: 300 }, (_, n) => ({
      at: n * 17 * 60_000,
      firstEventMs: 50 + ((n * 7919) % 5000),
      totalMs: 6000 + ((n * 104_729) % 20_000),
      outputTokens: (n * 31) % 900,
      reasoningTokens: n % 11,
      talk: `talk${100 + (n % 40)}`,
    })),
  )
  const span = days(app, 4)
  const fromLog = await getDigests(app.db, span)
  await app.clock.advance(4 * DAY_MS)
  await advanceClockDuring(app, addUpCompletedHours(app, never))
  expect((await app.db.select().from(requestDigests).all()).length).toBeGreaterThan(60)
  expect(await getDigests(app.db, span)).toEqual(fromLog)
  expect(fromLog.total.conversations).toBe(40)
  expect(fromLog.days.map(({ conversations }) => conversations)).toEqual([40, 40, 40, 40])
  expect(fromLog.days.reduce((sum, day) => sum + day.reasoningTokens, 0)).toBe(fromLog.total.reasoningTokens)
  app.sqlite.run('DELETE FROM requests')
  expect(await getDigests(app.db, span)).toEqual(fromLog) // the log is not read any more
})

test('medians are of requests that were answered, and warm-ups are excluded', async () => {
  const app = await testApp({ accounts: 0 })
  await add(app, [
    { at: 0, firstEventMs: 300, totalMs: 1300, outputTokens: 40 },
    { at: 1, firstEventMs: 500, totalMs: 2500, outputTokens: 160, talk: 'a' },
    { at: 2, firstEventMs: 9000, totalMs: 10_000, outputTokens: 500, talk: 'a', reasoningTokens: 5 },
    { at: 3, firstEventMs: 1, status: 'error' },
    { at: 4, firstEventMs: 1, kind: 'warmup', talk: 'b', reasoningTokens: 100 },
    { at: 5, firstEventMs: null },
  ])
  const [day, next] = (await getDigests(app.db, days(app, 2))).days
  about(day?.medianFirstTokenMs, 500)
  about(day?.medianTokensPerSecond, 80)
  expect(day).toMatchObject({ conversations: 1, reasoningTokens: 5 })
  expect(next).toEqual({
    reasoningTokens: 0,
    conversations: 0,
    medianFirstTokenMs: null,
    medianTokensPerSecond: null,
  } satisfies DayDigest)
})

test('a request across an hour boundary belongs to the day in which its hour begins', async () => {
  const app = await testApp({ accounts: 0 })
  await add(app, [
    { at: HOUR_MS - 1, talk: 'a' },
    { at: HOUR_MS, talk: 'b' },
    { at: DAY_MS, talk: 'c' },
  ])
  const span = days(app, 2)
  await app.clock.advance(2 * DAY_MS)
  await advanceClockDuring(app, addUpCompletedHours(app, never))
  expect(await app.db.select({ hour: requestDigests.hour }).from(requestDigests).all()).toHaveLength(3)
  expect((await getDigests(app.db, span)).days.map(({ conversations }) => conversations)).toEqual([2, 1])
})

test('the report has them for all requests, but not with a filter or for some keys', async () => {
  const app = await testApp()
  await add(app, [{ at: 0, reasoningTokens: 7, talk: 'a' }])
  const admin = await people(app).as('admin')
  const report = async (query: string) =>
    (await (await admin.ask(`GET /api/reports?${query}`)).json()) as {
      summary: Record<string, unknown>
      daily: Record<string, unknown>[]
    }
  const all = await report('')
  expect(all.summary).toMatchObject({ reasoningTokens: 7, conversations: 1 })
  expect(all.daily.at(-1)).toMatchObject({ reasoningTokens: 7, conversations: 1 })
  about(Number(all.daily.at(-1)?.medianFirstTokenMs), 400)
  for (const filter of ['model=gpt-5.5', 'useragent_group=codex_exec', 'client=codex_exec']) {
    const some = await report(filter)
    expect(some.summary).toMatchObject({ reasoningTokens: null, conversations: null, requests: 0 })
    expect(some.daily.at(-1)).toMatchObject({ medianFirstTokenMs: null, medianTokensPerSecond: null })
  }
})
