/** Polling usage: every account once a minute, spread; blocked accounts when their block ends; rejections counted. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import type { JobDeps } from '../../src/jobs/context.ts'
import { pollUsage, USAGE_BEAT_MS } from '../../src/jobs/usage.ts'
import { deleteAccount } from '../../src/model/accounts/accounts.ts'
import { testApp } from '../support/app.ts'
import { jobDeps } from './deps.ts'

const never = new AbortController().signal

const getPolls = ({ upstream }: Awaited<ReturnType<typeof testApp>>): string[] =>
  upstream.requests.filter(({ path }) => path.startsWith('/backend-api/wham/usage')).map(({ account }) => account ?? '')

/** Beats as the schedule would, for `ms`; returns the polled accounts. */
const beatFor = async (app: Awaited<ReturnType<typeof testApp>>, deps: JobDeps, ms: number): Promise<string[]> => {
  const before = getPolls(app).length
  for (let passed = 0; passed < ms; passed += USAGE_BEAT_MS) {
    await app.clock.advance(USAGE_BEAT_MS)
    const run = pollUsage(deps, never)
    await app.clock.advance(0)
    await run
  }
  return getPolls(app).slice(before)
}

test('every account is polled immediately, then once a minute, and never all together', async () => {
  const app = await testApp({ accounts: 24 })
  const deps = jobDeps(app)
  await pollUsage(deps, never)
  expect(new Set(getPolls(app)).size).toBe(24)
  await beatFor(app, deps, 115_000)
  const asked = await beatFor(app, deps, 60_000)
  expect(asked.toSorted()).toEqual(app.upstream.accounts.map(({ chatgptAccountId }) => chatgptAccountId).toSorted())
  const perBeat = await beatFor(app, deps, USAGE_BEAT_MS)
  expect(perBeat.length).toBe(2)
})

test('the account waiting longest is polled first', async () => {
  const app = await testApp({ accounts: 2 })
  const deps = jobDeps(app)
  await pollUsage(deps, never)
  await app.clock.advance('3m')
  deps.polls.get(app.members[0]!.id)!.at = 60_000
  expect(await beatFor(app, deps, USAGE_BEAT_MS)).toEqual([app.members[1]!.sim.chatgptAccountId])
})

test('the pool gets the result', async () => {
  const app = await testApp()
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  const resetAt = app.clock.now() + 3_600_000
  sim.setUsage({ primary: { usedPercent: 30, windowMinutes: 300, resetAt } })
  await pollUsage(jobDeps(app), never)
  expect(app.bindings.pool.get(id)?.usage?.windows.fiveHour).toEqual({ usedPercent: 30, windowMinutes: 300, resetAt })
})

test('the windows of a former plan disappear with the next poll', async () => {
  const app = await testApp()
  const deps = jobDeps(app)
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  const resetAt = app.clock.now() + 25 * 86_400_000
  sim.setUsage({ primary: { usedPercent: 100, windowMinutes: 43_200, resetAt } })
  await pollUsage(deps, never)
  const fiveHour = { usedPercent: 0, windowMinutes: 300, resetAt: app.clock.now() + 3_600_000 }
  sim.setUsage({ primary: fiveHour })
  await beatFor(app, deps, 60_000)
  expect(app.bindings.pool.get(id)?.usage?.windows).toEqual({ fiveHour, weekly: null, monthly: null })
})

test('setting the clock back does not stop polling', async () => {
  const app = await testApp({ accounts: 2 })
  const deps = jobDeps(app)
  app.members[0]!.sim.next({ on: 'usage', status: 403, body: { error: { message: 'Forbidden.' } } })
  await pollUsage(deps, never)
  app.clock.set(-86_400_000)
  expect(await beatFor(app, deps, 60_000)).toHaveLength(1)
  expect(await beatFor(app, deps, 300_000)).toContain(app.members[0]!.sim.chatgptAccountId)
})

test('paused accounts are skipped, and polled immediately when they return', async () => {
  const app = await testApp()
  const deps = jobDeps(app)
  const [{ id }] = app.members as [(typeof app.members)[0]]
  app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
  expect(await beatFor(app, deps, 120_000)).toEqual([])
  app.bindings.pool.apply(id, { kind: 'reactivate', at: app.clock.now() })
  expect(await beatFor(app, deps, USAGE_BEAT_MS)).toHaveLength(1)
})

