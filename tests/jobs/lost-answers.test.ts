/** Commits of jobs whose answer is lost: nothing is sent twice, nothing is left half done, and results are kept. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { accountEvents } from '../../db/schema/history.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { automationsJob } from '../../src/jobs/automations.ts'
import { redeemByRule } from '../../src/jobs/redeem-by-rule.ts'
import { pollResetCredits } from '../../src/jobs/reset-credits.ts'
import { startWindow } from '../../src/model/accounts/start-window.ts'
import { lastWindowStart } from '../../src/model/accounts/window-starts.ts'
import { endInterrupted } from '../../src/model/automations/runs.ts'
import { advanceClockDuring, type TestApp, testApp } from '../support/app.ts'
import { blockUpdates, loseAnswer } from '../support/lost-answer.ts'
import { jobDeps } from './deps.ts'

const MINUTE = 60_000
const never = new AbortController().signal
const STORED = [
  ['and it was stored', true],
  ['and it was not stored', false],
] as const

const eventsOf = (app: TestApp, kind: 'probe' | 'window' | 'reset') =>
  app.db.select().from(accountEvents).where(eq(accountEvents.kind, kind)).all()

interface Run {
  id: string
  status: string
  errorCode: string | null
}

/** A probe of one account, started by a user. */
const automation = async () => {
  const app = await testApp({ accounts: 1 })
  const json = { name: 'Probe', kind: 'probe', schedule: { time: '07:55', timezone: 'UTC', days: ['mon'] } }
  const { id } = (await (await app.ask('POST /api/automations', { json })).json()) as { id: string }
  expect((await app.ask(`POST /api/automations/${id}/run-now`)).status).toBe(202)
  const sent: { count: number; whenSent: () => unknown } = { count: 0, whenSent: () => {} }
  const job = automationsJob({
    ...app.bindings,
    ping: async () => {
      sent.count++
      await sent.whenSent()
    },
    readUsage: async () => {},
  })
  const run = () => advanceClockDuring(app, Promise.resolve(job(never)))
  const last = async (): Promise<Run | undefined> =>
    ((await (await app.ask('GET /api/automations/runs')).json()) as { items: Run[] }).items[0]
  return { app, sent, run, last }
}

describe('an automation', () => {
  test.each(STORED)('sends its request once if the answer to the claim is lost, %s', async (_, isStored) => {
    const { app, sent, run, last } = await automation()
    const isLost = loseAnswer(app.db, { sql: /update "automation_runs"/, isStored })
    await run()
    expect([isLost(), sent.count]).toEqual([true, 1])
    expect(await last()).toMatchObject({ status: 'success' })
  })

  test.each(STORED)('keeps the result if the answer to its commit is lost, %s', async (_, isStored) => {
    const { app, sent, run, last } = await automation()
    sent.whenSent = () => loseAnswer(app.db, { sql: /update "automation_runs"/, isStored })
    await run()
    await run()
    expect(sent.count).toBe(1)
    expect(await last()).toMatchObject({ status: 'success' })
    expect(await eventsOf(app, 'probe')).toMatchObject([{ result: 'served' }])
  })

  test('stays interrupted if another node has led and ended it before its answer', async () => {
    const { app, sent, run, last } = await automation()
    sent.whenSent = async () => {
      await commit(app.db, (tx) => endInterrupted(tx, app.clock.now()))
      await app.clock.sleep(1000)
    }
    await run()
    expect(sent.count).toBe(1)
    expect(await last()).toMatchObject({ status: 'failed', errorCode: 'interrupted' })
    expect(await eventsOf(app, 'probe')).toEqual([])
  })

  test('does not run forever if its result cannot be stored', async () => {
    const { app, sent, run, last } = await automation()
    let unblock: () => Promise<unknown> = async () => {}
    sent.whenSent = () => void blockUpdates(app.db, 'automation_runs').then((done) => (unblock = done))
    await run().catch(() => {})
    await unblock()
    expect(await last()).toMatchObject({ status: 'running' })
    await run()
    expect(sent.count).toBe(1)
    expect(await last()).toMatchObject({ status: 'failed', errorCode: 'interrupted' })
  })
})

describe('a window start', () => {
  const setup = async () => {
    const app = await testApp({ accounts: 1 })
    const accountId = app.members[0]!.id
    const sent = { count: 0, whenSent: () => {} }
    const ping = async () => {
      sent.count++
      sent.whenSent()
    }
    const at = app.clock.now()
    const start = () =>
      advanceClockDuring(
        app,
        startWindow({ ...app.bindings, ping }, { accountId, resetAt: at, model: 'gpt-5.5' }, never),
      )
    return { app, accountId, sent, start }
  }

  test.each(STORED)('sends its request once if the answer to the claim is lost, %s', async (_, isStored) => {
    const { app, accountId, sent, start } = await setup()
    loseAnswer(app.db, { sql: /insert into "window_starts"/, isStored })
    expect(await start()).toMatchObject({ kind: 'started' })
    expect(await start()).toEqual({ kind: 'repeated' })
    expect(sent.count).toBe(1)
    expect(await lastWindowStart(app.db, accountId)).toMatchObject({ result: 'started' })
  })

  test.each(STORED)('keeps the result if the answer to its commit is lost, %s', async (_, isStored) => {
    const { app, accountId, sent, start } = await setup()
    sent.whenSent = () => loseAnswer(app.db, { sql: /update "window_starts"/, isStored })
    expect(await start()).toMatchObject({ kind: 'started' })
    expect(await lastWindowStart(app.db, accountId)).toMatchObject({ result: 'started' })
    expect(await eventsOf(app, 'window')).toHaveLength(1)
  })
})

