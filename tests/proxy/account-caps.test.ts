/** Usage caps of accounts: above a percentage, routing leaves the rest of the quota to the owner. */
import { describe, expect, test } from 'bun:test'
import { pollUsage } from '../../src/jobs/usage.ts'
import { select } from '../../src/proxy/pool/select.ts'
import { selectionError } from '../../src/proxy/pool/selection-error.ts'
import { jobDeps } from '../jobs/deps.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people, problem } from '../support/people.ts'
import { aContext, anAccount, DAY_MS, limited, NOW, needs, used } from './candidates.ts'

const HOUR_MS = 3_600_000
const never = new AbortController().signal

const weeklyCap = (id: string, percent: number, cap: number, with_ = {}) =>
  anAccount(id, { usage: used(0, percent), maxUsedPercentSecondary: cap, ...with_ })

const choose = (candidates: ReturnType<typeof anAccount>[], request = {}, ctx = {}) =>
  select(candidates, needs(request), aContext(ctx))

const getError = (candidates: ReturnType<typeof anAccount>[], request = {}) => {
  const selection = choose(candidates, request)
  if (selection.kind !== 'none') throw new Error(`something was chosen: ${selection.kind}`)
  return selectionError(selection.failure, NOW)
}

describe('account selection', () => {
  test('an account at its cap is skipped until the window resets', () => {
    const selection = choose([weeklyCap('a', 80, 80), anAccount('b', { usage: used(0, 99) })])
    expect(selection).toMatchObject({ kind: 'chosen', id: 'b' })
    expect(selection.considered[0]).toMatchObject({ id: 'a', skipped: 'reserved', until: NOW + 3 * DAY_MS })
  })

  test.each([
    ['below it', weeklyCap('a', 79, 80)],
    ['after the reset', weeklyCap('a', 95, 80, { usage: used(0, 95, -1) })],
    ['without reported usage', weeklyCap('a', 0, 1, { usage: null })],
    ['at a cap of the other window', anAccount('a', { usage: used(20, 90), maxUsedPercentPrimary: 50 })],
  ])('an account %s is used', (_, account) => {
    expect(choose([account])).toMatchObject({ kind: 'chosen', id: 'a' })
  })

  test('the cap of the 5-hour window ends with that window, two caps with the later one', () => {
    const short = anAccount('a', { usage: used(60, 90), maxUsedPercentPrimary: 50 })
    expect(choose([short]).considered[0]).toMatchObject({ skipped: 'reserved', until: NOW + HOUR_MS })
    const both = { ...short, maxUsedPercentSecondary: 50 }
    expect(choose([both]).considered[0]).toMatchObject({ skipped: 'reserved', until: NOW + 3 * DAY_MS })
  })

  test('plans with a monthly window have their cap on it', () => {
    const { weekly } = used(0, 70, 20).windows
    const usage = { ...used(0, 0), windows: { fiveHour: null, weekly: null, monthly: weekly } }
    const account = anAccount('a', { usage, maxUsedPercentSecondary: 60 })
    expect(choose([account]).considered[0]).toMatchObject({ skipped: 'reserved', until: NOW + 20 * DAY_MS })
  })

  test.each(['capacity_weighted', 'fill_first', 'sequential_drain', 'single_account'] as const)(
    'the cap holds even if nothing else is available, under %s too',
    (strategy) => {
      const cooling = { health: { ...anAccount('x').health, backoffUntil: NOW + 1000 } }
      const reserved = [weeklyCap('a', 90, 80), weeklyCap('b', 100, 80, cooling)]
      expect(choose(reserved, {}, { strategy, singleAccountId: 'a' }).kind).toBe('none')
    },
  )

  test('a conversation moves to another account, and one that cannot gets the reset', () => {
    const pair = [weeklyCap('a', 90, 80), anAccount('b')]
    expect(choose(pair, { owner: { id: 'a', hard: false } })).toMatchObject({ id: 'b', moved: true })
    const error = getError(pair, { owner: { id: 'a', hard: true } })
    expect([error.status, error.extra.envelope?.resets_at]).toEqual([429, (NOW + 3 * DAY_MS) / 1000])
  })

  test('requests that use no quota can use a reserved account', () => {
    expect(choose([weeklyCap('a', 90, 80)], { surface: 'control' })).toMatchObject({ kind: 'chosen', id: 'a' })
    expect(choose([weeklyCap('a', 90, 80)], { surface: 'image' }).kind).toBe('none')
  })
})

