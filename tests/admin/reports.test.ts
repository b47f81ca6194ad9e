/** Reports: daily totals in a time zone, shares, the previous period, files, and hidden names. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { type Report, ReportQuery } from '../../src/model/reports/reports.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { people, problem } from '../support/people.ts'

let app: TestApp
let accountId: string
let keyId: string

beforeEach(async () => {
  app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
  accountId = app.members[0]?.id ?? ''
  keyId = (await app.key({ name: '=Laptop, "big"' })).row.id
})

const add = (hour: string, sums: Partial<typeof requestHours.$inferInsert> = {}) =>
  commit(
    app.db,
    async (tx) =>
      void (await tx
        .insert(requestHours)
        .values({
          hour: Date.parse(hour),
          accountId,
          keyId,
          model: 'gpt-5.5',
          requests: 1,
          errors: 0,
          cancelled: 0,
          inputTokens: 100,
          cachedInputTokens: 50,
          outputTokens: 10,
          costMicros: 1_000_000,
          unpriced: 0,
          ...sums,
        })
        .run()),
  )

const report = async (query: string): Promise<Report> =>
  (await (await app.ask(`GET /api/reports?${query}`)).json()) as Report // as: the tests check the shape
const MARCH = 'start_date=2026-03-28&end_date=2026-03-30'

describe('days', () => {
  test('are those of the time zone, also when the clocks change', async () => {
    await add('2026-03-27T23:00Z') // midnight in Berlin
    await add('2026-03-28T23:00Z', { requests: 2 }) // the next midnight
    await add('2026-03-29T21:00Z', { requests: 4 }) // 23:00, clocks went forward
    await add('2026-03-29T22:00Z', { requests: 8 }) // midnight in summer time
    await add('2026-03-30T22:00Z', { requests: 16 }) // the day after the report
    const berlin = await report(`${MARCH}&timezone=Europe/Berlin`)
    expect(berlin.daily.map(({ date, requests }) => [date, requests])).toEqual([
      ['2026-03-28', 1],
      ['2026-03-29', 6],
      ['2026-03-30', 8],
    ])
    expect(berlin.summary).toMatchObject({ requests: 15, costUsd: 4, avgRequestsPerDay: 5, activeAccounts: 1 })
    expect(berlin.summary.avgCostPerDayUsd).toBeCloseTo(4 / 3)
    const utc = await report(`${MARCH}&timezone=Nowhere/Land`)
    expect([utc.timezone, utc.daily.map(({ requests }) => requests)]).toEqual(['UTC', [2, 12, 16]])
  })

  test('on the page are those of the browser, also in its files; a zone in the URL takes precedence', async () => {
    const page = async (query: string, zone: string) =>
      (await app.ask(`GET /reports${query}`, { headers: { accept: 'text/html', cookie: `zone=${zone}` } })).text()
    const own = await page('', 'Asia/Kolkata')
    expect(own).toContain('days in Asia/Kolkata')
    expect(own).toMatch(/href="\/api\/reports\?[^"]*timezone=Asia%2FKolkata[^"]*format=csv/)
    expect(await page('?timezone=Europe/Berlin', 'Asia/Kolkata')).toContain('days in Europe/Berlin')
    for (const zone of ['Nowhere/Land', '%22', 'x'.repeat(100)]) expect(await page('', zone)).toContain('days in UTC')
  })

  test.each([
    ['start_date=2026-03-28&end_date=2026-03-28', 1],
    ['start_date=2024-01-01&end_date=2025-12-30', 730],
    ['start_date=&end_date=', 7],
  ])('%s has %d', async (query, days) => {
    expect((await report(query)).daily).toHaveLength(days)
  })

  test('default to the last seven', async () => {
    const { daily, endDate } = await report('')
    expect([daily.length, endDate]).toEqual([7, new Date(app.clock.now()).toISOString().slice(0, 10)])
  })

  test.each([
    'start_date=2026-03-30&end_date=2026-03-28',
    'start_date=2024-01-01&end_date=2025-12-31',
    'start_date=yesterday',
  ])('%s is rejected', async (query) => {
    expect(await problem(await app.ask(`GET /api/reports?${query}`))).toEqual([422, 'validation_error'])
  })
})

test('shares add up to 100 %, name what still exists, and include requests without a key or account', async () => {
  await add('2026-03-28T10:00Z')
  await add('2026-03-28T10:00Z', {
    model: '',
    keyId: 'key_gone',
    accountId: '',
    requests: 3,
    errors: 3,
    costMicros: 0,
    unpriced: 2,
  })
  const { byModel, byAccount, byKey } = await report(MARCH)
  const shape = (shares: Report['byModel'] | null) =>
    shares?.map(({ id, name, requests, percentage }) => [id, name, requests, percentage])
  expect(shape(byModel)).toEqual([
    ['gpt-5.5', 'gpt-5.5', 1, 25],
    [null, null, 3, 75],
  ])
  expect(shape(byAccount)).toEqual([
    [accountId, 'ada@example.test', 1, 25],
    [null, null, 3, 75],
  ])
  expect(shape(byKey)?.[1]).toEqual(['key_gone', null, 3, 75])
  expect(byModel[1]).toMatchObject({ errors: 3, unpriced: 2 })
})

test('the previous period is compared if it had usage', async () => {
  await add('2026-03-28T10:00Z')
  expect((await report(MARCH)).comparison.canCompare).toBe(false)
  await add('2026-03-25T00:00Z', { requests: 5 })
  await add('2026-03-24T23:00Z', { requests: 50 })
  expect((await report(MARCH)).comparison).toMatchObject({ canCompare: true, previous: { requests: 5 } })
})

test.each(['', '&model=gpt-5.5'])('days before a clock change are complete, too%s', async (filter) => {
  const getPrevious = async (day: string) =>
    (await report(`start_date=${day}&end_date=${day}&timezone=Europe/Berlin${filter}`)).comparison.previous.requests
  await add('2026-03-27T22:00Z', { requests: 100 })
  await add('2026-03-27T23:00Z', { requests: 7 }) // midnight in Berlin, before a day of 24 hours and one of 23
  expect(await getPrevious('2026-03-29')).toBe(7)
  await add('2026-10-23T21:00Z', { requests: 100 })
  await add('2026-10-23T22:00Z', { requests: 7 }) // the same before one of 25
  expect(await getPrevious('2026-10-25')).toBe(7)
})

test('each filter applies to everything, and empty ones do not', async () => {
  await add('2026-03-28T10:00Z')
  await add('2026-03-28T10:00Z', { model: 'gpt-5.4', requests: 2 })
  await add('2026-03-28T10:00Z', { accountId: 'acc_b', requests: 4 })
  await add('2026-03-28T10:00Z', { keyId: 'key_b', requests: 8 })
  for (const [query, requests] of [
    ['model=gpt-5.4', 2],
    ['account_id=acc_b', 4],
    ['api_key_id=key_b', 8],
    [`account_id=${accountId}&account_id=acc_b&api_key_id=${keyId}&model=gpt-5.5`, 5],
    ['account_id=acc_b&api_key_id=key_b', 0],
    ['account_id=&api_key_id=&model=', 15],
  ] as const) {
    const { summary, daily, byModel } = await report(`${MARCH}&${query}`)
    const byModels = byModel.reduce((sum, share) => sum + share.requests, 0)
    expect([query, summary.requests, daily[0]?.requests, byModels]).toEqual([query, requests, requests, requests])
  }
})

describe('files', () => {
  beforeEach(() => add('2026-03-28T10:00Z'))

  test('CSV has a line per day, model, account and key, and no cell that a spreadsheet would execute', async () => {
    const response = await app.ask(`GET /api/reports?${MARCH}&format=csv`)
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="sluice-report-[\d-]{10}\.csv"$/)
    expect((await response.text()).split('\r\n')).toEqual([
      'date,model,account,key,requests,errors,cancelled,input_tokens,cached_input_tokens,output_tokens,cost_usd,unpriced_requests,moves,avoidable_moves,moved_input_tokens',
      `2026-03-28,gpt-5.5,ada@example.test,"'=Laptop, ""big""",1,0,0,100,50,10,1.000000,0,0,0,0`,
      '',
    ])
  })

  test('a file is written in pages, and a very long one is cut off and says so', async () => {
    const hour = Date.parse('2026-03-28T10:00Z')
    const addHours = (days: number, groups: number) =>
      app.sqlite.run(`WITH RECURSIVE d(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM d WHERE i < ${days}),
          g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < ${groups})
        INSERT INTO request_hours (hour, account_id, key_id, model, requests, errors, cancelled, input_tokens,
          cached_input_tokens, output_tokens, cost_micros, unpriced)
        SELECT ${hour} - d.i * 86400000, 'acc', 'key', 'm' || g.i, 1, 0, 0, 0, 0, 0, 0, 0 FROM d, g`)
    const lines = async () => {
      const text = await (await app.ask('GET /api/reports?start_date=2026-01-01&end_date=2026-03-31&format=csv')).text()
      return text.trimEnd().split('\r\n')
    }
    addHours(3, 4500)
    const some = await lines()
    expect(some).toHaveLength(1 + 3 * 4500 + 1) // headings, and the row that every test here has
    expect(new Set(some)).toHaveLength(some.length)
    const asked = ReportQuery.parse({ start_date: '2026-01-01', end_date: '2026-03-31' })
    const at = { now: app.clock.now(), place: { day: 0, after: null }, before: 97_000 }
    const last = await app.bindings.reader.reportCsv(
      asked,
      { scope: 'all', hidesAccounts: false, hidesKeys: false },
      at,
    )
    expect(last.next).toBeNull()
    expect(last.text.trimEnd().split('\r\n').at(-1)).toBe('cut off after 101000 lines; choose fewer days')
  })

  test('users who cannot see keys get one line for all of them', async () => {
    const lines = async (who: { ask: typeof app.ask }) =>
      (await (await who.ask(`GET /api/reports?${MARCH}&format=csv`)).text()).trimEnd().split('\r\n').length
    app.sqlite.run(`INSERT INTO request_hours SELECT hour, account_id, 'key_other', model, client, source_id, requests, errors, cancelled,
      input_tokens, cached_input_tokens, output_tokens, cost_micros, unpriced, moves, avoidable_moves, moved_tokens FROM request_hours`)
    expect(await lines(app)).toBe(3)
    expect(await lines(await people(app).as('viewer'))).toBe(2)
  })

  test('JSON is the same report', async () => {
    const response = await app.ask(`GET /api/reports?${MARCH}&format=json&download=true`)
    expect(response.headers.get('content-disposition')).toContain('.json"')
    expect(await response.json()).toEqual(await report(MARCH))
  })

  test('JSON is shown inline unless a download is requested', async () => {
    const saved = async (download: string) =>
      (await app.ask(`GET /api/reports?${MARCH}&download=${download}`)).headers.has('content-disposition')
    expect([await saved('false'), await saved('0'), await saved('1')]).toEqual([false, false, true])
  })

  test('neither page nor files show account or key names to a viewer', async () => {
    const viewer = await people(app).as('viewer')
    for (const path of [`/api/reports?${MARCH}&format=csv`, `/api/reports?${MARCH}`, `/reports?${MARCH}`]) {
      const text = await (await viewer.ask(`GET ${path}`)).text()
      expect(text).toContain('gpt-5.5')
      expect(text).not.toMatch(/ada@|Laptop/)
      expect(text).not.toContain(keyId)
    }
  })
})

test('days in the wrong order are explained', async () => {
  const path = '/reports?start_date=2026-01-09&end_date=2026-01-02'
  const page = await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })
  expect(page.status).toBe(422)
  expect(await page.text()).toContain('End date: choose a day that is not before the first one.')
})

test('the page has the same data as the JSON', async () => {
  await add('2026-03-28T10:00Z')
  const html = await (await app.ask(`GET /reports?${MARCH}`, { headers: { accept: 'text/html' } })).text()
  expect(html).toMatch(/since=2026-03-28T00:00:00Z[^>]*>Mar 28<\/a><\/th><td>\$1.00<\/td>/)
  expect(html).toContain('<th>2026-03-28</th><td>$1.00</td><td>1</td>')
  expect(html).toContain('0.3 requests</dd>')
  const year = 'start_date=2026-01-01&end_date=2026-12-31&timezone=UTC'
  const long = await (await app.ask(`GET /reports?${year}`, { headers: { accept: 'text/html' } })).text()
  expect(long).toContain('0.003 requests</dd>')
  expect(html).toContain('Download CSV')
  expect(html).not.toContain('style=')
})

test('usage without a known price is a dash on the page, not zero', async () => {
  await add('2026-03-28T10:00Z', { costMicros: 0, unpriced: 1, model: 'mystery' })
  const html = await (await app.ask(`GET /reports?${MARCH}`, { headers: { accept: 'text/html' } })).text()
  for (const words of ['<dt>Cost</dt><dd class="report-value">–</dd>', '<th>2026-03-28</th><td>–</td><td>1</td>'])
    expect(html).toContain(words)
  expect(html).toContain('<th>2026-03-29</th><td>$0</td><td>0</td>')
  expect(html).not.toContain('<td>$0 ')
})
