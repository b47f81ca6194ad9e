/** Back-off after transient errors, and the states from draining and probing back to healthy. */
import { describe, expect, test } from 'bun:test'
import {
  HEALTHY,
  type Health,
  type HealthEvent,
  isFailing,
  nextHealth,
} from '../../src/model/accounts/account-health.ts'

const AT = 1_000_000
const run = (events: HealthEvent[], from: Health = HEALTHY) => events.reduce(nextHealth, from)
const error = (at: number): HealthEvent => ({ kind: 'error', at, evidence: '500' })
const success = (at: number): HealthEvent => ({ kind: 'success', at })
const observe = (at: number, fiveHourUsed: number | null = 0, weeklyUsed: number | null = 0): HealthEvent => ({
  kind: 'observe',
  at,
  fiveHourUsed,
  weeklyUsed,
})

describe('back-off', () => {
  test('begins with the third error, and its length does not depend on how many requests failed together', () => {
    const ends: (number | null)[] = []
    let health = HEALTHY
    for (let n = 0; n < 8; n++) {
      health = nextHealth(health, error(AT + n))
      ends.push(health.backoffUntil)
    }
    const end = AT + 2 + 30_000
    expect(ends).toEqual([null, null, end, end, end, end, end, end])
    expect(health.lastError?.at).toBe(AT + 7)
  })

  test('for a failed token refresh ends with a new token, if nothing else failed', () => {
    const lacking = (at: number): HealthEvent => ({ kind: 'error', at, evidence: 'no token', lacksToken: true })
    const renewed: HealthEvent = { kind: 'renewed' }
    const backedOff = run([lacking(AT), lacking(AT), lacking(AT), error(AT + 1)])
    expect(nextHealth(backedOff, renewed)).toMatchObject({ errors: 0, lastError: null, backoffUntil: null })
    for (const mixed of [run([error(AT), lacking(AT)]), run([lacking(AT), error(AT)])])
      expect(nextHealth(mixed, renewed)).toBe(mixed)
  })

  test('keeps the newest error, until a success', () => {
    const failed = run([error(AT), { kind: 'error', at: AT + 1, evidence: '503' }])
    expect(failed.lastError).toEqual({ at: AT + 1, evidence: '503' })
    expect(nextHealth(failed, success(AT + 2)).lastError).toBeNull()
  })

  test('starts over after it ended, and ends with any success', () => {
    const backedOff = run([error(AT), error(AT), error(AT)])
    expect(nextHealth(backedOff, error(AT + 30_000))).toMatchObject({ errors: 1, backoffUntil: null })
    expect(nextHealth(backedOff, success(AT + 1))).toMatchObject({ errors: 0, lastError: null, backoffUntil: null })
  })
})

describe('tiers', () => {
  test.each([
    [84.9, 89.9, 'healthy'],
    [85, 0, 'draining'],
    [0, 90, 'draining'],
    [null, null, 'healthy'],
  ] as const)('%p %% of five hours and %p %% of the week make %s', (five, week, tier) => {
    expect(nextHealth(HEALTHY, observe(AT, five, week)).tier).toBe(tier)
  })

  test('two errors start draining, one does not', () => {
    expect(run([error(AT)]).tier).toBe('healthy')
    expect(run([error(AT), error(AT + 1)])).toMatchObject({ tier: 'draining', enteredAt: AT + 1 })
  })

  test('draining → probing after 60 s → healthy after three successes in a row', () => {
    const draining = run([error(AT), error(AT)])
    expect(nextHealth(draining, observe(AT + 59_999)).tier).toBe('draining')
    const probing = nextHealth(draining, observe(AT + 60_000))
    expect(probing.tier).toBe('probing')
    const nearly = run([success(AT + 61_000), success(AT + 62_000)], probing)
    expect(nearly).toMatchObject({ tier: 'probing', successes: 2 })
    expect(nextHealth(nearly, success(AT + 63_000))).toMatchObject({ tier: 'healthy', successes: 0 })
    const broken = nextHealth(nearly, error(AT + 63_000))
    expect(broken).toMatchObject({ tier: 'draining', enteredAt: AT + 63_000, successes: 0 })
  })

  test('the minute of rest starts when draining began', () => {
    const draining = run([observe(AT, 90), observe(AT + 30_000, 90)])
    expect(run([observe(AT + 59_999)], draining)).toBe(draining)
    expect(run([observe(AT + 60_000)], draining).tier).toBe('probing')
  })

  test('nearly used-up quota continues draining, and moves a probing account back to it', () => {
    const draining = nextHealth(HEALTHY, observe(AT, 90))
    expect(nextHealth(draining, observe(AT + 120_000, 90)).tier).toBe('draining')
    const probing = nextHealth(draining, observe(AT + 120_000, 10))
    expect(probing.tier).toBe('probing')
    expect(nextHealth(probing, observe(AT + 130_000, 86)).tier).toBe('draining')
  })

  test('no change returns the same object', () => {
    expect(run([success(AT), observe(AT)])).toBe(HEALTHY)
  })
})

describe('a lost connection', () => {
  const lost = (at: number): HealthEvent => ({ kind: 'unserved', at, lostConnection: 'reset' })
  const failed = (at: number): HealthEvent => ({ kind: 'unserved', at, lostConnection: null })
  const elsewhere = (at: number, isShared = false): HealthEvent => ({ kind: 'served_elsewhere', at, isShared })

  test('counts as one error once another account serves a request, however many there were', () => {
    const health = run([lost(AT), lost(AT + 1), lost(AT + 2)])
    expect(health).toMatchObject({ errors: 0, failing: { count: 3 } })
    const charged = run([elsewhere(AT + 3)], health)
    expect(charged).toMatchObject({ errors: 1, lastError: { at: AT + 3, evidence: 'reset' }, failing: null })
  })

  test.each<[string, HealthEvent]>([
    ['the serving account lost a connection, too', elsewhere(AT + 1, true)],
    ['five minutes have passed', elsewhere(AT + 300_000)],
    ['the account itself serves', success(AT + 1)],
  ])('does not count if %s', (_, event) => {
    expect(run([lost(AT), event])).toMatchObject({ errors: 0, failing: null })
  })

  test('is not counted twice if the failure was an error already', () => {
    expect(run([error(AT), failed(AT), elsewhere(AT + 1)])).toMatchObject({ errors: 1, failing: null })
  })

  test('affects the next attempt for a minute', () => {
    const health = run([lost(AT)])
    expect([isFailing(health, AT + 59_999), isFailing(health, AT + 60_000)]).toEqual([true, false])
  })
})

test('each failed probe doubles the rest before the next, up to sixteen minutes, until it is healthy again', () => {
  let health = run([error(AT), error(AT)])
  let at = AT
  for (const minutes of [1, 2, 4, 8, 16, 16]) {
    expect(nextHealth(health, observe(at + minutes * 60_000 - 1)).tier).toBe('draining')
    at += minutes * 60_000
    health = run([observe(at), error(at)], health)
    expect(health.tier).toBe('draining')
  }
  const healed = run([observe(at + 16 * 60_000), success(at), success(at), success(at)], health)
  expect(healed).toMatchObject({ tier: 'healthy', failedProbes: 0 })
})
