/** Key limits with concurrent requests: none exceeds a limit, and the settled amount is the actual use. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { LimitType } from '../../db/schema/keys.ts'
import { AppError } from '../../src/errors.ts'
import { WINDOW_MS } from '../../src/model/keys/key-limits.ts'
import {
  deltaStatement,
  type Estimate,
  estimateTokens,
  type LimitDelta,
  type LiveLimit,
  leasePath,
  type Reservation,
  type Use,
} from '../../src/model/keys/reservations.ts'
import { testDb } from '../support/db.ts'
import { holds } from '../support/property.ts'
import { reserveAlone as reserve } from '../support/reserve.ts'

const NOW = Date.UTC(2026, 0, 1)

const aLimit = (over: Partial<LiveLimit> = {}): LiveLimit => ({
  id: 'lim_1',
  keyId: 'key_1',
  type: 'total_tokens',
  window: 'daily',
  modelFilter: '',
  maxValue: 1000,
  settled: 0,
  reserved: 0,
  free: 0,
  shortUntil: 0,
  resetAt: NOW + WINDOW_MS.daily,
  ...over,
})

const anEstimate = (over: Partial<Estimate> = {}): Estimate => ({
  model: 'strong',
  inputTokens: 100,
  outputTokens: 50,
  costMicros: 7,
  ...over,
})

const TYPES = ['requests', 'total_tokens', 'input_tokens', 'output_tokens', 'cost_usd'] as const
type Counted = (typeof TYPES)[number]

const COUNTED: Record<Counted, (use: Use) => number> = {
  requests: () => 1,
  total_tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  input_tokens: ({ inputTokens }) => inputTokens,
  output_tokens: ({ outputTokens }) => outputTokens,
  cost_usd: ({ costMicros }) => costMicros ?? 0,
}

type Step = { kind: 'admit'; estimate: Use } | { kind: 'end'; pick: number; actual: Use | null }

/** Admits and ends turns as the script says, checks each admission, and releases what still runs at the end. */
const play = (script: Step[], limits: LiveLimit[]) => {
  const running: Reservation[] = []
  const deltas: LimitDelta[] = []
  const charged: Use[] = []
  for (const step of script) {
    if (step.kind === 'admit') running.push(...admitted(limits, step.estimate))
    else if (running.length > 0) {
      const [ended] = running.splice(step.pick % running.length, 1)
      deltas.push(...ended!.settle(step.actual), ...ended!.settle(step.actual))
      if (step.actual) charged.push(step.actual)
    }
  }
  for (const reservation of running) reservation.settle(null)
  return { deltas, charged }
}

const admitted = (limits: LiveLimit[], estimate: Use): Reservation[] => {
  const hadRoom = limits.every((limit) => limit.settled + limit.reserved < limit.maxValue)
  if (!hadRoom) {
    refusal(() => reserve({ limits }, { model: 'strong', ...estimate }, NOW))
    return []
  }
  const reservation = reserve({ limits }, { model: 'strong', ...estimate }, NOW)
  for (const limit of limits) expect(limit.settled + limit.reserved).toBeLessThanOrEqual(limit.maxValue)
  return [reservation]
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0)

