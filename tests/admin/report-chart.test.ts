/** The chart of the reports page: bars, stacks, measures, the previous period, and this month. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { addUpHours } from '../../src/model/reports/request-spans.ts'
import type { ReportView } from '../../views/reports/page.tsx'
import { type TestApp, testApp } from '../support/app.ts'
import { aRequestRow } from '../support/keys.ts'
import { type Browser, people, problem } from '../support/people.ts'

let app: TestApp

beforeEach(async () => {
  app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
})

const add = (hour: string, sums: Partial<typeof requestHours.$inferInsert> = {}) =>
  commit(app.db, async (tx) => {
    const ids = { accountId: 'acc_a', keyId: 'key_a', model: 'gpt-5.5' }
    const counts = { requests: 1, errors: 0, cancelled: 0, unpriced: 0 }
    const use = { inputTokens: 100, cachedInputTokens: 50, outputTokens: 10, costMicros: 1_000_000 }
    await tx
      .insert(requestHours)
      .values({ hour: Date.parse(hour), ...ids, ...counts, ...use, ...sums })
      .run()
  })

const addUp = (before: string) =>
  commit(app.db, async (tx) => void (await addUpHours(tx, { before: Date.parse(before), rows: 100_000 })))

const view = async (query: string, who: Pick<Browser, 'ask'> = app): Promise<ReportView> =>
  (await (await who.ask(`GET /reports?${query}`)).json()) as ReportView // as: the route's own value

const html = async (query: string, cookie = '') =>
  (await app.ask(`GET /reports?${query}`, { headers: { accept: 'text/html', cookie } })).text()

const MARCH = 'start_date=2026-03-28&end_date=2026-03-30'

describe('stacks', () => {
  beforeEach(async () => {
    await add('2026-03-27T23:00Z')
    await add('2026-03-28T10:00Z', { requests: 2 })
    await add('2026-03-28T10:00Z', { model: 'gpt-5.4', client: 'codex_exec', requests: 4, costMicros: 9_000_000 })
    await add('2026-03-29T10:00Z', { accountId: 'acc_b', requests: 8 })
    await add('2026-03-30T21:00Z', { keyId: '', model: '', accountId: '', requests: 16, costMicros: 0 })
  })

  const layers = async (query: string) => {
    const { chart } = await view(`${MARCH}&measure=requests&${query}`)
    return chart.layers.map(({ id, sums }) => [id, sums.map(({ requests }) => requests)])
  }

  test.each([
    [
      'model',
      [
        [null, [0, 0, 16]],
        ['gpt-5.5', [2, 8, 0]],
        ['gpt-5.4', [4, 0, 0]],
      ],
    ],
    [
      'account',
      [
        [null, [0, 0, 16]],
        ['acc_b', [0, 8, 0]],
        ['acc_a', [6, 0, 0]],
      ],
    ],
    [
      'key',
      [
        [null, [0, 0, 16]],
        ['key_a', [6, 8, 0]],
      ],
    ],
    [
      'client',
      [
        [null, [2, 8, 16]],
        ['codex_exec', [4, 0, 0]],
      ],
    ],
    ['none', []],
  ])('by %s are the same from hourly and from daily totals', async (stack, expected) => {
    expect(await layers(`stack=${stack}`)).toEqual(expected)
    await addUp('2026-03-30T00:00Z')
    expect(await layers(`stack=${stack}`)).toEqual(expected)
    await addUp('2026-04-01T00:00Z')
    expect(await layers(`stack=${stack}`)).toEqual(expected)
  })

  test('use the days of the time zone', async () => {
    await addUp('2026-04-01T00:00Z')
    expect(await layers('stack=model&timezone=Europe/Berlin')).toEqual([
      [null, [0, 0, 16]],
      ['gpt-5.5', [3, 8, 0]],
      ['gpt-5.4', [4, 0, 0]],
    ])
  })

  test('follow the filters', async () => {
    await addUp('2026-04-01T00:00Z')
    expect(await layers('stack=model&account_id=acc_a')).toEqual([
      ['gpt-5.4', [4, 0, 0]],
      ['gpt-5.5', [2, 0, 0]],
    ])
  })

  test('the largest group is the one with the highest value of the measure', async () => {
    const { chart } = await view(`${MARCH}&measure=cost&stack=model`)
    expect(chart.layers[0]?.id).toBe('gpt-5.4')
  })

  test('by key is neither offered nor shown to users who cannot see keys', async () => {
    const viewer = await people(app).as('viewer')
    expect((await view(`${MARCH}&stack=key`, viewer)).chart.layers).toEqual([])
    const page = await viewer.ask(`GET /reports?${MARCH}`, { headers: { accept: 'text/html' } })
    expect(await page.text()).not.toContain('stack=key')
  })
})

describe('bars', () => {
  const lengths = async (query: string) => {
    const { chart, startDate, endDate } = await view(query)
    const hours = chart.bars.map(({ from, to }) => (Date.parse(to) - Date.parse(from)) / 3_600_000)
    return [startDate, endDate, chart.bars.length, hours[0]]
  }

  // The test clock is at 2026-01-01 00:00 UTC.
  test.each([
    ['range=today', '2026-01-01', 24, 1],
    ['range=7d', '2025-12-26', 7, 24],
    ['', '2025-12-26', 7, 24],
    ['range=30d', '2025-12-03', 30, 24],
    ['range=90d', '2025-10-04', 13, 168],
    ['range=month', '2026-01-01', 24, 1],
  ])('%s begins on %s and has %d bars of %d hours', async (query, first, bars, hours) => {
    await app.clock.advance('0s')
    const today = new Date(app.clock.now()).toISOString().slice(0, 10)
    const shift = (Date.parse(today) - Date.parse('2026-01-01')) / 86_400_000
    expect(shift).toBe(0)
    expect(await lengths(query)).toEqual([first, today, bars, hours])
  })

  test('chosen days override a range', async () => {
    expect(await lengths(`${MARCH}&range=90d`)).toEqual(['2026-03-28', '2026-03-30', 3, 24])
  })

  test.each(['range=99y', 'measure=fun', 'stack=colour'])('%s is rejected with the choices', async (query) => {
    expect(await problem(await app.ask(`GET /reports?${query}`))).toEqual([422, 'validation_error'])
    expect(await html(query)).toMatch(/(Range|Measure|Stack): choose [\w, ]+ or \w+\./)
  })

  test('each day has the same day of the previous period', async () => {
    await add('2026-03-25T10:00Z', { requests: 3 })
    await add('2026-03-27T23:00Z', { requests: 5 })
    await add('2026-03-28T00:00Z', { requests: 7 })
    const { chart } = await view(MARCH)
    expect(chart.bars.map(({ sums, previous }) => [sums.requests, previous.requests])).toEqual([
      [7, 3],
      [0, 0],
      [0, 5],
    ])
    expect(await html(MARCH)).toContain('Previous period')
    expect(await html('start_date=2026-05-01&end_date=2026-05-03')).not.toContain('Previous period')
  })
})

describe('measures', () => {
  test('the first token is a median of the log, filtered like the rest', async () => {
    const startedAt = Date.parse('2026-03-29T10:00Z')
    for (const [n, firstEventMs] of [100, 200, 900].entries())
      await aRequestRow(app.db, { id: `a${n}`, keyId: null, startedAt: startedAt + n, firstEventMs, model: 'gpt-5.5' })
    await aRequestRow(app.db, { id: 'b', keyId: null, startedAt, firstEventMs: 5000, model: 'gpt-5.4' })
    await aRequestRow(app.db, {
      id: 'c',
      keyId: null,
      startedAt: startedAt - 3 * 86_400_000,
      firstEventMs: 40,
      model: 'gpt-5.5',
    })
    await aRequestRow(app.db, { id: 'd', keyId: null, startedAt, firstEventMs: 1, model: 'gpt-5.5', kind: 'warmup' })
    const firstTokens = async (query: string) =>
      (await view(`${MARCH}&measure=latency&${query}`)).chart.bars.map(({ firstToken }) => firstToken)
    expect(await firstTokens('model=gpt-5.5')).toEqual([null, { p50: 200, p95: 900, previousP50: 40 }, null])
    expect((await firstTokens('model=gpt-5.4'))[1]).toMatchObject({ p50: 5000, p95: 5000 })
    expect((await view(MARCH)).chart.bars.map(({ firstToken }) => firstToken)).toEqual([null, null, null])
  })

  test('the share of cached input is a gap if there was no input', async () => {
    await add('2026-03-28T10:00Z')
    const page = await html(`${MARCH}&measure=cache`)
    expect(page).toMatch(/Mar 28<\/a><\/th><td>50 %<\/td><td>–<\/td>/)
    expect(page).toMatch(/Mar 29<\/a><\/th><td>–<\/td>/)
  })
})

describe('this month', () => {
  test('is what was spent since its first day, and the projection for the month', async () => {
    await app.clock.advance('48h')
    await add('2025-12-31T23:00Z', { costMicros: 50_000_000 })
    await add('2026-01-01T10:00Z', { costMicros: 4_000_000 })
    const { spentUsd, paceUsd } = (await view('')).chart.month
    expect([spentUsd, paceUsd]).toEqual([4, expect.closeTo((4 / 2) * 31, 5)])
    expect(await html('')).toContain('on pace for $62.00')
  })

  test('has no projection on its first day', async () => {
    await add('2026-01-01T00:00Z')
    expect((await view('')).chart.month).toEqual({ spentUsd: 1, paceUsd: null })
  })

  test('begins at midnight in the time zone', async () => {
    await app.clock.advance('48h')
    await add('2025-12-31T23:00Z', { costMicros: 2_000_000 })
    expect((await view('timezone=Europe/Berlin')).chart.month.spentUsd).toBe(2)
    expect((await view('timezone=America/New_York')).chart.month.spentUsd).toBe(0)
  })
})

test('each row of a table filters the report by it, and keeps the other parameters', async () => {
  await add('2026-03-28T10:00Z', { model: 'gpt 5&6' })
  const page = await html(`${MARCH}&stack=account&model=`)
  for (const filter of ['model=gpt+5%266', 'account_id=acc_a', 'api_key_id=key_a'])
    expect(page).toContain(
      `href="/reports?start_date=2026-03-28&amp;end_date=2026-03-30&amp;stack=account&amp;${filter}"`,
    )
})

test('requests without a known client, key, model or account have a row that is a filter', async () => {
  await add('2026-03-28T10:00Z', { requests: 2 })
  await add('2026-03-28T11:00Z', { requests: 5, accountId: '', keyId: '', model: '', client: 'codex_exec' })
  const page = await html(MARCH)
  for (const [filter, requests] of [
    ['model', 5],
    ['account_id', 5],
    ['api_key_id', 5],
    ['client', 2],
  ] as const) {
    const query = `${MARCH}&${filter}=%28none%29`
    expect(page).toContain(`href="/reports?${query.replaceAll('&', '&amp;')}"`)
    expect((await view(query)).summary.requests).toBe(requests)
  }
})

test('the log has no filter for these, so their bars are not links', async () => {
  await add('2026-03-28T10:00Z')
  const links = async (query: string) => (await html(`${MARCH}&${query}`)).match(/href="\/logs\?since/g)?.length ?? 0
  expect(await links('client=%28none%29')).toBe(0)
  expect(await links('client=other+clients')).toBe(0)
  expect(await links('client=codex_exec')).toBe(3)
})

test('a layer in the legend filters the report by it', async () => {
  await add('2026-03-28T10:00Z', { client: 'codex_exec' })
  await add('2026-03-28T10:00Z', { client: 'OpenAI/JS'.slice(0, 6) })
  const page = await html(`${MARCH}&stack=client`)
  for (const client of ['codex_exec', 'OpenAI'])
    expect(page).toMatch(new RegExp(`chart-key chart-\\d"><a href="/reports\\?[^"]*stack=client&amp;client=${client}"`))
})

test('a report names fifty clients, and adds up the others', async () => {
  for (let n = 0; n < 60; n++)
    await add('2026-03-28T10:00Z', { client: `client_${n}`, costMicros: 1000 - n, requests: 2 })
  const { byClient, chart, summary } = await view(`${MARCH}&stack=client&measure=requests`)
  expect(byClient).toHaveLength(51)
  expect(byClient.at(-1)).toMatchObject({ id: 'other clients', requests: 20 })
  expect(byClient.reduce((all, { requests }) => all + requests, 0)).toBe(summary.requests)
  expect(chart.layers).toHaveLength(51)
  expect(chart.layers.at(-1)?.sums[0]?.requests).toBe(20)
})

test('an unknown parameter is named', async () => {
  expect(await html(`${MARCH}&modle=gpt-5.5`)).toContain(
    'Not applied, because this page has no such parameter or value: <code>modle</code>.',
  )
  expect(await html(MARCH)).not.toContain('Not applied')
})

test.each([
  ['/reports?range=decade', 'Range: choose today, 7d, 30d, 90d or month.'],
  ['/reports?start_date=tomorrow', 'Start date: enter a date like 2026-01-31.'],
  ['/logs?range=decade', 'Range: choose 1h, 24h, 7d or 30d.'],
  ['/logs?since=yesterday', 'Since: enter a date and time like 2026-01-31T18:30:00Z.'],
  ['/logs?columns=kinds', 'Columns 1: choose total, effort, kind, route, tool, address, request or paid.'],
])('%s is rejected with a sentence that lists the valid values', async (path, sentence) => {
  const response = await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })
  expect(response.status).toBe(422)
  expect(await response.text()).toContain(sentence)
})

test('a bar leads to its requests with the same filters', async () => {
  const page = await html(`${MARCH}&model=gpt-5.5&account_id=acc_a&client=codex_exec`, 'zone=Europe/Berlin')
  expect(page).toContain(
    'href="/logs?since=2026-03-28T23:00:00Z&amp;until=2026-03-29T22:00:00Z&amp;accountId=acc_a&amp;model=gpt-5.5&amp;client=codex_exec"',
  )
})

test('an unknown zone is named, and the days are those of the browser', async () => {
  const page = await html('timezone=Nowhere/Land', 'zone=Asia/Kolkata')
  expect(page).toContain('There is no time zone “Nowhere/Land”. Days are shown in Asia/Kolkata.')
  expect(await html('timezone=Europe/Berlin')).not.toContain('There is no time zone')
})
