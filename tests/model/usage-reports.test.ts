/** Reading the upstream's usage reports, in each of their forms. */
import { describe, expect, test } from 'bun:test'
import { fromRateEvent, fromRateHeaders, fromWhamUsage } from '../../src/model/accounts/usage-reports.ts'
import { AT, aSnapshot, aWindow } from './usage.ts'

const seconds = (ms: number) => ms / 1000

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
      additional: [],
      limit: null,
    })
  })

  test('a weekly or monthly window in the first slot is assigned by its length', () => {
    const slot = { used_percent: 7, limit_window_seconds: 2_592_000 }
    expect(fromWhamUsage({ rate_limit: { monthly_window: slot } }, AT)?.windows.monthly).toMatchObject({
      usedPercent: 7,
    })
    const weekly = fromWhamUsage(body({ used_percent: 40, limit_window_seconds: 604_800 }), AT)
    expect(weekly?.windows).toMatchObject({ fiveHour: null, weekly: { usedPercent: 40 } })
    const monthly = fromWhamUsage(body({ used_percent: 41, limit_window_seconds: 2_592_000 }), AT)
    expect(monthly?.windows).toMatchObject({ fiveHour: null, weekly: null, monthly: { usedPercent: 41 } })
    const headers = { 'x-codex-primary-used-percent': '42', 'x-codex-primary-window-minutes': '10080' }
    expect(fromRateHeaders(new Headers(headers), AT)?.windows).toMatchObject({ fiveHour: null, weekly: {} })
    const event = { type: 'codex.rate_limits', rate_limits: { primary: { used_percent: 43, window_minutes: 10_080 } } }
    expect(fromRateEvent(event, AT)?.windows).toMatchObject({ fiveHour: null, weekly: {} })
  })

  test.each([[2], [1]])('the later-resetting of two windows with the same length is used (%p)', (first) => {
    const window = (days: number) => ({
      used_percent: days,
      limit_window_seconds: 2_592_000,
      reset_at: seconds(AT) + days * 86_400,
    })
    const limit = { secondary_window: window(first), monthly_window: window(3 - first) }
    expect(fromWhamUsage({ rate_limit: limit }, AT)?.windows.monthly).toMatchObject({ usedPercent: 2 })
  })

  test('a window without a length is at least as long as the time to its reset', () => {
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
    'a window with %p percent used is rejected',
    (given) => {
      const snapshot = fromWhamUsage(body({ used_percent: given, limit_window_seconds: 18_000 }), AT)
      expect(snapshot?.windows.fiveHour).toBeNull()
    },
  )

  test.each([
    ['in milliseconds', { reset_at: AT }],
    ['after too long', { reset_after_seconds: AT }],
    ['none', { reset_at: 0, reset_after_seconds: 0 }],
  ])('an impossible reset is unknown, the window stays: %s', (_, reset) => {
    const snapshot = fromWhamUsage(body({ used_percent: 50, limit_window_seconds: 18_000, ...reset }), AT)
    expect(snapshot?.windows.fiveHour).toEqual({ usedPercent: 50, windowMinutes: 300, resetAt: null })
  })

  test.each([[null], ['text'], [{}], [[]], [{ rate_limit: null }]])('%p gives nothing', (payload) => {
    expect(fromWhamUsage(payload, AT)).toBeNull()
  })

  test('the valid parts of a partly invalid body are read', () => {
    const wrong = { rate_limit: { primary_window: 'x', secondary_window: { used_percent: 1 } }, credits: 'x' }
    expect(fromWhamUsage({ ...wrong, plan_type: 5 }, AT)).toMatchObject({
      windows: { fiveHour: null, weekly: { usedPercent: 1 } },
      credits: null,
      planType: null,
    })
    expect(fromWhamUsage({ rate_limit: 'x', credits: { balance: '3' } }, AT)).toMatchObject({
      credits: { hasCredits: false, unlimited: false, balance: 3 },
    })
  })

  test('a body with only a plan is still read', () => {
    expect(fromWhamUsage({ plan_type: 'free', rate_limit: null }, AT)).toEqual(
      aSnapshot({}, { planType: 'free', additional: [] }),
    )
  })
})

