/** Fetching reset credits: once a minute, for accounts in use, and without consequences when it fails. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { accounts as accountRows } from '../../db/schema/accounts.ts'
import { type Failing, pollResetCredits, type ResetCreditsDeps, resetCreditsJob } from '../../src/jobs/reset-credits.ts'
import { Schedule } from '../../src/lib/schedule.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { jobDeps } from './deps.ts'

const never = new AbortController().signal

const deps = (app: TestApp): ResetCreditsDeps => {
  const { pool, resetCredits, random } = app.bindings
  return { ...jobDeps(app), pool, resetCredits, random }
}

/** One round after the other, as the job remembers which accounts failed. */
const rounds = (app: TestApp) => {
  const failing: Failing = new Map()
  return () => pollResetCredits(deps(app), failing, never)
}

const listed = ({ bindings, clock }: TestApp): string[] =>
  bindings.resetCredits.listFor(null, bindings.pool.all(), clock.now()).map(({ redeem_id }) => redeem_id)

const asked = ({ upstream }: TestApp): (string | null)[] =>
  upstream.requests
    .filter(({ path }) => path.startsWith('/backend-api/wham/rate-limit-reset-credits'))
    .map(({ account }) => account)

const member = (app: TestApp, index = 0) => {
  const found = app.members[index]
  if (!found) throw new Error(`There is no account ${index}.`)
  return found
}

/** An app whose first account has the credit `c1`, for another day. */
const withCredit = async () => {
  const app = await testApp()
  const { id, sim } = member(app)
  sim.setResetCredits([{ id: 'c1', expiresAt: app.clock.now() + 86_400_000 }])
  return { app, id, sim, round: rounds(app) }
}

test('the response replaces what was known', async () => {
  const { app, sim, round } = await withCredit()
  await round()
  expect(listed(app)).toEqual(['c1'])
  sim.setResetCredits([{ id: 'c2', expiresAt: null }])
  await round()
  expect(listed(app)).toEqual(['c2'])
  expect(app.upstream.oddities).toEqual([])
})

test('unreadable entries are omitted without affecting others', async () => {
  const { app, sim, round } = await withCredit()
  const credits = [
    { id: 7, status: 'available' },
    null,
    'credit',
    { id: 'no-status' },
    { id: 'odd-time', status: 'available', expires_at: 'soon' },
    { id: 'good', status: 'available', expires_at: '2999-01-01T00:00:00Z' },
  ]
  sim.next({ on: 'reset-credits', status: 200, body: { credits } })
  await round()
  expect(listed(app)).toEqual(['good', 'odd-time'])
})

describe('reset credits are not fetched for an account', () => {
  test.each([
    ['paused', { kind: 'pause' }],
    ['signed out', { kind: 'auth_failed', code: 'token_invalidated', evidence: 'seen' }],
    ['deactivated', { kind: 'auth_failed', code: 'account_deactivated', evidence: 'seen' }],
  ] as const)('that is %s, and its credits are dropped', async (_, event) => {
    const { app, id, round } = await withCredit()
    await round()
    app.bindings.pool.apply(id, { ...event, at: app.clock.now() })
    await round()
    expect(asked(app)).toHaveLength(1)
    expect(listed(app)).toEqual([])
  })

  test('that the upstream could not identify', async () => {
    const { app, id, round } = await withCredit()
    await commit(app.db, (tx) =>
      tx.update(accountRows).set({ chatgptAccountId: null }).where(eq(accountRows.id, id)).run(),
    )
    await app.bindings.pool.reload()
    await round()
    expect(asked(app)).toEqual([])
  })

  test('but are for a blocked one, which can use a credit', async () => {
    const { app, id, round } = await withCredit()
    const at = app.clock.now()
    app.bindings.pool.apply(id, {
      kind: 'rate_limited',
      at,
      evidence: 'seen',
      resetAt: at + 3_600_000,
      retryAfterMs: null,
    })
    await round()
    expect(listed(app)).toEqual(['c1'])
  })
})

