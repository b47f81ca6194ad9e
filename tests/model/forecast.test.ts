/** When a pool is used up at the pace so far. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { forecast, type Share } from '../../src/model/overview/pool-meters.ts'

const NOW = Date.UTC(2026, 0, 1, 12)
const HOUR = 3_600_000
const share = (over: Partial<Share> = {}): Share => ({
  capacity: 100,
  used: 50,
  resetAt: NOW + 2.5 * HOUR,
  windowMs: 5 * HOUR,
  ...over,
})

test('half used at half time lasts exactly until the reset, with the tick in the middle', () => {
  expect(forecast([share()], NOW)).toEqual({ pacePercent: 50, usedUpAt: null })
})

test('use ahead of time runs out before the reset', () => {
  const { usedUpAt } = forecast([share({ used: 75 })], NOW)
  expect(((usedUpAt ?? 0) - NOW) / HOUR).toBeCloseTo(25 / 30, 5)
})

test('accounts that reset in time cover the others', () => {
  const soon = share({ used: 90, resetAt: NOW + 0.5 * HOUR })
  const late = share({ used: 60, resetAt: NOW + 4 * HOUR })
  const alone = forecast([late], NOW).usedUpAt ?? 0
  const together = forecast([soon, late], NOW).usedUpAt ?? Number.POSITIVE_INFINITY
  expect(alone).toBeLessThan(NOW + 4 * HOUR)
  expect(together).toBeGreaterThan(alone)
})

test('an account that resets gives back its use by then, and the rest continues at the same pace', () => {
  // 10 and 60 an hour: 95 − 35 remain at the reset, which gives back 45 + 17.5, and 122.5 last for 1.75 hours.
  const soon = share({ used: 45, resetAt: NOW + 0.5 * HOUR })
  const late = share({ used: 60, resetAt: NOW + 4 * HOUR })
  const { pacePercent, usedUpAt } = forecast([late, soon], NOW)
  expect(usedUpAt).toBe(NOW + 2.25 * HOUR)
  expect(pacePercent).toBeCloseTo(55, 10)
})

test('no remaining quota is used up now, unused quota lasts, and without a reset there is no forecast', () => {
  expect(forecast([share({ used: 100 })], NOW).usedUpAt).toBe(NOW)
  expect(forecast([share({ used: 0 })], NOW).usedUpAt).toBeNull()
  expect(forecast([share({ resetAt: null })], NOW)).toEqual({ pacePercent: null, usedUpAt: null })
  expect(forecast([], NOW)).toEqual({ pacePercent: null, usedUpAt: null })
})

test('a window that began a minute ago gives no alarming forecast', () => {
  const fresh = share({ used: 2, resetAt: NOW + 5 * HOUR - 60_000 })
  expect((forecast([fresh], NOW).usedUpAt ?? Number.POSITIVE_INFINITY) - NOW).toBeGreaterThan(5 * HOUR)
})

test('for any report, a forecast is in the future and a pace within the window', () => {
  const shares = fc.array(
    fc.record({
      capacity: fc.double({ min: 0, max: 50_000, noNaN: true }),
      used: fc.double({ min: 0, max: 50_000, noNaN: true }),
      resetAt: fc.option(fc.integer({ min: NOW - HOUR, max: NOW + 200 * HOUR })),
      windowMs: fc.integer({ min: 0, max: 168 * HOUR }),
    }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(shares, (some) => {
      const { pacePercent, usedUpAt } = forecast(
        some.map((one) => ({ ...one, used: Math.min(one.used, one.capacity) })),
        NOW,
      )
      expect(usedUpAt ?? NOW).toBeGreaterThanOrEqual(NOW)
      expect(pacePercent ?? 0).toBeWithin(0, 100.0001)
    }),
    { numRuns: 200 },
  )
})
