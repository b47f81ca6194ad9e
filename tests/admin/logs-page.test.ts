/** The log pages with and without scripts: filters, pagination, the drawer, the live tail, and hidden fields. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { attempts, requestHours, requests } from '../../db/schema/requests.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import type { Logs } from '../../views/logs/page.tsx'
import type { LogTail } from '../../views/logs/rows.tsx'
import { type TestApp, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { type Browser, people, problem } from '../support/people.ts'

type Row = typeof requests.$inferInsert

let app: TestApp
let now: number
let accountId: string
let keyId: string

beforeEach(async () => {
  app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
  now = app.clock.now()
  accountId = app.members[0]?.id ?? ''
  keyId = (await app.key({ name: 'Laptop' })).row.id
})

/** Started so many seconds ago, and ended a tenth of a second later. */
const add = (id: string, secondsAgo: number, row: Partial<Row> = {}) =>
  commit(app.db, async (tx) => {
    await tx
      .insert(requests)
      .values({
        id,
        requestId: `client-${id}`,
        startedAt: now - secondsAgo * 1000,
        route: '/v1/responses',
        kind: 'normal',
        transport: 'http',
        status: 'ok',
        httpStatus: 200,
        attempts: 1,
        totalMs: 100,
        accountId,
        keyId,
        model: 'gpt-5.5',
        clientIp: '192.0.2.7',
        userAgent: 'codex_cli/1.0 secret',
        conversationHash: 'talk',
        ...row,
      })
      .run()
  })

const HTML = { accept: 'text/html' }
type Asking = Pick<Browser, 'ask'>

const logs = async (path = '/logs', who: Asking = app): Promise<Logs> =>
  (await (await who.ask(`GET ${path}`)).json()) as Logs // as: the tests check the shape
const ids = async (path: string) => (await logs(path)).requests.map(({ id }) => id).join(' ')
const page = async (path: string, who: Asking = app) => (await who.ask(`GET ${path}`, { headers: HTML })).text()
const link = (path: string | null) => path ?? 'no link'

test('accounts with the same email are distinguishable in rows, entries, reports and the overview', async () => {
  const email = 'ada@example.test'
  app = await testApp({ accounts: [{ email }, { email, plan: 'team' }, { email: 'bob@example.test' }] })
  const at = app.clock.now()
  const names = await mapInOrder(app.members, async ({ id }, n) => {
    await add(`r${n}`, 10, { accountId: id, keyId: null, startedAt: at, status: 'error' })
    const none = { errors: 0, cancelled: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, unpriced: 0 }
    const sums = { accountId: id, keyId: '', model: 'gpt-5.5', requests: 1, costMicros: 0, ...none }
    await commit(app.db, async (tx) => {
      await tx
        .insert(attempts)
        .values({ requestRowId: `r${n}`, n: 1, accountId: id, startedAt: at, durationMs: 1, outcome: 'ok' })
        .run()
      await tx
        .insert(requestHours)
        .values({ ...sums, hour: at - (at % 3_600_000) })
        .run()
    })
    return n === 2 ? 'bob@example.test' : `${email} (${['plus', 'team'][n]}, ${id.slice(0, 8)})`
  })
  const read = async (path: string) => (await app.ask(`GET ${path}`)).json()
  const named = (rows: { accountName: string }[]) => rows.map(({ accountName }) => accountName).toSorted()
  expect(named((await read('/api/request-logs')).requests)).toEqual(names)
  expect(named([await read('/api/request-logs/r1')])).toEqual([names[1]!])
  expect(named((await read('/api/request-logs/r1')).attempts)).toEqual([names[1]!])
  const { byAccount } = await read('/api/reports')
  expect(byAccount.map(({ name }: { name: string }) => name).toSorted()).toEqual(names)
  const { accounts } = (await read('/dashboard')).pool
  expect(accounts.map(({ displayName }: { displayName: string }) => displayName)).toEqual(names)
  const { errors } = (await read('/dashboard')).figures
  expect(errors.flatMap(({ accounts }: { accounts: string[] }) => accounts).toSorted()).toEqual(names)
  expect(names).toContain(errors[0].newest.accountName)
})

