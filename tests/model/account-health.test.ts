/** Back-off after transient errors, and the way through draining and probing back to healthy. */
import { describe, expect, test } from 'bun:test'
import { HEALTHY, type Health, type HealthEvent, nextHealth } from '../../src/model/account-health.ts'

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
  test('begins with the third error, and is as long however many turns failed together', () => {
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

  test('for want of a token ends with a new one, where nothing else failed', () => {
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

  test('starts over once it is over, and ends with any success', () => {
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

  test('two errors drain, one does not', () => {
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
    expect(broken).toMatchObject({ tier: 'probing', successes: 0 })
  })

  test('the minute of rest counts from when draining began, and not less', () => {
    const draining = run([observe(AT, 90), observe(AT + 30_000, 90)])
    expect(run([observe(AT + 59_999)], draining)).toBe(draining)
    expect(run([observe(AT + 60_000)], draining).tier).toBe('probing')
  })

  test('an allowance still nearly used up keeps draining, and takes a probing account back', () => {
    const draining = nextHealth(HEALTHY, observe(AT, 90))
    expect(nextHealth(draining, observe(AT + 120_000, 90)).tier).toBe('draining')
    const probing = nextHealth(draining, observe(AT + 120_000, 10))
    expect(probing.tier).toBe('probing')
    expect(nextHealth(probing, observe(AT + 130_000, 86)).tier).toBe('draining')
  })

  test('nothing to change gives the same object', () => {
    expect(run([success(AT), observe(AT)])).toBe(HEALTHY)
  })
})
