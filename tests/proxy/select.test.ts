/** Account selection: the selected one, the reasons of the others, and the client's error without one. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ROUTING_POLICIES } from '../../db/schema/accounts.ts'
import { openAiError } from '../../src/errors.ts'
import { HEALTHY, type Health } from '../../src/model/accounts/account-health.ts'
import { ACTIVE, type AccountState } from '../../src/model/accounts/account-state.ts'
import { isInScope, keyScope } from '../../src/model/keys/key-scope.ts'
import type { Candidate, PolicyContext } from '../../src/proxy/pool/policies.ts'
import { select } from '../../src/proxy/pool/select.ts'
import { selectionError } from '../../src/proxy/pool/selection-error.ts'
import type { SelectionNeeds } from '../../src/proxy/pool/selection-needs.ts'
import { STRATEGIES } from '../../src/settings/schema.ts'
import { holds, seededRandom } from '../support/property.ts'
import { aContext, anAccount, DAY_MS, limited, NOW, needs, used } from './candidates.ts'

const state = (status: AccountState['status']): AccountState => ({ ...ACTIVE, status, since: NOW - 1 })
const health = (with_: Partial<Health>): Health => ({ ...HEALTHY, ...with_ })
const choose = (candidates: Candidate[], with_: Partial<SelectionNeeds> = {}, ctx: Partial<PolicyContext> = {}) =>
  select(candidates, needs(with_), aContext(ctx))
const chosen = (...args: Parameters<typeof choose>) => {
  const selection = choose(...args)
  return selection.kind === 'chosen' ? selection.id : selection.kind
}
const reasons = (...args: Parameters<typeof choose>) =>
  Object.fromEntries(choose(...args).considered.map(({ id, skipped }) => [id, skipped]))
const NO_RETRY = "Retrying won't help until this is fixed in the Sluice dashboard."
const refusal = (...args: Parameters<typeof choose>) => {
  const selection = choose(...args)
  if (selection.kind !== 'none') throw new Error(`expected a failure, got ${selection.kind}`)
  return selectionError(selection.failure, NOW)
}

describe('eligibility', () => {
  test('every exclusion reason is named', () => {
    const candidates = [
      anAccount('ok', { models: new Set(['m']), securityWorkAuthorized: true }),
      anAccount('tried', { securityWorkAuthorized: true }),
      anAccount('out'),
      anAccount('paused', { state: state('paused'), securityWorkAuthorized: true }),
      anAccount('signin', { state: state('reauth_required'), securityWorkAuthorized: true }),
      anAccount('gone', { state: state('deactivated'), securityWorkAuthorized: true }),
      anAccount('limited', { state: limited(NOW + 5000), securityWorkAuthorized: true }),
      anAccount('cooling', { health: health({ backoffUntil: NOW + 1 }), securityWorkAuthorized: true }),
      anAccount('other', { models: new Set(['n']), securityWorkAuthorized: true }),
      anAccount('plain'),
      anAccount('busy', { inFlight: 8, securityWorkAuthorized: true }),
    ]
    const inScope = candidates.map(({ id }) => id).filter((id) => id !== 'out')
    const scope = keyScope(inScope, null)
    const all = { model: 'm', tried: new Set(['tried']), scope, restricted: true, streamCap: 8 }
    expect(reasons(candidates, all)).toEqual({
      ok: null,
      tried: 'tried',
      out: 'out_of_scope',
      paused: 'paused',
      signin: 'needs_sign_in',
      gone: 'deactivated',
      limited: 'rate_limited',
      cooling: 'cooling_down',
      other: 'model_not_supported',
      plain: 'not_authorized',
      busy: 'at_cap',
    })
    expect(choose(candidates, all).considered.find(({ id }) => id === 'limited')?.until).toBe(NOW + 5000)
  })

  test('a block that is over needs no timer to end', () => {
    expect(chosen([anAccount('a', { state: limited(NOW) })])).toBe('a')
    expect(chosen([anAccount('a', { state: { ...limited(null), nextCheckAt: NOW } })])).toBe('a')
    expect(chosen([anAccount('a', { health: health({ errors: 3, backoffUntil: NOW }) })])).toBe('a')
  })

  test('an unknown catalog excludes nothing', () => {
    expect(chosen([anAccount('a', { models: null })], { model: 'brand-new' })).toBe('a')
  })

  test('only caps in the way mean waiting', () => {
    const busy = anAccount('busy', { inFlight: 2 })
    expect(chosen([busy, anAccount('paused', { state: state('paused') })], { streamCap: 2 })).toBe('wait')
    expect(chosen([busy], { streamCap: 3 })).toBe('busy')
    expect(chosen([busy], { streamCap: 0 })).toBe('busy')
  })

  test('as a last resort the cooling account that is due first is used, even if it is the only one', () => {
    const soon = anAccount('soon', { health: health({ backoffUntil: NOW + 1 }) })
    const later = anAccount('later', { health: health({ backoffUntil: NOW + 2 }) })
    expect(chosen([later, soon])).toBe('soon')
    for (const status of ['rate_limited', 'quota_exceeded'] as const)
      expect(chosen([later, anAccount('x', { state: { ...limited(NOW + 9), status } })])).toBe('later')
    expect(chosen([soon, anAccount('x')], { tried: new Set(['x']) })).toBe('soon')
    const stay = { id: 'soon', hard: true }
    expect(chosen([soon, anAccount('x')], { tried: new Set(['x']), owner: stay })).toBe('soon')
    expect(chosen([soon])).toBe('soon')
    expect(chosen([soon], { tried: new Set(['soon']) })).toBe('none')
    expect(chosen([soon, later], { tried: new Set(['soon', 'later']) })).toBe('none')
  })
})

describe('tiers and classes', () => {
  const draining = anAccount('draining', { health: health({ tier: 'draining' }) })
  const probing = anAccount('probing', { health: health({ tier: 'probing' }), lastSelectedAt: NOW - 59_999 })
  const healthy = anAccount('healthy', { usage: used(80, 80) })

  test('healthy before probing before draining', () => {
    expect(chosen([draining, probing, healthy])).toBe('healthy')
    expect(chosen([draining, probing])).toBe('probing')
    expect(chosen([draining])).toBe('draining')
    expect(reasons([draining, healthy])).toEqual({ draining: 'lower_tier', healthy: null })
  })

  test('accounts that fail come after the others, and an owner that failed twice is left', () => {
    const failing = (id: string, count: number) =>
      anAccount(id, { health: health({ failing: { at: NOW, count, lostConnection: 'reset' } }) })
    const other = anAccount('other', { usage: used(80, 80) })
    expect(chosen([failing('a', 1), other])).toBe('other')
    expect(chosen([failing('a', 1), failing('b', 1)])).not.toBe('none')
    expect(chosen([failing('a', 1), other], { owner: { id: 'a', hard: false } })).toBe('a')
    expect(chosen([failing('a', 2), other], { owner: { id: 'a', hard: false } })).toBe('other')
    expect(chosen([failing('a', 2), other], { owner: { id: 'a', hard: true } })).toBe('a')
  })

  test('a probing account unused for a minute gets one request first', () => {
    const due = { ...probing, lastSelectedAt: NOW - 60_000 }
    const waiting = { ...probing, id: 'waiting', lastSelectedAt: NOW - 60_001 }
    expect(chosen([due, healthy])).toBe('probing')
    expect(chosen([due, waiting, healthy])).toBe('waiting')
    const never = [anAccount('b', { ...waiting, id: 'b' }), anAccount('a', { ...waiting, id: 'a' })]
    expect(reasons([...never, healthy])).toEqual({ b: 'lower_tier', a: null, healthy: 'lower_tier' })
  })

  test('burn_first before normal before preserve, inside the tier', () => {
    const burn = anAccount('burn', { routingPolicy: 'burn_first', usage: used(80, 80) })
    const preserve = anAccount('preserve', { routingPolicy: 'preserve' })
    expect(chosen([preserve, anAccount('normal'), burn])).toBe('burn')
    expect(chosen([preserve, anAccount('normal')])).toBe('normal')
    expect(chosen([preserve, { ...burn, health: draining.health }])).toBe('preserve')
  })

  test.each(['sequential_drain', 'reset_drain', 'single_account'] as const)('%s ignores both', (strategy) => {
    const first = anAccount('a', { health: health({ tier: 'draining' }), routingPolicy: 'preserve' })
    expect(chosen([anAccount('b'), first], {}, { strategy })).toBe('a')
  })

  test('single_account uses no other account', () => {
    const ctx = { strategy: 'single_account', singleAccountId: 'b' } as const
    expect(chosen([anAccount('a'), anAccount('b')], {}, ctx)).toBe('b')
    expect(chosen([anAccount('a'), anAccount('b', { state: limited(NOW + 9) })], {}, ctx)).toBe('none')
    expect(chosen([anAccount('a'), anAccount('b')], { owner: { id: 'a', hard: true } }, ctx)).toBe('a')
    expect(chosen([anAccount('a')], {}, { ...ctx, strategy: 'usage_weighted' })).toBe('a')
  })

  test.each([
    ['is gone', [anAccount('a')], {}, ''],
    ['is not for the key', [anAccount('a'), anAccount('b')], { scope: keyScope(['a'], null) }, ''],
    ['is paused', [anAccount('a'), anAccount('b', { state: state('paused') })], {}, '1 paused; '],
  ])('says so when the account it names %s', (_why, candidates, with_, first) => {
    const error = refusal(candidates, with_, { strategy: 'single_account', singleAccountId: 'b' })
    expect(error.message).toBe(
      `No account is available (${first}1 not the account selected in the routing strategy). ${NO_RETRY}`,
    )
  })
})

describe('owners', () => {
  const soft = { owner: { id: 'own', hard: false } }
  const hard = { owner: { id: 'own', hard: true } }
  const other = anAccount('other')

  test('a conversation stays on its account, also on one that drains', () => {
    const own = anAccount('own', { usage: used(94, 99), health: health({ tier: 'draining' }) })
    expect(choose([other, own], soft)).toMatchObject({ kind: 'chosen', id: 'own', moved: false })
    expect(reasons([other, own], soft)).toEqual({ other: 'not_owner', own: null })
  })

  test.each([
    [95, 0],
    [0, 100],
  ])('and moves at %p / %p percent only to an account below that', (five, week) => {
    const own = anAccount('own', { usage: used(five, week) })
    expect(choose([other, own], soft)).toMatchObject({ id: 'other', moved: true })
    expect(choose([anAccount('other', { usage: used(96, 0) }), own], soft)).toMatchObject({ id: 'own', moved: false })
    expect(choose([other, own], hard)).toMatchObject({ id: 'own', moved: false })
  })

  test('and stays if credits are freely spent on the full week, or the strategy empties one account after the other', () => {
    const full = used(0, 100)
    const paid = anAccount('own', { usage: { ...full, credits: { hasCredits: true, unlimited: false, balance: 5 } } })
    expect(chosen([other, paid], soft, { paidCredits: 'freely' })).toBe('own')
    expect(chosen([other, anAccount('own', { usage: full })], soft, { strategy: 'sequential_drain' })).toBe('own')
  })

  test('the successor is next in order, and using it is not a move', () => {
    const line = { owner: { id: 'own', hard: false, successor: 'heir' } }
    const [own, successor] = [anAccount('own', { usage: used(96, 0) }), anAccount('heir')]
    expect(choose([other, own, successor], line)).toMatchObject({ id: 'heir', moved: false })
    expect(choose([other, anAccount('own'), successor], line)).toMatchObject({ id: 'own', moved: false })
    expect(choose([other, own, anAccount('heir', { usage: used(96, 0) })], line)).toMatchObject({
      id: 'other',
      moved: true,
    })
  })

  test('running requests are not a reason to move', () => {
    expect(chosen([other, anAccount('own', { inFlight: 30, usage: used(90, 90) })], soft)).toBe('own')
  })

  test('a soft owner that cannot serve is left, a hard one never', () => {
    const own = anAccount('own', { state: limited(NOW + DAY_MS) })
    expect(choose([other, own], soft)).toMatchObject({ id: 'other', moved: true })
    expect(choose([other], soft)).toMatchObject({ id: 'other', moved: true })
    expect(chosen([other, own], hard)).toBe('none')
    expect(chosen([other, anAccount('own', { inFlight: 1 })], { ...hard, streamCap: 1 })).toBe('wait')
  })

  test('the error is about the owner', () => {
    const own = anAccount('own', { state: limited(NOW + DAY_MS) })
    const exhausted = refusal([other, own], hard)
    expect(exhausted).toMatchObject({ code: 'usage_limit_reached', status: 429 })
    expect(exhausted.message).toContain('owns this conversation')
    expect(openAiError(exhausted)).toMatchObject({ resets_at: (NOW + DAY_MS) / 1000 })
    for (const unavailable of [[other], [other, anAccount('own', { state: state('paused') })]]) {
      const error = refusal(unavailable, hard)
      expect(error).toMatchObject({ code: 'continuity_owner_unavailable', status: 503, extra: { shouldRetry: false } })
      expect(error.extra.retryAfterSeconds).toBeUndefined()
    }
  })
})

describe('failures', () => {
  test('a pool confirmed as used up is a 429 with the earliest true reset', () => {
    const pool = [
      anAccount('a', { state: limited(NOW + 2 * DAY_MS), planType: 'pro' }),
      anAccount('b', { state: { ...limited(NOW + 90_500), status: 'quota_exceeded' }, planType: 'team' }),
      anAccount('c', { state: state('paused') }),
    ]
    const error = refusal(pool)
    expect(openAiError(refusal(pool.toReversed()))).toEqual(openAiError(error))
    expect(refusal(pool.slice(0, 1)).message).toEndWith('it will reset at 2026-11-22 14:20:00 UTC.')
    expect(error.status).toBe(429)
    expect<unknown>(openAiError(error)).toEqual({
      message: 'All accounts have reached their usage limit; it will reset at 14:21:31 UTC.',
      type: 'usage_limit_reached',
      code: 'usage_limit_reached',
      param: null,
      resets_at: Math.ceil((NOW + 90_500) / 1000),
      resets_in_seconds: 91,
    })
  })

  test('a workspace limit that every account has reached is named, even without an upstream message', () => {
    const code = 'workspace_owner_credits_depleted'
    const spent = (id: string, cause = code) =>
      anAccount(id, { state: { ...limited(NOW + DAY_MS, cause), status: 'quota_exceeded' } })
    const error = refusal([spent('a'), spent('b')])
    expect(error).toMatchObject({ status: 429, message: expect.stringContaining('workspace') })
    expect(error.extra.headers).toEqual({ 'x-codex-rate-limit-reached-type': code })
    expect(openAiError(error)).toMatchObject({ code, type: 'usage_limit_reached', resets_at: (NOW + DAY_MS) / 1000 })
    const mixed = refusal([spent('a'), spent('b', 'workspace_member_usage_limit_reached')])
    expect(openAiError(mixed).code).toBe('usage_limit_reached')
    expect(mixed.extra.headers).toBeUndefined()
  })

  test('without a known reset none is invented', () => {
    const error = refusal([anAccount('a', { state: limited(null) })])
    expect(openAiError(error)).toMatchObject({ code: 'usage_limit_reached' })
    expect(openAiError(error)).not.toHaveProperty('resets_at')
    expect(error.extra.retryAfterSeconds).toBe(30)
    expect(error.message).toBe('All accounts have reached their usage limit.')
  })

  test('a used-up account beside one that waits briefly is not a used-up pool', () => {
    const held = anAccount('b', { state: limited(NOW + 2000, 'rate_limit_exceeded') })
    expect(refusal([anAccount('a', { state: limited(NOW + DAY_MS) }), held]).status).toBe(503)
  })

  test('a used-up account beside one without quota for the model is a used-up pool, and for another model is not', () => {
    const both = [
      anAccount('a', { state: limited(NOW + DAY_MS), models: new Set(['m']) }),
      anAccount('b', { limitedModels: new Map([['m', limited(NOW + 60_000)]]), models: new Set(['m']) }),
    ]
    const error = refusal(both, { model: 'm' })
    expect(error.code).toBe('usage_limit_reached')
    expect(error.extra.envelope).toMatchObject({ resets_in_seconds: 60 })
    expect(chosen(both, { model: null })).toBe('b')
  })

  test('a mixture is a 503 with the number of each cause and a retry time', () => {
    const error = refusal(
      [
        anAccount('a', { state: limited(NOW + 40_000, 'rate_limited'), models: new Set(['m']) }),
        anAccount('b', { state: limited(NOW + 35_000, 'rate_limited') }),
        anAccount('c', { state: state('paused') }),
        anAccount('d', { state: state('reauth_required') }),
        anAccount('e', { models: new Set(['n']) }),
      ],
      { model: 'm' },
    )
    expect(error).toMatchObject({ code: 'no_accounts', status: 503 })
    expect(error.message).toBe(
      'No account is available (2 rate limited, next at 14:20:35 UTC; 1 paused; 1 needs sign-in; 1 without this model).',
    )
    expect(error.extra.retryAfterSeconds).toBe(35)
  })

  test.each([
    [NOW + 1, 1],
    [NOW + 500_000, 60],
  ])('retry after a rate limit until %p is %p s', (until, seconds) => {
    const error = refusal([anAccount('a', { state: limited(until, 'rate_limit_exceeded') })])
    expect(error.extra.retryAfterSeconds).toBe(seconds)
    expect(error.message).toContain('1 rate limited, next at 14:2')
  })

  test('a temporary rate limit is not exhaustion', () => {
    expect(refusal([anAccount('a', { state: limited(NOW + 2000, 'rate_limit_exceeded') })]).status).toBe(503)
    const known = anAccount('a', { state: limited(NOW + 2000, 'rate_limit_exceeded'), usage: used(100, 10) })
    expect(refusal([known]).status).toBe(429)
  })

  test('an unavailable model, a restricted pool and an empty pool have their own errors', () => {
    const lacking = anAccount('a', { models: new Set() })
    const both = [lacking, anAccount('b', { models: new Set(['gpt-x']) })]
    const model = refusal(both, { model: 'gpt-x', scope: keyScope(['a'], null) })
    expect(model).toMatchObject({ code: 'no_accounts', status: 503 })
    expect(model.message).toStartWith("No account offers the model 'gpt-x' (1 without this model).")
    expect(chosen([lacking], { model: 'gpt-x' })).toBe('a') // that none lists: for the upstream to judge
    const restricted = { restricted: true }
    expect(refusal([anAccount('a')], restricted).code).toBe('no_security_work_authorized_accounts')
    const spent = anAccount('a', { securityWorkAuthorized: true, state: limited(NOW + 9) })
    expect(refusal([spent], restricted)).toMatchObject({ code: 'no_security_work_authorized_accounts', status: 503 })
    expect(refusal([]).message).toStartWith('No ChatGPT account has been added to Sluice yet.')
  })

  test("accounts outside the key's scope are neither counted nor mentioned", () => {
    const error = refusal([anAccount('a', { state: limited(NOW + 9000) }), anAccount('b')], {
      scope: keyScope(['a'], null),
    })
    expect(error.code).toBe('usage_limit_reached')
    expect(refusal([anAccount('b')], { scope: keyScope([], null) }).message).toStartWith(
      'This API key has no accounts.',
    )
  })
})

const ENDS_BY_TIME = new Set([
  'tried',
  'rate_limited',
  'quota_exceeded',
  'model_limited',
  'cooling_down',
  'at_cap',
  'reserved',
])

describe('selection and explanation', () => {
  const time = fc.integer({ min: NOW - 120_000, max: NOW + 120_000 })
  const candidate = (id: string): fc.Arbitrary<Candidate> =>
    fc.record({
      id: fc.constant(id),
      egressPoolId: fc.constant(null),
      planType: fc.constantFrom('free', 'plus', 'pro'),
      routingPolicy: fc.constantFrom(...ROUTING_POLICIES),
      state: fc.oneof(
        { weight: 3, arbitrary: fc.constant(ACTIVE) },
        { weight: 1, arbitrary: time.map((until) => limited(until)) },
        { weight: 1, arbitrary: fc.constantFrom(state('paused'), state('reauth_required')) },
      ),
      health: fc.record({
        tier: fc.constantFrom('healthy' as const, 'draining' as const, 'probing' as const),
        errors: fc.nat(5),
        lastError: fc.constant(null),
        lacksToken: fc.boolean(),
        backoffUntil: fc.option(time, { nil: null }),
        enteredAt: time,
        successes: fc.nat(2),
        failedProbes: fc.nat(3),
        failing: fc.option(fc.record({ at: time, count: fc.nat(3), lostConnection: fc.constant(null) }), { nil: null }),
      }),
      usage: fc.option(
        fc.tuple(fc.nat(100), fc.nat(100), fc.nat(7)).map(([five, week, days]) => used(five, week, days)),
        { nil: null },
      ),
      inFlight: fc.nat(4),
      lastSelectedAt: time,
      lastForegroundAt: time,
      securityWorkAuthorized: fc.boolean(),
      maxUsedPercentPrimary: fc.option(fc.integer({ min: 1, max: 100 }), { nil: null, freq: 4 }),
      maxUsedPercentSecondary: fc.option(fc.integer({ min: 1, max: 100 }), { nil: null, freq: 4 }),
      exemptOwnerId: fc.constantFrom(null, 'usr_a'),
      tags: fc.constantFrom([], ['t'], ['s', 't']),
      position: fc.constantFrom(null, 1, 2),
      models: fc.constantFrom(null, new Set(['m']), new Set(['n'])),
      rejectedModels: fc.constantFrom(new Map(), new Map([['m', NOW + 1]])),
      missingRoutes: fc.constantFrom(new Map(), new Map([['image', NOW + 1]])),
      limitedModels: fc.oneof(
        fc.constant(new Map()),
        time.map((until) => new Map([['m', limited(until)]])),
      ),
    })
  const pool = fc.nat(5).chain((n) => fc.tuple(...['e', 'b', 'd', 'a', 'c'].slice(0, n).map(candidate)))
  const ids = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e')).map((list) => new Set(list))
  const wanted: fc.Arbitrary<SelectionNeeds> = fc.record({
    model: fc.constantFrom(null, 'm'),
    tried: fc.oneof(fc.constant(new Set<string>()), ids),
    scope: fc.option(fc.record({ accountIds: ids, tags: fc.constantFrom(new Set<string>(), new Set(['t'])) }), {
      nil: null,
    }),
    owner: fc.option(fc.record({ id: fc.constantFrom('a', 'b', 'x'), hard: fc.boolean() }), { nil: null }),
    restricted: fc.boolean(),
    keyOwnerId: fc.constantFrom(null, 'usr_a', 'usr_b'),
    streamCap: fc.nat(3),
  })

  test('agree for any pool and request', () => {
    holds(
      fc.property(pool, wanted, fc.constantFrom(...STRATEGIES), fc.nat(), (candidates, request, strategy, seed) => {
        const single = strategy === 'single_account' ? 'a' : null
        const ctx = () => aContext({ strategy, random: seededRandom(seed), singleAccountId: single })
        const selection = select(candidates, request, ctx())
        expect(select(candidates, request, ctx())).toEqual(selection)
        expect(selection.considered.map(({ id }) => id)).toEqual(candidates.map(({ id }) => id))
        const unskipped = selection.considered.filter(({ skipped }) => skipped === null).map(({ id }) => id)
        if (selection.kind !== 'chosen') {
          expect(unskipped).toEqual([])
          if (selection.kind === 'none') {
            const { retryAfterSeconds, shouldRetry } = selectionError(selection.failure, NOW).extra
            if (shouldRetry === false) expect(retryAfterSeconds).toBeUndefined()
            else expect(retryAfterSeconds).toBeWithin(1, 61)
            const endsByTime = selection.considered.some(({ skipped }) => ENDS_BY_TIME.has(skipped ?? ''))
            expect(shouldRetry === false).toBe(!endsByTime)
          }
          return
        }
        expect(unskipped).toContain(selection.id)
        const account = candidates.find(({ id }) => id === selection.id)
        expect(request.tried.has(selection.id)).toBe(false)
        expect(isInScope(request.scope, account!)).toBe(true)
        expect(account?.securityWorkAuthorized || !request.restricted).toBe(true)
        expect(request.streamCap === 0 || (account?.inFlight ?? 0) < request.streamCap).toBe(true)
        const { maxUsedPercentPrimary, maxUsedPercentSecondary, exemptOwnerId, usage } = account!
        const isExempt = exemptOwnerId !== null && exemptOwnerId === request.keyOwnerId
        if (!isExempt) {
          expect(usage?.windows.fiveHour?.usedPercent ?? 0).toBeLessThan(maxUsedPercentPrimary ?? 101)
          const isReset = (usage?.windows.weekly?.resetAt ?? 0) <= NOW
          if (!isReset) expect(usage?.windows.weekly?.usedPercent ?? 0).toBeLessThan(maxUsedPercentSecondary ?? 101)
        }
        if (request.owner?.hard) expect(selection.id).toBe(request.owner.id)
        expect(selection.moved).toBe(request.owner !== null && request.owner.id !== selection.id)
        expect(selection.considered.every(({ score, skipped }) => (score === null) === (skipped !== null))).toBe(true)
      }),
      500,
    )
  })
})