test('names that are equal when masked are distinguishable, too', async () => {
  app = await testApp({ accounts: [{ email: 'ada@example.test' }, { email: 'alan@example.test' }] })
  const visitors = people(app)
  for (const [n, { id }] of app.members.entries())
    await add(`r${n}`, 10, { accountId: id, keyId: null, status: 'error' })
  const viewer = await visitors.as('viewer')
  const read = async (path: string) => (await viewer.ask(`GET ${path}`)).json()
  const names = app.members.map(({ id }) => `a***@example.test (plus, ${id.slice(0, 8)})`).toSorted()
  const named = (rows: { accountName: string }[]) => rows.map(({ accountName }) => accountName).toSorted()
  expect(named((await read('/api/request-logs')).requests)).toEqual(names)
  const { errors } = (await read('/dashboard')).figures
  expect(errors.flatMap(({ accounts }: { accounts: string[] }) => accounts).toSorted()).toEqual(names)
  expect(names).toContain(errors[0].newest.accountName)
  expect(names).toContain((await read('/api/request-logs/r0')).accountName)
})

describe('filters are the query string', () => {
  beforeEach(async () => {
    await add('a', 7200, { status: 'error', errorCode: 'usage_limit_reached', httpStatus: 429, phase: 'connect' })
    await add('b', 60, { status: 'error', errorCode: 'upstream_error', model: 'gpt-5.4', accountId: null, keyId: null })
    await add('c', 1, { status: 'cancelled' })
    await add('d', 0)
  })

  test('request kinds have a filter and names, and kinds other than model requests have a badge', async () => {
    await add('i', 0, { kind: 'image', model: 'gpt-image-2' })
    await add('k', 0, { kind: 'control', model: null })
    expect(await ids('/logs?kind=image')).toBe('i')
    expect((await ids('/logs?kind=image&kind=control')).split(' ').toSorted()).toEqual(['i', 'k'])
    const html = await page('/logs?kind=image')
    expect(html).toMatch(/<option value="image" selected[^>]*>Image</)
    expect(html).toContain('class="badge tone-idle"')
    expect(await page('/logs?kind=normal')).not.toContain('class="badge tone-idle"')
    const listed = await (await app.ask('GET /api/request-logs?kind=control')).json()
    expect(listed.requests.map(({ requestKind }: { requestKind: string }) => requestKind)).toEqual(['control'])
    expect((await app.ask('GET /api/request-logs?kind=other')).status).toBe(422)
  })

  test.each([
    ['/logs', 'd c b a'],
    ['/logs?range=1h', 'd c b'],
    ['/logs?status=failed', 'b a'],
    ['/logs?status=rate_limit', 'a'],
    ['/logs?code=upstream_error', 'b'],
    ['/logs?code=upstream_error&code=usage_limit_reached&model=gpt-5.5', 'a'],
    ['/logs?model=gpt-5.4', 'b'],
    ['/logs?search=client-c', 'c'],
    ['/logs?search=client-that-is-not-there', ''],
    // What an unfilled form sends.
    ['/logs?search=&range=&status=&accountId=&apiKeyId=&model=&code=&since=&until=', 'd c b a'],
  ])('%s shows %p', async (path, found) => {
    expect(await ids(path)).toBe(found)
  })

  test('by account and key, alone and together', async () => {
    expect(await ids(`/logs?accountId=${accountId}`)).toBe('d c a')
    expect(await ids(`/logs?apiKeyId=${keyId}&status=cancelled`)).toBe('c')
  })

  test("the form's values are used: a chosen time takes precedence over a named range", async () => {
    const since = new Date(now - 30_000).toISOString().slice(0, 19)
    const shown = await logs(`/logs?range=24h&since=${since}`)
    expect(shown.requests.map(({ id }) => id)).toEqual(['d', 'c'])
    expect([shown.filters.range, shown.filters.since]).toEqual([null, `${since}.000Z`])
  })

  test('filters without a form field are shown and kept', async () => {
    const html = await page('/logs?model=gpt-5.4&model=gpt-5.5&reasoningEffort=high&limit=20')
    expect(getFields(html, 'log-filters')).toEqual(
      expect.arrayContaining([
        ['model', 'gpt-5.4'],
        ['model', 'gpt-5.5'],
        ['reasoningEffort', 'high'],
        ['limit', '20'],
      ]),
    )
    expect(html).toContain('Also filtered by model gpt-5.5; effort high.')
    expect(await page('/logs?model=gpt-5.5')).not.toContain('Also filtered by')
  })

  test.each(['/logs?range=2h', '/logs?cursor=x', '/logs?columns=secrets', '/logs?live=perhaps', '/logs?since=then'])(
    '%s is rejected',
    async (path) => {
      expect(await problem(await app.ask(`GET ${path}`))).toEqual([422, 'validation_error'])
    },
  )

  test('without results, one link clears the filters and keeps the columns', async () => {
    const html = await page('/logs?search=nothing-like-this&columns=total')
    expect(html).toContain('No requests match these filters.')
    expect(html).toContain('href="/logs?columns=total"')
    expect((await logs()).links.clear).toBeNull()
  })

  test('attempts are counted as attempts, even if all used one account', async () => {
    await add('again', 0, { attempts: 3 })
    expect(await page('/logs?search=client-again')).toContain('> · 3 attempts<')
  })

  test.each([
    ['two accounts, once each', ['acc_a', 'acc_b'], '(2 accounts tried)', false],
    ['three accounts, once each', ['acc_a', 'acc_b', 'acc_c'], '(3 accounts tried)', false],
    ['one account, twice', ['acc_a', 'acc_a'], '(1 account tried)', true],
    ['two accounts, three times', ['acc_a', 'acc_b', 'acc_a'], '(2 accounts tried)', true],
  ])('a number of attempts that equals the accounts tried is not repeated: %s', async (_, tried, text, isRepeated) => {
    await add('failed', 0, {
      attempts: tried.length,
      status: 'error',
      errorCode: 'server_is_overloaded',
      phase: 'upstream',
    })
    await commit(app.db, async (tx) => {
      for (const [n, account] of tried.entries())
        await tx
          .insert(attempts)
          .values({ requestRowId: 'failed', n, accountId: account, startedAt: now, durationMs: 1, outcome: 'failed' })
          .run()
    })
    for (const path of ['/logs?search=client-failed', '/logs/failed']) {
      const html = await page(path)
      expect([path, html.includes(text), html.includes(`> · ${tried.length} attempts<`)]).toEqual([
        path,
        true,
        isRepeated,
      ])
    }
  })

  test('the form shows the current filters', async () => {
    const html = await page(`/logs?accountId=${accountId}&status=failed&search=%22x%3Cy`)
    expect(html).toContain(`<option value="${accountId}" selected="">ada@example.test</option>`)
    expect(html).toContain('value="&quot;x&lt;y"')
    expect(html).toContain('<option value="failed" selected="">')
  })

  test('an empty log says what will appear in it', async () => {
    app = await testApp()
    expect(await page('/logs')).toContain('No requests yet.')
  })
})

