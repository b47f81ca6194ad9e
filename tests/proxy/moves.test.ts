/** Whether a conversation moves away from an account that is nearly used up: the prices of moving and staying. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { seededFloats } from '../../src/lib/random.ts'
import { HEALTHY } from '../../src/model/accounts/account-health.ts'
import { capacityCredits } from '../../src/model/accounts/usage-windows.ts'
import { requestUnits, uncachedUnits } from '../../src/model/log/request-units.ts'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import { movePays, percentOfRest, priceMoves } from '../../src/proxy/pool/move-price.ts'
import type { Candidate, PolicyContext } from '../../src/proxy/pool/policies.ts'
import { select } from '../../src/proxy/pool/select.ts'
import type { LastUse } from '../../src/proxy/pool/selection-needs.ts'
import { STRATEGIES } from '../../src/settings/schema.ts'
import { holds } from '../support/property.ts'
import { aContext, anAccount, limited, NOW, needs, used } from './candidates.ts'

/** The last request of a conversation, of which so many tokens were cached. */
const lastUse = (cachedInputTokens: number, accountId = 'own'): LastUse => {
  const usage = { inputTokens: cachedInputTokens + 2_000, cachedInputTokens, outputTokens: 500 }
  const about = { model: null, serviceTier: null }
  const moveUnits = uncachedUnits(usage, about)
  return { accountId, units: requestUnits({ ...usage, costMicros: null }), moveUnits, cachedTokens: cachedInputTokens }
}

const choose = (candidates: readonly Candidate[], last: LastUse | null, ctx: Partial<PolicyContext> = {}) => {
  const owner = { id: 'own', hard: false, lastUse: last }
  const selection = select(candidates, needs({ owner }), aContext(ctx))
  if (selection.kind !== 'chosen') throw new Error(selection.kind)
  return selection
}
const find = (considered: readonly Considered[], id: string) => considered.find((one) => one.id === id)

describe('the price', () => {
  test('is the percent of what is left, in the window where this is the larger share', () => {
    const ctx = aContext()
    expect(capacityCredits('plus', 'fiveHour')).toBe(225)
    expect(percentOfRest(anAccount('a', { usage: used(0, 0) }), 45, ctx)).toBe(20)
    expect(percentOfRest(anAccount('a', { usage: used(80, 0) }), 45, ctx)).toBeCloseTo(100)
    expect(percentOfRest(anAccount('a', { usage: used(80, 99.9) }), 45, ctx)).toBeCloseTo((100 * 45) / 7.56)
    expect(percentOfRest(anAccount('a', { planType: 'pro', usage: used(0, 0) }), 45, ctx)).toBe(3)
    expect(percentOfRest(anAccount('a', { usage: used(0, 100) }), 45, ctx)).toBe(Number.POSITIVE_INFINITY)
  })

  test('uses the measured rates', () => {
    expect(percentOfRest(anAccount('a'), 45, aContext({ rates: { short: 0.5, long: 1 } }))).toBe(10)
    expect(percentOfRest(anAccount('a'), 45, aContext({ rates: { short: 0.001, long: 16.8 } }))).toBeCloseTo(10)
  })

  test('is not known without a reported window', () => {
    expect(percentOfRest(anAccount('a', { usage: null }), 45, aContext())).toBeNull()
    const { windows } = used(0, 0)
    const fiveHour = { ...used(0, 0), windows: { ...windows, weekly: null } }
    expect(percentOfRest(anAccount('a', { planType: 'free', usage: fiveHour }), 45, aContext())).toBeNull()
    expect(percentOfRest(anAccount('a', { usage: null }), 0, aContext())).toBe(0)
  })

  test('is that of the other windows if the plan has no such window, or paid credits replace a full one', () => {
    const free = percentOfRest(anAccount('a', { planType: 'free', usage: used(0, 0) }), 45, aContext())
    expect(free).toBeCloseTo((100 * 45) / 1_134)
    const onCredits = { ...used(80, 100), credits: { hasCredits: true, unlimited: false, balance: 5 } }
    expect(percentOfRest(anAccount('a', { usage: onCredits }), 45, aContext())).toBeCloseTo(100)
    const { weekly } = used(0, 100).windows
    const monthly = { ...onCredits, windows: { fiveHour: null, weekly: null, monthly: weekly } }
    expect(percentOfRest(anAccount('a', { planType: 'free', usage: monthly }), 45, aContext())).toBeNull()
    const full = { ...onCredits, ...used(100, 0), credits: onCredits.credits }
    expect(percentOfRest(anAccount('a', { usage: full }), 45, aContext())).toBe(Number.POSITIVE_INFINITY)
  })

  test('counts a window that was reset as unused', () => {
    const late = aContext({ now: aContext().now + 2 * 3_600_000 })
    expect(percentOfRest(anAccount('a', { usage: used(99, 0) }), 45, late)).toBe(20)
  })

  test('of cached tokens is that of uncached ones, at the list price if that is more', () => {
    const usage = { inputTokens: 100_000, cachedInputTokens: 80_000, outputTokens: 0 }
    expect(uncachedUnits(usage, { model: null, serviceTier: null })).toBe(80)
    expect(uncachedUnits(usage, { model: 'gpt-5.4-nano', serviceTier: null })).toBe(80)
    expect(uncachedUnits(usage, { model: 'gpt-5.5', serviceTier: 'priority' })).toBe(100) // 80 k × $12.50 a million = $1
    expect(uncachedUnits({ ...usage, cachedInputTokens: 0 }, { model: 'gpt-5.5', serviceTier: null })).toBe(0)
  })
})

