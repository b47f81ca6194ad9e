/** The request log of codex-lb: totals per hour, the rows of the last 30 days, and an import that is interrupted. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addUpCompletedHours } from '../../src/jobs/sums.ts'
import { type Applying, applyPlan, type Choice } from '../../src/model/imports/apply.ts'
import { type ImportPlan, makePlan } from '../../src/model/imports/plan.ts'
import { readImportFiles } from '../../src/ops/import-files.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { type CodexLbStore, createCodexLb, FERNET_KEY, textFile, whileReading } from '../support/imports.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-history-'))
afterAll(() => rmSync(folder, { recursive: true }))
let made = 0

const KEY = 'sk-clb-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'
const DAY_MS = 86_400_000

const plan = async (app: TestApp, contents: CodexLbStore): Promise<ImportPlan> => {
  const path = createCodexLb(join(folder, String(++made)), contents)
  const files = [{ name: 'store.db', path }, textFile('encryption.key', FERNET_KEY)]
  const { clock, bindings, db, dir } = app
  const found = await whileReading(app, readImportFiles(files, { dir, clock, db, passphrase: null, format: null }))
  return whileReading(
    app,
    makePlan(db, found, {
      sealer: bindings.sealer,
      clock,
      settings: bindings.settings.current(),
      assignsProxies: true,
    }),
  )
}

const apply = (app: TestApp, made: ImportPlan, choice: Partial<Choice> = {}, over: Partial<Applying> = {}) => {
  const { sealer, random, importing } = app.bindings
  const applying: Applying = {
    ...{ db: app.db, sealer, random, clock: app.clock, scope: 'all', exchange: importing.exchange, maxExchanges: 0 },
    actor: () => ({ id: 'cli', method: 'cli', address: null, at: app.clock.now() }),
    storeSettings: async () => {},
    getSourceAddress: async (baseUrl) => ({ baseUrl }),
    ...over,
  }
  const chosen: Choice = { items: made.items.map(({ id }) => id), isPaused: false, replaces: false, ...choice }
  return whileReading(app, applyPlan(made, chosen, applying))
}

const stored = (at: number): string => new Date(at).toISOString().slice(0, 23).replace('T', ' ').concat('000')

/** A log with requests of 40 days, of two accounts and a key. */
const history = (app: TestApp, over: CodexLbStore = {}): CodexLbStore => {
  const accounts = [app.upstream.addAccount(), app.upstream.addAccount()].map((sim) => ({ sim }))
  return { accounts, keys: [{ key: KEY, name: 'laptop' }], requests: requestsOf(app.clock.now()), ...over }
}

/** 400 requests of the 40 days before `now`, and `more` of the last two hours. */
const requestsOf = (now: number, more = 0) =>
  Array.from({ length: 400 + more }, (_, n) => ({
    request_id: `resp_${n}`,
    account_id: n % 4 === 3 ? 'gone' : `account-${1 + (n % 2)}`,
    api_key_id: n % 2 === 0 ? 'key-1' : null,
    model: 'gpt-5.5',
    request_kind: n === 0 ? 'warmup' : 'normal',
    useragent: 'codex_cli_rs/0.99',
    input_tokens: 100,
    output_tokens: 10,
    cached_input_tokens: 50,
    cost_usd: n % 10 === 5 ? null : 0.01,
    latency_ms: 1200,
    latency_first_token_ms: 300,
    status: n % 20 === 1 ? 'error' : n % 20 === 2 ? 'cancelled' : 'success',
    error_code: n % 20 === 1 ? 'usage_limit_reached' : null,
    requested_at: stored(n < 400 ? now - 40 * DAY_MS + (n + 0.5) * (DAY_MS / 10) : now - (550 - n) * 40_000),
  }))

const one = (app: TestApp, sql: string) => app.sqlite.query<Record<string, number>, []>(sql).get()

/** Imports the request log alone, and fails after so many commits. */
const interrupt = async (app: TestApp, made: ImportPlan, commits: number): Promise<void> => {
  let slices = 0
  const { clock: real } = app
  const clock: Applying['clock'] = {
    now: () => real.now(),
    monotonic: () => real.monotonic(),
    after: (ms, run) => real.after(ms, run),
    every: (ms, run) => real.every(ms, run),
    sleep: async () => {
      if (++slices === commits) throw new Error('killed')
    },
  }
  const only = { items: made.items.filter(({ kind }) => kind === 'history').map(({ id }) => id) }
  const broken = await apply(app, made, only, { clock }).then(
    () => null,
    (err) => err.message,
  )
  expect(broken).toBe('killed')
}

