/** Keys of the traffic class `opportunistic`: what they can use, in requests, dry run and admission alike. */
import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../src/lib/random.ts'
import { select } from '../../src/proxy/pool/select.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { aContext, anAccount, DAY_MS, NOW, needs, used } from './candidates.ts'

const HOUR_MS = 3_600_000
const ADMISSION = 'GET /backend-api/codex/opportunistic/admission'

const choose = (accounts: ReturnType<typeof anAccount>[], with_ = {}) =>
  select(accounts, needs({ isOpportunistic: true, ...with_ }), aContext())
const isOpen = (accounts: ReturnType<typeof anAccount>[], with_ = {}) => choose(accounts, with_).kind === 'chosen'

/** A `preserve` account with these percentages used and hours until each reset. */
const preserved = (
  { short = 0, weekly = 0, shortHours = 0.5, weeklyHours = 84 },
  with_: Parameters<typeof anAccount>[1] = {},
) =>
  anAccount('p', {
    routingPolicy: 'preserve',
    usage: {
      ...used(0, 0),
      windows: {
        fiveHour: { usedPercent: short, windowMinutes: 300, resetAt: NOW + shortHours * HOUR_MS },
        weekly: { usedPercent: weekly, windowMinutes: 10_080, resetAt: NOW + weeklyHours * HOUR_MS },
        monthly: null,
      },
    },
    ...with_,
  })
const bearer = (key: { key: string } | null): Record<string, string> =>
  key ? { authorization: `Bearer ${key.key}` } : {}
/** Never usable, so that the account is not the only `preserve` one. */
const other = anAccount('q', { routingPolicy: 'preserve', state: { ...anAccount('x').state, status: 'paused' } })

describe('an account of the policy normal or burn_first', () => {
  test.each(['normal', 'burn_first'] as const)(
    '%s: alone, more than five percent of both windows must remain',
    (routingPolicy) => {
      const left = (short: number, weekly: number) =>
        isOpen([anAccount('a', { routingPolicy, usage: used(100 - short, 100 - weekly) })])
      expect([left(6, 6), left(5, 50), left(50, 5), left(3, 3)]).toEqual([true, false, false, false])
    },
  )

  test('with another account for foreground requests it can be used to the end', () => {
    expect(isOpen([anAccount('a', { usage: used(99, 99) }), anAccount('b', { usage: used(99, 99) })])).toBe(true)
  })

  test('an account that is paused, out of scope or already failed does not count as another', () => {
    const low = anAccount('a', { usage: used(97, 20) })
    const paused = anAccount('b', { state: { ...low.state, status: 'paused' } })
    expect(isOpen([low, paused])).toBe(false)
    expect(isOpen([low, anAccount('b')], { scope: { accountIds: new Set(['a']), tags: new Set() } })).toBe(false)
    expect(isOpen([low, anAccount('b')], { tried: new Set(['b']) })).toBe(false)
  })

  test('a window that has reset counts as empty, and unknown usage as no reserve', () => {
    const usage = used(99, 10)
    usage.windows.fiveHour!.resetAt = NOW - 1
    expect(isOpen([anAccount('a', { usage })])).toBe(true)
    expect(isOpen([anAccount('a', { usage: null })])).toBe(false)
  })
})

describe('an account of the policy preserve', () => {
  test('weekly floor: 15 % on pace, 5 % behind pace', () => {
    const left = (weeklyLeft: number, weeklyHours: number) =>
      isOpen([preserved({ weekly: 100 - weeklyLeft, weeklyHours }), other])
    expect([left(16, 168), left(15, 168)]).toEqual([true, false])
    // 90 % used with 4 h left of the week: behind its 97.6 % by more than 5.
    expect([left(10, 4), left(5, 4), left(8, 20)]).toEqual([true, false, false])
  })

  test('short floor: 10 %, 20 % with over an hour left, 25 % for the only one', () => {
    const left = (short: number, hours: number, more = [other]) =>
      isOpen([preserved({ short: 100 - short, shortHours: hours }), ...more])
    expect([left(11, 0.5), left(10, 0.5)]).toEqual([true, false])
    expect([left(21, 2), left(20, 2)]).toEqual([true, false])
    expect([left(26, 0.5, []), left(25, 0.5, [])]).toEqual([true, false])
  })

  test('just used by a foreground request: 25 % of the week and 30 % of the five hours', () => {
    const just = { lastForegroundAt: NOW - 29 * 60_000 }
    const left = (short: number, weekly: number, with_ = just) =>
      isOpen([preserved({ short: 100 - short, weekly: 100 - weekly }, with_), other])
    expect([left(31, 26), left(30, 26), left(31, 25)]).toEqual([true, false, false])
    expect(left(30, 20, { lastForegroundAt: NOW - 31 * 60_000 })).toBe(true)
  })

  test('is closed without recent and complete figures', () => {
    const fresh = preserved({})
    expect(isOpen([fresh, other])).toBe(true)
    expect(isOpen([{ ...fresh, usage: null }, other])).toBe(false)
    expect(isOpen([{ ...fresh, usage: { ...fresh.usage!, at: NOW - 11 * 60_000 } }, other])).toBe(false)
    const { windows } = fresh.usage!
    expect(isOpen([{ ...fresh, usage: { ...fresh.usage!, windows: { ...windows, fiveHour: null } } }, other])).toBe(
      false,
    )
  })
})