describe('the views above the filters', () => {
  beforeEach(async () => {
    await add('failed', 3, { status: 'error', errorCode: 'upstream_error' })
    await add('slow', 2, { firstEventMs: 12_000, totalMs: 20_000 })
    await add('quick', 1, { firstEventMs: 900 })
  })

  test.each([
    ['all', 'quick slow failed'],
    ['errors', 'failed'],
    ['slow', 'slow'],
    ['rejected', ''],
  ] as const)('%s', async (name, found) => {
    const path = (await logs('/logs?model=gpt-5.5&live=true&cursor=&status=ok')).links[name]
    expect(path).toStartWith('/logs?model=gpt-5.5&live=true')
    expect(await ids(path)).toBe(found)
    expect(await page(path)).toMatch(new RegExp(`aria-current="page"[^>]*>${name}</a>`, 'i'))
  })

  test('any other status matches none of the four views', async () => {
    const html = await page('/logs?status=ok')
    expect(/<nav class="chips".*?<\/nav>/.exec(html)?.[0]).not.toContain('aria-current')
  })

  test('slow and live stay when another filter is submitted', async () => {
    const fields = getFields(await page('/logs?slow=true&live=true&grouped=false'), 'log-filters')
    expect(fields).toEqual(
      expect.arrayContaining([
        ['slow', 'true'],
        ['live', 'true'],
        ['grouped', 'false'],
      ]),
    )
    expect((await logs('/logs?slow=true&live=true')).links.clear).toBe('/logs?live=true')
  })
})