describe('a reset credit', () => {
  const setup = async () => {
    const app = await testApp()
    const { id, sim } = app.members[0]!
    const now = app.clock.now()
    const resetAt = now + 240 * MINUTE
    sim.setUsage({ primary: { usedPercent: 100, windowMinutes: 300, resetAt } })
    sim.setResetCredits([{ id: 'c1', expiresAt: now + 2880 * MINUTE }])
    const fiveHour = { usedPercent: 100, windowMinutes: 300, resetAt }
    const windows = { fiveHour, weekly: null, monthly: null }
    app.bindings.pool.observe(id, { at: now, windows, credits: null, planType: null, additional: [] })
    await app.ask(`PATCH /api/accounts/${id}`, { json: { resetPolicy: 'when_exhausted' } })
    const { pool, resetCredits, random, settings } = app.bindings
    const deps = { ...jobDeps(app), pool, resetCredits, random, settings }
    const job = { ...deps, redeemByRule: (one: string) => redeemByRule(deps, one) }
    const round = () => advanceClockDuring(app, pollResetCredits(job, new Map(), never))
    const sent = () => app.upstream.requests.filter(({ path }) => path.endsWith('/consume')).length
    const redeemed = async () =>
      (await app.db.select().from(auditLogs).all()).filter(({ event }) => event === 'reset_credit_redeemed').length
    return { app, id, round, sent, redeemed }
  }

  test.each(STORED)('is used once if the answer to the claim is lost, %s', async (_, isStored) => {
    const { app, round, sent, redeemed } = await setup()
    const isLost = loseAnswer(app.db, { sql: /insert into "reset_attempts"/, isStored })
    await round()
    await round()
    expect([isLost(), sent(), await redeemed()]).toEqual([true, 1, 1])
  })

  test.each(STORED)('is recorded once if the answer to that commit is lost, %s', async (_, isStored) => {
    const { app, round, sent, redeemed } = await setup()
    const isLost = loseAnswer(app.db, { sql: /update "reset_attempts"/, isStored })
    await round()
    expect([isLost(), sent(), await redeemed()]).toEqual([true, 1, 1])
    expect(await eventsOf(app, 'reset')).toMatchObject([{ result: 'reset' }])
  })

  test.each(STORED)('that a user redeems is recorded once, %s', async (_, isStored) => {
    const { app, id, sent, redeemed } = await setup()
    const isLost = loseAnswer(app.db, { sql: /audit_logs/, isStored })
    const path = `POST /api/accounts/${id}/rate-limit-reset-credits/consume`
    const { status } = await advanceClockDuring(app, app.ask(path, { json: {} }))
    expect([status, isLost(), sent(), await redeemed()]).toEqual([200, true, 1, 1])
    expect(await eventsOf(app, 'reset')).toHaveLength(1)
  })

  test.each([
    ['a user', true],
    ['a user', false],
    ['the owner of the account', true],
    ['the owner of the account', false],
  ])('that %s redeems is recorded once when the request is repeated (stored before: %p)', async (who, isStored) => {
    const { app, id, sent, redeemed } = await setup()
    const { sim } = app.members[0]!
    const headers = { authorization: `Bearer ${sim.accessToken}`, 'chatgpt-account-id': sim.chatgptAccountId }
    const redeem = () =>
      advanceClockDuring(
        app,
        who !== 'a user'
          ? app.ask('POST /api/codex/rate-limit-reset-credits/consume', { json: { redeem_request_id: 'one' }, headers })
          : app.ask(`POST /api/accounts/${id}/rate-limit-reset-credits/consume`, { json: { redeemRequestId: 'one' } }),
      )
    for (const isLastStored of [isStored, false, false, false])
      loseAnswer(app.db, { sql: /insert into "audit_logs"/, isStored: isLastStored })
    const failed = await redeem()
    expect([failed.status, await redeemed()]).toEqual([503, isStored ? 1 : 0])
    expect(await failed.text()).toContain('The reset credit was used')
    expect((await redeem()).status).toBe(200)
    expect((await redeem()).status).toBe(200)
    expect([sent(), await redeemed()]).toEqual([1, 1])
    expect(await eventsOf(app, 'reset')).toHaveLength(1)
  })
})