describe('a conversation on an account that is nearly used up', () => {
  const own = anAccount('own', { usage: used(96, 0) }) // 9 credits left
  const roomy = anAccount('other', { usage: used(0, 0) })
  const halfFull = anAccount('other', { usage: used(88, 0) }) // 27 credits left

  test('moves if little of it is cached, and stays if much is', () => {
    expect(choose([own, halfFull], lastUse(1_000))).toMatchObject({ id: 'other', moved: true, moveAvoidable: false })
    expect(choose([own, halfFull], lastUse(200_000))).toMatchObject({ id: 'own', moved: false, moveAvoidable: false })
  })

  test('moves to an account with enough room for all of it', () => {
    expect(choose([own, roomy], lastUse(200_000))).toMatchObject({ id: 'other', moved: true, moveAvoidable: false })
  })

  test('has both prices in the log', () => {
    const { considered } = choose([own, halfFull], lastUse(200_000))
    // 200 k cached as a quarter, 2 k input, 500 output fourfold: 54 units of 9. Moving: 200 units of 27.
    expect(find(considered, 'own')).toMatchObject({ stayPercent: 600, skipped: null })
    expect(find(considered, 'other')).toMatchObject({ movePercent: 740.74, skipped: 'move_costs_more' })
  })

  test('skips accounts to which a move costs more, whatever the strategy prefers', () => {
    const full = anAccount('full', { usage: used(88, 0), routingPolicy: 'burn_first' })
    const { id, considered } = choose([full, own, roomy], lastUse(200_000))
    expect(id).toBe('other')
    expect(find(considered, 'full')).toMatchObject({ skipped: 'move_costs_more', score: null })
  })

  test('does not move to an account that is nearly used up itself', () => {
    const chosen = (others: Candidate[], last: LastUse | null) => {
      const { id, considered } = choose([own, ...others], last)
      return [id, find(considered, 'full')?.skipped]
    }
    const half = anAccount('half', { usage: used(50, 0) })
    const full = anAccount('full', { usage: used(98, 0), routingPolicy: 'burn_first', planType: 'pro' })
    expect(chosen([full, half], lastUse(1_000))).toEqual(['half', 'lower_tier'])
    expect(chosen([full, half], null)).toEqual(['half', 'lower_tier'])
    expect(chosen([full, halfFull], lastUse(200_000))).toEqual(['own', 'move_costs_more'])
    expect(choose([anAccount('own', { usage: used(100, 0) }), full, half], lastUse(1_000)).id).toBe('half')
  })

  test('moves to an account whose quota is not known', () => {
    const draining = { ...own, health: { ...HEALTHY, tier: 'draining' as const } }
    const movesTo = (other: Partial<Candidate>) => choose([draining, anAccount('other', other)], lastUse(200_000)).moved
    const withoutWindows = { ...used(0, 0), windows: { fiveHour: null, weekly: null, monthly: null } }
    expect(movesTo({ usage: null })).toBe(true)
    expect(movesTo({ usage: withoutWindows })).toBe(true)
    expect(movesTo({ planType: 'unheard-of', usage: used(10, 10) })).toBe(true)
    expect(movesTo({ planType: 'free', usage: used(10, 80) })).toBe(true)
    expect(movesTo({ planType: 'free', usage: used(10, 99) })).toBe(false)
  })

  test('is weighed by the five-hour windows if all accounts use paid credits', () => {
    const onCredits = (id: string, fiveHour: number) =>
      anAccount(id, { usage: { ...used(fiveHour, 100), credits: { hasCredits: true, unlimited: false, balance: 5 } } })
    const chosen = (other: Candidate) => choose([onCredits('own', 96), other], lastUse(200_000)).id
    expect(chosen(onCredits('other', 10))).toBe('other')
    expect(chosen(onCredits('other', 88))).toBe('own')
    expect(chosen(onCredits('other', 96))).toBe('own')
  })

  test('is not priced before that, nor when its account cannot serve', () => {
    const prices = (owner: Candidate) =>
      choose([owner, halfFull], lastUse(200_000)).considered.map(
        ({ stayPercent, movePercent }) => stayPercent ?? movePercent,
      )
    expect(prices(anAccount('own', { usage: used(94, 0) }))).toEqual([undefined, undefined])
    expect(prices(anAccount('own', { usage: used(100, 0) }))).toEqual([undefined, undefined])
    const usedUp = choose([anAccount('own', { usage: used(0, 100) }), halfFull], lastUse(200_000))
    expect(usedUp).toMatchObject({ id: 'other', moved: true, moveAvoidable: false })
  })

  test('is priced by the account that has the cache, not by the one that issued the turn state', () => {
    const issuer = anAccount('issuer', { usage: used(97, 0) })
    const owner = { id: 'issuer', hard: false, successor: 'own', lastUse: lastUse(200_000) }
    const at = (candidates: Candidate[]) => select(candidates, needs({ owner }), aContext())
    expect(at([issuer, own, roomy])).toMatchObject({ kind: 'chosen', id: 'other', moved: true })
    expect(at([issuer, own, halfFull])).toMatchObject({ kind: 'chosen', id: 'own', moved: false })
    expect(at([issuer, anAccount('own'), roomy])).toMatchObject({ kind: 'chosen', id: 'own', moved: false })
  })

  test('stays with its cache, not with an issuer that is used up or keeps failing', () => {
    const owner = { id: 'issuer', hard: false, successor: 'own', lastUse: lastUse(200_000) }
    const at = (issuer: Partial<Candidate>, last: LastUse | null = owner.lastUse) => {
      const candidates = [anAccount('issuer', issuer), own, halfFull]
      return select(candidates, needs({ owner: { ...owner, lastUse: last } }), aContext())
    }
    const failing = { ...HEALTHY, errors: 2, failing: { at: NOW, count: 2, lostConnection: null } }
    expect(at({ usage: used(100, 0) })).toMatchObject({ kind: 'chosen', id: 'own', moved: false })
    expect(at({ health: failing, usage: used(20, 0) })).toMatchObject({ kind: 'chosen', id: 'own', moved: false })
    // An issuer below 95 % keeps the turn it started, and one that has the cache keeps the conversation.
    expect(at({ usage: used(94, 0) })).toMatchObject({ kind: 'chosen', id: 'issuer', moved: false })
    expect(at({ usage: used(96, 0) }, lastUse(200_000, 'issuer'))).toMatchObject({ id: 'issuer', moved: false })
  })
})

