/**
 * Account states found by requests: immediately in memory, stored when the database works, without delaying a request.
 */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { announceAll, commit } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { absorbRateHeaders } from '../../src/proxy/exchange/rate-headers.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const DAY_MS = 86_400_000

const setUp = async () => {
  const app = await testApp({ accounts: 2 })
  const first = app.members[0]!
  await app.prefer(first.id)
  return {
    app,
    ...first,
    state: () => app.bindings.pool.get(first.id)!.state,
    row: async () => (await app.db.select().from(accounts).where(eq(accounts.id, first.id)).get())!,
    refuse: () =>
      app.sqlite.run("CREATE TRIGGER locked BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'locked'); END"),
    accept: () => app.sqlite.run('DROP TRIGGER locked'),
  }
}

const refusal = (app: TestApp) => ({ at: app.clock.now(), evidence: 'seen', resetAt: null, retryAfterMs: null })

describe('a state that cannot be stored', () => {
  test('affects no request, holds in memory, and is stored when the database works again', async () => {
    const { app, sim, state, row, refuse, accept } = await setUp()
    sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    refuse()
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(200)
    expect(state().status).toBe('rate_limited')
    await announceAll(app.db)
    expect(state().status).toBe('rate_limited')
    await app.clock.advance('5s')
    expect((await row()).status).toBe('active')
    accept()
    await app.clock.advance('2s')
    expect(await row()).toMatchObject({ status: 'rate_limited', until: state().until })
    await app.restart()
    expect(state().status).toBe('rate_limited')
    await expectNothingLeft(app)
  })

  test('is replayed in order on top of what others changed since', async () => {
    const { app, id, state, row, refuse, accept } = await setUp()
    refuse()
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
    app.bindings.pool.apply(id, { kind: 'checked', at: app.clock.now(), ok: true })
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
    await app.clock.advance('3s')
    accept()
    app.sqlite.run("UPDATE accounts SET status = 'paused' WHERE id = ?", [id])
    await app.clock.advance('2s')
    expect([(await row()).status, state().status]).toEqual(['paused', 'paused'])
  })

  test('is dropped when the tokens it was about are replaced', async () => {
    const { app, id, state, refuse, accept } = await setUp()
    refuse()
    const failure = { code: 'refresh_token_reused', evidence: 'seen' }
    app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), ...failure })
    await app.clock.advance('1s')
    accept()
    app.sqlite.run('UPDATE accounts SET last_refresh_at = ? WHERE id = ?', [app.clock.now(), id]) // signed in again
    await app.clock.advance('2s')
    expect(state().status).toBe('active')
  })

  test('is not superseded by tokens dated in the future', async () => {
    const { app, id, state } = await setUp()
    app.sqlite.run('UPDATE accounts SET last_refresh_at = ? WHERE id = ?', [Date.UTC(2099, 0, 1), id])
    const failure = { code: 'refresh_token_reused', evidence: 'seen' }
    app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), ...failure })
    await app.clock.advance('2s')
    expect(state().status).toBe('reauth_required')
  })

  test('nor is a plan', async () => {
    const { app, id, row, refuse, accept } = await setUp()
    refuse()
    const windows = { fiveHour: null, weekly: null, monthly: null }
    app.bindings.pool.observe(id, { at: app.clock.now(), planType: 'pro', credits: null, windows })
    await announceAll(app.db)
    expect(app.bindings.pool.get(id)!.planType).toBe('pro')
    await app.clock.advance('3s')
    accept()
    await app.clock.advance('2s')
    expect((await row()).planType).toBe('pro')
  })

  test('of an account that was removed is dropped', async () => {
    const { app, id } = await setUp()
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
    app.sqlite.run('DELETE FROM accounts WHERE id = ?', [id])
    await app.clock.advance('2s')
    await expectNothingLeft(app)
  })

  test('is stored at shutdown', async () => {
    const { app, id, row } = await setUp()
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
    await app.bindings.pool.stop()
    expect((await row()).status).toBe('rate_limited')
  })
})

