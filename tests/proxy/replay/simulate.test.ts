/** The replay: small worlds computed by hand, and invariants of every world. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { seededFloats } from '../../../src/lib/random.ts'
import { strategyOutcomes } from '../../../src/proxy/replay/compare-strategies.ts'
import { type Arrival, Replay, type ReplayWorld, simulate } from '../../../src/proxy/replay/simulate.ts'
import { STRATEGIES } from '../../../src/settings/schema.ts'
import { holds } from '../../support/property.ts'
import { account, arrival, DAY, HOUR, world } from './world.ts'

const run = (replayed: ReplayWorld, seed = 1) => {
  const served: (string | null)[] = []
  const outcome = simulate(replayed, {
    random: seededFloats(seed),
    onArrival: (_, accountId) => void served.push(accountId),
  })
  return { served, outcome }
}

describe('results computed by hand', () => {
  test('a five-hour window serves its credits and rejects the rest until it is reset', () => {
    const { served, outcome } = run(
      world(
        [account('a')],
        [arrival(0, 60), arrival(1 * HOUR, 40), arrival(2 * HOUR, 1), arrival(5 * HOUR - 1, 1), arrival(5 * HOUR, 1)],
      ),
    )
    expect(served).toEqual(['a', 'a', null, null, 'a'])
    expect(outcome).toMatchObject({ served: 3, rejected: 2, moves: 0 })
    expect(outcome.fiveHour).toEqual({ credits: 200, unused: 99 })
  })

  test('a weekly window that is used up blocks the account for the rest of the week', () => {
    const big = { fiveHour: { credits: 600, lengthMs: 5 * HOUR, usedCredits: 0, resetAt: null } }
    const { served, outcome } = run(
      world([account('a', big)], [arrival(0, 600), arrival(6 * HOUR, 400), arrival(2 * DAY, 1), arrival(7 * DAY, 1)]),
    )
    expect(served).toEqual(['a', 'a', null, 'a'])
    expect(outcome.long).toEqual({ credits: 4000, unused: 0 + 999 + 1000 + 1000 })
  })

  test('the next account is tried when ChatGPT rejects the first, and the conversation counts as moved', () => {
    const talk = { conversation: 0 }
    const accounts = [account('a', { position: 1 }), account('b', { position: 2 })]
    const { served, outcome } = run(
      world(accounts, [arrival(0, 90, talk), arrival(HOUR, 20, talk), arrival(2 * HOUR, 1, talk)], {
        strategy: 'sequential_drain',
      }),
    )
    expect(served).toEqual(['a', 'b', 'b'])
    expect(outcome).toMatchObject({ served: 3, rejected: 0, moves: 1 })
  })

  test('a started window is reset five hours after its start', () => {
    const arrivals = [arrival(3 * HOUR, 100), arrival(5 * HOUR, 100)]
    expect(run(world([account('a')], arrivals)).served).toEqual(['a', null])
    const started = world([account('a')], arrivals, { starts: [{ accountId: 'a', at: 0 }] })
    expect(run(started).served).toEqual(['a', 'a'])
  })

  test('an unused window serves a request that is larger than the window', () => {
    expect(run(world([account('a')], [arrival(0, 500), arrival(HOUR, 1)])).served).toEqual(['a', null])
  })

  test('a key uses only the accounts of its scope', () => {
    const key = {
      scope: { accountIds: new Set(['b']), tags: new Set<string>() },
      ownerUserId: null,
      isOpportunistic: false,
    }
    const arrivals = [arrival(0, 60, { key }), arrival(1, 60, { key }), arrival(2, 60)]
    expect(run(world([account('a'), account('b')], arrivals)).served).toEqual(['b', null, 'a'])
  })

  test('a conversation with a large cache stays on a nearly used up account, one with a small cache moves', () => {
    const nearlyUsedUp = (usedCredits: number) => ({
      fiveHour: { credits: 225, lengthMs: 5 * HOUR, usedCredits, resetAt: 5 * HOUR },
    })
    const accounts = [account('a', nearlyUsedUp(212)), account('b', nearlyUsedUp(190))]
    const onlyA = {
      scope: { accountIds: new Set(['a']), tags: new Set<string>() },
      ownerUserId: null,
      isOpportunistic: false,
    }
    const talk = (at: number, conversation: number, tokens: number) =>
      arrival(at, 1, { conversation, cached: cachedUse(tokens, 1), key: at < 2 ? onlyA : null })
    // With 95 % used, 11 credits are left: a request like the last one uses 9 %. On b, 31 are left.
    const arrivals = [talk(0, 0, 1_000), talk(1, 1, 20_000), talk(2, 0, 1_000), talk(3, 1, 20_000)]
    const priced = world(accounts, arrivals, { strategy: 'usage_weighted' })
    expect(run(priced)).toMatchObject({ served: ['a', 'a', 'b', 'a'], outcome: { moves: 1, movedTokens: 1_000 } })
    expect(run({ ...priced, ignoresPrices: true })).toMatchObject({
      ...{ served: ['a', 'a', 'b', 'b'], outcome: { moves: 2, movedTokens: 21_000 } },
    })
    // The large cache of the last five minutes counts, even if a title was requested since then.
    const withTitle = (at: number) => [talk(0, 1, 20_000), talk(at, 1, 500), talk(at + 1, 1, 20_000)]
    const servedWith = (at: number) => run({ ...priced, arrivals: withTitle(at) }).served
    expect(servedWith(1)).toEqual(['a', 'a', 'a'])
    expect(servedWith(HOUR / 12)).toEqual(['a', 'a', 'b'])
  })

  test('a request that moves its conversation also uses what is no longer cached', () => {
    const talk = (at: number) => arrival(at, 40, { conversation: 0, cached: cachedUse(40_000, 40) })
    const accounts = [account('a', { position: 1 }), account('b', { position: 2 })]
    const moved = [talk(0), talk(1), talk(2), arrival(3, 31, { conversation: 1 })]
    const replayed = world(accounts, moved, { strategy: 'sequential_drain' })
    // On b, the third one uses 40 + 30 credits of 100, so 31 more do not fit.
    expect(run(replayed)).toMatchObject({ served: ['a', 'a', 'b', null], outcome: { moves: 1, movedTokens: 40_000 } })
  })

  test('without accounts everything is rejected', () => {
    expect(run(world([], [arrival(0, 1)])).outcome).toMatchObject({ served: 0, rejected: 1 })
  })
})

/** The use of a request that costs `units` and has `tokens` in the cache. */
const cachedUse = (tokens: number, units: number) => ({
  ...{ tokens, units, moveUnits: tokens / 1000, extraUnits: (tokens / 1000) * 0.75 },
})

