/** Usage windows: merging two reports, and deciding whether there is room. */
import { describe, expect, test } from 'bun:test'
import { capacityCredits, isExhausted, mergeUsage, usedNow } from '../../src/model/accounts/usage-windows.ts'
import { AT, aSnapshot, aWindow } from './usage.ts'

describe('merging', () => {
  const weekly = aWindow(70, 10_080)

  test('keeps what the later report omits', () => {
    const older = aSnapshot({ weekly, fiveHour: aWindow(5) }, { planType: 'pro' })
    const newer = aSnapshot({ fiveHour: aWindow(9) }, { at: AT + 1 })
    expect(mergeUsage(older, newer)).toEqual(
      aSnapshot({ weekly, fiveHour: aWindow(9) }, { at: AT + 1, planType: 'pro' }),
    )
    expect(mergeUsage(null, newer)).toBe(newer)
  })

  test('uses the second of two reports with the same time', () => {
    expect(mergeUsage(aSnapshot({ weekly }), aSnapshot({ weekly: aWindow(71) })).windows.weekly?.usedPercent).toBe(71)
  })

  test('ignores a late report of earlier numbers', () => {
    const fresh = aSnapshot({ fiveHour: aWindow(9) }, { at: AT + 1 })
    const late = aSnapshot({ fiveHour: aWindow(5), weekly })
    expect(mergeUsage(fresh, late)).toEqual(aSnapshot({ fiveHour: aWindow(9), weekly }, { at: AT + 1 }))
  })

  test('replaces all windows with a poll, and only the named ones with an incidental report', () => {
    const free = aSnapshot({ monthly: aWindow(100, 43_200) }, { additional: [] })
    const polled = mergeUsage(free, aSnapshot({ fiveHour: aWindow(0), weekly }, { at: AT + 1, additional: [] }))
    expect(polled.windows).toEqual({ fiveHour: aWindow(0), weekly, monthly: null })
    const passing = mergeUsage(polled, aSnapshot({ fiveHour: aWindow(2) }, { at: AT + 2 }))
    expect(passing.windows).toEqual({ fiveHour: aWindow(2), weekly, monthly: null })
    expect(mergeUsage(passing, free).windows).toEqual(passing.windows)
    const weeklyOnly = mergeUsage(passing, aSnapshot({ weekly: aWindow(71, 10_080) }, { at: AT + 3 }))
    expect(weeklyOnly.windows).toEqual({ fiveHour: aWindow(2), weekly: aWindow(71, 10_080), monthly: null })
  })

  test('keeps the current windows if a poll names none', () => {
    const known = aSnapshot({ monthly: aWindow(100, 43_200) })
    const silent = aSnapshot({}, { at: AT + 1, additional: [] })
    expect(mergeUsage(known, silent).windows).toEqual(known.windows)
  })
})

test('quotas that a later report does not mention stay, and are removed when it says there are none', () => {
  const spark = { limitName: 'spark', meteredFeature: null, primary: aWindow(5), secondary: null }
  const full = aSnapshot({}, { additional: [spark] })
  expect(mergeUsage(full, aSnapshot({ fiveHour: aWindow(1) }, { at: AT + 1 })).additional).toEqual([spark])
  expect(mergeUsage(full, aSnapshot({}, { at: AT + 1, additional: [] })).additional).toEqual([])
  expect(mergeUsage(aSnapshot({}), aSnapshot({}, { at: AT + 1 }))).not.toHaveProperty('additional')
})

describe('exhaustion', () => {
  test('is a full window, until the last full one resets', () => {
    const snapshot = aSnapshot({ fiveHour: aWindow(100), weekly: aWindow(100, 10_080, AT + 500_000) })
    expect(isExhausted(snapshot, AT)).toEqual({ exhausted: true, resetAt: AT + 500_000 })
    expect(isExhausted(snapshot, AT + 500_000)).toEqual({ exhausted: false, resetAt: null })
    expect(isExhausted(null, AT).exhausted).toBe(false)
    expect(isExhausted(aSnapshot({ fiveHour: aWindow(99.9) }), AT).exhausted).toBe(false)
  })

  test('of a long window is lifted by credits, of the five-hour window it is not', () => {
    const none = { hasCredits: false, unlimited: false, balance: 0 }
    for (const some of [{ balance: 3 }, { hasCredits: true }, { unlimited: true, balance: null }]) {
      const credits = { ...none, ...some }
      expect(isExhausted(aSnapshot({ weekly: aWindow(100, 10_080) }, { credits }), AT).exhausted).toBe(false)
      expect(isExhausted(aSnapshot({ fiveHour: aWindow(100) }, { credits }), AT).exhausted).toBe(true)
    }
    expect(isExhausted(aSnapshot({ weekly: aWindow(100, 10_080) }, { credits: none }), AT).exhausted).toBe(true)
  })

  test('current use is zero once the reset has passed, and unknown without a window', () => {
    expect(usedNow(aWindow(80), AT)).toBe(80)
    expect(usedNow(aWindow(80), AT + 60_000)).toBe(0)
    expect(usedNow(aWindow(80, 300, null), AT + 60_000)).toBe(80)
    expect(usedNow(null, AT)).toBeNull()
  })
})

test.each([
  ['plus', 225, 7_560, 0],
  ['Pro', 1_500, 50_400, 0],
  ['prolite', 1_125, 37_800, 0],
  ['k12', 225, 7_560, 0],
  ['team', 225, 7_560, 0],
  ['business', 225, 7_560, 0],
  ['edu', 225, 7_560, 0],
  ['education', 225, 7_560, 0],
  ['enterprise', 1_500, 50_400, 0],
  ['guest', 0, 1_134, 1_134],
  ['something new', 0, 1_134, 1_134],
  [null, 0, 1_134, 1_134],
] as const)('the plan %p has %p, %p and %p credits', (plan, fiveHour, weekly, monthly) => {
  expect(capacityCredits(plan, 'fiveHour')).toBe(fiveHour)
  expect(capacityCredits(plan, 'weekly')).toBe(weekly)
  expect(capacityCredits(plan, 'monthly')).toBe(monthly)
})