describe('account selection', () => {
  test('excludes closed accounts even for the owner of a conversation and as a last resort', () => {
    const low = anAccount('a', { usage: used(97, 20) })
    expect(choose([low], { owner: { id: 'a', hard: true } })).toMatchObject({
      kind: 'none',
      failure: { kind: 'opportunistic' },
    })
    const cooling = { ...low, health: { ...low.health, backoffUntil: NOW + 1000 } }
    expect(choose([cooling]).considered).toMatchObject([{ skipped: 'burn_window_closed' }])
    const busy = { ...low, inFlight: 8 }
    expect(choose([busy], { streamCap: 8 }).kind).toBe('none')
  })

  test('does not exclude the owner of files or a conversation while another account serves foreground requests', () => {
    const low = anAccount('a', { usage: used(97, 20) })
    const free = anAccount('b', { usage: used(10, 10) })
    for (const owner of [
      { id: 'a', hard: true },
      { id: 'a', hard: true, hasFiles: true },
      { id: 'a', hard: true, isRetried: true },
    ])
      expect(choose([low, free], { owner })).toMatchObject({ kind: 'chosen', id: 'a' })
    expect(choose([low, { ...free, usage: null }], { owner: { id: 'a', hard: true } }).kind).toBe('chosen')
    const paused = { ...free, state: { ...free.state, status: 'paused' as const } }
    expect(choose([low, paused], { owner: { id: 'a', hard: true } }).kind).toBe('none')
  })

  test('an owner does not change which accounts are excluded (random pools)', () => {
    const random = seededRandom(7).float
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
    for (let round = 0; round < 500; round++) {
      const accounts = ['a', 'b', 'c'].slice(0, 1 + Math.floor(random() * 3)).map((id) => {
        const account = anAccount(id, {
          routingPolicy: pick(['normal', 'burn_first', 'preserve']),
          usage: pick([null, used(pick([1, 50, 96, 99]), pick([1, 50, 96]))]),
          inFlight: pick([0, 0, 2]),
        })
        return pick([account, account, { ...account, state: { ...account.state, status: 'paused' as const } }])
      })
      const held = (with_: object) =>
        choose(accounts, { streamCap: 2, ...with_ })
          .considered.filter(({ skipped }) => skipped === 'burn_window_closed')
          .map(({ id }) => id)
      const withoutOwner = held({})
      for (const { id } of accounts) {
        const owned = held({ owner: { id, hard: true } })
        expect(owned).toEqual(withoutOwner.filter((each) => each === id))
        const admitted = choose([accounts.find((each) => each.id === id)!], { isOpportunistic: false, streamCap: 2 })
        if (admitted.kind === 'chosen')
          expect(isOpen(accounts, { owner: { id, hard: true }, streamCap: 2 })).toBe(!withoutOwner.includes(id))
      }
    }
  })

  test('adds no reason to accounts that foreground requests could not use either', () => {
    const used_ = anAccount('a', { usage: used(97, 20), state: { ...anAccount('a').state, status: 'paused' } })
    expect(choose([used_]).considered).toMatchObject([{ skipped: 'paused' }])
  })

  test('does not exclude accounts for requests without quota, nor for foreground requests', () => {
    const low = anAccount('a', { usage: used(97, 20) })
    expect(isOpen([low], { surface: 'control' })).toBe(true)
    expect(isOpen([low], { isOpportunistic: false })).toBe(true)
  })
})

