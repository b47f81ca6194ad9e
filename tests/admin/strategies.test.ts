/** Replay of the log: `/api/reports/strategies`, its page, and the command. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { usageSamples } from '../../db/schema/history.ts'
import { requests } from '../../db/schema/requests.ts'
import type { StrategyReport } from '../../src/model/replay/strategy-report.ts'
import { Replayer, type StartReplay } from '../../src/threads/replayer.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { ManualClock } from '../support/clock.ts'
import { people } from '../support/people.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const HTML = { accept: 'text/html' }

type Row = typeof requests.$inferInsert

/** One request per entry of `rows`, `daysAgo` before now. */
export const log = (app: TestApp, rows: (Partial<Row> & { daysAgo: number })[]) =>
  commit(app.db, async (tx) => {
    for (const [n, { daysAgo, ...row }] of rows.entries())
      await tx
        .insert(requests)
        .values({
          id: `row-${n}-${daysAgo}`,
          requestId: `request-${n}`,
          startedAt: app.clock.now() - daysAgo * DAY,
          route: '/v1/responses',
          kind: 'normal',
          transport: 'http',
          status: 'ok',
          httpStatus: 200,
          attempts: 1,
          totalMs: 1000,
          accountId: app.members[0]?.id ?? null,
          model: 'gpt-5.5',
          inputTokens: 4000,
          cachedInputTokens: 0,
          outputTokens: 1000,
          costMicros: 1000,
          ...row,
        })
        .run()
  })

const NO_MOVES = { moves: 0, movedTokens: 0, rejected: 0 }

const compared = async (app: TestApp, query = ''): Promise<StrategyReport> =>
  (await (await app.ask(`GET /api/reports/strategies${query}`)).json()) as StrategyReport // as: checked below

const steady = (days: number, each = 4) =>
  Array.from({ length: days * each }, (_, n) => ({ daysAgo: days - n / each, conversationHash: `talk-${n % 3}` }))

