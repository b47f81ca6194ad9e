/** An account with paid credits whose included quota is used up: never, last, or freely used. */
import { describe, expect, test } from 'bun:test'
import { pollUsage } from '../../src/jobs/usage.ts'
import { select } from '../../src/proxy/pool/select.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { jobDeps } from '../jobs/deps.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import { aContext, anAccount, DAY_MS, NOW, needs, used } from './candidates.ts'

const POST = 'POST /backend-api/codex/responses'
const never = new AbortController().signal
const CREDITS = { hasCredits: true, unlimited: false, balance: 12 }

type PaidCredits = Settings['paidCredits']

const onCredits = (id: string, with_ = {}) => anAccount(id, { usage: { ...used(10, 100), credits: CREDITS }, ...with_ })

const choose = (paidCredits: PaidCredits, candidates: ReturnType<typeof anAccount>[], request = {}, ctx = {}) =>
  select(candidates, needs(request), aContext({ paidCredits, ...ctx }))

describe('account selection', () => {
  test('last: an account with included quota is used, however little remains', () => {
    const selection = choose('last', [onCredits('a'), anAccount('b', { usage: used(94, 99) })])
    expect(selection).toMatchObject({ kind: 'chosen', id: 'b' })
    expect(selection.considered[0]).toMatchObject({ id: 'a', skipped: 'paid_credits_last' })
  })

  test('last: also ahead of tier, routing policy and every strategy', () => {
    const included = anAccount('z', {
      routingPolicy: 'preserve',
      health: { ...anAccount('z').health, tier: 'draining' },
    })
    const paid = onCredits('a', { routingPolicy: 'burn_first' })
    for (const strategy of [
      'capacity_weighted',
      'fill_first',
      'sequential_drain',
      'reset_drain',
      'round_robin',
    ] as const)
      expect(choose('last', [paid, included], {}, { strategy })).toMatchObject({ kind: 'chosen', id: 'z' })
  })

  test('last: a conversation leaves its account, but not one that it can never leave', () => {
    const pair = [onCredits('a'), anAccount('b')]
    expect(choose('last', pair, { owner: { id: 'a', hard: false } })).toMatchObject({ id: 'b', moved: true })
    expect(choose('last', pair, { owner: { id: 'a', hard: true } })).toMatchObject({ id: 'a', moved: false })
  })

  test('last: paid credits are used when nothing else is available', () => {
    const busy = anAccount('b', { inFlight: 8 })
    const paused = anAccount('c', { state: { ...anAccount('c').state, status: 'paused', cause: 'paused' } })
    const pair = [onCredits('a'), busy, paused, anAccount('d')]
    expect(choose('last', pair, { streamCap: 8, tried: new Set(['d']) })).toMatchObject({ kind: 'chosen', id: 'a' })
    expect(choose('last', [onCredits('a')])).toMatchObject({ kind: 'chosen', id: 'a' })
  })

  test('last: of accounts that all cool down, one with included quota is tried first', () => {
    const cooling = (backoffUntil: number) => ({ health: { ...anAccount('x').health, backoffUntil } })
    const pair = [onCredits('a', cooling(NOW + 1000)), anAccount('b', cooling(NOW + 2000))]
    expect(choose('last', pair)).toMatchObject({ kind: 'chosen', id: 'b' })
    expect(choose('freely', pair)).toMatchObject({ kind: 'chosen', id: 'a' })
  })

  test.each(['weekly', 'monthly'] as const)(
    'never: a full %s window is the end, and the client gets its reset',
    (name) => {
      const { weekly } = used(10, 100, 2).windows
      const windows = { fiveHour: null, weekly: null, monthly: null, [name]: weekly }
      const account = anAccount('a', { usage: { ...used(0, 0), windows, credits: CREDITS } })
      const selection = choose('never', [account])
      expect(selection).toMatchObject({ kind: 'none', failure: { kind: 'exhausted', resetsAt: NOW + 2 * DAY_MS } })
      expect(selection.considered[0]).toMatchObject({ skipped: 'paid_credits_off', until: NOW + 2 * DAY_MS })
    },
  )

  test('never: also for a conversation, for the single account, and for unlimited credits', () => {
    expect(choose('never', [onCredits('a')], { owner: { id: 'a', hard: true } }).kind).toBe('none')
    const single = { strategy: 'single_account', singleAccountId: 'a' } as const
    expect(choose('never', [onCredits('a'), anAccount('b')], {}, single).kind).toBe('none')
    const credits = { hasCredits: false, unlimited: true, balance: null }
    expect(choose('never', [anAccount('a', { usage: { ...used(10, 100), credits } })]).kind).toBe('none')
  })

  test('freely: as if the quota were not used up', () => {
    expect(choose('freely', [onCredits('a')], { owner: { id: 'a', hard: false } })).toMatchObject({ id: 'a' })
    const pair = [onCredits('a', { routingPolicy: 'burn_first' }), anAccount('b')]
    expect(choose('freely', pair)).toMatchObject({ id: 'a' })
  })

  test.each(['never', 'last', 'freely'] as const)(
    '%s: an account with included quota does not use its credits',
    (paidCredits) => {
      const account = anAccount('a', { usage: { ...used(99, 99), credits: CREDITS } })
      expect(choose(paidCredits, [account])).toMatchObject({ kind: 'chosen', id: 'a' })
      const past = anAccount('a', { usage: { ...used(10, 100, -1), credits: CREDITS } })
      expect(choose(paidCredits, [past])).toMatchObject({ kind: 'chosen', id: 'a' })
    },
  )
})