describe('an account in the pool', () => {
  const report = (app: TestApp, usedPercent: number) => {
    const fiveHour = { usedPercent, windowMinutes: 300, resetAt: app.clock.now() + 60_000 }
    return { at: app.clock.now(), planType: null, credits: null, windows: { fiveHour, weekly: null, monthly: null } }
  }

  test('drains while its usage is reported high, and probes when the window is over', async () => {
    const { app, id } = await setUp()
    const { pool } = app.bindings
    pool.observe(id, report(app, 86))
    expect(pool.get(id)!.health.tier).toBe('draining')
    await app.clock.advance('61s')
    pool.tick()
    expect(pool.get(id)!.health.tier).toBe('probing')
  })

  test('that was removed records nothing', async () => {
    const { app } = await setUp()
    const { pool } = app.bindings
    pool.apply('gone', { kind: 'rate_limited', ...refusal(app) })
    pool.health('gone', { kind: 'error', at: app.clock.now(), evidence: '500' })
    pool.observe('gone', report(app, 1))
    expect([pool.get('gone'), pool.isInUse('gone'), pool.all().length]).toEqual([null, false, 2])
  })

  test('keeps its connections while it is blocked, and not when it is out of use', async () => {
    const { app, id } = await setUp()
    const { pool } = app.bindings
    const isInUse = [pool.isInUse(id)]
    pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
    isInUse.push(pool.isInUse(id))
    pool.apply(id, { kind: 'pause', at: app.clock.now() })
    expect([...isInUse, pool.isInUse(id)]).toEqual([true, true, false])
  })

  test('gets its slot back once, however often the lease is released', async () => {
    const { app, id } = await setUp()
    const { pool } = app.bindings
    const needs = { model: null, tried: new Set<string>(), scope: null, owner: null, restricted: false }
    const lease = await pool.lease(needs, new AbortController().signal)
    expect(pool.get(id)!.inFlight).toBe(1)
    lease.release()
    lease.release()
    expect(pool.get(id)!.inFlight).toBe(0)
  })

  test('with other nodes, serves what costs no quota also while it is at its limit of streams', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 }, isShared: true })
    const { pool } = app.bindings
    const needs = { model: null, tried: new Set<string>(), scope: null, owner: null, restricted: false }
    const turn = await pool.lease(needs, new AbortController().signal)
    for (const surface of ['control', 'file'] as const) {
      const lease = await pool.lease({ ...needs, surface }, AbortSignal.timeout(5000))
      expect(pool.get(app.members[0]!.id)!.inFlight).toBe(2)
      lease.release()
    }
    turn.release()
  })

  test('exposes its known models, whether or not there are others', async () => {
    const { app, id } = await setUp()
    const { pool } = app.bindings
    pool.get(id)!.models = new Set(['m'])
    expect([pool.offers('m'), pool.offers('n'), pool.offers(null)]).toEqual([true, false, false])
  })
})

test('a recent pause by another process overrides a request’s result', async () => {
  const { app, id, row, state } = await setUp()
  app.sqlite.run("UPDATE accounts SET status = 'paused', cause = 'paused' WHERE id = ?", [id])
  app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal(app) })
  await app.clock.advance('1s')
  expect([(await row()).status, state().status]).toEqual(['paused', 'paused'])
})

test('a report made while the clock was ahead is replaced by the next one, even after a restart', async () => {
  const { app, id } = await setUp()
  const report = (usedPercent: number) => {
    const at = app.clock.now()
    const fiveHour = { usedPercent, windowMinutes: 300, resetAt: null }
    const windows = { fiveHour, weekly: null, monthly: null }
    app.bindings.pool.observe(id, { at, planType: null, credits: null, windows })
  }
  const used = () => app.bindings.pool.get(id)!.usage?.windows.fiveHour?.usedPercent
  app.clock.set(DAY_MS)
  report(40)
  await app.bindings.ledger.flush()
  app.clock.set(-DAY_MS)
  report(97)
  expect(used()).toBe(97)
  await app.restart()
  expect(used()).toBe(97)
})

describe('a clock that is set back by hours', () => {
  const HOURS_MS = 5 * 3_600_000

  test('does not extend a cooldown by that time', async () => {
    const app = await testApp()
    const [{ id } = { id: '' }] = app.members
    const { pool } = app.bindings
    for (let n = 0; n < 3; n++) pool.health(id, { kind: 'error', at: app.clock.now(), evidence: '500' })
    pool.tick()
    expect(pool.get(id)?.health.backoffUntil).toBeGreaterThan(app.clock.now())
    app.clock.set(-HOURS_MS)
    await app.clock.advance('5s')
    pool.tick()
    expect(pool.get(id)?.health.backoffUntil).toBeNull()
    await expectNothingLeft(app)
  })

  test('does not extend the HTTP fallback by that time, nor keep outdated usage', async () => {
    const { app, id } = await setUp()
    const { proxyDeps, pool } = app.bindings
    const account = pool.get(id)!
    const told = new Headers({ 'x-codex-primary-used-percent': '40', 'x-codex-primary-window-minutes': '300' })
    absorbRateHeaders(proxyDeps, id, told)
    account.httpUntil = app.clock.now() + 600_000
    pool.tick()
    app.clock.set(-HOURS_MS)
    pool.tick()
    absorbRateHeaders(proxyDeps, id, told)
    expect([account.httpUntil > app.clock.now(), account.usage?.at]).toEqual([false, app.clock.now()])
  })

  test('keeps requests spread over the accounts', async () => {
    const app = await testApp({ accounts: 3, settings: { routingStrategy: 'round_robin' } })
    const serve = async () => {
      await getAnswer(app, NATIVE, { json: codexBody() })
      await app.clock.advance('5s')
      app.bindings.pool.tick()
    }
    for (let n = 0; n < 3; n++) await serve()
    app.clock.set(-HOURS_MS)
    app.bindings.pool.tick()
    for (let n = 0; n < 3; n++) await serve()
    const served = (await app.attemptRows()).slice(-3)
    expect(new Set(served.map(({ accountId }) => accountId)).size).toBe(3)
    await expectNothingLeft(app)
  })
})

test('a request that needs a stream slot during a commit waits for its end, and stays on its account', async () => {
  const { app, id } = await setUp()
  const { pool } = app.bindings
  await app.change({ proxyAccountStreamLimit: 4 })
  await pool.handOver() // from now on, streams need slots
  const needs = { model: null, tried: new Set<string>(), scope: null, owner: null, restricted: false }
  const gate = Promise.withResolvers<void>()
  const committed = commit(app.db, () => gate.promise)
  await app.clock.advance('1ms')
  const waiting = pool.lease(needs, new AbortController().signal)
  await app.clock.advance('1ms')
  gate.resolve()
  await committed
  const lease = await waiting
  expect(lease.account.id).toBe(id)
  lease.release()
})
