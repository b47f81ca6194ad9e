/** The quota planner job: its plan, its window starts, and that it starts nothing twice. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { plannerDecisions } from '../../db/schema/planner.ts'
import { quotaPlannerJob } from '../../src/jobs/quota-planner.ts'
import { listDecisions } from '../../src/model/planner/decisions.ts'
import { pingForJob } from '../../src/proxy/relay/ping.ts'
import { planStarts } from '../../src/proxy/replay/plan-starts.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { logWorkdays } from '../support/workdays.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const never = new AbortController().signal

/** The clock starts on Thursday, 1 January 2026, 00:00 UTC. */
const midnight = Date.UTC(2026, 0, 1)

const report = async (app: TestApp, usedPercent = 0, index = 0) => {
  const { bindings, clock } = app
  bindings.pool.observe(app.members[index]!.id, {
    at: clock.now(),
    windows: {
      fiveHour: { usedPercent, windowMinutes: 300, resetAt: clock.now() + 5 * HOUR },
      weekly: null,
      monthly: null,
    },
    credits: null,
    planType: null,
    additional: [],
  })
  await bindings.ledger.flush()
}

const open = async (settings: Partial<Settings> = {}, { days = 20, units = 30, accounts = 1, enabled = true } = {}) => {
  const app = await testApp({ accounts, settings: { plannerMode: 'act', ...settings } })
  await logWorkdays(app, { days, units })
  for (let index = 0; index < accounts; index++) {
    await report(app, 0, index)
    if (enabled) await app.ask(`PUT /api/accounts/${app.members[index]!.id}/limit-warmup`, { json: { enabled } })
  }
  const job = () => {
    const { bindings } = app
    return quotaPlannerJob({
      ...bindings,
      ping: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'window-start' }, signal),
    })
  }
  const until = async (at: number) => {
    await app.clock.advance(at - app.clock.now())
    await report(app)
  }
  return { app, job, until, run: job(), id: app.members[0]!.id }
}

const decisions = (app: TestApp) => listDecisions(app.db, 50)
const decision = async (app: TestApp, { id }: { id: string }) => (await decisions(app)).find((other) => other.id === id)
const starts = async (app: TestApp) => (await app.rows()).filter(({ route }) => route === 'window-start')
const getState = ({ scheduledAt, status }: Awaited<ReturnType<typeof decisions>>[number]) => [
  scheduledAt - midnight,
  status,
]

describe('the plan', () => {
  test('starts the window so that it resets when the day has used it up', async () => {
    const { app } = await open()
    const plan = await planStarts(app.db, { now: app.clock.now() })
    expect(plan).toMatchObject({ sufficient: true, coveredDays: expect.any(Number) })
    expect(plan.proposals).toHaveLength(1)
    const [first] = plan.proposals
    // About 28 credits per quarter use 225 in two hours: without a start from 09:00 and 14:00, with it in three windows.
    expect(first!.at).toBeGreaterThanOrEqual(midnight + 4 * HOUR)
    expect(first!.at).toBeLessThan(midnight + 9 * HOUR)
    expect(first!.gainPercent).toBeGreaterThan(20)
    expect(first!.from).toBeGreaterThanOrEqual(first!.at + 5 * HOUR - 15 * MINUTE)
  })

  test('is empty when the quota suffices, when the gain is too small, and without 14 days', async () => {
    const getPlan = async (...args: Parameters<typeof open>) => {
      const { app } = await open(...args)
      return planStarts(app.db, { now: app.clock.now() })
    }
    expect(await getPlan({}, { units: 5 })).toMatchObject({ sufficient: true, proposals: [] })
    expect(await getPlan({ plannerMinGainPercent: 60 }, { units: 15 })).toMatchObject({
      sufficient: true,
      proposals: [],
    })
    expect(await getPlan({}, { days: 13 })).toMatchObject({ sufficient: false, proposals: [] })
    expect(await getPlan({ plannerWorkingDays: 'sat sun' })).toMatchObject({ sufficient: true, proposals: [] })
    expect(await getPlan({}, { enabled: false })).toMatchObject({ proposals: [] })
  })

  test('has at most the allowed starts per day, each account once', async () => {
    const planned = async (plannerMaxStartsPerDay: number) => {
      const { app } = await open({ plannerMaxStartsPerDay, plannerMinGainPercent: 1 }, { accounts: 3, units: 80 })
      const { proposals } = await planStarts(app.db, { now: app.clock.now() })
      return proposals.map(({ accountId }) => accountId)
    }
    expect(await planned(1)).toHaveLength(1)
    const three = await planned(3)
    expect(three.length).toBeGreaterThan(1)
    expect(new Set(three).size).toBe(three.length)
  })

  test('advises about accounts without window starts, too', async () => {
    const { app, run } = await open({ plannerMode: 'advise' }, { enabled: false })
    await run(never)
    expect(await decisions(app)).toMatchObject([{ mode: 'advise', status: 'planned' }])
  })
})