describe('GET /api/reports/strategies', () => {
  test('replays the log against every strategy', async () => {
    const app = await testApp({ accounts: 2 })
    await log(app, steady(10))
    const { strategies, ...report } = await compared(app, '?days=14&seed=3')
    expect(report).toEqual({
      days: 14,
      seed: 3,
      requests: 40,
      sufficient: true,
      coveredDays: 10,
      isMeasured: false,
      moveRules: { priced: NO_MOVES, fixed: NO_MOVES },
    })
    expect(strategies.map(({ name }) => name)).toEqual([
      'capacity_weighted',
      'usage_weighted',
      'round_robin',
      'relative_availability',
      'fill_first',
      'sequential_drain',
      'reset_drain',
      'single_account',
    ])
    // 8 units each, so 40 requests use 320 of the 2 × 7,560 credits whose week was reset once.
    expect(strategies.every(({ rejected, moves }) => rejected === 0 && moves === 0)).toBe(true)
    expect(strategies[2]?.unusedPercent).toBeCloseTo(100 - (100 * 28 * 8) / 15_120, 1)
  })

  test('the same seed gives the same report at any time', async () => {
    const app = await testApp({ accounts: 3 })
    await log(app, steady(8, 30))
    const first = await compared(app, '?seed=5')
    expect(await compared(await testApp({ accounts: 3 }))).not.toEqual(first)
    await app.restart()
    expect(await compared(app, '?seed=5')).toEqual(first)
  })

  test('compares moves that pay with moves at a fixed limit, for the strategy in use', async () => {
    const app = await testApp({ accounts: 2, settings: { routingStrategy: 'usage_weighted' } })
    // Each request uses 6.9 units of two windows with 225 credits. When an account is at 95 %, the other is almost as
    // full: reading 18,000 cached tokens again there, 18 units, costs more than staying.
    const use = { inputTokens: 20_000, cachedInputTokens: 18_000, outputTokens: 100, costMicros: 0, model: 'unpriced' }
    const rows = Array.from({ length: 62 }, (_, n) => ({
      ...{ daysAgo: 8 - n / 1000, conversationHash: n < 2 ? 'talk-0' : `talk-${n % 2}` },
      ...use,
    }))
    await log(app, rows)
    const { strategies, moveRules } = await compared(app)
    expect(moveRules).toEqual({
      priced: { moves: 0, movedTokens: 0, rejected: 0 },
      fixed: { moves: 1, movedTokens: 18_000, rejected: 1 },
    })
    expect(strategies.find(({ name }) => name === 'usage_weighted')).toMatchObject({ moves: 0, rejected: 0 })
  })

  test('says when the log covers less than seven days', async () => {
    const app = await testApp()
    await log(app, [{ daysAgo: 6.9 }])
    expect(await compared(app)).toMatchObject({ sufficient: false, coveredDays: 6.9, requests: 1 })
    const almost = await testApp()
    await log(almost, [{ daysAgo: 6.99 }])
    expect(await compared(almost)).toMatchObject({ sufficient: false, coveredDays: 6.9 }) // not “less than a week (7 days)”
    expect(await compared(await testApp({ accounts: 0 }))).toMatchObject({ sufficient: false, requests: 0 })
  })

  test('omits warm-ups, failed requests, and older ones', async () => {
    const app = await testApp()
    await log(app, [
      { daysAgo: 1, kind: 'warmup' },
      { daysAgo: 1.1, status: 'error', phase: 'upstream', inputTokens: null },
      { daysAgo: 1.2, status: 'error', phase: 'select', inputTokens: null, accountId: null },
      { daysAgo: 1.3, status: 'cancelled', inputTokens: null },
      { daysAgo: 40 },
    ])
    expect(await compared(app)).toMatchObject({ requests: 2 })
  })

  test('counts rejected requests when the plans are too small', async () => {
    const app = await testApp({ accounts: 1 })
    // 5 hours of a Plus account have 225 credits, each request uses 8: 28 fit, 12 of each 40 in one hour do not.
    await log(
      app,
      Array.from({ length: 40 }, (_, n) => ({ daysAgo: 8 - n / 1000 })),
    )
    const { strategies } = await compared(app)
    expect(strategies.map(({ rejected }) => rejected)).toEqual(Array.from({ length: 8 }, () => 12))
  })

  test('measures what a request uses with the meters of the accounts', async () => {
    const app = await testApp()
    const id = app.members[0]?.id ?? ''
    const hour = Math.floor((app.clock.now() - 2 * DAY) / HOUR) * HOUR
    await commit(app.db, (tx) =>
      tx
        .insert(usageSamples)
        .values([
          { accountId: id, hour: hour - HOUR, fiveHourUsed: 10, weeklyUsed: 1 },
          { accountId: id, hour, fiveHourUsed: 50, weeklyUsed: 3 },
        ])
        .run(),
    )
    // 10 requests of 8 units moved the meter by 40 % of 225 credits: 9 credits each, so 25 fit into a window.
    await log(
      app,
      Array.from({ length: 10 }, (_, n) => ({ daysAgo: (app.clock.now() - hour - n * 1000) / DAY })),
    )
    await log(
      app,
      Array.from({ length: 30 }, (_, n) => ({ daysAgo: 8 - n / 1000 })),
    )
    const report = await compared(app)
    expect(report.isMeasured).toBe(true)
    expect(report.strategies[0]).toMatchObject({ rejected: 5 })
  })

  test.each(['?days=0', '?days=91', '?days=x', '?seed=-1', '?seed=1.5'])('rejects %s', async (query) => {
    const response = await (await testApp()).ask(`GET /api/reports/strategies${query}`)
    expect(response.status).toBe(422)
  })
})

describe('the page', () => {
  const page = async (app: Pick<TestApp, 'ask'>, path: string) =>
    (await app.ask(`GET ${path}`, { headers: HTML })).text()

  test('starts on demand, shows the progress, then the result with a button for each other strategy', async () => {
    const app = await testApp({ accounts: 2 })
    await log(app, steady(3))
    expect(await page(app, '/reports/strategies')).not.toContain('id="progress"')
    const running = await page(app, '/reports/strategies?run=1')
    expect(running).toContain('<progress')
    expect(running).toContain('hx-trigger="every 1s"')
    await app.clock.advance(0)
    const done = await page(app, '/reports/strategies?run=1')
    expect(done).not.toContain('<progress')
    expect(done).toContain('The log covers less than a week (3 days)')
    expect(done.match(/Use this strategy/g)).toHaveLength(7)
    expect(await page(app, '/reports/strategies')).toContain('Use this strategy')
  })

  test('the button changes the setting; a viewer has none', async () => {
    const app = await testApp()
    await log(app, steady(3))
    const { as } = people(app)
    const operator = await as('operator')
    const viewer = await as('viewer')
    await compared(app)
    await operator.ask('GET /api/reports/strategies')
    expect(await page(operator, '/reports/strategies')).toContain('Use this strategy')
    expect(await page(viewer, '/reports/strategies')).not.toContain('Use this strategy')
    const change = { json: { routingStrategy: 'fill_first' } }
    expect((await viewer.ask('PATCH /api/settings?section=routing', change)).status).toBe(403)
    expect((await operator.ask('PATCH /api/settings?section=routing', change)).status).toBe(200)
    expect(app.bindings.settings.current().routingStrategy).toBe('fill_first')
  })
})