describe('requests, dry run and admission', () => {
  const setup = async (usedPercent: number) => {
    const app = await testApp()
    const windows = used(usedPercent, 10).windows
    const now = app.clock.now()
    windows.fiveHour!.resetAt = now + HOUR_MS
    windows.weekly!.resetAt = now + 3 * DAY_MS
    const usage = { ...used(0, 0), at: now, windows }
    app.bindings.pool.observe(app.members[0]!.id, usage)
    const keys = { night: await app.key({ trafficClass: 'opportunistic' }), day: await app.key() }
    const ask = async (route: string, key: { key: string } | null, more = {}) => {
      return app.ask(route, { headers: bearer(key), ...more })
    }
    return { app, keys, ask }
  }
  const TURN = 'POST /backend-api/codex/responses'
  const dryRun = async ({ app, keys }: Awaited<ReturnType<typeof setup>>, name: 'night' | 'day') => {
    const response = await app.ask(`GET /api/explain?key=${keys[name].row.id}`)
    return (await response.json()) as { outcome: string; candidates: { reason: string | null }[] }
  }

  test('reject an opportunistic key with 429 and Retry-After 60 while the only account is low', async () => {
    const world = await setup(96)
    const { app, keys, ask } = world
    for (const route of [ADMISSION, TURN]) {
      const response = await ask(route, keys.night, route === TURN ? { json: codexBody() } : {})
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '60'])
      expect(await response.json()).toMatchObject({
        error: {
          code: 'rate_limit_exceeded',
          message: 'opportunistic burn window closed: 1 kept for foreground requests.',
        },
      })
    }
    const explained = await dryRun(world, 'night')
    expect(explained).toMatchObject({
      outcome: 'none',
      candidates: [{ reason: 'kept for foreground requests, and this key is opportunistic' }],
    })
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/responses'))).toEqual([])
  })

  test('admit foreground keys and requests without a key then', async () => {
    const world = await setup(96)
    const { app, keys, ask } = world
    for (const key of [keys.day, null]) {
      expect(await (await ask(ADMISSION, key)).json()).toEqual({ admitted: true })
      expect((await getAnswer(app, TURN, { json: codexBody(), headers: bearer(key) })).status).toBe(200)
    }
    expect((await dryRun(world, 'day')).outcome).toBe('chosen')
  })

  test('admit an opportunistic key while enough is left', async () => {
    const world = await setup(50)
    const { app, keys, ask } = world
    expect(await (await ask(`${ADMISSION}?model=gpt-5.5`, keys.night)).json()).toEqual({ admitted: true })
    expect((await getAnswer(app, TURN, { json: codexBody(), headers: bearer(keys.night) })).status).toBe(200)
    expect((await dryRun(world, 'night')).outcome).toBe('chosen')
  })

  test('a foreground request is remembered for its account, an opportunistic one is not', async () => {
    const { app, keys, ask } = await setup(50)
    const [account] = app.bindings.pool.all()
    await (await ask(TURN, keys.night, { json: codexBody() })).text()
    expect(account?.lastForegroundAt).toBe(0)
    await (await ask(TURN, keys.day, { json: codexBody() })).text()
    expect(account?.lastForegroundAt).toBe(app.clock.now())
  })

  test('requests without quota are no foreground use', async () => {
    const { app, keys, ask } = await setup(50)
    const [account] = app.bindings.pool.all()
    const json = { file_name: 'a.txt', file_size: 3, use_case: 'codex' }
    expect((await ask('POST /backend-api/files', keys.day, { json })).status).toBe(200)
    expect((await ask('POST /backend-api/codex/alpha/search', keys.day, { json: { query: 'x' } })).status).toBe(200)
    expect(account?.lastSelectedAt).toBe(app.clock.now())
    expect(account?.lastForegroundAt).toBe(0)
  })

  test('foreground use is kept across a restart, for as long as it matters', async () => {
    const { app, keys, ask } = await setup(50)
    const lastUse = () => app.bindings.pool.all()[0]?.lastForegroundAt
    const at = app.clock.now()
    await (await ask(TURN, keys.day, { json: codexBody() })).text()
    await app.clock.advance(60_000)
    await (await ask(TURN, keys.night, { json: codexBody() })).text()
    await (await ask('POST /backend-api/codex/alpha/search', keys.day, { json: { query: 'x' } })).text()
    await app.restart()
    expect(lastUse()).toBe(at)
    await app.clock.advance(30 * 60_000)
    await app.restart()
    expect(lastUse()).toBe(0)
  })

  test('admission checks model, key, capability and draining like a model request', async () => {
    const { app, ask } = await setup(50)
    const key = await app.key({ trafficClass: 'opportunistic', allowedModels: ['gpt-5.4'] })
    const getCode = async (response: Response) => {
      const { error } = (await response.json()) as { error: { code: string; param: string | null } }
      return [response.status, error.code, error.param]
    }
    expect(await getCode(await ask(`${ADMISSION}?model=gpt-5.5`, key))).toEqual([404, 'model_not_found', 'model'])
    expect(await getCode(await ask(`${ADMISSION}?model=${'x'.repeat(201)}`, key))).toEqual([
      400,
      'invalid_request_error',
      'model',
    ])
    expect(await getCode(await ask(`${ADMISSION}?model=`, key))).toEqual([400, 'invalid_request_error', 'model'])
    expect(await getCode(await ask(`${ADMISSION}?model=a&model=b`, key))).toEqual([
      400,
      'invalid_request_error',
      'model',
    ])
    app.bindings.lifecycle.draining = true
    expect((await ask(ADMISSION, key)).status).toBe(503)
  })
})