const refusal = (run: () => unknown): AppError => {
  try {
    run()
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('was admitted')
}

describe('admission', () => {
  test('reserves the estimate, and releases it with the request', () => {
    const limit = aLimit()
    const reservation = reserve({ limits: [limit] }, anEstimate(), NOW)
    expect(limit).toMatchObject({ reserved: 150, settled: 0 })
    expect(reservation.settle(null)).toEqual([])
    expect(limit).toMatchObject({ reserved: 0, settled: 0 })
  })

  test('the last request gets what is left, the next is rejected', () => {
    const limit = aLimit({ maxValue: 200 })
    reserve({ limits: [limit] }, anEstimate(), NOW)
    reserve({ limits: [limit] }, anEstimate(), NOW)
    expect(limit.reserved).toBe(200)
    expect(refusal(() => reserve({ limits: [limit] }, anEstimate(), NOW)).code).toBe('rate_limit_exceeded')
  })

  test('a used-up limit names itself, its reset and the seconds until then', () => {
    const limit = aLimit({ settled: 1000, modelFilter: 'strong' })
    const error = refusal(() => reserve({ limits: [limit] }, anEstimate(), NOW + 500))
    expect(error.status).toBe(429)
    expect(error.message).toBe(
      'API key total_tokens daily limit exceeded for model strong. Usage resets at 2026-01-02T00:00:00.000Z.',
    )
    expect(error.extra.retryAfterSeconds).toBe(86_400)
  })

  test('a limit filled by running requests asks to retry soon', () => {
    const limit = aLimit({ type: 'requests', maxValue: 1 })
    reserve({ limits: [limit] }, anEstimate(), NOW)
    const error = refusal(() => reserve({ limits: [limit] }, anEstimate(), NOW))
    expect(error.extra.retryAfterSeconds).toBe(5)
    expect(error.message).toStartWith('API key requests daily limit exceeded. ')
  })

  test('a rejection by one limit reserves nothing on the others', () => {
    const free = aLimit({ id: 'free' })
    const full = aLimit({ id: 'full', settled: 1000 })
    refusal(() => reserve({ limits: [free, full] }, anEstimate(), NOW))
    expect(free.reserved).toBe(0)
  })

  test('a limit of another model neither rejects nor counts', () => {
    const other = aLimit({ modelFilter: 'fast', settled: 1000 })
    const own = aLimit({ id: 'lim_2', modelFilter: 'strong' })
    reserve({ limits: [other, own] }, anEstimate(), NOW)
    expect([other.reserved, own.reserved]).toEqual([0, 150])
  })

  test('without an applicable limit, all requests share one reservation', () => {
    const first = reserve({ limits: [] }, anEstimate(), NOW)
    expect(reserve({ limits: [aLimit({ modelFilter: 'fast' })] }, anEstimate(), NOW)).toBe(first)
    expect(first.settle({ inputTokens: 1, outputTokens: 1, costMicros: 1 })).toEqual([])
  })

  test.each<[LimitType, number]>([
    ['requests', 1],
    ['total_tokens', 150],
    ['input_tokens', 100],
    ['output_tokens', 50],
    ['cost_usd', 7],
  ])('a %s limit counts its own unit', (type, amount) => {
    const limit = aLimit({ type })
    const reservation = reserve({ limits: [limit] }, anEstimate(), NOW)
    expect(limit.reserved).toBe(amount)
    reservation.settle(anEstimate())
    expect(limit).toMatchObject({ reserved: 0, settled: amount })
  })

  test('a model without a price reserves two dollars per 16,384 tokens and is not charged', () => {
    const limit = aLimit({ type: 'cost_usd', maxValue: 10_000_000 })
    const estimate = anEstimate({ inputTokens: 8192, outputTokens: 8192, costMicros: null })
    const reservation = reserve({ limits: [limit] }, estimate, NOW)
    expect(limit.reserved).toBe(2_000_000)
    expect(reservation.settle(estimate)).toEqual([])
    expect(limit.settled).toBe(0)
  })

  test('an estimate counts bytes as tokens up to 8,192', () => {
    expect(estimateTokens(500)).toEqual({ inputTokens: 500, outputTokens: 2048 })
    expect(estimateTokens(5_000_000)).toEqual({ inputTokens: 8192, outputTokens: 2048 })
  })
})

describe('settlement', () => {
  test('charges the actual use, once', () => {
    const limit = aLimit()
    const reservation = reserve({ limits: [limit] }, anEstimate(), NOW)
    const used = { inputTokens: 300, outputTokens: 20, costMicros: 1 }
    expect(reservation.settle(used)).toEqual([
      { limitId: 'lim_1', keyId: 'key_1', delta: 320, leased: 320, resetAt: limit.resetAt },
    ])
    expect(reservation.settle(used)).toEqual([])
    expect(reservation.settle(null)).toEqual([])
    expect(limit).toMatchObject({ reserved: 0, settled: 320 })
  })

  test('use beyond the estimate counts, and rejects the next request', () => {
    const limit = aLimit()
    reserve({ limits: [limit] }, anEstimate(), NOW).settle({ inputTokens: 5000, outputTokens: 0, costMicros: 0 })
    expect(limit.settled).toBe(5000)
    expect(refusal(() => reserve({ limits: [limit] }, anEstimate(), NOW)).code).toBe('rate_limit_exceeded')
  })
})

describe('windows', () => {
  test('a passed window starts over, by whole periods', () => {
    const limit = aLimit({ settled: 1000 })
    reserve({ limits: [limit] }, anEstimate(), NOW + 3.5 * WINDOW_MS.daily)
    expect(limit).toMatchObject({ settled: 0, reserved: 150, resetAt: NOW + 4 * WINDOW_MS.daily })
  })

  test('at the exact reset the new window applies', () => {
    const limit = aLimit({ settled: 1000 })
    reserve({ limits: [limit] }, anEstimate(), limit.resetAt)
    expect(limit.resetAt).toBe(NOW + 2 * WINDOW_MS.daily)
  })

  test('a window set a year ahead by the clock is replaced by the current one', () => {
    const limit = aLimit({ settled: 1000, resetAt: NOW + 365.25 * WINDOW_MS.daily })
    const running = reserve({ limits: [limit] }, anEstimate(), NOW)
    const resetAt = NOW + 0.25 * WINDOW_MS.daily
    expect(limit).toMatchObject({ settled: 0, reserved: 150, resetAt })
    expect(running.settle(anEstimate())).toMatchObject([{ delta: 150, resetAt }])
  })

  test('setting the clock back a little keeps the window', () => {
    const limit = aLimit({ settled: 1000 })
    expect(refusal(() => reserve({ limits: [limit] }, anEstimate(), NOW - 3_600_000)).code).toBe('rate_limit_exceeded')
    expect(limit.resetAt).toBe(NOW + WINDOW_MS.daily)
  })

  test('a request admitted while the clock was ahead is charged to no window', () => {
    const limit = aLimit()
    const ahead = reserve({ limits: [limit] }, anEstimate(), NOW + 365 * WINDOW_MS.daily)
    reserve({ limits: [limit] }, anEstimate(), NOW)
    expect(ahead.settle(anEstimate())).toEqual([])
    expect(limit).toMatchObject({ settled: 0, reserved: 150, resetAt: NOW + WINDOW_MS.daily })
  })

  test('a request that outlives its window is charged to the window it was admitted in', () => {
    const limit = aLimit()
    const firstEnd = limit.resetAt
    const long = reserve({ limits: [limit] }, anEstimate(), NOW)
    reserve({ limits: [limit] }, anEstimate(), firstEnd + 1)
    expect(long.settle(anEstimate())).toMatchObject([{ delta: 150, resetAt: firstEnd }])
    expect(limit).toMatchObject({ settled: 0, reserved: 150, resetAt: firstEnd + WINDOW_MS.daily })
  })
})

describe('the SQL statement of the ledger', () => {
  const apply = (stored: { current: number; resetAt: number }, delta: number, resetAt: number) => {
    const { sqlite } = testDb()
    sqlite.run(`INSERT INTO api_keys (id, name, key_hash, key_prefix, created_at) VALUES ('key_1', 'k', 'h', 'p', 0)`)
    sqlite.run(
      `INSERT INTO api_key_limits (id, key_id, limit_type, limit_window, max_value, current_value, reset_at)
       VALUES ('lim_1', 'key_1', 'requests', 'daily', 9, ?, ?)`,
      [stored.current, stored.resetAt],
    )
    sqlite.query(deltaStatement).run({ limitId: 'lim_1', delta, leased: 0, resetAt, process: leasePath(0) })
    return sqlite.query('SELECT current_value AS current, reset_at AS resetAt FROM api_key_limits').get()
  }

  test('adds inside the window', () => {
    expect(apply({ current: 5, resetAt: 100 }, 2, 100)).toEqual({ current: 7, resetAt: 100 })
  })

  test('starts over in a later one', () => {
    expect(apply({ current: 5, resetAt: 100 }, 2, 200)).toEqual({ current: 2, resetAt: 200 })
  })

  test('leaves the current window unchanged when a request of an earlier one ends', () => {
    expect(apply({ current: 5, resetAt: 200 }, 2, 100)).toEqual({ current: 5, resetAt: 200 })
  })
})

describe('races', () => {
  const use = fc.record({
    inputTokens: fc.nat(400),
    outputTokens: fc.nat(400),
    costMicros: fc.option(fc.nat(5000), { nil: null }),
  })
  const admit = fc.record({ kind: fc.constant('admit' as const), estimate: use })
  const end = fc.record({ kind: fc.constant('end' as const), pick: fc.nat(), actual: fc.option(use, { nil: null }) })
  const steps = fc.array(fc.oneof({ weight: 3, arbitrary: admit }, { weight: 2, arbitrary: end }), { maxLength: 120 })
  const maxima = fc.tuple(...TYPES.map(() => fc.integer({ min: 1, max: 3000 })))

  test('counters and reservations stay within every limit at each admission, and deltas add up to the use', () => {
    holds(
      fc.property(steps, maxima, (script, max) => {
        const limits = TYPES.map((type, i) => aLimit({ id: type, type, maxValue: max[i] }))
        const { deltas, charged } = play(script, limits)
        for (const limit of limits) {
          const settled = sum(deltas.flatMap(({ limitId, delta }) => (limitId === limit.id ? delta : [])))
          expect(settled).toBe(sum(charged.map(COUNTED[limit.id as Counted]))) // as: the ids are the types
          expect(limit).toMatchObject({ reserved: 0, settled })
        }
        expect(limits[0]!.settled).toBeLessThanOrEqual(limits[0]!.maxValue)
      }),
      300,
    )
  })

  test('fifty requests in parallel through a request limit of seven: exactly seven pass', async () => {
    const limit = aLimit({ type: 'requests', maxValue: 7 })
    const turn = async () => {
      await Promise.resolve()
      const reservation = reserve({ limits: [limit] }, anEstimate(), NOW)
      await Promise.resolve()
      reservation.settle(anEstimate())
    }
    const results = await Promise.allSettled(Array.from({ length: 50 }, turn))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
    expect(limit).toMatchObject({ settled: 7, reserved: 0 })
  })
})
