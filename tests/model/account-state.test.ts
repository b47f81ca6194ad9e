/** Every unavailable account has a reason and a way back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ACCOUNT_STATUSES } from '../../db/schema/accounts.ts'
import {
  ACTIVE,
  type AccountEvent,
  type AccountState,
  CHECK_INTERVAL_MS,
  isBlocked,
  nextState,
  PERMANENT_AUTH_CODES,
} from '../../src/model/accounts/account-state.ts'
import { REPORTED_LIMITS, type UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import { holds } from '../support/property.ts'

const AT = Date.UTC(2026, 10, 20, 12)
const MINUTE = 60_000

const usage = (usedPercent: number, at: number, resetAt: number | null = at + 5 * MINUTE): UsageSnapshot => ({
  at,
  windows: {
    fiveHour: { usedPercent, windowMinutes: 300, resetAt },
    weekly: { usedPercent: 10, windowMinutes: 10_080, resetAt: at + 5 * 86_400_000 },
    monthly: null,
  },
  credits: null,
  planType: 'plus',
})
const limited = (at: number, resetAt: number | null = null, retryAfterMs: number | null = null): AccountEvent => ({
  kind: 'rate_limited',
  at,
  evidence: '429 usage_limit_reached',
  resetAt,
  retryAfterMs,
})
const run = (events: AccountEvent[], from: AccountState = ACTIVE) => events.reduce(nextState, from)

describe('a block', () => {
  test('ends at the reset the upstream named, and not before', () => {
    const blocked = run([limited(AT, AT + 10 * MINUTE)])
    expect(blocked).toEqual({
      status: 'rate_limited',
      cause: 'usage_limit_reached',
      evidence: '429 usage_limit_reached',
      since: AT,
      until: AT + 10 * MINUTE,
      nextCheckAt: null,
      attempts: 0,
    })
    expect(nextState(blocked, { kind: 'tick', at: AT + 10 * MINUTE - 1 })).toBe(blocked)
    expect(nextState(blocked, { kind: 'tick', at: AT + 10 * MINUTE })).toEqual(ACTIVE)
  })

  test.each([
    ['past', AT - 1],
    ['not a number', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['367 days ahead', AT + 367 * 86_400_000],
  ])('with a reset that is %s falls back to the retry hint, then to checks', (_, resetAt) => {
    expect(run([limited(AT, resetAt, 1500)])).toMatchObject({
      until: AT + 1500,
      nextCheckAt: null,
      cause: 'rate_limited',
    })
    expect(run([limited(AT, resetAt)])).toMatchObject({ until: null, nextCheckAt: AT + CHECK_INTERVAL_MS })
  })

  test('that should end immediately is checked after a second, then after 2, 4 …', () => {
    let state = ACTIVE
    let at = AT
    for (const seconds of [1, 2, 4, 8]) {
      state = nextState(state, limited(at, null, 0))
      expect(state).toMatchObject({ until: null, nextCheckAt: at + seconds * 1000 })
      at += seconds * 1000
    }
    expect(nextState(state, { kind: 'tick', at }).status).toBe('active')
  })

  test('that began while the clock was ahead ends at a check, and at its reset if the clock was only corrected', () => {
    const blocked = run([limited(AT, null, 20_000)])
    const setBack = AT - 5 * 60 * MINUTE
    const doubted = nextState(blocked, { kind: 'tick', at: setBack })
    expect(doubted).toMatchObject({ until: null, nextCheckAt: setBack + CHECK_INTERVAL_MS })
    expect(nextState(doubted, { kind: 'tick', at: setBack + CHECK_INTERVAL_MS }).status).toBe('active')
    expect(nextState(blocked, { kind: 'tick', at: AT - 500 })).toBe(blocked)
  })

  test('without a known end is tried again after 1, 2, 4 … at most 30 minutes', () => {
    let state = ACTIVE
    let at = AT
    const waits: number[] = []
    for (let round = 0; round < 8; round++) {
      state = nextState(state, limited(at))
      const due = state.nextCheckAt ?? 0
      waits.push((due - at) / MINUTE)
      at = due
      state = nextState(state, { kind: 'tick', at })
      expect(state.status).toBe('active')
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30])
    expect(nextState(state, { kind: 'succeeded', at })).toEqual(ACTIVE)
  })

  test('is not shortened or counted twice by requests that were in flight', () => {
    const blocked = run([limited(AT, AT + 10 * MINUTE)])
    expect(run([limited(AT + 5), limited(AT + 6, null, 1000)], blocked)).toBe(blocked)
    expect(run([{ ...limited(AT + 7, AT + 10 * MINUTE), cause: 'another' } as AccountEvent], blocked)).toBe(blocked)
    expect(run([limited(AT + 7, AT + 20 * MINUTE)], blocked)).toMatchObject({ since: AT, until: AT + 20 * MINUTE })
    const unknown = run([limited(AT)])
    expect(run([limited(AT + 5)], unknown)).toBe(unknown)
    expect(run([{ kind: 'succeeded', at: AT + 5 }], unknown)).toBe(unknown)
  })

  test('that is over is not extended, even if no timer has ended it yet', () => {
    const over = run([limited(AT, AT + MINUTE)])
    const [later, next] = [AT + MINUTE + 1, AT + 5 * MINUTE]
    expect(run([limited(later, next)], over)).toEqual(run([limited(later, next)]))
    expect(run([limited(later)], over)).toEqual(run([limited(later)]))
    const second = run([limited(later)], run([limited(AT)]))
    expect(second).toMatchObject({ since: later, nextCheckAt: later + 2 * MINUTE, attempts: 2 })
  })

  test('lasts at most as long as an accepted reset, which is 366 days', () => {
    const until = AT + 366 * 86_400_000
    expect(run([limited(AT, until)])).toMatchObject({ until })
  })

  test('of another kind begins when it was seen', () => {
    const longer = { ...limited(AT + 5, AT + 20 * MINUTE), kind: 'quota_exceeded' } as AccountEvent
    expect(run([limited(AT, AT + MINUTE), longer])).toMatchObject({ status: 'quota_exceeded', since: AT + 5 })
  })

  test('restarts its checks after a served request', () => {
    const served = run([limited(AT), { kind: 'tick', at: AT + MINUTE }, { kind: 'succeeded', at: AT + MINUTE }])
    expect(run([limited(AT + 2 * MINUTE)], served)).toMatchObject({ nextCheckAt: AT + 3 * MINUTE, attempts: 1 })
  })

  test('ends with later usage that has room, and not otherwise', () => {
    const blocked = run([{ ...limited(AT, AT + 3 * 86_400_000), kind: 'quota_exceeded' } as AccountEvent])
    expect(run([{ kind: 'usage', at: AT + 2, snapshot: usage(20, AT) }], blocked)).toBe(blocked)
    expect(run([{ kind: 'usage', at: AT + 2, snapshot: usage(20, AT + 1) }], blocked)).toEqual(ACTIVE)
    const empty = { ...usage(0, AT + 1), windows: { fiveHour: null, weekly: null, monthly: null } }
    expect(run([{ kind: 'usage', at: AT + 2, snapshot: empty }], blocked)).toBe(blocked)
  })

  test.each(['fiveHour', 'weekly', 'monthly'] as const)(
    'ends with room in a plan that has only a %s window',
    (name) => {
      const window = { usedPercent: 20, windowMinutes: 300, resetAt: null }
      const snapshot = { ...usage(0, AT + 1), windows: { fiveHour: null, weekly: null, monthly: null, [name]: window } }
      expect(run([limited(AT), { kind: 'usage', at: AT + 2, snapshot }])).toEqual(ACTIVE)
    },
  )

  test('takes its end from usage that is still full', () => {
    const blocked = run([limited(AT)])
    const full = run([{ kind: 'usage', at: AT + 1, snapshot: usage(100, AT + 1, AT + 7 * MINUTE) }], blocked)
    expect(full).toMatchObject({ status: 'rate_limited', until: AT + 7 * MINUTE, nextCheckAt: null, since: AT })
    expect(run([{ kind: 'usage', at: AT + 2, snapshot: usage(100, AT + 2, null) }], full)).toBe(full)
  })

  test('ends with a successful probe; a failed one extends it', () => {
    const blocked = run([limited(AT)])
    expect(run([{ kind: 'checked', at: AT + 1, ok: true }], blocked)).toEqual(ACTIVE)
    expect(run([{ kind: 'checked', at: AT + 1, ok: false }], blocked)).toMatchObject({
      nextCheckAt: AT + 1 + 2 * MINUTE,
      attempts: 2,
    })
  })

  test('never results from usage numbers alone', () => {
    expect(run([{ kind: 'usage', at: AT, snapshot: usage(100, AT) }])).toBe(ACTIVE)
  })
})

describe('a limit of a usage report', () => {
  const report = (at: number, limit: UsageSnapshot['limit'], more: Partial<UsageSnapshot> = {}): AccountEvent => ({
    kind: 'usage',
    at,
    snapshot: { ...usage(20, at), additional: [], limit, ...more },
  })
  const cap = (resetAt: number | null = null) => ({ kind: 'spend_cap_reached' as const, type: null, resetAt })
  const passing = (at: number, limit?: null): AccountEvent => ({
    kind: 'usage',
    at,
    snapshot: { ...usage(20, at), ...(limit === null && { limit }) },
  })

  test('makes the account unavailable until its end', () => {
    const held = run([report(AT, cap(AT + 9 * MINUTE))])
    expect(held).toMatchObject({
      status: 'quota_exceeded',
      cause: 'spend_cap_reached',
      until: AT + 9 * MINUTE,
      since: AT,
    })
    expect(held.evidence).toStartWith('Spend cap reached')
    expect(run([{ kind: 'tick', at: AT + 9 * MINUTE - 1 }], held)).toBe(held)
    expect(run([{ kind: 'tick', at: AT + 9 * MINUTE }], held).status).toBe('active')
  })

  test.each(['limit_reached', 'not_allowed', 'credits_depleted'] as const)('is named %s when it is that', (kind) => {
    expect(run([report(AT, { kind, type: 'x_y', resetAt: null })])).toMatchObject({
      status: 'quota_exceeded',
      cause: kind,
    })
  })

  test('without an end holds while reports repeat it, and is stored only every few minutes', () => {
    let state = run([report(AT, cap())])
    const seen = new Set([state])
    for (let minute = 1; minute <= 60; minute++) {
      state = run([{ kind: 'tick', at: AT + minute * MINUTE }, report(AT + minute * MINUTE, cap())], state)
      seen.add(state)
      expect(state.status).toBe('quota_exceeded')
    }
    expect(seen.size).toBeLessThanOrEqual(16)
    expect(state.since).toBe(AT)
    expect(run([{ kind: 'tick', at: AT + 66 * MINUTE }], state).status).toBe('active') // reports stopped coming
  })

  test('ends with the next poll that does not name it, even before its stated end', () => {
    const held = run([report(AT, cap(AT + 90 * MINUTE))])
    expect(run([report(AT + 1, null)], held)).toEqual(ACTIVE)
    expect(run([report(AT + 1, undefined, usage(0, AT + 1))], held)).toEqual(ACTIVE)
    expect(run([report(AT, null)], held)).toBe(held) // as old as the block
  })

  test('does not end with an incidental report that does not mention it', () => {
    const capped = run([report(AT, cap())])
    expect(run([passing(AT + 1), passing(AT + 2, null)], capped)).toBe(capped)
    const reached = run([report(AT, { kind: 'limit_reached', type: null, resetAt: null })])
    expect(run([passing(AT + 1)], reached)).toBe(reached)
    expect(run([passing(AT + 1, null)], reached)).toEqual(ACTIVE)
  })

  test('keeps its description when running requests are rejected', () => {
    const held = run([report(AT, cap()), limited(AT + 1, AT + 30 * MINUTE)])
    expect(held).toMatchObject({ cause: 'spend_cap_reached', until: AT + 30 * MINUTE })
  })

  test('gives a rejected account its description, and keeps the end the rejection stated', () => {
    const held = run([limited(AT, AT + 30 * MINUTE), report(AT + 1, cap())])
    expect(held).toMatchObject({ cause: 'spend_cap_reached', until: AT + 30 * MINUTE, since: AT })
  })

  test('that is explicitly over ends the block of a rejection, even without windows', () => {
    const windows = { fiveHour: null, weekly: null, monthly: null }
    expect(run([limited(AT, AT + 90 * MINUTE), report(AT + 1, null, { windows })])).toEqual(ACTIVE)
  })

  test('about the included quota does not block an account that continues with paid credits', () => {
    const weekly = { usedPercent: 100, windowMinutes: 10_080, resetAt: AT + 90 * MINUTE }
    const windows = { fiveHour: null, weekly, monthly: null }
    const credits = { hasCredits: true, unlimited: false, balance: 12 }
    const reached = { kind: 'not_allowed' as const, type: null, resetAt: weekly.resetAt }
    expect(run([report(AT, reached, { windows, credits })])).toBe(ACTIVE)
    expect(run([report(AT, reached, { windows })]).status).toBe('quota_exceeded')
    expect(run([report(AT, cap(), { windows, credits })]).cause).toBe('spend_cap_reached')
    expect(run([report(AT, { ...reached, resetAt: null }, { credits })]).cause).toBe('not_allowed')
  })

  test('does not affect paused and signed-out accounts', () => {
    const paused = run([{ kind: 'pause', at: AT }])
    expect(run([report(AT + 1, cap())], paused)).toBe(paused)
  })
})

describe('sign-in failures', () => {
  test.each(Object.entries(PERMANENT_AUTH_CODES))('%s makes the account %s', (code, status) => {
    const state = run([{ kind: 'auth_failed', at: AT, code, evidence: '' }])
    expect(state).toMatchObject({ status, cause: code, evidence: code, since: AT, until: null, nextCheckAt: null })
    expect(run([{ kind: 'auth_failed', at: AT + 1, code, evidence: 'again' }], state)).toBe(state)
  })

  test.each(['something_else', 'constructor'])('the unknown code %s requires a new sign-in', (code) => {
    expect(run([{ kind: 'auth_failed', at: AT, code, evidence: 'x' }]).status).toBe('reauth_required')
  })

  test('end with a new sign-in, from any state except a pause', () => {
    for (const status of ACCOUNT_STATUSES.filter((status) => status !== 'paused')) {
      expect(nextState({ ...ACTIVE, status }, { kind: 'reauthenticated', at: AT })).toEqual(ACTIVE)
    }
  })

  test('keep an account deactivated that also lost its tokens', () => {
    const gone = run([{ kind: 'auth_failed', at: AT, code: 'account_deleted', evidence: 'x' }])
    expect(gone.evidence).toBe('x')
    expect(run([{ kind: 'auth_failed', at: AT + 1, code: 'token_expired', evidence: 'y' }], gone)).toBe(gone)
  })

  test('are not replaced by a block from late responses', () => {
    const state = run([{ kind: 'auth_failed', at: AT, code: 'account_deleted', evidence: 'x' }])
    const late: AccountEvent[] = [limited(AT + 1), { kind: 'succeeded', at: AT + 2 }, { kind: 'tick', at: AT + 3 }]
    expect(run(late, state)).toBe(state)
  })
})

describe('operators', () => {
  const transitions = [
    ['active', 'paused', 'active'],
    ['rate_limited', 'paused', 'active'],
    ['quota_exceeded', 'paused', 'active'],
    ['paused', 'paused', 'active'],
    ['reauth_required', 'refused', 'refused'],
    ['deactivated', 'refused', 'active'],
  ] as const
  const attempt = (status: AccountState['status'], kind: 'pause' | 'reactivate') => {
    try {
      return nextState({ ...ACTIVE, status }, { kind, at: AT }).status
    } catch (err) {
      expect(err).toMatchObject({ code: 'account_state_transition_invalid', status: 409 })
      return 'refused'
    }
  }
  test.each(transitions)('%s: pause → %s, reactivate → %s', (status, paused, reactivated) => {
    expect(attempt(status, 'pause')).toBe(paused)
    expect(attempt(status, 'reactivate')).toBe(reactivated)
  })

  test('that set the current state change nothing', () => {
    const paused = run([{ kind: 'pause', at: AT }])
    expect(run([{ kind: 'pause', at: AT + 1 }], paused)).toBe(paused)
    const halfOpen = { ...ACTIVE, attempts: 2 }
    expect(run([{ kind: 'reactivate', at: AT }], halfOpen)).toBe(halfOpen)
  })
})

describe('a pause', () => {
  const paused = run([{ kind: 'pause', at: AT }])
  const failed = (code: string): AccountEvent => ({ kind: 'auth_failed', at: AT + 1, code, evidence: 'x' })
  const signedIn: AccountEvent = { kind: 'reauthenticated', at: AT + 9 }

  test.each(['token_expired', 'tokens_unreadable', 'account_deleted'])(
    'stays through %s and a new sign-in, and drops what the sign-in resolved',
    (code) => {
      const lost = run([failed(code)], paused)
      expect(lost).toEqual({ ...paused, cause: code, evidence: 'x' })
      expect(run([failed(code), { kind: 'pause', at: AT + 2 }], lost)).toBe(lost)
      expect(run([signedIn], lost)).toEqual(paused)
      expect(run([signedIn], paused)).toBe(paused)
    },
  )

  test('ends when you resume it, but not the need to sign in', () => {
    const resume: AccountEvent = { kind: 'reactivate', at: AT + 9 }
    const lost = run([failed('token_expired')], paused)
    expect(() => nextState(lost, resume)).toThrow('needs sign-in')
    expect(run([signedIn, resume], lost)).toBe(ACTIVE)
    expect(run([failed('account_deleted'), resume], paused)).toBe(ACTIVE)
  })

  test('also covers a deactivated account that lost its tokens, which stays deactivated', () => {
    const gone = run([failed('account_deleted')], paused)
    expect(run([failed('token_expired')], gone)).toBe(gone)
    expect(run([failed('account_deleted')], run([failed('token_expired')], paused))).toEqual(gone)
  })
})

describe('from any state', () => {
  const time = fc.integer({ min: AT - 400 * 86_400_000, max: AT + 400 * 86_400_000 })
  const maybe = fc.option(fc.oneof(time, fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 0, -1)), { nil: null })
  const snapshot = fc
    .record({
      used: fc.integer({ min: 0, max: 100 }),
      at: time,
      reset: fc.option(time, { nil: null }),
      kind: fc.option(fc.constantFrom(...REPORTED_LIMITS), { nil: null }),
    })
    .map(({ used, at, reset, kind }) => ({
      ...usage(used, at, reset),
      ...(kind && { limit: { kind, type: null, resetAt: reset } }),
    }))
  const event: fc.Arbitrary<AccountEvent> = fc.oneof(
    fc.record({
      kind: fc.constantFrom('rate_limited' as const, 'quota_exceeded' as const),
      at: time,
      evidence: fc.string(),
      resetAt: maybe,
      retryAfterMs: maybe,
    }),
    fc.record({ kind: fc.constant('usage' as const), at: time, snapshot }),
    fc.record({ kind: fc.constant('checked' as const), at: time, ok: fc.boolean() }),
    fc.record({ kind: fc.constantFrom('tick' as const, 'succeeded' as const), at: time }),
  )
  const reached = fc.array(event, { maxLength: 12 }).map((events) => run(events))
  /** Also what no sequence of ours produces: a damaged row, a restored backup. */
  const stored: fc.Arbitrary<AccountState> = fc.record({
    status: fc.constantFrom('rate_limited' as const, 'quota_exceeded' as const),
    cause: fc.constant('x'),
    evidence: fc.constant('x'),
    since: maybe,
    until: maybe,
    nextCheckAt: maybe,
    attempts: fc.nat(1000),
  })

  test('a block has cause, evidence, since, and exactly one of until and next check', () => {
    holds(
      fc.property(reached, (state) => {
        if (!isBlocked(state)) return
        expect(state.cause && state.evidence).toBeTruthy()
        expect(state.since).not.toBeNull()
        expect((state.until === null) !== (state.nextCheckAt === null)).toBe(true)
      }),
    )
  })

  test('a healthy upstream makes the account available within one check interval', () => {
    holds(
      fc.property(fc.oneof(reached, stored), time, (state, now) => {
        const seen = now + CHECK_INTERVAL_MS
        const after = run(
          [
            { kind: 'tick', at: seen },
            { kind: 'usage', at: seen, snapshot: { ...usage(5, seen), additional: [], limit: null } },
          ],
          state,
        )
        // A block that began at that very moment or later is a new one.
        if (state.since !== null && state.since === seen) return
        expect(after.status).toBe('active')
      }),
    )
  })

  test('a block ends automatically at its reset, or within the longest check delay', () => {
    holds(
      fc.property(fc.oneof(reached, stored), time, (state, now) => {
        const first = nextState(state, { kind: 'tick', at: now })
        const end = Math.max(now, first.until ?? first.nextCheckAt ?? now)
        expect(Number.isFinite(end)).toBe(true)
        if (first.until === null) expect(end - now).toBeLessThanOrEqual(30 * MINUTE)
        expect(isBlocked(nextState(first, { kind: 'tick', at: end + CHECK_INTERVAL_MS }))).toBe(false)
      }),
    )
  })

  test('only a user action ends a state that is not a block', () => {
    const status = fc.constantFrom('paused' as const, 'reauth_required' as const, 'deactivated' as const)
    holds(
      fc.property(status, fc.array(event, { maxLength: 8 }), (kind, events) => {
        expect(run(events, { ...ACTIVE, status: kind }).status).toBe(kind)
      }),
    )
  })
})