const ROWS = 'SELECT count(*) AS n, count(DISTINCT request_id) AS different FROM requests'
const TOTALS = `SELECT sum(requests) AS requests, sum(errors) AS errors, sum(cancelled) AS cancelled,
  sum(input_tokens) AS input, sum(cost_micros) AS cost, sum(unpriced) AS unpriced FROM request_hours`
const EXPECTED = { requests: 399, errors: 20, cancelled: 20, input: 39_900, cost: 3_590_000, unpriced: 40 }

describe('the request log', () => {
  test('is not part of "all", and is imported when it is chosen: hourly totals of all, rows of 30 days', async () => {
    const app = await testApp({ accounts: 0 })
    const made = await plan(app, history(app))
    const item = made.items.find(({ kind }) => kind === 'history')
    expect(item).toMatchObject({ verdict: 'new', reason: expect.stringContaining('300 rows of the last 30 days') })
    const without = await apply(app, made, { items: 'all' })
    expect(without.items.at(-1)?.result).toMatchObject({ outcome: 'left_out' })
    expect(one(app, 'SELECT count(*) AS n FROM requests')).toEqual({ n: 0 })
    const done = await apply(app, without, { items: [item!.id] })
    expect(done.items.at(-1)?.result?.outcome).toBe('imported')
    expect(one(app, TOTALS)).toEqual(EXPECTED)
    expect(one(app, 'SELECT count(*) AS n, max(total_ms) AS ms FROM requests')).toEqual({ n: 300, ms: 1200 })
  })

  test('belongs to the imported accounts and keys; what is not imported has none', async () => {
    const app = await testApp({ accounts: 0 })
    await apply(app, await plan(app, history(app)))
    const rows = app.sqlite
      .query(`SELECT r.status, k.name AS "key", r.account_id IS NULL AS lost, count(*) AS n FROM requests r
        LEFT JOIN api_keys k ON k.id = r.key_id GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1`)
      .all()
    expect(rows).toContainEqual({ status: 'ok', key: 'laptop', lost: 0, n: expect.any(Number) })
    expect(rows).toContainEqual({ status: 'ok', key: null, lost: 1, n: expect.any(Number) })
    expect(one(app, 'SELECT request_count AS n, cost_micros AS cost FROM api_keys')).toEqual({
      n: 199,
      cost: 1_990_000,
    })
    const perAccount = one(app, 'SELECT sum(requests) AS n FROM account_totals')
    expect(perAccount).toEqual(one(app, "SELECT sum(requests) AS n FROM request_hours WHERE account_id <> ''"))
  })

  test('is in the reports, also of hours that were already added up', async () => {
    const app = await testApp({ accounts: 0 })
    await whileReading(app, addUpCompletedHours(app, new AbortController().signal))
    await apply(app, await plan(app, history(app)))
    await whileReading(app, addUpCompletedHours(app, new AbortController().signal))
    const day = "SELECT sum(requests) AS n FROM request_spans WHERE span_hours = 24 AND dimension = 'all'"
    const added = one(
      app,
      `SELECT sum(requests) AS n FROM request_hours WHERE hour < (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'hours_added_up_to')`,
    )
    expect(one(app, day)).toEqual(added)
    expect(added?.n).toBeGreaterThan(390)
  })

  test('is imported once', async () => {
    const app = await testApp({ accounts: 0 })
    const contents = history(app)
    await apply(app, await plan(app, contents))
    const again = await plan(app, contents)
    expect(again.items.at(-1)).toMatchObject({ kind: 'history', verdict: 'same', content: null })
    await apply(app, again)
    expect(one(app, TOTALS)).toEqual(EXPECTED)
  })

  test.each([1, 5, 6])(
    'continues after an interruption in commit %d without counting anything twice',
    async (commits) => {
      const app = await testApp({ accounts: 0 })
      const contents = history(app)
      await interrupt(app, await plan(app, contents), commits)
      expect(one(app, TOTALS)?.requests).toBeWithin(1, 399)
      await apply(app, await plan(app, contents))
      expect(one(app, TOTALS)).toEqual(EXPECTED)
      expect(one(app, ROWS)).toEqual({ n: 300, different: 300 })
    },
  )

  test.each([1, 5, 6])('continues after commit %d with a newer copy of the log', async (commits) => {
    const app = await testApp({ accounts: 0 })
    const contents = history(app)
    await interrupt(app, await plan(app, contents), commits)
    await apply(app, await plan(app, { ...contents, requests: requestsOf(app.clock.now(), 150) }))
    expect(one(app, TOTALS)?.requests).toBe(549)
    expect(one(app, ROWS)).toEqual({ n: 450, different: 450 })
  })

  test('adds what a later copy has more', async () => {
    const app = await testApp({ accounts: 0 })
    const contents = history(app)
    await apply(app, await plan(app, contents))
    const later = await plan(app, { ...contents, requests: requestsOf(app.clock.now(), 150) })
    expect(later.items.at(-1)).toMatchObject({
      verdict: 'new',
      reason: 'Hourly totals of the 150 requests that are not here yet, and 150 rows of the last 30 days.',
    })
    await apply(app, later)
    expect(one(app, TOTALS)?.requests).toBe(549)
    expect(one(app, ROWS)).toEqual({ n: 450, different: 450 })
    expect((await plan(app, contents)).items.at(-1)?.verdict).toBe('same')
  })

  test('is left out if another copy was imported after the plan was made', async () => {
    const app = await testApp({ accounts: 0 })
    const contents = history(app)
    const made = await plan(app, contents)
    await apply(app, await plan(app, { ...contents, requests: requestsOf(app.clock.now(), 150) }))
    const done = await apply(app, made)
    expect(done.items.at(-1)?.result).toMatchObject({
      outcome: 'left_out',
      reason: expect.stringContaining('Start the import again'),
    })
    expect(one(app, TOTALS)?.requests).toBe(549)
  })

  test('without warm-ups is what the plan counts', async () => {
    const app = await testApp({ accounts: 0 })
    const requests = requestsOf(app.clock.now()).map((row, n) => ({
      ...row,
      ...(n % 4 === 0 && { request_kind: 'warmup' }),
    }))
    const made = await plan(app, history(app, { requests }))
    expect(made.items.at(-1)?.reason).toStartWith('Hourly totals of all 300 requests,')
    await apply(app, made)
    expect(one(app, TOTALS)?.requests).toBe(300)
    expect(
      one(app, "SELECT json_extract(details, '$.requests') AS n FROM audit_logs WHERE event = 'request_log_imported'"),
    ).toEqual({
      n: 300,
    })
  })

  test.each([
    ['an older version without it', ['DROP TABLE request_logs']],
    [
      'an older version with fewer columns',
      ['ALTER TABLE request_logs DROP COLUMN cost_usd', 'ALTER TABLE request_logs DROP COLUMN useragent'],
    ],
    ['a log without rows', ['DELETE FROM request_logs']],
  ])('%s is read', async (_, changes) => {
    const app = await testApp({ accounts: 0 })
    const made = await plan(app, history(app, { changes }))
    const items = made.items.filter(({ kind }) => kind === 'history')
    expect(items).toHaveLength(changes[0]?.startsWith('ALTER') ? 1 : 0)
    await apply(app, made)
    expect(one(app, 'SELECT count(*) AS n FROM requests')?.n).toBe(items.length * 300)
  })

  test('requests of the future, of deleted accounts and with impossible values are left out or repaired', async () => {
    const app = await testApp({ accounts: 0 })
    const now = app.clock.now()
    const row = { request_id: 'a', status: 'odd', requested_at: stored(now - 1000), latency_ms: -5, input_tokens: 'x' }
    const requests = [
      row,
      { ...row, requested_at: stored(now + DAY_MS) },
      { ...row, deleted_at: stored(now) },
      { ...row, requested_at: 'yesterday' },
    ]
    await apply(app, await plan(app, history(app, { requests })))
    const imported = app.sqlite.query('SELECT status, http_status, total_ms, input_tokens FROM requests').all()
    expect(imported).toEqual([{ status: 'error', http_status: 502, total_ms: 0, input_tokens: null }])
  })
})
