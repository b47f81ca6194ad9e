/** Reading the upstream's usage reports, and telling whether there is room. */
import { describe, expect, test } from 'bun:test'
import {
  capacityCredits,
  fromRateEvent,
  fromRateHeaders,
  fromWhamUsage,
  isExhausted,
  mergeUsage,
  type UsageSnapshot,
  type UsageWindow,
  usedNow,
} from '../../src/model/usage-windows.ts'

const AT = Date.UTC(2026, 10, 20, 12)
const seconds = (ms: number) => ms / 1000
const aWindow = (usedPercent: number, windowMinutes = 300, resetAt: number | null = AT + 60_000): UsageWindow => ({
  usedPercent,
  windowMinutes,
  resetAt,
})
const aSnapshot = (windows: Partial<UsageSnapshot['windows']>, rest: Partial<UsageSnapshot> = {}): UsageSnapshot => ({
  at: AT,
  windows: { fiveHour: null, weekly: null, monthly: null, ...windows },
  credits: null,
  planType: null,
  ...rest,
})

describe('the usage endpoint', () => {
  const body = (primary: unknown, secondary: unknown = null) => ({
    plan_type: 'team',
    promo: null,
    rate_limit: { allowed: true, primary_window: primary, secondary_window: secondary },
    credits: { has_credits: false, unlimited: false, balance: '0', approx_local_messages: [0, 0] },
  })

  test('is read with unknown fields ignored', () => {
    const snapshot = fromWhamUsage(
      body(
        { used_percent: 3, limit_window_seconds: 18_000, reset_after_seconds: 9000, reset_at: seconds(AT) + 9000 },
        { used_percent: 80, limit_window_seconds: 604_800, reset_at: seconds(AT) + 400_000 },
      ),
      AT,
    )
    expect(snapshot).toEqual({
      at: AT,
      windows: {
        fiveHour: { usedPercent: 3, windowMinutes: 300, resetAt: AT + 9_000_000 },
        weekly: { usedPercent: 80, windowMinutes: 10_080, resetAt: AT + 400_000_000 },
        monthly: null,
      },
      credits: { hasCredits: false, unlimited: false, balance: 0 },
      planType: 'team',
    })
  })

  test('a weekly or monthly window in the first slot is filed by its length', () => {
    const weekly = fromWhamUsage(body({ used_percent: 40, limit_window_seconds: 604_800 }), AT)
    expect(weekly?.windows).toMatchObject({ fiveHour: null, weekly: { usedPercent: 40 } })
    const monthly = fromWhamUsage(body({ used_percent: 41, limit_window_seconds: 2_592_000 }), AT)
    expect(monthly?.windows).toMatchObject({ fiveHour: null, weekly: null, monthly: { usedPercent: 41 } })
  })

  test('a window without a length is at least as long as its reset is far', () => {
    const snapshot = fromWhamUsage(body({ used_percent: 40, reset_after_seconds: 5 * 86_400 }), AT)
    expect(snapshot?.windows).toMatchObject({ fiveHour: null, weekly: { windowMinutes: 10_080 } })
  })

  test.each([
    [-5, 0],
    [140, 100],
    ['12.5', 12.5],
  ])('used percent %p is read as %p', (given, read) => {
    const snapshot = fromWhamUsage(body({ used_percent: given, limit_window_seconds: 18_000 }), AT)
    expect(snapshot?.windows.fiveHour?.usedPercent).toBe(read)
  })

  test.each([[Number.NaN], [Number.POSITIVE_INFINITY], ['much'], [null], [undefined], [true], [{}]])(
    'a window with %p percent used is not believed',
    (given) => {
      const snapshot = fromWhamUsage(body({ used_percent: given, limit_window_seconds: 18_000 }), AT)
      expect(snapshot?.windows.fiveHour).toBeNull()
    },
  )

  test('an impossible reset is unknown, the window stays', () => {
    const snapshot = fromWhamUsage(body({ used_percent: 50, limit_window_seconds: 18_000, reset_at: AT }), AT)
    expect(snapshot?.windows.fiveHour).toEqual({ usedPercent: 50, windowMinutes: 300, resetAt: null })
  })

  test.each([[null], ['text'], [{}], [[]], [{ rate_limit: null }]])('%p says nothing', (payload) => {
    expect(fromWhamUsage(payload, AT)).toBeNull()
  })

  test('a body with nothing but a plan is still read', () => {
    expect(fromWhamUsage({ plan_type: 'free', rate_limit: null }, AT)).toEqual(aSnapshot({}, { planType: 'free' }))
  })
})