describe('a failure', () => {
  test.each([
    ['401', { status: 401, body: { error: { code: 'token_invalidated', message: 'No.' } } }],
    ['402', { status: 402, body: { detail: { code: 'deactivated_workspace' } } }],
    ['403', { status: 403, body: { error: { code: 'account_suspended', message: 'No.' } } }],
    ['404', { status: 404, body: { detail: 'Not Found' } }],
    ['503', { status: 503 }],
    ['a broken connection', { reset: true }],
    ['no list', { status: 200, body: {} }],
    ['no JSON', { status: 200, body: 'hello' }],
  ])('(%s) keeps the known credits and affects neither account nor token', async (_, fault) => {
    const { app, id, sim, round } = await withCredit()
    await round()
    const before = [app.bindings.pool.get(id)?.state, app.bindings.pool.get(id)?.health, sim.accessToken]
    sim.next({ on: 'reset-credits', ...fault })
    await round()
    expect(asked(app)).toHaveLength(2)
    expect(listed(app)).toEqual(['c1'])
    expect([app.bindings.pool.get(id)?.state, app.bindings.pool.get(id)?.health, sim.accessToken]).toEqual(before)
    expect(app.upstream.requests.filter(({ path }) => path === '/oauth/token')).toEqual([])
  })

  test.each([402, 404])('%d delays the next fetch for five minutes', async (status) => {
    const { app, sim, round } = await withCredit()
    sim.next({ on: 'reset-credits', status, body: { error: { code: 'not_found', message: 'No.' } } })
    await round()
    await app.clock.advance('4m')
    await round()
    expect(asked(app)).toHaveLength(1)
    await app.clock.advance('1m')
    await round()
    expect(asked(app)).toHaveLength(2)
  })

  test('times out after ten seconds', async () => {
    const { app, sim, round } = await withCredit()
    sim.next({ on: 'reset-credits', delayHeadersMs: 3_600_000 })
    const run = round()
    await app.clock.advance('10s')
    await run
    expect(app.lines.join('')).toContain('ChatGPT did not answer in time.')
    expect(app.clock.pending).toBe(0)
  })

  test('of one account does not affect the others', async () => {
    const app = await testApp({ accounts: 2 })
    member(app, 0).sim.always({ on: 'reset-credits', status: 500 })
    member(app, 1).sim.setResetCredits([{ id: 'c1', expiresAt: null }])
    await rounds(app)()
    expect(listed(app)).toEqual(['c1'])
  })

  test('that continues is logged once, and again after it ended or the account was out of use', async () => {
    const { app, id, sim, round } = await withCredit()
    const told = () => app.lines.filter((line) => line.includes('reset credits of an account')).length
    sim.always({ on: 'reset-credits', status: 403 })
    await round()
    await round()
    expect(told()).toBe(1)
    sim.clearFaults()
    await round()
    sim.next({ on: 'reset-credits', status: 403 })
    await round()
    expect(told()).toBe(2)
    for (const kind of ['pause', 'reactivate'] as const) {
      sim.next({ on: 'reset-credits', status: 403 })
      app.bindings.pool.apply(id, { kind, at: app.clock.now() })
      await round()
    }
    expect(told()).toBe(3)
  })
})

describe('the reset credits job', () => {
  const scheduled = async (float: number) => {
    const { app } = await withCredit()
    const random = { ...app.bindings.random, float: () => float }
    const schedule = new Schedule({ clock: app.clock, random, onError: (_, err) => expect(err).toBeUndefined() })
    const work = resetCreditsJob({ ...deps(app), random })
    schedule.add('reset credits', 60_000, work, { jitter: 0.1, runAtStart: true })
    schedule.start()
    return { app, schedule }
  }

  test('begins anywhere within its first minute, then runs every minute', async () => {
    const { app, schedule } = await scheduled(0.5)
    await app.clock.advance('29s')
    expect(asked(app)).toHaveLength(0)
    await app.clock.advance('1s')
    expect(asked(app)).toHaveLength(1)
    await app.clock.advance('59s')
    expect(asked(app)).toHaveLength(1)
    await app.clock.advance('1s')
    expect(asked(app)).toHaveLength(2)
    await schedule.stop()
  })

  test('stops immediately, also before it began', async () => {
    const { app, schedule } = await scheduled(0.9)
    await app.clock.advance('1s')
    await schedule.stop()
    await app.clock.advance('120s')
    expect(asked(app)).toEqual([])
    expect(app.clock.pending).toBe(0)
  })
})
