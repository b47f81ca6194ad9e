/** The totals of the overview: from log rows to half hours, tiles and strips, and how often the log is read. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeyLimits } from '../../db/schema/keys.ts'
import { attempts, requestHours, requests } from '../../db/schema/requests.ts'
import { recordAccountEvent } from '../../src/model/accounts/account-events.ts'
import { getStrip } from '../../src/model/overview/outcome-strip.ts'
import {
  firstSteps,
  overviewPresent,
  overviewSlots,
  type Present,
  type Slot,
} from '../../src/model/overview/overview.ts'
import { OverviewFigures } from '../../src/model/overview/overview-figures.ts'
import { SLOT_MS } from '../../src/model/overview/overview-slots.ts'
import { quantile } from '../../src/model/overview/overview-tiles.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import { createInlineReader } from '../support/inline-reader.ts'
import { aKey } from '../support/keys.ts'
import { getPlans } from '../support/query-plans.ts'

type Row = typeof requests.$inferInsert
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const NOW = Date.UTC(2026, 0, 3, 12, 10)

const world = () => {
  const { db, sqlite } = testDb()
  const ids = { next: 0 }
  const add = async (startedAt: number, over: Partial<Row> = {}) => {
    const id = `req_${ids.next++}`
    const row: Row = {
      id,
      requestId: id,
      startedAt,
      route: '/v1/responses',
      kind: 'normal',
      transport: 'http',
      accountId: 'acc_1',
      model: 'gpt-5.5',
      status: 'ok',
      httpStatus: 200,
      inputTokens: 100,
      cachedInputTokens: 40,
      outputTokens: 10,
      costMicros: 1000,
      attempts: 1,
      firstEventMs: 500,
      totalMs: 900,
      conversationHash: 'c1',
      ...over,
    }
    await commit(db, async (tx) => void (await tx.insert(requests).values(row).run()))
  }
  const clock = new ManualClock(NOW)
  const asked: string[] = []
  const fault = { message: '' }
  const inline = createInlineReader(db)
  const figures = new OverviewFigures({
    clock,
    reader: {
      overviewSlots: (from, to) => {
        asked.push(`${(to - from) / SLOT_MS}`)
        return inline.overviewSlots(from, to)
      },
      overviewPresent: (now) =>
        fault.message ? Promise.reject(new Error(fault.message)) : inline.overviewPresent(now),
    },
  })
  return { db, sqlite, add, clock, asked, fault, figures }
}

describe('half hours', () => {
  test('exclude warm-ups', async () => {
    const { db, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    await add(at, { kind: 'warmup' })
    await add(at, { kind: 'warmup', status: 'error', attempts: 2 })
    await add(at, { kind: 'image' })
    const [slot] = await overviewSlots(db, at, at + SLOT_MS)
    expect(slot).toMatchObject({ requests: 1, errors: 0, inputTokens: 100, firstEventMs: [500] })
  })

  test('sum up what began in them, and include quiet ones', async () => {
    const { db, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    await add(at)
    await add(at + SLOT_MS - 1, { status: 'error', costMicros: null, conversationHash: 'c2', firstEventMs: null })
    await add(at + SLOT_MS, { accountId: null, status: 'cancelled' })
    const [first, second, third] = await overviewSlots(db, at, at + 3 * SLOT_MS)
    expect(first).toMatchObject({
      at,
      requests: 2,
      errors: 1,
      inputTokens: 200,
      cachedInputTokens: 80,
      outputTokens: 20,
      costMicros: 1000,
      conversations: 2,
      begun: 1,
      firstEventMs: [500],
    })
    expect(first?.accounts).toEqual(new Map([['acc_1', { ok: 1, errors: 1 }]]))
    expect([second?.requests, second?.conversations, second?.accounts.size]).toEqual([1, 1, 0])
    expect(third).toMatchObject({ requests: 0, conversations: 0, firstEventMs: [], cancelled: 0 })
  })

  test('a client asked to resend the full conversation had no error, as in the reports', async () => {
    const { db, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    await add(at, { status: 'error', errorCode: 'previous_response_not_found', httpStatus: 400 })
    const [slot] = await overviewSlots(db, at, at + SLOT_MS)
    expect(slot).toMatchObject({ requests: 1, errors: 0 })
    expect(slot?.accounts.size).toBe(0)
    await add(at, { status: 'error', errorCode: 'overloaded_error' })
    const [faulty] = await overviewSlots(db, at, at + SLOT_MS)
    expect(faulty?.errors).toBe(1)
    expect((await overviewPresent(db, NOW)).errors.map(({ newest }) => newest.errorCode)).toEqual(['overloaded_error'])
    expect(faulty?.accounts).toEqual(new Map([['acc_1', { ok: 0, errors: 1 }]]))
  })

  test('include failures at an account before another served the request, but not limits and sign-outs', async () => {
    const { db, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    await add(at, { attempts: 4 })
    const failed = { requestRowId: 'req_0', startedAt: at, durationMs: 1, outcome: 'failed' } as const
    const rows = [
      { ...failed, n: 1, accountId: 'acc_2', upstreamStatus: 403, code: null },
      { ...failed, n: 2, accountId: 'acc_3', upstreamStatus: 429, code: 'usage_limit_reached' },
      { ...failed, n: 3, accountId: 'acc_4', upstreamStatus: null, code: 'insufficient_quota' },
      { ...failed, n: 4, accountId: null, upstreamStatus: null, code: 'no_accounts' },
      { ...failed, n: 5, accountId: 'acc_1', upstreamStatus: 500, code: null },
      { ...failed, n: 6, accountId: 'acc_1', outcome: 'ok', upstreamStatus: 200, code: null },
      { ...failed, n: 7, accountId: 'acc_5', upstreamStatus: null, code: 'ECONNRESET' },
    ] as const
    await commit(
      db,
      async (tx) =>
        void (await tx
          .insert(attempts)
          .values([...rows])
          .run()),
    )
    const [slot] = await overviewSlots(db, at, at + SLOT_MS)
    expect(slot?.errors).toBe(0)
    expect(slot?.accounts).toEqual(
      new Map([
        ['acc_1', { ok: 1, errors: 0 }],
        ['acc_2', { ok: 0, errors: 1 }],
        ['acc_5', { ok: 0, errors: 1 }],
      ]),
    )
  })

  test('keep the newest times to a first event', async () => {
    const { db, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    for (let n = 0; n < 101; n++) await add(at + n, { firstEventMs: n })
    const [slot] = await overviewSlots(db, at, at + SLOT_MS)
    expect(slot?.firstEventMs).toEqual(Array.from({ length: 100 }, (_, n) => 100 - n))
  })

  test('are found by their start, whatever else is in the log', async () => {
    const { db, sqlite, add } = world()
    const at = NOW - (NOW % SLOT_MS)
    await add(at, { status: 'error' })
    const steps = await getPlans(sqlite, /"requests"/, () => overviewSlots(db, at, at + SLOT_MS))
    const found = steps.filter((step) => / requests /.test(step))
    expect(found).toHaveLength(4)
    expect(found.filter((step) => !step.includes('(started_at>? AND started_at<?'))).toEqual([])
  })

  test('the last account state before the day is included, and none before that', async () => {
    const { db } = world()
    await commit(db, async (tx) => {
      await tx
        .insert(accounts)
        .values({
          id: 'a',
          email: 'a',
          planType: 'plus',
          lastRefreshAt: 0,
          createdAt: 0,
          accessTokenSealed: '',
          refreshTokenSealed: '',
          idTokenSealed: '',
        })
        .run()
      for (const [hours, result] of [
        [60, 'rate_limited'],
        [50, 'active'],
        [30, 'quota_exceeded'],
        [1, 'paused'],
      ] as const)
        await recordAccountEvent(tx, { accountId: 'a', at: NOW - hours * HOUR, kind: 'state', result, detail: null })
    })
    expect((await overviewPresent(db, NOW)).stateChanges.get('a')).toEqual([
      { at: NOW - 30 * HOUR, isActive: false },
      { at: NOW - HOUR, isActive: false },
    ])
  })

  test('keys are listed with the remaining amount of their limits', async () => {
    const { db } = world()
    const { row } = await aKey(
      db,
      { limits: [{ limitType: 'requests', limitWindow: 'daily', maxValue: 9 }] },
      { at: NOW },
    )
    await commit(db, async (tx) => void (await tx.update(apiKeyLimits).set({ currentValue: 4 }).run()))
    await aKey(db, { name: 'free' }, { seed: 2 })
    expect((await overviewPresent(db, NOW)).keys.find(({ id }) => id === row.id)).toEqual({
      id: row.id,
      name: 'laptop',
      isActive: true,
      expiresAt: null,
      limits: [{ type: 'requests', window: 'daily', used: 4, max: 9, resetAt: NOW + 24 * HOUR }],
    })
  })

  test('a failed or cancelled request is not an answer', async () => {
    const { db } = world()
    const sums = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costMicros: 0, unpriced: 0 }
    const add = (hour: number, requests: number) =>
      commit(db, async (tx) => {
        const ids = { accountId: '', keyId: '', model: '' }
        await tx
          .insert(requestHours)
          .values({ ...ids, ...sums, hour, requests, errors: 2, cancelled: 1 })
          .run()
      })
    await add(0, 3)
    expect(await firstSteps(db)).toEqual({ hasKey: false, hasAnswered: false })
    await add(HOUR, 4)
    expect(await firstSteps(db)).toEqual({ hasKey: false, hasAnswered: true })
  })

  test('conversations of the last hour and the one before', async () => {
    const { db, add } = world()
    for (const [minutes, conversationHash] of [
      [5, 'a'],
      [50, 'b'],
      [55, 'b'],
      [70, 'c'],
      [130, 'd'],
    ] as const)
      await add(NOW - minutes * MINUTE, { conversationHash })
    expect((await overviewPresent(db, NOW)).conversations).toEqual({ now: 2, before: 1 })
  })
})

describe('figures', () => {
  test('tiles have the last day and the one before', async () => {
    const { add, figures } = world()
    for (const hours of [1, 2, 3]) await add(NOW - hours * HOUR)
    await add(NOW - 4 * HOUR, { status: 'error' })
    await add(NOW - 30 * HOUR, { costMicros: 500 })
    await add(NOW - 60 * HOUR)
    const { tiles } = await figures.now()
    expect([tiles.requests.value, tiles.requests.before]).toEqual([4, 1])
    expect(tiles.requests.series.reduce<number>((sum, value) => sum + (value ?? 0), 0)).toBe(4)
    expect(tiles.tokens).toMatchObject({ value: 440, before: 110 })
    expect(tiles.cost).toMatchObject({ value: 4000, before: 500 })
    expect(tiles.errorRate).toMatchObject({ value: 25, before: 0 })
    expect(tiles.errorRate.series.filter((value) => value !== null)).toHaveLength(4)
    expect(tiles.cachedPercent).toBe(40)
    expect(tiles.firstToken.value).toBe(500)
    expect(tiles.conversations.series).toHaveLength(24)
    expect(tiles.conversations.series.slice(-5)).toEqual([1, 1, 1, 1, 0])
  })

  test('a share of nothing is empty', async () => {
    const { tiles } = await world().figures.now()
    expect([tiles.cachedPercent, tiles.errorRate.value, tiles.firstToken.value]).toEqual([null, null, null])
  })

  test('tokens without a known price have no cost, which is not zero', async () => {
    const { add, figures } = world()
    expect((await figures.now()).tiles.cost.value).toBe(0)
    await add(NOW - 3 * HOUR, { costMicros: null })
    figures.forgetLog()
    const { cost } = (await figures.now()).tiles
    expect([cost.value, cost.series.filter((value) => value === null)]).toEqual([null, [null]])
    await add(NOW)
    figures.forgetLog()
    expect((await figures.now()).tiles.cost.value).toBe(1000)
  })

  test('requests rejected before a first event are not counted in its latency', async () => {
    const { add, figures } = world()
    for (let turn = 0; turn < 9; turn++) await add(NOW - 3 * HOUR, { firstEventMs: 1000 })
    await add(NOW - HOUR, { firstEventMs: 20_000 })
    for (let turn = 0; turn < 50; turn++) await add(NOW - HOUR, { status: 'error', firstEventMs: null })
    expect((await figures.now()).tiles.firstToken.value).toBe(1000)
  })

  test('a steady load shows no change, however far the current half hour is', async () => {
    const { add, clock, figures } = world()
    for (let slot = 0; slot < 96; slot++) await add(NOW - (NOW % SLOT_MS) - slot * SLOT_MS)
    const { requests } = (await figures.now()).tiles
    expect([requests.value, requests.ended, requests.before]).toEqual([48, 47, 47])
    await clock.advance('20m') // the next one has begun, and was not requested yet
    const next = (await figures.now()).tiles.requests
    expect([next.ended, next.before]).toEqual([47, 47])
  })

  test('past half hours are read once, the current one in the background after five seconds', async () => {
    const { add, clock, asked, figures } = world()
    await figures.now()
    expect(asked).toEqual(Array.from({ length: 12 }, () => '8'))
    asked.length = 0
    await figures.now()
    expect(asked).toEqual([])
    await add(NOW)
    await clock.advance('5s')
    expect((await figures.now()).tiles.requests.value).toBe(0)
    await clock.advance(0)
    expect((await figures.now()).tiles.requests.value).toBe(1)
    expect(asked).toEqual(['1'])
    await add(NOW)
    await clock.advance('60s')
    asked.length = 0
    expect((await figures.now()).tiles.requests.value).toBe(2)
    expect(asked, 'with the hour before, whose turns may have ended since').toEqual(['3'])
  })

  test('a long request is counted in the half hour in which it began', async () => {
    const { add, clock, figures } = world()
    await figures.now()
    await clock.advance('40m')
    await figures.now()
    await add(NOW)
    await clock.advance('61s')
    expect((await figures.now()).tiles.requests.value).toBe(1)
  })

  test('totals read while the clock was ahead are read again after the correction', async () => {
    const { add, clock, figures } = world()
    clock.set(2 * HOUR)
    await figures.now()
    clock.set(-2 * HOUR)
    await add(NOW)
    await add(NOW - 70 * MINUTE)
    expect((await figures.now()).tiles.requests.value).toBe(2)
    clock.set(3 * HOUR)
    await figures.now()
    figures.forgetKeys()
    clock.set(-3 * HOUR)
    await add(NOW - 20 * MINUTE)
    expect((await figures.now()).tiles.requests.value).toBe(3)
  })

  test('a half hour read as past by a fast clock is read again when it comes', async () => {
    const { add, clock, figures } = world()
    clock.set(24 * HOUR)
    await figures.now()
    clock.set(-24 * HOUR)
    await figures.now()
    await add(NOW + 2 * HOUR)
    await clock.advance('25h')
    expect((await figures.now()).tiles.requests.value).toBe(1)
  })

  test('totals read while rows of the log are deleted are not kept', async () => {
    const { db, add, asked, figures } = world()
    await add(NOW - 23 * HOUR)
    const reading = figures.now()
    while (asked.length < 7) await Promise.resolve()
    await commit(db, async (tx) => void (await tx.delete(requests).run()))
    figures.forgetLog()
    await reading
    expect((await figures.now()).tiles.requests.value).toBe(0)
  })

  test('a user who changed a key sees the current state immediately', async () => {
    const { add, figures } = world()
    await figures.now()
    await add(NOW)
    expect((await figures.now()).present.conversations.now).toBe(0)
    figures.forgetKeys()
    expect((await figures.now()).present.conversations.now).toBe(1)
  })

  test('so do requests during a read, and the next ones', async () => {
    const { add, figures } = world()
    const reading = figures.now()
    await add(NOW)
    figures.forgetKeys()
    const shown = await figures.now()
    await reading
    const conversations = [shown, await figures.now()].map(({ present }) => present.conversations.now)
    expect(conversations).toEqual([1, 1])
  })

  test('a failing read is reported once the known totals are too old', async () => {
    const { clock, figures, fault } = world()
    await figures.now()
    fault.message = 'busy'
    await clock.advance('30s')
    expect((await figures.now()).slots).toHaveLength(96)
    await clock.advance('31s')
    await expect(figures.now()).rejects.toThrow('busy')
    fault.message = ''
    expect((await figures.now()).slots).toHaveLength(96)
  })

  test('simultaneous requests share one response', async () => {
    const { asked, figures } = world()
    await Promise.all([figures.now(), figures.now(), figures.now()])
    expect(asked).toHaveLength(12)
  })
})

const slot = (over: Partial<Slot> = {}): Slot => ({
  at: 0,
  requests: 0,
  errors: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costMicros: 0,
  conversations: 0,
  begun: 0,
  firstEventMs: [],
  cancelled: 0,
  accounts: new Map(),
  ...over,
})

test('a sample counts for as many requests as it represents', () => {
  const busy = slot({ requests: 900, begun: 900, firstEventMs: [100] })
  const quiet = slot({ requests: 2, begun: 2, firstEventMs: [5000, 6000] })
  expect(quantile([busy, quiet], 0.5)).toBe(100)
  expect(quantile([quiet, busy], 0.5)).toBe(100)
  expect(quantile([quiet], 0.5)).toBe(5000)
  const slow = slot({ begun: 200, firstEventMs: [5000] })
  expect(quantile([slot({ begun: 100, firstEventMs: [10, 10, 10, 10] }), slow], 0.5)).toBe(5000)
  expect(quantile([slot()], 0.5)).toBeNull()
})

describe('the strip of an account', () => {
  const START = NOW - (NOW % SLOT_MS) - 47 * SLOT_MS
  const strip = (
    over: Partial<Slot>[],
    present: Partial<Present> = {},
    status: 'active' | 'paused' = 'active',
    since: number | null = null,
  ) =>
    getStrip(
      { accountId: 'a', status, since },
      {
        slotMs: SLOT_MS,
        slots: Array.from({ length: 48 }, (_, index) => slot({ at: START + index * SLOT_MS, ...over[index] })),
        present: {
          conversations: { now: 0, before: 0 },
          keys: [],
          errors: [],
          rejected: [],
          stateChanges: new Map(),
          ...present,
        },
      },
    )

  test('has 48 half hours: fine, with errors, idle', () => {
    const cells = strip([
      { accounts: new Map([['a', { ok: 3, errors: 0 }]]) },
      { accounts: new Map([['a', { ok: 3, errors: 1 }]]) },
    ])
    expect(cells).toHaveLength(48)
    expect(cells.slice(0, 3)).toEqual(['ok', 'some_errors', 'idle'])
  })

  test('is blocked from the change that blocked it to the one that ended it', () => {
    const stateChanges = new Map([
      [
        'a',
        [
          { at: START + 2 * SLOT_MS + 1, isActive: false },
          { at: START + 4 * SLOT_MS, isActive: true },
        ],
      ],
    ])
    expect(strip([], { stateChanges }).slice(0, 6)).toEqual(['idle', 'idle', 'blocked', 'blocked', 'idle', 'idle'])
  })

  test('is blocked continuously from one kind of block to the next', () => {
    const stateChanges = new Map([
      [
        'a',
        [
          { at: START - SLOT_MS, isActive: false },
          { at: START + 47 * SLOT_MS, isActive: false },
        ],
      ],
    ])
    expect(new Set(strip([], { stateChanges }, 'paused'))).toEqual(new Set(['blocked']))
  })

  test('is blocked now, whatever the last known change was', () => {
    const stateChanges = new Map([['a', [{ at: START - SLOT_MS, isActive: true }]]])
    const cells = strip([], { stateChanges }, 'paused', START + 46 * SLOT_MS)
    expect(cells.slice(44)).toEqual(['idle', 'idle', 'blocked', 'blocked'])
  })

  test('was blocked before the first known change, if that ended a block', () => {
    const stateChanges = new Map([['a', [{ at: START + 2 * SLOT_MS, isActive: true }]]])
    expect(strip([], { stateChanges }).slice(0, 4)).toEqual(['blocked', 'blocked', 'idle', 'idle'])
  })

  test('without a history, has the current state since it began', () => {
    expect(strip([], {}, 'paused', START + 46 * SLOT_MS).slice(44)).toEqual(['idle', 'idle', 'blocked', 'blocked'])
    expect(new Set(strip([], {}, 'paused'))).toEqual(new Set(['blocked']))
  })
})