describe('a move is avoidable', () => {
  const other = anAccount('other', { usage: used(20, 0) }) // 180 credits left
  const onCredits = { ...used(10, 100), credits: { hasCredits: true, unlimited: false, balance: 5 } }
  const isAvoidable = (
    own: Partial<Candidate>,
    { target = other, last = lastUse(150_000) }: { target?: Candidate; last?: LastUse } = {},
  ) => {
    const owner = { id: 'own', hard: false, lastUse: last }
    const selection = select([anAccount('own', own), target], needs({ owner, streamCap: 2 }), aContext())
    expect(selection).toMatchObject({ kind: 'chosen', id: 'other', moved: true })
    return selection.kind === 'chosen' && selection.moveAvoidable
  }

  test.each([
    ['at its stream limit', { usage: used(10, 0), inFlight: 2 }],
    ['reserved', { usage: used(60, 0), maxUsedPercentPrimary: 50 }],
    ['on paid credits, which come last', { usage: onCredits }],
  ])('if the account is %s, and moving costs more than staying', (_, own) => {
    expect(isAvoidable(own)).toBe(true)
    expect(isAvoidable(own, { last: { ...lastUse(0), units: 100 } })).toBe(false)
    expect(isAvoidable(own, { target: anAccount('other', { usage: null }) })).toBe(false)
  })

  test('but not if the account could not have served the request', () => {
    expect(isAvoidable({ usage: used(100, 0), inFlight: 2 })).toBe(false)
    expect(isAvoidable({ usage: used(99, 0), inFlight: 2 })).toBe(false) // too large for what is left
    expect(isAvoidable({ state: limited(NOW + 60_000) })).toBe(false)
    expect(isAvoidable({ state: { ...limited(null), status: 'paused' } })).toBe(false)
  })

  test('and the log then shows both prices', () => {
    const owner = { id: 'own', hard: false, lastUse: lastUse(150_000) }
    const candidates = [anAccount('own', { usage: used(60, 0), maxUsedPercentPrimary: 50 }), other]
    const { considered } = select(candidates, needs({ owner }), aContext())
    // 41.5 units of the 90 credits left, and 150 of 180
    expect(find(considered, 'own')).toMatchObject({ skipped: 'reserved', stayPercent: 46.11 })
    expect(find(considered, 'other')).toMatchObject({ skipped: null, movePercent: 83.33 })
  })
})