describe('the worker thread', () => {
  const question = (seed: number) => ({ days: 28, seed, now: 0 })
  const report = (seed: number): StrategyReport => ({
    days: 28,
    seed,
    requests: 0,
    sufficient: false,
    coveredDays: 0,
    isMeasured: false,
    moveRules: { priced: NO_MOVES, fixed: NO_MOVES },
    strategies: [],
  })
  const open = () => {
    const clock = new ManualClock()
    const runs: { seed: number; tell: Parameters<StartReplay>[1]; isStopped: boolean }[] = []
    const start: StartReplay = ({ question: asked }, tell) => {
      const run = { seed: (asked as { seed: number }).seed, tell, isStopped: false } // as: only strategies here
      runs.push(run)
      return () => {
        run.isStopped = true
      }
    }
    const warnings: string[] = []
    const log = {
      warn: (text: string) => void warnings.push(text),
      debug() {},
      info() {},
      error() {},
      writes: () => true,
    }
    return { clock, runs, warnings, replayer: new Replayer({ start, clock, log }) }
  }
  const never = () => new AbortController().signal

  test('is shared by equal questions', async () => {
    const { runs, replayer } = open()
    const both = [replayer.ask('strategies', question(1), never()), replayer.ask('strategies', question(1), never())]
    runs[0]?.tell({ value: report(1) })
    expect(await Promise.all(both)).toEqual([report(1), report(1)])
    expect(runs).toHaveLength(1)
  })

  test('stops when the last client disconnects, and the next question starts', async () => {
    const { runs, replayer } = open()
    const [one, other] = [new AbortController(), new AbortController()]
    const first = replayer.ask('strategies', question(1), one.signal)
    const second = replayer.ask('strategies', question(1), other.signal)
    const next = replayer.ask('strategies', question(2), never())
    one.abort(new Error('gone'))
    expect(first).rejects.toThrow('gone')
    await Promise.resolve()
    expect(runs.map(({ isStopped }) => isStopped)).toEqual([false])
    other.abort(new Error('gone'))
    await second.catch(() => {})
    expect(runs.map(({ seed, isStopped }) => [seed, isStopped])).toEqual([
      [1, true],
      [2, false],
    ])
    runs[1]?.tell({ value: report(2) })
    expect(await next).toEqual(report(2))
  })

  test('stops 15 seconds after a page last polled', async () => {
    const { clock, runs, replayer } = open()
    expect(replayer.look('strategies', question(1))).toEqual({ kind: 'running', share: 0 })
    runs[0]?.tell({ share: 0.25 })
    await clock.advance(10_000)
    expect(replayer.look('strategies', question(1))).toEqual({ kind: 'running', share: 0.25 })
    await clock.advance(14_999)
    expect(runs[0]?.isStopped).toBe(false)
    await clock.advance(1)
    expect(runs[0]?.isStopped).toBe(true)
  })

  test('a failure is shown, and not retried by the page that shows it', async () => {
    const { runs, warnings, replayer } = open()
    const answer = replayer.ask('strategies', question(1), never())
    runs[0]?.tell({ failure: 'out of memory' })
    expect(answer).rejects.toThrow('busy')
    expect(replayer.look('strategies', question(1))).toEqual({ kind: 'failed' })
    expect(runs).toHaveLength(1)
    expect(warnings).toEqual(['a replay failed'])
  })

  test('has a bounded queue, which never blocks the planner', async () => {
    const { replayer } = open()
    const waiting = Array.from({ length: 8 }, (_, seed) => replayer.ask('strategies', question(seed), never()))
    for (const one of waiting) one.catch(() => {}) // ended by the stop
    await expect(replayer.ask('strategies', question(8), never())).rejects.toThrow('busy')
    let isRejected = false
    replayer.ask('plan', { now: 0 }, never()).catch(() => {
      isRejected = true
    })
    await Promise.resolve()
    expect(isRejected).toBe(false)
    replayer.stop()
  })

  test('leaves nothing running after the stop', async () => {
    const { runs, replayer } = open()
    const waiting = Array.from({ length: 3 }, (_, seed) => replayer.ask('strategies', question(seed), never()))
    const settled = Promise.allSettled(waiting)
    replayer.stop()
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(runs.every(({ isStopped }) => isStopped)).toBe(true)
  })
})