describe('unknown log parameters', () => {
  test.each([
    ['/logs?stauts=failed', ['stauts']],
    ['/logs?from=2026-01-01&model=gpt-5.5&to=x&from=y', ['from', 'to']],
    ['/logs?constructor=1', ['constructor']],
    ['/logs?model=gpt-5.5&columns=total&open=', []],
  ])('%s', async (path, names) => {
    const html = await page(path)
    for (const name of names) expect(html).toContain(`<code>${name}</code>`)
    expect(html.includes('Not applied')).toBe(names.length > 0)
  })

  test('are escaped and shortened, and Clear removes them', async () => {
    await add('a', 1)
    const name = `<img>${'x'.repeat(100)}`
    const path = `/logs?${encodeURIComponent(name)}=1`
    expect(await page(path)).toContain(`<code>&lt;img&gt;${'x'.repeat(35)}</code>`)
    expect((await logs(path)).links.clear).toBe('/logs')
  })
})

describe('repeated errors', () => {
  const failed = { status: 'error', errorCode: 'model_not_found', phase: 'upstream' } as const
  const hidden = (html: string) => [...html.matchAll(/<tr id="log-(\w+)" hidden=""/g)].map(([, id]) => id)

  beforeEach(async () => {
    for (const n of [9, 8, 7]) await add(`e${n}`, n, failed)
    await add('ok', 6)
    await add('e5', 5, failed)
    await add('e4', 4, { ...failed, model: 'gpt-5.4' })
    await add('e3', 3, { ...failed, errorCode: 'no_accounts', phase: 'select' })
  })

  test('adjacent rows with the same error are one row that expands', async () => {
    const html = await page('/logs')
    expect(hidden(html)).toEqual(['e8', 'e9'])
    expect(html).toMatch(/<a class="repeats" href="\/logs\?grouped=false"[^>]*>3 times since [^<]+<\/a>/)
  })

  test('every row is shown on request, and beside an open one', async () => {
    expect(hidden(await page('/logs?grouped=false'))).toEqual([])
    expect(hidden(await page('/logs?open=e9'))).toEqual([])
    expect(await ids('/logs')).toBe('e3 e4 e5 ok e7 e8 e9')
  })

  test('completed requests are never grouped', async () => {
    for (const n of [2, 1]) await add(`ok${n}`, n)
    expect(hidden(await page('/logs?status=ok'))).toEqual([])
  })
})

describe('the histogram', () => {
  test('counts the filtered requests, and is above the rows', async () => {
    for (const n of [1, 2, 3]) await add(`a${n}`, 60 * n, n === 3 ? { status: 'error' } : {})
    const { histogram } = await logs('/logs?range=1h')
    expect(histogram?.stepMs).toBe(60_000)
    expect(histogram?.bars.reduce((sum, { completed }) => sum + completed, 0)).toBe(2)
    const html = await page('/logs?range=1h')
    expect(html.indexOf('id="log-histogram"')).toBeLessThan(html.indexOf('id="log-rows"'))
    expect(html).toContain('aria-label="Requests over time: 3 requests, 1 error"')
    expect(await page('/logs?range=1h&model=none')).not.toContain('log-histogram')
  })

  test('is absent without requests', async () => {
    expect((await logs()).histogram).toBeNull()
    expect((await logs('/logs?status=rejected')).histogram).toBeNull()
    expect(await page('/logs')).not.toContain('log-histogram')
  })
})

