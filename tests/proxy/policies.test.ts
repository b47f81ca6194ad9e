/** Each strategy distributes requests as documented. */
import { describe, expect, test } from 'bun:test'
import { type Candidate, type PolicyContext, rank, type Strategy } from '../../src/proxy/pool/policies.ts'
import { STRATEGIES } from '../../src/settings/schema.ts'
import { seededRandom, withRandom } from '../support/property.ts'
import { aContext, anAccount, DAY_MS, NOW, used } from './candidates.ts'

const order = (strategy: Strategy, candidates: Candidate[], with_: Partial<PolicyContext> = {}) =>
  rank(candidates, aContext({ strategy, ...with_ })).map(({ id }) => id)

/** Each strategy serves this many turns. */
const TURNS = 50_000

/** Shares of `TURNS` turns that each finish before the next one starts; a turn uses nothing up. */
const shares = (
  strategy: Strategy,
  accounts: Candidate[],
  random: () => number,
  with_: Partial<PolicyContext> = {},
) => {
  const ctx = aContext({ strategy, random, ...with_ })
  const counts = new Map<string, number>()
  for (let turn = 0; turn < TURNS; turn++) {
    ctx.now = NOW + turn
    const id = rank(accounts, ctx)[0]?.id ?? ''
    counts.set(id, (counts.get(id) ?? 0) + 1)
    const chosen = accounts.find((account) => account.id === id)
    if (chosen) chosen.lastSelectedAt = ctx.now
  }
  return (id: string) => (counts.get(id) ?? 0) / TURNS
}

/** Five standard deviations of a share of `TURNS` draws: fails by chance once in a million. */
const tolerance = (share: number) => 5 * Math.sqrt((share * (1 - share)) / TURNS)

const expectShares = (share: (id: string) => number, expected: Record<string, number>) => {
  for (const [id, value] of Object.entries(expected)) {
    expect(Math.abs(share(id) - value), `${id}: ${share(id)} instead of ${value}`).toBeLessThanOrEqual(tolerance(value))
  }
}

describe('over many requests', () => {
  test('capacity_weighted shares by the remaining credits', () => {
    withRandom((random) => {
      const accounts = [
        anAccount('half', { usage: used(0, 50) }), // 3,780 credits
        anAccount('full'), // 7,560
        anAccount('pro', { planType: 'prolite' }), // 37,800
      ]
      const sum = 3_780 + 7_560 + 37_800
      const share = shares('capacity_weighted', accounts, random)
      expectShares(share, { half: 3_780 / sum, full: 7_560 / sum, pro: 37_800 / sum })
    })
  })

  test('relative_availability shares by credits per second to the reset, squared', () => {
    withRandom((random) => {
      const accounts = [
        anAccount('near', { usage: used(0, 0, 2) }),
        anAccount('far', { usage: used(0, 0, 4) }), // half the rate, a quarter of the weight
        anAccount('negligible', { usage: used(0, 90, 7) }),
      ]
      const share = shares('relative_availability', accounts, random)
      // Each turn moves the clock a millisecond, which changes the weights by less than the tolerance.
      expectShares(share, { near: 0.8, far: 0.2, negligible: 0 })
    })
  })

  test('relative_availability keeps to the best k', () => {
    withRandom((random) => {
      const accounts = ['a', 'b', 'c', 'd'].map((id, i) => anAccount(id, { usage: used(0, i) }))
      const share = shares('relative_availability', accounts, random, { relativeTopK: 2 })
      expect(share('a') + share('b')).toBe(1)
      expect(Math.min(share('a'), share('b'))).toBeGreaterThan(0.4)
    })
  })

  test.each(['round_robin', 'usage_weighted'] as const)(
    '%s distributes requests equally to equal accounts',
    (strategy) => {
      const accounts = ['a', 'b', 'c', 'd', 'e'].map((id) => anAccount(id))
      const share = shares(strategy, accounts, seededRandom(1))
      for (const { id } of accounts) expect(share(id)).toBe(0.2)
    },
  )

  test.each(['fill_first', 'sequential_drain', 'reset_drain', 'single_account'] as const)(
    '%s stays with one account',
    (strategy) => {
      const accounts = ['b', 'a', 'c'].map((id) => anAccount(id))
      expect(shares(strategy, accounts, seededRandom(1))('a')).toBe(1)
    },
  )

  test('running requests spread a burst before usage changes', () => {
    for (const strategy of ['capacity_weighted', 'usage_weighted', 'round_robin'] as const) {
      const accounts = ['a', 'b', 'c', 'd'].map((id) => anAccount(id))
      const ctx = aContext({ strategy, random: seededRandom(7) })
      for (let turn = 0; turn < 100; turn++) {
        const id = rank(accounts, ctx)[0]?.id
        const chosen = accounts.find((account) => account.id === id)
        if (chosen) Object.assign(chosen, { inFlight: chosen.inFlight + 1, lastSelectedAt: NOW })
      }
      const loads = accounts.map(({ inFlight }) => inFlight)
      expect(Math.min(...loads), `${strategy}: ${loads}`).toBeGreaterThanOrEqual(15)
    }
  })
})