describe('rate headers', () => {
  test('are read with their credits', () => {
    const headers = new Headers({
      'x-codex-primary-used-percent': '12',
      'x-codex-primary-window-minutes': '300',
      'x-codex-primary-reset-at': String(seconds(AT) + 60),
      'x-codex-secondary-used-percent': '30.5',
      'x-codex-secondary-window-minutes': '10080',
      'x-codex-secondary-reset-after-seconds': '400000',
      'x-codex-credits-has-credits': 'True',
      'x-codex-credits-unlimited': '0',
      'x-codex-credits-balance': '7.5',
      'x-codex-plan-type': 'plus',
    })
    expect(fromRateHeaders(headers, AT)).toEqual({
      at: AT,
      windows: {
        fiveHour: { usedPercent: 12, windowMinutes: 300, resetAt: AT + 60_000 },
        weekly: { usedPercent: 30.5, windowMinutes: 10_080, resetAt: AT + 400_000_000 },
        monthly: null,
      },
      credits: { hasCredits: true, unlimited: false, balance: 7.5 },
      planType: 'plus',
    })
  })

  test('absent or all zero, they say nothing', () => {
    expect(fromRateHeaders(new Headers(), AT)).toBeNull()
    expect(fromRateHeaders(new Headers({ 'x-codex-primary-used-percent': '0' }), AT)).toBeNull()
  })
})

describe('rate events', () => {
  const event = (extra: object) => ({
    type: 'codex.rate_limits',
    rate_limits: { primary: { used_percent: 10, window_minutes: 300, resets_at: seconds(AT) + 5 }, secondary: null },
    ...extra,
  })

  test('of the account itself are read', () => {
    expect(fromRateEvent(event({}), AT)?.windows.fiveHour).toEqual(aWindow(10, 300, AT + 5000))
    expect(fromRateEvent(event({ limit_id: 'codex', limit_name: null }), AT)).not.toBeNull()
  })

  test.each([[{ limit_id: 'codex_spark' }], [{ limit_name: 'other' }], [{ type: 'response.created' }]])(
    'with %p are not about the account',
    (extra) => expect(fromRateEvent(event(extra), AT)).toBeNull(),
  )
})

describe('merging', () => {
  const weekly = aWindow(70, 10_080)

  test('keeps what the later report leaves out', () => {
    const older = aSnapshot({ weekly, fiveHour: aWindow(5) }, { planType: 'pro' })
    const newer = aSnapshot({ fiveHour: aWindow(9) }, { at: AT + 1 })
    expect(mergeUsage(older, newer)).toEqual(
      aSnapshot({ weekly, fiveHour: aWindow(9) }, { at: AT + 1, planType: 'pro' }),
    )
    expect(mergeUsage(null, newer)).toBe(newer)
  })

  test('does not let a late report of earlier numbers win', () => {
    const fresh = aSnapshot({ fiveHour: aWindow(9) }, { at: AT + 1 })
    const late = aSnapshot({ fiveHour: aWindow(5), weekly })
    expect(mergeUsage(fresh, late)).toEqual(aSnapshot({ fiveHour: aWindow(9), weekly }, { at: AT + 1 }))
  })
})

describe('exhaustion', () => {
  test('is a full window, until the last full one resets', () => {
    const snapshot = aSnapshot({ fiveHour: aWindow(100), weekly: aWindow(100, 10_080, AT + 500_000) })
    expect(isExhausted(snapshot, AT)).toEqual({ exhausted: true, resetAt: AT + 500_000 })
    expect(isExhausted(snapshot, AT + 500_000)).toEqual({ exhausted: false, resetAt: null })
    expect(isExhausted(null, AT).exhausted).toBe(false)
  })

  test('of a long window is lifted by credits, of the five hours it is not', () => {
    const credits = { hasCredits: false, unlimited: false, balance: 3 }
    expect(isExhausted(aSnapshot({ weekly: aWindow(100, 10_080) }, { credits }), AT).exhausted).toBe(false)
    expect(isExhausted(aSnapshot({ fiveHour: aWindow(100) }, { credits }), AT).exhausted).toBe(true)
    const none = { hasCredits: false, unlimited: false, balance: 0 }
    expect(isExhausted(aSnapshot({ weekly: aWindow(100, 10_080) }, { credits: none }), AT).exhausted).toBe(true)
  })

  test('used now is nothing once the reset has passed, and unknown without a window', () => {
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
  ['enterprise', 1_500, 50_400, 0],
  ['guest', 0, 1_134, 1_134],
  ['something new', 0, 1_134, 1_134],
  [null, 0, 1_134, 1_134],
] as const)('the plan %p holds %p, %p and %p credits', (plan, fiveHour, weekly, monthly) => {
  expect(capacityCredits(plan, 'fiveHour')).toBe(fiveHour)
  expect(capacityCredits(plan, 'weekly')).toBe(weekly)
  expect(capacityCredits(plan, 'monthly')).toBe(monthly)
})