describe('exports', () => {
  const file = async (path: string) => {
    const answer = await app.ask(`GET ${path}`)
    return { text: await answer.text(), name: answer.headers.get('content-disposition') }
  }

  test('have every row that matches the filters, across pages, newest first', async () => {
    app.sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500)
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms, model)
      SELECT printf('r%06d', n), 'r', ${now} - 60000 + n, '/', 'normal', 'http', 'ok', 200, 1, 1, iif(n % 2, 'odd', 'even') FROM n`)
    const { csv, json } = (await logs('/logs?model=odd&limit=5&columns=total&nonsense=1')).links
    expect(csv).toBe('/logs/export?model=odd&format=csv')
    const { text, name } = await file(csv)
    const lines = text.trimEnd().split('\r\n')
    expect([lines.length, name]).toEqual([1251, 'attachment; filename="sluice-log-2026-01-01.csv"'])
    expect(lines[1]).toContain('r002499')
    const parsed = JSON.parse((await file(json)).text) as { rows: { id: string }[]; isComplete: boolean }
    expect([parsed.rows.length, parsed.rows.at(-1)?.id, parsed.isComplete]).toEqual([1250, 'r000001', true])
  })

  test('are complete files without rows, too', async () => {
    expect(JSON.parse((await file('/logs/export?format=json&model=none')).text)).toEqual({ rows: [], isComplete: true })
    expect((await file('/logs/export?status=rejected')).text).toBe(
      'time,count,result,reason,client_ip,key,key_start,model,route,client\r\n',
    )
  })

  test('cannot execute in a spreadsheet', async () => {
    await add('evil', 1, { errorMessage: '=1+1', errorCode: 'a"b,c', status: 'error' })
    expect((await file('/logs/export')).text).toContain(`"a""b,c",'=1+1,`)
  })

  test('show a viewer no more than the page does', async () => {
    await add('one', 5, { status: 'error', errorCode: 'upstream_error', errorMessage: 'ada@example.test was rejected' })
    const viewer = await people(app).as('viewer')
    for (const format of ['csv', 'json']) {
      const text = await (await viewer.ask(`GET /logs/export?format=${format}`)).text()
      expect(text).toContain('a***@example.test')
      expect(text).not.toMatch(/ada@example|Laptop|192\.0\.2\.7|secret|"talk"/)
    }
    expect(await problem(await viewer.ask(`GET /logs/export?apiKeyId=${keyId}`))).toEqual([403, 'permission_required'])
    const none = await (await people(app).as('member')).ask('GET /logs/export?format=json')
    expect(await none.json()).toEqual({ rows: [], isComplete: true })
  })
})