describe('in a running server', () => {
  const open = async (paidCredits?: PaidCredits, accounts = 1) => {
    const app = await testApp({ accounts, settings: paidCredits ? { paidCredits } : {} })
    const { id, sim } = app.members[0]!
    const secondary = { usedPercent: 100, windowMinutes: 10_080, resetAt: app.clock.now() + DAY_MS }
    sim.setUsage({ secondary, credits: { hasCredits: true, unlimited: false, balance: '12' } })
    await pollUsage(jobDeps(app), never)
    return { app, id, admin: await people(app).as('admin'), resetAt: secondary.resetAt }
  }
  const getView = ({ bindings }: TestApp) => bindings.pool.describe()[0]
  const html = { headers: { accept: 'text/html' } }

  test('the default is last, and the account says so', async () => {
    const { app, id, admin } = await open()
    expect(getView(app)).toMatchObject({ eligible: true, paidCredits: 'last', status: 'active' })
    const page = await (await admin.ask(`GET /accounts/${id}`, html)).text()
    expect(page).toContain('Included quota used up; paid credits: 12 left, used last')
    const [listed] = (await (await admin.ask('GET /api/accounts')).json()).accounts
    expect(listed).toMatchObject({ accountId: id, paidCredits: 'last' })
  })

  test('beside an account with included quota it is still available, and not used', async () => {
    const { app, id } = await open('last', 2)
    expect(getView(app)).toMatchObject({ accountId: id, eligible: true, skipped: null, paidCredits: 'last' })
    await getAnswer(app, POST, { json: codexBody() })
    expect((await app.rows()).at(-1)).toMatchObject({ accountId: app.members[1]!.id, paidCredits: false })
  })

  test('never: unavailable until the reset, shown to users and to the client', async () => {
    const { app, id, admin, resetAt } = await open('never')
    const why = 'Included quota used up, and paid credits are off'
    expect(getView(app)).toMatchObject({ eligible: false, skipped: 'paid_credits_off', why, until: resetAt })
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text).error).toMatchObject({ type: 'usage_limit_reached', resets_at: resetAt / 1000 })
    expect(await (await admin.ask(`GET /accounts/${id}`, html)).text()).toContain('paid credits')
    const explained = await (await admin.ask('GET /api/explain')).json()
    expect(explained).toMatchObject({ outcome: 'none', candidates: [{ skipped: 'paid_credits_off' }] })
  })

  test('a changed setting applies from the next request on', async () => {
    const { app } = await open('never')
    await app.change({ paidCredits: 'freely' })
    expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
    await app.change({ paidCredits: 'never' })
    expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(429)
  })

  test('a request that was served with paid credits is marked in log, drawer and API', async () => {
    const { app, admin } = await open('last')
    await getAnswer(app, POST, { json: codexBody() })
    const [row] = await app.rows()
    expect(row).toMatchObject({ status: 'ok', paidCredits: true })
    const { requests } = await (await admin.ask('GET /api/request-logs')).json()
    expect(requests[0]).toMatchObject({ id: row?.id, paidCredits: true })
    expect(await (await admin.ask(`GET /logs/${row?.id}`, html)).text()).toContain('served with paid credits')
    expect(await (await admin.ask('GET /logs?columns=paid', html)).text()).toContain('paid credits')
  })

  test('an account with included quota leaves no mark', async () => {
    const app = await testApp()
    await getAnswer(app, POST, { json: codexBody() })
    expect((await app.rows())[0]).toMatchObject({ paidCredits: false })
  })
})