describe('for any pool', () => {
  const percent = fc.oneof(fc.constantFrom(0, 50, 94, 95, 99, 100), fc.double({ min: 0, max: 100, noNaN: true }))
  const member = (id: string): fc.Arbitrary<Candidate> =>
    fc
      .record({
        usage: fc.option(
          fc.tuple(percent, percent).map(([five, week]) => used(five, week)),
          { nil: null },
        ),
        planType: fc.constantFrom('plus', 'pro', 'free'),
        routingPolicy: fc.constantFrom('normal' as const, 'burn_first' as const, 'preserve' as const),
      })
      .map((with_) => anAccount(id, with_))
  const others = fc.tuple(member('a'), member('b'), member('c'))
  const owner = fc.tuple(percent, percent).map(([five, week]) => anAccount('own', { usage: used(five, week) }))
  const cached = fc.integer({ min: 0, max: 900_000 })
  const strategy = fc.constantFrom(...STRATEGIES.filter((name) => name !== 'single_account'))
  const pools = fc.tuple(owner, others, strategy, fc.nat())
  const at = (
    [own, rest, name, seed]: [Candidate, Candidate[], PolicyContext['strategy'], number],
    last: LastUse | null,
  ) => choose([own, ...rest], last, { strategy: name, random: seededFloats(seed) })
  const isUsedUp = ({ usage }: Candidate) =>
    Object.values(usage?.windows ?? {}).some((window) => (window?.usedPercent ?? 0) >= 100)

  test('a move pays, or the owner cannot serve', () => {
    holds(
      fc.property(pools, cached, (pool, tokens) => {
        const { id, moved, moveAvoidable, considered } = at(pool, lastUse(tokens))
        expect(moveAvoidable).toBe(false)
        if (!moved || isUsedUp(pool[0])) return
        const { stayPercent } = find(considered, 'own')!
        const { movePercent = 0 } = find(considered, id)! // absent: not known
        expect(stayPercent).toBeNumber()
        // Both are rounded to hundredths in the log.
        expect(movePercent).toBeLessThanOrEqual(Math.max(100, stayPercent!))
        if (stayPercent! < 100) expect(movePercent).toBeLessThanOrEqual(stayPercent!)
      }),
      500,
    )
  })

  test('a move is to an account below 95 %', () => {
    holds(
      fc.property(pools, fc.option(cached, { nil: null }), (pool, tokens) => {
        const { id, moved } = at(pool, tokens === null ? null : lastUse(tokens))
        const chosen = pool[1].find((one) => one.id === id)
        if (moved) expect(chosen?.usage?.windows.fiveHour?.usedPercent ?? 0).toBeLessThan(95)
      }),
      500,
    )
  })

  test('the more is cached, the fewer conversations move', () => {
    holds(
      fc.property(owner, member('a'), strategy, cached, cached, fc.nat(), (own, other, name, one, another, seed) => {
        const [few, many] = [Math.min(one, another), Math.max(one, another)]
        const chosenWith = (tokens: number) => {
          const last = { ...lastUse(tokens), units: 50 }
          return choose([own, other], last, { strategy: name, random: seededFloats(seed) }).id
        }
        if (chosenWith(many) === 'a') expect(chosenWith(few)).toBe('a')
      }),
      500,
    )
  })

  test('the more a request uses of its owner, the more conversations move', () => {
    holds(
      fc.property(
        owner,
        member('a'),
        fc.integer({ min: 5, max: 900 }),
        fc.integer({ min: 5, max: 900 }),
        (own, other, one, another) => {
          const paysWith = (units: number) => {
            const prices = priceMoves(own, { ...lastUse(100_000), units }, aContext())
            return movePays(prices.movePercent(other), prices.stayPercent)
          }
          if (paysWith(Math.min(one, another))) expect(paysWith(Math.max(one, another))).toBe(true)
        },
      ),
    )
  })

  test('that was remembered by an earlier release, everything is as before', () => {
    const nothing = { accountId: 'own', units: 0, moveUnits: 0, cachedTokens: 0 }
    holds(fc.property(pools, (pool) => expect(at(pool, nothing)).toEqual(at(pool, null))))
  })

  test('without cached tokens everything is as if nothing was known', () => {
    const withoutPrices = ({ stayPercent: _, movePercent: __, ...considered }: Considered) => considered
    holds(
      fc.property(pools, (pool) => {
        const [priced, unknown] = [at(pool, { ...lastUse(0), units: 7 }), at(pool, null)]
        expect({ ...priced, considered: priced.considered.map(withoutPrices) }).toEqual(unknown)
      }),
      500,
    )
  })

  test('only accounts that cost more, or are nearly used up themselves, are skipped', () => {
    holds(
      fc.property(pools, cached, (pool, tokens) => {
        const { moved, considered } = at(pool, lastUse(tokens))
        const { stayPercent = 0 } = find(considered, 'own')!
        for (const { usage, id } of pool[1]) {
          const { skipped, movePercent } = find(considered, id)!
          const isFull = (usage?.windows.fiveHour?.usedPercent ?? 0) >= 95 || isUsedUp(anAccount(id, { usage }))
          if (skipped === 'move_costs_more')
            expect(movePercent ?? 100).toBeGreaterThanOrEqual(Math.min(100, stayPercent))
          if (skipped === 'not_owner' && stayPercent > 0) expect(isFull).toBe(true)
          if (skipped === null && moved) expect(isFull).toBe(false)
        }
      }),
      500,
    )
  })

  test('two conversations on one account move by their own caches', () => {
    const own = anAccount('own', { usage: used(97, 10) })
    const target = anAccount('a', { usage: used(90, 10) })
    const served = [500, 300_000].map((tokens) => choose([own, target], lastUse(tokens)).id)
    expect(served).toEqual(['a', 'own'])
  })
})