describe('pages', () => {
  test('older and newer visit every row once in both directions, even when rows are added', async () => {
    for (let place = 0; place < 7; place++) await add(`r${place}`, 100 - Math.floor(place / 3))
    const first = await logs('/logs?limit=3')
    expect(first.requests.map(({ id }) => id)).toEqual(['r6', 'r5', 'r4'])
    expect([first.total, first.links.newer]).toEqual([7, null])
    await add('late', 50)
    const second = await logs(link(first.links.older))
    expect(second.requests.map(({ id }) => id)).toEqual(['r3', 'r2', 'r1'])
    const third = await logs(link(second.links.older))
    expect(third.requests.map(({ id }) => id)).toEqual(['r0'])
    expect(third.links.older).toBeNull()
    const back = await logs(link(third.links.newer))
    expect(back.requests.map(({ id }) => id)).toEqual(['r3', 'r2', 'r1'])
    const newest = await logs(link(back.links.newer))
    expect(newest.requests.map(({ id }) => id)).toEqual(['r6', 'r5', 'r4'])
    expect((await logs(link(newest.links.newer))).requests.map(({ id }) => id)).toEqual(['late'])
  })

  test('an unknown count is not shown', async () => {
    app.sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50100)
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms, user_agent)
      SELECT printf('r%06d', n), 'r', ${app.clock.now()} - 60000 + n, '/', 'normal', 'http', 'ok', 200, 1, 1,
        iif(n > 50040, 'rare/1', 'usual/1') FROM n`)
    const counted = (html: string) => /<h2[^>]*>Requests.*?<\/span>/s.exec(html)?.[0]
    expect(counted(await page('/logs?search=rare'))).toContain('>50 on this page<')
    expect(counted(await page('/logs'))).toContain('>10,000+<')
  })

  test('filters are kept across pages', async () => {
    for (let place = 0; place < 4; place++) await add(`r${place}`, place, { model: place % 2 ? 'odd' : 'even' })
    const first = await logs('/logs?limit=1&model=odd')
    expect(await ids(link(first.links.older))).toBe('r3')
  })
})

describe('one request', () => {
  beforeEach(async () => {
    await add('one', 5, {
      inputTokens: 1000,
      cachedInputTokens: 400,
      outputTokens: 10,
      costMicros: 3500,
      admitMs: 1,
      selectMs: 2,
      connectMs: 20,
      firstEventMs: 60,
    })
    const considered = [
      { id: accountId, score: 12.5, skipped: null, until: null },
      { id: 'acc_gone', score: null, skipped: 'paused', until: null },
      { id: 'acc_new', score: null, skipped: 'some_new_reason', until: null },
    ]
    await commit(app.db, async (tx) => {
      const attempt = { requestRowId: 'one', startedAt: now - 5000, durationMs: 59, outcome: 'ok' } as const
      await tx
        .insert(attempts)
        .values({ ...attempt, n: 1, accountId, considered })
        .run()
    })
  })

  test('opens beside the list, or as a page', async () => {
    const beside = await page('/logs?open=one&columns=total')
    expect(beside).toContain('data-request="one"')
    expect(beside).toContain('href="/logs?columns=total" data-drawer-close')
    const alone = await page('/logs/one')
    for (const html of [beside, alone]) {
      expect(html).toContain('client-one')
      expect(html).toContain('Queue 1 ms, Select 1 ms, Connect 18 ms, First token 40 ms, Stream 40 ms')
    }
  })

  test('explains the selected account, with a score or the reason in words', async () => {
    const html = await page('/logs/one')
    expect(html).toContain('score 12.5')
    expect(html).toContain('>paused<')
    expect(html).toContain('some_new_reason')
    expect(html.split('Why this account?')).toHaveLength(2)
  })

  test('one whose explanation was deleted says so', async () => {
    await commit(app.db, async (tx) => void (await tx.update(attempts).set({ considered: null }).run()))
    expect(await page('/logs/one')).toContain('too old to explain')
  })

  test('the formula adds up to the cost, with the rates it used', async () => {
    const { costFormula, costUsd } = (await (await app.ask('GET /logs/one')).json()) as {
      costFormula: { terms: { tokens: number; usdPerMillion: number; usd: number }[]; totalUsd: number }
      costUsd: number
    }
    expect(costFormula.terms.map(({ tokens, usdPerMillion }) => [tokens, usdPerMillion])).toEqual([
      [600, 5],
      [400, 0.5],
      [10, 30],
    ])
    expect(costFormula.totalUsd).toBe(costUsd)
    expect(costFormula.terms.reduce((sum, { usd }) => sum + usd, 0)).toBeCloseTo(costUsd, 9)
    expect(await page('/logs/one')).toContain('× $0.5 per million')
  })

  test('a cost from an older price table is kept and marked', async () => {
    await commit(app.db, async (tx) => void (await tx.update(requests).set({ costMicros: 9000 }).run()))
    expect(await page('/logs/one')).toContain('Logged with earlier prices.')
  })

  test('an unknown request is not found', async () => {
    expect(await problem(await app.ask('GET /logs/two'))).toEqual([404, 'not_found'])
    expect(await problem(await app.ask('GET /logs?open=two'))).toEqual([404, 'not_found'])
  })
})

describe('the live tail', () => {
  const tail = async (path: string | null): Promise<LogTail> =>
    (await (await app.ask(`GET ${link(path)}`)).json()) as LogTail // as: the tests check the shape

  test('returns requests that ended since, including ones that began before the shown rows', async () => {
    await add('shown', 10)
    const { links } = await logs()
    await app.clock.advance('10s')
    expect((await tail(links.tail)).requests).toEqual([])
    const began = 20
    await add('long', began, { totalMs: began * 1000 + 9000 })
    now = app.clock.now()
    await add('short', 1)
    const answer = await tail(links.tail)
    expect(answer.requests.map(({ id }) => id)).toEqual(['short', 'long'])
    await app.clock.advance('5s')
    expect((await tail((await tail(answer.next)).next)).requests).toEqual([])
  })

  test('uses the filters and columns of the page', async () => {
    const { links } = await logs('/logs?model=gpt-5.4&columns=total&open=')
    await app.clock.advance('3s')
    now = app.clock.now()
    await add('other', 1)
    await add('this', 1, { model: 'gpt-5.4' })
    const answer = await tail(links.tail)
    expect([answer.requests.map(({ id }) => id), answer.columns]).toEqual([['this'], ['total']])
    const html = await (await app.ask(`GET ${link(links.tail)}`, { headers: { ...HTML, 'hx-request': 'true' } })).text()
    expect(html).toStartWith('<tbody data-next="/logs/tail?')
    expect(html).toContain('<tr id="log-this"')
  })

  test('is absent on an older page, or for a past time range', async () => {
    await add('a', 2)
    await add('b', 1)
    expect((await logs(link((await logs('/logs?limit=1')).links.older))).links.tail).toBeNull()
    expect((await logs('/logs?until=2020-01-01T00:00')).links.tail).toBeNull()
  })

  test('requires a position', async () => {
    expect(await problem(await app.ask('GET /logs/tail'))).toEqual([422, 'validation_error'])
  })
})

describe('hides values from a viewer and a guest', () => {
  beforeEach(async () => {
    await add('one', 5, { status: 'error', errorCode: 'upstream_error', errorMessage: 'ada@example.test was refused' })
    const considered = [{ id: accountId, score: 1, skipped: null, until: null }]
    const attempt = { requestRowId: 'one', n: 1, startedAt: now - 5000, durationMs: 59, outcome: 'failed' } as const
    await commit(
      app.db,
      async (tx) =>
        void (await tx
          .insert(attempts)
          .values({ ...attempt, considered })
          .run()),
    )
  })

  const everything = async (who: Asking, path: string) =>
    (await page(path, who)) + (await (await who.ask(`GET ${path}`)).text())

  test.each(['viewer', 'guest'])('%s: names, keys, addresses, conversations', async (role) => {
    const { as, guest } = people(app)
    const admin = await as('admin')
    const who = role === 'guest' ? await guest('192.0.2.9') : await as(role)
    for (const path of [
      '/logs?open=one&columns=address&columns=tool',
      '/logs/one',
      '/logs?search=secret',
      '/reports',
      '/api/request-logs/options',
    ]) {
      const text = await everything(who, path)
      expect(text).not.toMatch(/ada@example|Laptop|192\.0\.2\.7|secret\)|"talk"/)
    }
    expect(await everything(admin, '/api/request-logs/options')).toContain('Laptop')
    expect(await page('/logs/one', who)).toContain('a***@example.test')
    expect(await everything(who, '/logs/one')).not.toContain('was refused') // the upstream's words, the code stays
    expect(await everything(who, '/logs/one')).toContain('upstream_error')
    expect((await logs('/logs?search=was+refused', who)).requests).toEqual([])
    expect((await logs('/logs?search=ada@example', who)).requests).toEqual([])
    expect((await logs('/logs?search=192.0.2', who)).requests).toEqual([])
  })

  test('filtering by a key or a conversation requires permission to see it', async () => {
    const viewer = await people(app).as('viewer')
    for (const path of [
      `/logs?apiKeyId=${keyId}`,
      `/api/request-logs?apiKeyId=${keyId}`,
      `/reports?api_key_id=${keyId}`,
      `/api/explain?key=${keyId}`,
      '/logs?conversation_id=talk',
    ])
      expect([path, ...(await problem(await viewer.ask(`GET ${path}`)))]).toEqual([path, 403, 'permission_required'])
  })

  test('a member without keys has an empty log', async () => {
    const logs = await (await (await people(app).as('member')).ask('GET /logs')).json()
    expect(logs).toMatchObject({ requests: [], histogram: null })
  })

  test('without signing in, redirects to the sign-in page', async () => {
    await people(app).as('admin')
    const response = await app.ask('GET /logs', { headers: HTML, peer: '192.0.2.9' })
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login?return=%2Flogs'])
  })
})