const worlds = fc
  .record({
    accounts: fc.array(
      fc.record({
        routingPolicy: fc.constantFrom('normal' as const, 'burn_first' as const, 'preserve' as const),
        short: fc.integer({ min: 10, max: 300 }),
        week: fc.integer({ min: 100, max: 2000 }),
        cap: fc.option(fc.integer({ min: 1, max: 100 })),
        models: fc.option(fc.constant(new Set(['gpt-5.5']))),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    arrivals: fc.array(
      fc.record({
        after: fc.integer({ min: 0, max: 3 * HOUR }),
        credits: fc.integer({ min: 1, max: 80 }),
        durationMs: fc.integer({ min: 0, max: HOUR }),
        conversation: fc.option(fc.integer({ min: 0, max: 8 })),
        cached: fc.option(fc.integer({ min: 1, max: 300_000 })),
        model: fc.constantFrom('gpt-5.5', 'other'),
      }),
      { maxLength: 120 },
    ),
    strategy: fc.constantFrom(...STRATEGIES),
  })
  .map(({ accounts, arrivals, strategy }): ReplayWorld => {
    let at = 0
    const timed: Arrival[] = arrivals.map(({ after, credits, cached, ...rest }) => {
      at += after
      return arrival(at, credits, { ...rest, cached: cached === null ? null : cachedUse(cached, credits) })
    })
    const members = accounts.map(({ routingPolicy, short, week, cap, models }, n) =>
      account(`account-${n}`, {
        routingPolicy,
        models,
        maxUsedPercentPrimary: cap,
        fiveHour: { credits: short, lengthMs: 5 * HOUR, usedCredits: 0, resetAt: null },
        long: { length: 'weekly', credits: week, lengthMs: 7 * DAY, usedCredits: 0, resetAt: null },
      }),
    )
    return world(members, timed, { policy: { ...world([], []).policy, strategy, preferEarlierReset: true } })
  })

describe('in every world', () => {
  test('served and rejected requests add up to the arrivals', () => {
    holds(
      fc.property(worlds, (any) => {
        const { served, rejected, moves } = run(any).outcome
        expect(served + rejected).toBe(any.arrivals.length)
        expect(moves).toBeLessThanOrEqual(served)
      }),
      200,
    )
  })

  test('no account serves more credits in five hours or a week than it has', () => {
    holds(
      fc.property(worlds, (any) => {
        const { served } = run(any)
        for (const { id, fiveHour, long } of any.accounts) {
          const own = any.arrivals.filter((_, n) => served[n] === id)
          expect(own.length === 0 || most(own, 5 * HOUR, fiveHour?.credits ?? 0) <= 1).toBe(true)
          for (let week = 0; week < 4; week++) {
            const within = own.filter(({ at }) => Math.floor(at / (7 * DAY)) === week)
            expect(getSum(within, long?.credits ?? 0)).toBeLessThanOrEqual(long?.credits ?? 0)
          }
        }
      }),
      200,
    )
  })

  test('a seed always gives the same outcome', () => {
    holds(
      fc.property(worlds, fc.integer({ min: 0, max: 1000 }), (any, seed) => {
        expect(run(any, seed)).toEqual(run(any, seed))
      }),
      50,
    )
  })

  test('an owner that keeps its conversation is the account that selection would choose', () => {
    holds(
      fc.property(worlds, (any) => {
        const random = () => 0.5 // a sequence would differ, because the fast path draws less
        const quick = new Replay(any, random)
        const whole = new Replay(any, random, { looksAtAll: true })
        const served = any.arrivals.map((each) => [quick.arrive(each), whole.arrive(each)])
        expect(served.filter(([one, other]) => one !== other)).toEqual([])
        expect(whole.end()).toEqual(quick.end())
      }),
      200,
    )
  })
})

/** The windows of an account that starts them with its requests, as the largest share of `credits` used in one. */
const most = (own: readonly Arrival[], lengthMs: number, credits: number): number => {
  let startedAt = Number.NEGATIVE_INFINITY
  let used = 0
  let largest = 0
  for (const { at, short } of own) {
    if (at >= startedAt + lengthMs) {
      startedAt = at
      used = 0
    }
    used += Math.min(short, credits)
    largest = Math.max(largest, used / credits)
  }
  return largest
}

const getSum = (own: readonly Arrival[], credits: number): number =>
  own.reduce((sum, { long }) => sum + Math.min(long, credits), 0)

describe('twenty seeds', () => {
  const arrivals = Array.from({ length: 60 }, (_, n) => arrival(n * HOUR, 15, { conversation: n % 7 }))
  const three = world([account('a'), account('b'), account('c')], arrivals)
  const outcomes = (strategy: 'round_robin' | 'capacity_weighted', seed = 1) =>
    strategyOutcomes(three, strategy, { seed, onProgress: () => {} })

  test('give the same outcome for a strategy without random numbers', () => {
    expect(new Set(outcomes('round_robin').map((outcome) => JSON.stringify(outcome))).size).toBe(1)
    expect(outcomes('round_robin')).toHaveLength(20)
  })

  test('differ for a weighted draw, and are the same when repeated', () => {
    const first = outcomes('capacity_weighted')
    expect(new Set(first.map((outcome) => JSON.stringify(outcome))).size).toBeGreaterThan(1)
    expect(outcomes('capacity_weighted')).toEqual(first)
    expect(outcomes('capacity_weighted', 2)).not.toEqual(first)
  })
})