describe('the planner job', () => {
  test('does nothing while it is off, and drops plans when it is turned off', async () => {
    const { app, run } = await open({ plannerMode: 'off' })
    await run(never)
    expect(await decisions(app)).toEqual([])
    await app.change({ plannerMode: 'act' })
    await run(never)
    expect(await decisions(app)).toHaveLength(1)
    await app.change({ plannerMode: 'off' })
    await run(never)
    expect(await decisions(app)).toEqual([])
  })

  test('starts the window at its time, and does not affect routing', async () => {
    const { app, run, until, id } = await open()
    const before = app.bindings.settings.current()
    await run(never)
    const [planned] = await decisions(app)
    expect(planned?.reason).toMatch(/^\+[\d.]+ % served between \d\d:\d\d and \d\d:\d\d$/)
    await until(planned!.scheduledAt - MINUTE)
    await run(never)
    expect(await starts(app)).toEqual([])
    await until(planned!.scheduledAt)
    await run(never)
    expect(await starts(app)).toMatchObject([{ accountId: id, kind: 'warmup', status: 'ok' }])
    expect(await decisions(app)).toMatchObject([
      { id: planned!.id, status: 'executed', executedAt: app.clock.now(), model: 'gpt-5.5' },
    ])
    expect(app.bindings.settings.current()).toEqual(before)
  })

  test('starts nothing twice: not in later runs, not after a restart, not after a crash before the end was stored', async () => {
    const { app, run, job, until } = await open()
    await run(never)
    const [planned] = await decisions(app)
    await until(planned!.scheduledAt)
    await run(never)
    await run(never)
    await app.restart()
    await report(app)
    await job()(never)
    expect(await starts(app)).toHaveLength(1)
    await commit(app.db, (tx) =>
      tx
        .update(plannerDecisions)
        .set({ status: 'planned', executedAt: null })
        .where(eq(plannerDecisions.id, planned!.id))
        .run(),
    )
    await job()(never)
    expect(await starts(app)).toHaveLength(1)
    expect(await decision(app, planned!)).toMatchObject({ status: 'executed' })
    await until(app.clock.now() + HOUR)
    await job()(never)
    expect((await decisions(app)).filter(({ scheduledAt }) => scheduledAt < midnight + 24 * HOUR)).toHaveLength(1)
  })

  test.each([
    ['the window has started', 30, true, 'The five-hour window of this account has already started.'],
    ['window starts are off by then', 0, false, 'Window starts are off for this account.'],
  ])('skips the start when %s', async (_, usedPercent, enabled, reason) => {
    const { app, run, until, id } = await open()
    await run(never)
    const [planned] = await decisions(app)
    await until(planned!.scheduledAt)
    await report(app, usedPercent)
    if (!enabled) await app.ask(`PUT /api/accounts/${id}/limit-warmup`, { json: { enabled } })
    await run(never)
    expect(await starts(app)).toEqual([])
    expect(await decision(app, planned!)).toMatchObject({ status: 'skipped', reason })
  })

  test('skips missed and advisory starts', async () => {
    const late = await open()
    await late.run(never)
    await late.until((await decisions(late.app))[0]!.scheduledAt + 10 * MINUTE)
    await late.run(never)
    expect(await decisions(late.app)).toContainEqual(
      expect.objectContaining({ status: 'skipped', reason: 'Sluice was not running at that time.' }),
    )
    const advised = await open({ plannerMode: 'advise' })
    await advised.run(never)
    await advised.until((await decisions(advised.app))[0]!.scheduledAt)
    await advised.run(never)
    expect(await starts(advised.app)).toEqual([])
    expect(await decisions(advised.app)).toContainEqual(
      expect.objectContaining({ status: 'skipped', reason: 'The planner only advised this start.' }),
    )
  })

  test('plans again after an hour or a changed setting, and does not repeat a canceled start', async () => {
    const { app, run } = await open()
    await run(never)
    const [planned] = await decisions(app)
    expect((await app.ask(`POST /api/quota-planner/decisions/${planned!.id}/cancel`)).status).toBe(200)
    await run(never)
    await app.clock.advance(HOUR)
    await run(never)
    expect((await decisions(app)).map(getState)).toEqual([[planned!.scheduledAt - midnight, 'canceled']])
    await app.change({ plannerMinGainPercent: 6 })
    await run(never)
    expect(await decisions(app)).toHaveLength(1)
  })

  test('a start that ChatGPT rejects is skipped with the reason', async () => {
    const { app, run, until } = await open()
    await run(never)
    const [planned] = await decisions(app)
    await until(planned!.scheduledAt)
    app.members[0]!.sim.always({ status: 400, body: { error: { message: 'No.', code: 'nope', type: null } } })
    await run(never)
    expect(await decision(app, planned!)).toMatchObject({ status: 'skipped', executedAt: null })
    await run(never)
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))).toHaveLength(1)
  })
})