describe('keys of the owner', () => {
  const account = weeklyCap('a', 90, 80, { exemptOwnerId: 'usr_ada' })

  test('are exempt if the account is reserved for its owner', () => {
    expect(choose([account], { keyOwnerId: 'usr_ada' })).toMatchObject({ kind: 'chosen', id: 'a' })
  })

  test.each([
    ['of another user', account, 'usr_bob'],
    ['without an owner', account, null],
    ['of the owner, if nothing is reserved for them', { ...account, exemptOwnerId: null }, 'usr_ada'],
    ['without an owner, on an account without one', { ...account, exemptOwnerId: null }, null],
  ])('a key %s is not', (_, candidate, keyOwnerId) => {
    expect(choose([candidate], { keyOwnerId }).considered[0]).toMatchObject({ skipped: 'reserved' })
  })
})

describe('the error', () => {
  test('counts reserved accounts and has the earliest true reset', () => {
    const blocked = anAccount('c', { usage: used(100, 10), state: limited(NOW + 2 * DAY_MS) })
    const error = getError([weeklyCap('a', 90, 80), weeklyCap('b', 85, 85), blocked])
    expect(error).toMatchObject({ code: 'usage_limit_reached', status: 429 })
    expect(error.message).toContain('1 rate limited')
    expect(error.message).toContain('2 reserved, next at 2026-11-23 14:20:00 UTC')
    expect(error.message).toEndWith('it will reset at 2026-11-22 14:20:00 UTC.')
    expect(error.extra.envelope?.resets_at).toBe((NOW + 2 * DAY_MS) / 1000)
  })

  test('without reserved accounts reads as before', () => {
    const blocked = anAccount('c', { usage: used(100, 10), state: limited(NOW + HOUR_MS) })
    expect(getError([blocked]).message).toBe(
      'All accounts have reached their usage limit; it will reset at 15:20:00 UTC.',
    )
  })

  test('next to one that is only cooling down it is temporary', () => {
    const tried = anAccount('b')
    const error = getError([weeklyCap('a', 90, 80), tried], { tried: new Set(['b']) })
    expect(error).toMatchObject({ code: 'no_accounts', status: 503 })
    expect(error.message).toContain('1 reserved, next at')
  })
})

