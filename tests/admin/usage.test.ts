/** `/api/usage`, and the log as a file from the API. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { usageSamples } from '../../db/schema/history.ts'
import { getCursor } from '../../src/model/log/request-log-query.ts'
import { read } from '../../src/model/reads.ts'
import { toReader } from '../../src/threads/reader.ts'
import { codexBody, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const HOUR_MS = 3_600_000
const get = async (app: TestApp, path: string) => {
  const response = await app.ask(`GET ${path}`)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const turn = async (app: TestApp, more: Record<string, unknown> = {}, headers: Record<string, string> = {}) => {
  await (await app.ask('POST /backend-api/codex/responses', { json: codexBody('hello', more), headers })).text()
  await app.bindings.ledger.flush()
}
const report = (app: TestApp, index: number, used: number) =>
  app.bindings.pool.observe(app.members[index]?.id ?? '', {
    at: app.clock.now(),
    windows: {
      fiveHour: { usedPercent: used, windowMinutes: 300, resetAt: app.clock.now() + HOUR_MS },
      weekly: { usedPercent: used / 2, windowMinutes: 10_080, resetAt: app.clock.now() + 50 * HOUR_MS },
      monthly: null,
    },
    credits: null,
    planType: 'plus',
    additional: [],
  })

describe('usage', () => {
  test('the summary weighs the windows and adds up seven days', async () => {
    const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }] })
    report(app, 0, 20)
    report(app, 1, 60)
    await turn(app)
    for (const { sim } of app.members)
      sim.always({ status: 400, body: { error: { message: 'No', code: 'not_for_you', type: null } } })
    await turn(app)
    const { body } = await get(app, '/api/usage/summary')
    expect(body).toMatchObject({
      primaryWindow: { remainingPercent: 60, capacityCredits: 450, remainingCredits: 270, windowMinutes: 300 },
      secondaryWindow: { remainingPercent: 80, windowMinutes: 10_080 },
      monthlyWindow: null,
      cost: { currency: 'USD' },
      metrics: { requests7d: 2, errorRate7d: 0.5, topError: 'not_for_you', cancelled7d: 0 },
    })
  })

  test('the history averages samples, the window shows what is left now', async () => {
    const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }] })
    const [ada, bob] = app.members.map(({ id }) => id) as [string, string]
    const hour = app.clock.now()
    await commit(app.db, async (tx) => {
      for (const [ago, fiveHourUsed] of [
        [1, 10],
        [2, 30],
        [30, 100],
      ] as const)
        await tx
          .insert(usageSamples)
          .values({ accountId: ada, hour: hour - ago * HOUR_MS, fiveHourUsed })
          .run()
    })
    expect((await get(app, '/api/usage/history')).body).toEqual({
      windowHours: 24,
      accounts: [
        { accountId: ada, remainingPercentAvg: 80, capacityCredits: 225, remainingCredits: 180 },
        { accountId: bob, remainingPercentAvg: null, capacityCredits: 225, remainingCredits: null },
      ],
    })
    report(app, 1, 50)
    expect((await get(app, '/api/usage/window?window=secondary')).body).toMatchObject({
      windowKey: 'secondary',
      windowMinutes: 10_080,
      accounts: [
        { accountId: ada, remainingPercentAvg: null },
        { accountId: bob, remainingPercentAvg: 75, capacityCredits: 7560, remainingCredits: 5670 },
      ],
    })
    expect((await get(app, '/api/usage/window?window=yearly')).status).toBe(422)
    expect((await get(app, '/api/usage/history?hours=169')).status).toBe(422)
  })

  test('it needs accounts:read', async () => {
    const app = await testApp()
    const { as, addRole } = people(app)
    await addRole('logs', { 'dashboard:read': 'all' })
    for (const path of ['summary', 'history', 'window'])
      expect((await (await as('logs')).ask(`GET /api/usage/${path}`)).status).toBe(403)
  })
})

describe('the exported log', () => {
  test('has the filters of the list, as CSV without spreadsheet formulas', async () => {
    const app = await testApp()
    await turn(app)
    await turn(app, { model: '=HYPERLINK("x")' }, { 'user-agent': '=cmd|x/1' })
    const response = await app.ask('GET /api/request-logs/export')
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="sluice-log-2026-01-01.csv"')
    const [head, newest, oldest, ...rest] = (await response.text()).trimEnd().split('\r\n')
    expect(head).toStartWith('time,id,request_id,result')
    expect(oldest).toContain('gpt-5.5')
    expect(newest).not.toMatch(/(^|,)"?=/)
    expect(rest).toEqual([])
    const some = await (await app.ask('GET /api/request-logs/export?model=gpt-5.5&format=ndjson')).text()
    const lines = some
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(lines).toMatchObject([{ model: 'gpt-5.5', status: 'ok' }])
    expect((await app.ask('GET /api/request-logs/export?format=xml')).status).toBe(422)
    expect((await app.ask('GET /api/request-logs/export?status=failed')).status).toBe(200)
  })

  test('says on its last line that rows are missing after 100,000', async () => {
    const app = await testApp()
    await turn(app)
    const { db, bindings } = app
    let pages = 0
    // A log without end: the one row again and again.
    bindings.reader = toReader(
      async (_, name, args) => {
        const found = (await read(db, name, args)) as { requests: { id: string }[] } // as: the only read
        pages++
        const requests = Array.from({ length: 1000 }, () => found.requests[0])
        return { ...found, requests, nextCursor: getCursor({ startedAt: app.clock.now() + 1, id: 'z' }) }
      },
      async () => {},
    )
    for (const [format, end] of [
      ['csv', 'cut off after 100000 rows; choose a shorter time range'],
      ['ndjson', '{"isComplete":false,"rows":100000}'],
    ] as const) {
      pages = 0
      const text = await (await app.ask(`GET /api/request-logs/export?format=${format}`)).text()
      const lines = text.trimEnd().split('\n')
      expect(lines.at(-1)?.trim()).toBe(end)
      expect([pages, lines.length]).toEqual([100, format === 'csv' ? 100_002 : 100_001])
    }
  })
})