describe('one selection', () => {
  test('usage_weighted uses the least used week, then the least used five hours', () => {
    const accounts = [
      anAccount('a', { usage: used(1, 40) }),
      anAccount('b', { usage: used(50, 20) }),
      anAccount('c', { usage: used(10, 20) }),
    ]
    expect(order('usage_weighted', accounts)).toEqual(['c', 'b', 'a'])
  })

  test('a running request weighs 2.5 percent, whatever the plan', () => {
    const busy = anAccount('busy', { inFlight: 3, usage: used(0, 10) })
    expect(order('usage_weighted', [busy, anAccount('idle', { usage: used(0, 17.4) })])[0]).toBe('idle')
    expect(order('usage_weighted', [busy, anAccount('idle', { usage: used(0, 17.6) })])[0]).toBe('busy')
  })

  test('an earlier reset is preferred by whole days, if configured', () => {
    const accounts = [anAccount('later', { usage: used(0, 0, 3.5) }), anAccount('soon', { usage: used(0, 80, 2.5) })]
    expect(order('usage_weighted', accounts)).toEqual(['soon', 'later'])
    expect(order('usage_weighted', accounts, { preferEarlierReset: false })).toEqual(['later', 'soon'])
    expect(order('capacity_weighted', accounts)).toEqual(['soon', 'later'])
  })

  describe('a window that was not reported is unknown, not unused', () => {
    const only = (name: 'fiveHour' | 'weekly' | 'monthly', percent: number): Candidate['usage'] => {
      const { windows, ...rest } = used(percent, percent)
      const none = { fiveHour: null, weekly: null, monthly: null }
      return { ...rest, windows: { ...none, [name]: windows[name === 'fiveHour' ? 'fiveHour' : 'weekly'] } }
    }
    const never = anAccount('a-never', { usage: null })
    const empty = anAccount('b-empty', {
      usage: { ...used(0, 0), windows: { fiveHour: null, weekly: null, monthly: null } },
    })

    test('fill_first uses the window an account has', () => {
      const accounts = [
        anAccount('both', { usage: used(30, 90) }),
        anAccount('weekly', { usage: only('weekly', 60) }),
        anAccount('monthly', { usage: only('monthly', 50) }),
        anAccount('five', { usage: only('fiveHour', 40) }),
      ]
      const reset = { preferEarlierReset: false }
      expect(order('fill_first', accounts, reset)).toEqual(['weekly', 'monthly', 'five', 'both'])
    })

    test('usage_weighted does not prefer a missing five-hour window to a small one', () => {
      const accounts = [anAccount('a', { usage: only('weekly', 20) }), anAccount('b', { usage: used(5, 20) })]
      expect(order('usage_weighted', accounts)).toEqual(['b', 'a'])
    })

    test.each(['fill_first', 'usage_weighted', 'reset_drain'] as const)(
      '%s uses accounts without any report after those with room, before those that are used up',
      (strategy) => {
        const known = anAccount('c-known', { usage: used(70, 70) })
        const spent = anAccount('d-spent', { usage: used(100, 100) })
        const reset = { preferEarlierReset: false }
        expect(order(strategy, [spent, never, empty, known], reset)).toEqual([
          'c-known',
          'a-never',
          'b-empty',
          'd-spent',
        ])
      },
    )

    test('capacity_weighted counts an account without a report as the average of the others', () => {
      const ranked = rank(
        [never, anAccount('b', { usage: used(0, 20) }), anAccount('c', { usage: used(0, 60) })],
        aContext({ strategy: 'capacity_weighted' }),
      )
      expect(ranked.find(({ id }) => id === 'a-never')?.score).toBeCloseTo(7_560 * 0.6)
    })
  })

  test('fill_first uses the fullest, sequential_drain the smallest plan, reset_drain the earliest reset', () => {
    const accounts = [
      anAccount('a-pro', { planType: 'pro', usage: used(30, 5, 1) }),
      anAccount('b-plus', { usage: used(60, 5, 4) }),
      anAccount('c-free', { planType: 'free', usage: used(5, 5, 4) }),
    ]
    expect(order('fill_first', accounts, { preferEarlierReset: false })).toEqual(['b-plus', 'a-pro', 'c-free'])
    expect(order('sequential_drain', accounts)).toEqual(['c-free', 'b-plus', 'a-pro'])
    expect(order('reset_drain', accounts)).toEqual(['a-pro', 'c-free', 'b-plus'])
  })

  test('equal accounts: fill_first uses the fuller week, reset_drain the emptier one, then the first by id', () => {
    const accounts = [
      anAccount('c', { usage: used(30, 5) }),
      anAccount('b', { usage: used(30, 9) }),
      anAccount('a', { usage: used(30, 5) }),
    ]
    expect(order('fill_first', accounts)).toEqual(['b', 'a', 'c'])
    expect(order('reset_drain', accounts)).toEqual(['a', 'c', 'b'])
    expect(order('sequential_drain', accounts)).toEqual(['a', 'b', 'c'])
  })

  test('single_account uses only the one configured, else the first by id', () => {
    const accounts = [anAccount('b'), anAccount('a')]
    expect(order('single_account', accounts, { singleAccountId: 'b' })).toEqual(['b'])
    expect(order('single_account', accounts, { singleAccountId: 'gone' })).toEqual([])
    expect(order('single_account', accounts)).toEqual(['a', 'b'])
  })

  test.each(STRATEGIES)('%s uses a used-up account last, and handles unknown usage', (strategy) => {
    const spent = anAccount('a', { usage: used(100, 100, 1), planType: 'free' })
    const unknown = anAccount('b', { usage: null, planType: 'enterprise' })
    const ctx = aContext({ strategy, random: seededRandom(3) })
    for (let turn = 0; turn < 20; turn++) {
      const ranked = rank([spent, unknown], ctx)
      if (strategy !== 'single_account') expect(ranked[0]?.id).toBe('b')
      expect(ranked).toHaveLength(2)
      for (const { score } of ranked) expect(Number.isFinite(score)).toBe(true)
    }
    expect(rank([], ctx)).toEqual([])
  })

  test('a window whose reset has passed counts as unused', () => {
    const stale = anAccount('stale', { usage: used(100, 100, 3) })
    const now = NOW + 4 * DAY_MS
    expect(
      order('usage_weighted', [stale, anAccount('x', { usage: used(0, 5, 9) })], { now, preferEarlierReset: false })[0],
    ).toBe('stale')
  })
})

describe('the criterion before the score', () => {
  const soon = anAccount('soon', { usage: used(0, 80, 1) })
  const late = anAccount('late', { usage: used(0, 1, 6) })
  const unknown = anAccount('unknown', { usage: null })
  const days = (strategy: Strategy, with_: Partial<PolicyContext> = {}) =>
    rank([soon, late, unknown], aContext({ strategy, ...with_ })).map(({ id, resetDays }) => [id, resetDays])

  test.each(['capacity_weighted', 'usage_weighted', 'fill_first'] as const)('%s: the days to the reset', (strategy) => {
    expect(days(strategy)).toEqual([
      ['soon', 1],
      ['late', 6],
      ['unknown', null],
    ])
    expect(days(strategy, { preferEarlierReset: false }).every(([, resetDays]) => resetDays === null)).toBe(true)
  })

  test.each(['relative_availability', 'round_robin', 'sequential_drain'] as const)('%s: nothing', (strategy) => {
    expect(days(strategy).every(([, resetDays]) => resetDays === null)).toBe(true)
  })
})