describe('in a running server', () => {
  const POST = 'POST /backend-api/codex/responses'
  const html = { headers: { accept: 'text/html' } }

  const open = async ({ weekly = 85 } = {}) => {
    const app = await testApp()
    const { id, sim } = app.members[0]!
    const secondary = { usedPercent: weekly, windowMinutes: 10_080, resetAt: app.clock.now() + DAY_MS }
    sim.setUsage({ secondary })
    await pollUsage(jobDeps(app), never)
    const users = people(app)
    const admin = await users.as('admin')
    const patch = (json: object) => admin.ask(`PATCH /api/accounts/${id}`, { json })
    return { app, id, admin, patch, resetAt: secondary.resetAt, ...users }
  }

  test('request, account page, list and simulator agree', async () => {
    const { app, id, admin, patch, resetAt } = await open()
    expect((await patch({ maxUsedPercentSecondary: 80 })).status).toBe(200)
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text).error).toMatchObject({ type: 'usage_limit_reached', resets_at: resetAt / 1000 })
    expect(JSON.parse(answer.text).error.message).toContain('1 reserved')
    const why = 'Reserved: its usage cap is reached'
    expect(app.bindings.pool.describe()[0]).toMatchObject({ eligible: false, why, until: resetAt })
    expect(await (await admin.ask(`GET /accounts/${id}`, html)).text()).toContain('has reached its usage cap')
    expect(await (await admin.ask('GET /accounts', html)).text()).toContain(why)
    const explained = await (await admin.ask('GET /api/explain')).json()
    expect(explained).toMatchObject({ outcome: 'none', candidates: [{ skipped: 'reserved' }] })
    expect((await app.rows())[0]).toMatchObject({ status: 'error', httpStatus: 429 })
  })

  test('a removed or raised cap, and a reset, let requests through again', async () => {
    const { app, patch, resetAt } = await open()
    const status = async () => (await getAnswer(app, POST, { json: codexBody() })).status
    for (const cap of [95, null]) {
      await patch({ maxUsedPercentSecondary: 80 })
      expect(await status()).toBe(429)
      await patch({ maxUsedPercentSecondary: cap })
      expect(await status()).toBe(200)
    }
    await patch({ maxUsedPercentSecondary: 80 })
    await app.clock.advance(resetAt - app.clock.now())
    expect(await status()).toBe(200)
  })

  test('a key of the owner is served, and the simulator says so', async () => {
    const { app, admin, add, patch } = await open()
    const [ada, bob] = [await add({ username: 'ada' }), await add({ username: 'bob' })]
    await patch({ maxUsedPercentSecondary: 80, ownerUserId: ada.row.id, reserveForOwner: true })
    const keys = [await app.key({ ownerUserId: ada.row.id }), await app.key({ ownerUserId: bob.row.id })]
    const statuses = keys.map(async ({ key }) => {
      const headers = { authorization: `Bearer ${key}` }
      return (await getAnswer(app, POST, { json: codexBody(), headers })).status
    })
    expect(await Promise.all(statuses)).toEqual([200, 429])
    const outcomes = keys.map(
      async ({ row }) =>
        ((await (await admin.ask(`GET /api/explain?key=${row.id}`)).json()) as { outcome: string }).outcome,
    )
    expect(await Promise.all(outcomes)).toEqual(['chosen', 'none'])
  })

  test('the form of the account sets and clears them', async () => {
    const { app, id, admin, add } = await open()
    const ada = await add({ username: 'ada' })
    const save = async (over: Record<string, string>) => {
      const page = await (await admin.ask(`GET /accounts/${id}?tab=routing`, html)).text()
      const fields = { ...Object.fromEntries(getFields(page, 'form-routing')), ...over }
      return (await admin.send('form', `PATCH /api/accounts/${id}`, fields)).status
    }
    const cap = { maxUsedPercentPrimary: '50', ownerUserId: ada.row.id, reserveForOwner: 'true' }
    expect(await save(cap)).toBe(303)
    const listed = async () => (await (await admin.ask('GET /api/accounts')).json()).accounts[0]
    const set = {
      maxUsedPercentPrimary: 50,
      maxUsedPercentSecondary: null,
      ownerUserId: ada.row.id,
      reserveForOwner: true,
    }
    expect(await listed()).toMatchObject(set)
    expect(await save({})).toBe(303)
    expect(await listed()).toMatchObject(set)
    expect(await save({ maxUsedPercentPrimary: '', ownerUserId: '', reserveForOwner: 'false' })).toBe(303)
    expect(await listed()).toMatchObject({ maxUsedPercentPrimary: null, ownerUserId: null, reserveForOwner: false })
    expect(app.bindings.pool.get(id)).toMatchObject({ maxUsedPercentPrimary: null, exemptOwnerId: null })
  })

  test.each([
    ['a cap of 0', { maxUsedPercentPrimary: 0 }, 'maxUsedPercentPrimary'],
    ['a cap of 101', { maxUsedPercentSecondary: 101 }, 'maxUsedPercentSecondary'],
    ['a cap of half a percent', { maxUsedPercentSecondary: 0.5 }, 'maxUsedPercentSecondary'],
    ['an unknown owner', { ownerUserId: 'usr_nobody' }, 'ownerUserId'],
    ['an exemption without an owner', { reserveForOwner: true }, 'reserveForOwner'],
  ])('%s is rejected', async (_, json, param) => {
    const { patch } = await open()
    const response = await patch(json)
    expect(response.status).toBe(422)
    expect((await response.json()).error).toMatchObject({ code: 'validation_error', param })
  })

  test('a disabled user cannot become the owner, and a deleted one no longer is', async () => {
    const { app, id, admin, add, patch } = await open()
    const ada = await add({ username: 'ada' })
    await patch({ maxUsedPercentSecondary: 80, ownerUserId: ada.row.id, reserveForOwner: true })
    expect((await admin.ask(`DELETE /api/dashboard-users/${ada.row.id}`)).status).toBeLessThan(300)
    expect(app.bindings.pool.get(id)).toMatchObject({ exemptOwnerId: null, maxUsedPercentSecondary: 80 })
    expect(app.bindings.pool.describe()[0]).toMatchObject({ ownerUserId: null, reserveForOwner: false })
    const bob = await add({ username: 'bob', status: 'disabled' })
    expect(await problem(await patch({ ownerUserId: bob.row.id }))).toEqual([422, 'validation_error'])
  })

  test('the owner of an account is hidden from users who do not manage accounts', async () => {
    const { id, as, add, patch } = await open()
    const ada = await add({ username: 'ada' })
    await patch({ ownerUserId: ada.row.id, maxUsedPercentPrimary: 50 })
    const viewer = await as('viewer')
    const [listed] = (await (await viewer.ask('GET /api/accounts')).json()).accounts
    expect(listed).toMatchObject({ ownerUserId: null, maxUsedPercentPrimary: 50 })
    const page = await (await viewer.ask(`GET /accounts/${id}?tab=routing`, html)).text()
    expect(page).not.toContain(ada.row.id)
    expect(page).not.toContain('name="ownerUserId"')
  })
})