describe('a blocked account', () => {
  const blocked = async (ms: number) => {
    const app = await testApp()
    const [{ id }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    const refusal = { at, evidence: 'seen', resetAt: at + ms, retryAfterMs: null }
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal })
    return { app, id, deps: jobDeps(app) }
  }

  test('is polled like the others, and unblocked by a report with room', async () => {
    const { app, id, deps } = await blocked(3_600_000)
    const [{ sim }] = app.members as [(typeof app.members)[0]]
    await app.clock.advance(1)
    sim.setUsage({ primary: { usedPercent: 20, windowMinutes: 300, resetAt: app.clock.now() + 60_000 } })
    await pollUsage(deps, never)
    expect(app.bindings.pool.get(id)?.state.status).toBe('active')
  })

  test('is polled immediately when its block should have ended', async () => {
    const { app, deps } = await blocked(67_000)
    const [{ sim }] = app.members as [(typeof app.members)[0]]
    const resetAt = app.clock.now() + 67_000
    sim.setUsage({ primary: { usedPercent: 100, windowMinutes: 300, resetAt } })
    await pollUsage(deps, never)
    expect(await beatFor(app, deps, 60_000)).toHaveLength(1)
    expect(await beatFor(app, deps, 10_000)).toHaveLength(1)
    expect(await beatFor(app, deps, 55_000)).toEqual([])
  })
})

describe('a rejected poll', () => {
  test.each([
    [402, 'deactivated_workspace', 'deactivated'],
    [403, 'account_suspended', 'deactivated'],
    [403, 'account_session_expired', 'reauth_required'],
  ])('%d %s makes the account %s', async (status, code, expected) => {
    const app = await testApp()
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    sim.always({ on: 'usage', status, body: { error: { code, message: 'No.' } } })
    await pollUsage(jobDeps(app), never)
    expect(app.bindings.pool.get(id)?.state).toMatchObject({ status: expected, cause: code })
  })

  test.each([
    ['402 without a body', 402, undefined],
    ['402 of a billing page', 402, { error: { code: 'payment_required', message: 'Pay first.' } }],
    ['404 with a code', 404, { error: { code: 'not_found' } }],
    ['404 with a detail code', 404, { detail: { code: 'route_not_found' } }],
    ['404 with a type', 404, { error: { type: 'invalid_request_error', message: 'Invalid URL' } }],
    ['404 with a type that reads like a permanent code', 404, { error: { type: 'account_deleted', message: 'No.' } }],
    ['401 with a type that reads like a permanent code', 401, { error: { type: 'token_expired', message: 'No.' } }],
  ])('(%s) does not deactivate the account and delays the next poll for five minutes', async (_, status, body) => {
    const app = await testApp()
    const deps = jobDeps(app)
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    sim.always({ on: 'usage', status, ...(body && { body }) })
    await pollUsage(deps, never)
    expect(app.bindings.pool.get(id)?.state.status).toBe('active')
    expect(await beatFor(app, deps, 295_000)).toEqual([])
    expect(await beatFor(app, deps, USAGE_BEAT_MS)).not.toEqual([])
  })

  test('without a reason delays polls for five minutes and changes nothing', async () => {
    const app = await testApp()
    const deps = jobDeps(app)
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    sim.next({ on: 'usage', status: 403, body: { error: { message: 'Forbidden.' } } })
    await pollUsage(deps, never)
    expect(app.bindings.pool.get(id)?.state.status).toBe('active')
    expect(await beatFor(app, deps, 295_000)).toEqual([])
    expect(await beatFor(app, deps, 5000)).toHaveLength(1)
  })

  test('that continues is logged once', async () => {
    const app = await testApp()
    const deps = jobDeps(app)
    const [{ sim }] = app.members as [(typeof app.members)[0]]
    sim.always({ on: 'usage', status: 400 })
    await pollUsage(deps, never)
    await beatFor(app, deps, 180_000)
    expect(app.lines.filter((line) => line.includes('usage of an account'))).toHaveLength(1)
  })

  test('that recurs after an answer is logged again', async () => {
    const app = await testApp()
    const deps = jobDeps(app)
    const [{ sim }] = app.members as [(typeof app.members)[0]]
    for (const fails of [true, false, true]) {
      if (fails) sim.next({ on: 'usage', status: 400 })
      await beatFor(app, deps, 60_000)
    }
    expect(app.lines.filter((line) => line.includes('usage of an account'))).toHaveLength(2)
  })
})

test('a removed account is forgotten', async () => {
  const app = await testApp({ accounts: 2 })
  const deps = jobDeps(app)
  await pollUsage(deps, never)
  const actor = { id: 'test', method: null, address: null, at: 0 }
  await commit(app.db, (tx) => deleteAccount(tx, app.members[0]!.id, actor))
  await pollUsage(deps, never)
  expect([...deps.polls.keys()]).toEqual([app.members[1]!.id])
})

test('stopping the schedule does not wait for polls', async () => {
  const app = await testApp()
  const [{ sim }] = app.members as [(typeof app.members)[0]]
  sim.always({ on: 'usage', delayHeadersMs: 3_600_000 })
  const stop = new AbortController()
  const run = pollUsage(jobDeps(app), stop.signal)
  await app.clock.advance(1)
  stop.abort(new Error('stopped'))
  await expect(run).rejects.toThrow('stopped')
})