describe('a limit that a report names', () => {
  const T = seconds(AT) + 3600
  const spend = (more: object = {}) => ({ reached: true, individual_limit: { limit: '100.00', reset_at: T, ...more } })
  const full = { used_percent: 100, limit_window_seconds: 604_800, reset_at: T }

  test.each([
    [
      'a spend cap without windows',
      { plan_type: 'business', rate_limit: null, spend_control: spend() },
      'spend_cap_reached',
      T,
    ],
    ['a spend cap and nothing else', { spend_control: { reached: true } }, 'spend_cap_reached', null],
    [
      'a spend cap by its type',
      { plan_type: 'team', rate_limit_reached_type: { type: 'workspace_member_usage_limit_reached' } },
      'spend_cap_reached',
      null,
    ],
    ['used-up credits', { rate_limit_reached_type: 'workspace_owner_credits_depleted' }, 'credits_depleted', null],
    ['a reached limit without a full window', { rate_limit: { limit_reached: true } }, 'limit_reached', null],
    [
      'a reached limit and its window',
      { rate_limit: { limit_reached: true, primary_window: full } },
      'limit_reached',
      T,
    ],
    ['a reached limit by an unknown type', { rate_limit_reached_type: 'promo_over' }, 'limit_reached', null],
    ['no permission', { rate_limit: { allowed: false, limit_reached: false } }, 'not_allowed', null],
    ['an end after too long', { spend_control: spend({ reset_at: AT }) }, 'spend_cap_reached', null],
  ])('%s', (_, body, kind, resetAt) => {
    expect(fromWhamUsage(body, AT)?.limit).toMatchObject({ kind, resetAt: resetAt && resetAt * 1000 })
  })

  test.each([
    [
      'explicitly no limit',
      { rate_limit: { allowed: true, limit_reached: false }, spend_control: { reached: false } },
      null,
    ],
    ['explicitly no spend cap', { plan_type: 'business', rate_limit: null, spend_control: { reached: false } }, null],
    ['not mentioned', { plan_type: 'plus', rate_limit: null }, undefined],
    ['unreadable', { plan_type: 'plus', spend_control: 'x', rate_limit_reached_type: 7 }, undefined],
  ])('is %s', (_, body, limit) => {
    expect(fromWhamUsage(body, AT)?.limit).toBe(limit as null)
  })

  test.each([
    ['in the limits', { rate_limits: { limit_reached: true } }, 'limit_reached'],
    ['in the limits, as a permission', { rate_limits: { allowed: false } }, 'not_allowed'],
    ['beside the limits', { rate_limits: null, spend_control: spend() }, 'spend_cap_reached'],
    ['by its type', { rate_limit_reached_type: 'workspace_member_credits_depleted' }, 'credits_depleted'],
    ['by its type in the limits', { rate_limits: { rate_limit_reached_type: 'rate_limit_reached' } }, 'limit_reached'],
  ])('is read from the event of a stream, %s', (_, event, kind) => {
    expect(fromRateEvent({ type: 'codex.rate_limits', ...event }, AT)?.limit).toMatchObject({ kind })
  })

  test('is read from a header, unless that is about another limit', () => {
    const headers = { 'x-codex-rate-limit-reached-type': 'workspace_member_usage_limit_reached' }
    expect(fromRateHeaders(new Headers(headers), AT)?.limit).toMatchObject({ kind: 'spend_cap_reached' })
    const other = {
      ...headers,
      'x-codex-active-limit': 'codex_bengalfox',
      'x-codex-bengalfox-primary-used-percent': '100',
    }
    expect(fromRateHeaders(new Headers(other), AT)).toBeNull()
  })
})

describe('additional quotas', () => {
  const report = (additional: unknown) => ({ plan_type: 'pro', additional_rate_limits: additional })
  const named = (name: unknown, more: object = {}) => ({ limit_name: name, metered_feature: null, ...more })

  test('are read with their windows, in the slots they came in', () => {
    const spark = named('GPT-5.3-Codex-Spark', {
      metered_feature: 'codex_bengalfox',
      rate_limit: {
        allowed: true,
        primary_window: { used_percent: 12, limit_window_seconds: 18_000, reset_at: seconds(AT) + 60 },
        secondary_window: { used_percent: 0, limit_window_seconds: 0, reset_at: 0 },
      },
    })
    expect(fromWhamUsage(report([spark]), AT)?.additional).toEqual([
      {
        limitName: 'GPT-5.3-Codex-Spark',
        meteredFeature: 'codex_bengalfox',
        primary: { usedPercent: 12, windowMinutes: 300, resetAt: AT + 60_000 },
        secondary: null,
      },
    ])
  })

  test.each([
    ['none', undefined, []],
    ['null', null, []],
    ['no list', { a: 1 }, []],
    ['some without a name', [named(''), named(5), null, 'x', named('x'.repeat(129)), named('good')], ['good']],
    ['an unreadable limit', [named('good', { rate_limit: 'x', metered_feature: 7 })], ['good']],
    ['more than any account has', Array.from({ length: 99 }, (_, n) => named(`n${n}`)), 16],
  ])('if there are %s', (_, given, names) => {
    const read = fromWhamUsage(report(given), AT)?.additional ?? []
    if (typeof names === 'number') expect(read).toHaveLength(names)
    else expect(read.map(({ limitName }) => limitName)).toEqual(names)
  })

  test('are not mentioned by headers and events', () => {
    const headers = fromRateHeaders(new Headers({ 'x-codex-primary-used-percent': '5' }), AT)
    expect(headers).not.toHaveProperty('additional')
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
      'x-codex-credits-unlimited': '1',
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
      credits: { hasCredits: true, unlimited: true, balance: 7.5 },
      planType: 'plus',
    })
  })

  test('are empty when absent or all zero', () => {
    expect(fromRateHeaders(new Headers(), AT)).toBeNull()
    const zeroes = { 'x-codex-secondary-used-percent': '0', 'x-codex-secondary-window-minutes': '0' }
    expect(fromRateHeaders(new Headers(zeroes), AT)).toBeNull()
  })

  test.each([['0'], ['']])('a length of "%s" is that of the slot', (minutes) => {
    const headers = { 'x-codex-primary-used-percent': '40', 'x-codex-primary-window-minutes': minutes }
    expect(fromRateHeaders(new Headers(headers), AT)?.windows.fiveHour).toEqual(aWindow(40, 300, null))
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
    const own = { limit_id: 'Codex', limit_name: null, plan_type: 'plus', credits: { unlimited: true } }
    expect(fromRateEvent(event(own), AT)).toMatchObject({
      credits: { hasCredits: false, unlimited: true, balance: null },
      planType: 'plus',
    })
  })

  test.each([
    [{ limit_id: 'codex_spark' }],
    [{ limit_name: 'other' }],
    [{ metered_limit_name: 'other' }],
    [{ type: 'response.created' }],
  ])('with %p are not about the account', (extra) => expect(fromRateEvent(event(extra), AT)).toBeNull())
})
