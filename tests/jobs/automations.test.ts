/** Automations: when they run, on which accounts, and never twice. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { automationRuns } from '../../db/schema/automations.ts'
import { scheduleJobs } from '../../src/jobs/all.ts'
import { AUTOMATIONS_BEAT_MS, type AutomationDeps, automationsJob } from '../../src/jobs/automations.ts'
import { retain } from '../../src/jobs/retention.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { Schedule } from '../../src/lib/schedule.ts'
import { pauseAccount } from '../../src/model/accounts/accounts.ts'
import { getAutomation } from '../../src/model/automations/automations.ts'
import { claimSlot } from '../../src/model/automations/runs.ts'
import { latestSlot, nextSlot, planAccounts } from '../../src/model/automations/schedule.ts'
import { pingForJob } from '../../src/proxy/relay/ping.ts'
import { fetchUsage } from '../../src/upstream/usage.ts'
import { advanceClockDuring, expectNothingLeft, type TestApp, testApp } from '../support/app.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const never = new AbortController().signal

/** The clock is at 2026-01-01, a Thursday, 00:00 UTC. */
const MORNINGS = { time: '07:55', timezone: 'UTC', days: ['mon', 'tue', 'wed', 'thu', 'fri'] }

interface Job {
  id: string
  nextRunAt: string | null
  lastRun: Run | null
}
interface Run {
  id: string
  status: string
  scheduledFor: string
  errorCode: string | null
  errorMessage: string | null
  [member: string]: unknown
}
interface Details {
  run: Run
  accounts: { accountId: string; status: string; scheduledFor: string; errorCode: string | null }[]
}

const world = async (accounts = 1, fields: Record<string, unknown> = {}) => {
  const app = await testApp({ accounts })
  const { job } = await create(app, fields)
  const make = (more: Partial<AutomationDeps> = {}) => {
    const { bindings } = app
    return automationsJob({
      ...bindings,
      ping: ({ includePaused, ...wanted }, signal) =>
        pingForJob(bindings, { ...wanted, route: 'automation', mayBePaused: includePaused }, signal),
      readUsage: async (id) => {
        const { upstream, credentials } = bindings.proxyDeps
        bindings.pool.observe(id, await fetchUsage({ ...upstream, credentials }, id))
      },
      ...more,
    })
  }
  const run = make()
  return {
    app,
    job,
    run: () => run(never),
    make,
    runs: () => getRuns(app),
    details: (id: string) => getDetails(app, id),
  }
}

const create = async (app: TestApp, { schedule = {}, ...fields }: Record<string, unknown> = {}) => {
  const json = { name: 'Mornings', schedule: { ...MORNINGS, ...(schedule as object) }, ...fields } // as: tests give objects
  const response = await app.ask('POST /api/automations', { json })
  expect(response.status).toBe(200)
  return { job: (await response.json()) as Job }
}
const getRuns = async (app: TestApp): Promise<Run[]> =>
  ((await (await app.ask('GET /api/automations/runs')).json()) as { items: Run[] }).items
const getDetails = async (app: TestApp, id: string): Promise<Details> =>
  (await (await app.ask(`GET /api/automations/runs/${id}/details`)).json()) as Details
const calls = (app: TestApp) => app.upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))
const at = (time: string, day = '2026-01-01') => Date.parse(`${day}T${time}:00Z`)
const advanceTo = (app: TestApp, time: string, day?: string) => app.clock.advance(at(time, day) - app.clock.now())

describe('the times of a schedule', () => {
  const every = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
  const times = (
    zone: string,
    time: string,
    from: string,
    days = 3,
    weekdays: readonly (typeof every)[number][] = every,
  ) => {
    const found: string[] = []
    let now = Date.parse(from)
    const end = now + days * DAY_MS
    for (;;) {
      const next = nextSlot({ time, zone, days: weekdays }, now)
      if (next === null || next >= end) return found
      expect(latestSlot({ time, zone, days: weekdays }, next)).toBe(next)
      expect(latestSlot({ time, zone, days: weekdays }, next - 1)).toBeLessThan(next)
      found.push(new Date(next).toISOString().slice(5, 16))
      now = next
    }
  }
  test('an hour that exists twice runs once, and a skipped one at the next existing minute', () => {
    expect(times('Europe/Berlin', '02:30', '2026-10-24T12:00Z')).toEqual(['10-25T00:30', '10-26T01:30', '10-27T01:30'])
    expect(times('Europe/Berlin', '02:30', '2026-03-28T12:00Z')).toEqual(['03-29T01:00', '03-30T00:30', '03-31T00:30'])
    expect(times('America/New_York', '01:30', '2026-11-01T00:00Z')).toEqual([
      '11-01T05:30',
      '11-02T06:30',
      '11-03T06:30',
    ])
    expect(times('Africa/Cairo', '00:00', '2026-04-23T12:00Z')).toEqual(['04-23T22:00', '04-24T21:00', '04-25T21:00'])
  })
  test('29 February is a day like any other, with its own weekday', () => {
    expect(times('Asia/Tokyo', '07:55', '2028-02-28T00:00Z')).toEqual(
      ['02-28T22:55', '02-29T22:55', '03-01T22:55'].slice(0, 3),
    )
    expect(times('UTC', '07:55', '2028-02-23T00:00Z', 8, ['tue'])).toEqual(['02-29T07:55'])
    expect(times('UTC', '07:55', '2027-02-27T00:00Z', 3)).toEqual(['02-27T07:55', '02-28T07:55', '03-01T07:55'])
  })
  test('weekdays are those of the time zone', () => {
    // Monday 00:30 in Auckland is Sunday in UTC.
    expect(times('Pacific/Auckland', '00:30', '2026-01-01T00:00Z', 7, ['mon'])).toEqual(['01-04T11:30'])
  })
  test('a time zone unknown to the machine has none', () => {
    expect(nextSlot({ time: '07:55', zone: 'Mars/Olympus', days: every }, 0)).toBeNull()
  })
})

describe('the spread', () => {
  const plan = (seed: string, ids = ['a', 'b', 'c', 'd']) =>
    planAccounts(ids, { seed, start: 1000, spreadMinutes: 30 }).map(({ accountId, scheduledFor }) => [
      accountId,
      scheduledFor - 1000,
    ])
  test('the first account starts immediately, the others at times that depend on the seed alone', () => {
    const [first, ...rest] = plan('one')
    expect(first).toEqual(['a', 0])
    for (const [, offset] of rest) {
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThan(30 * MINUTE_MS)
    }
    expect(plan('one')).toEqual(plan('one'))
    expect(plan('one')).not.toEqual(plan('two'))
  })
  test('an account keeps its time when another is added', () => {
    const of = (id: string, ids?: string[]) => plan('one', ids).find(([name]) => name === id)
    expect(of('c', ['a', 'b', 'c', 'd', 'e'])).toEqual(of('c'))
  })
})

describe('at the scheduled time', () => {
  test('one small request goes to each account, is excluded from totals, and the run has the results', async () => {
    const { app, run, runs, details, job } = await world(2, { prompt: 'good morning', model: 'gpt-5.5' })
    expect(job.nextRunAt).toBe('2026-01-01T07:55:00.000Z')
    await run()
    expect(calls(app)).toEqual([])
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toHaveLength(2)
    expect(calls(app)[0]?.body).toMatchObject({ model: 'gpt-5.5', input: [{ content: [{ text: 'good morning' }] }] })
    expect(await app.rows()).toMatchObject([
      { kind: 'warmup', route: 'automation', status: 'ok', keyId: null },
      { kind: 'warmup', route: 'automation', status: 'ok', keyId: null },
    ])
    expect(app.sqlite.query('SELECT * FROM request_hours').all()).toEqual([])
    const [done] = await runs()
    expect(done).toMatchObject({
      jobId: job.id,
      jobName: 'Mornings',
      trigger: 'scheduled',
      status: 'success',
      scheduledFor: '2026-01-01T07:55:00.000Z',
      totalAccounts: 2,
      completedAccounts: 2,
      pendingAccounts: 0,
      errorCode: null,
    })
    expect((await details(done?.id ?? '')).accounts.map(({ status }) => status)).toEqual(['success', 'success'])
    await expectNothingLeft(app)
  })

  test('it is not repeated: not by the next runs, not after a restart', async () => {
    const { app, run, make, runs } = await world()
    await advanceTo(app, '07:55')
    await run()
    await run()
    await app.restart()
    await make()(never)
    await app.clock.advance(30 * MINUTE_MS)
    await make()(never)
    expect(calls(app)).toHaveLength(1)
    expect(await runs()).toHaveLength(1)
    await advanceTo(app, '07:55', '2026-01-02')
    await run()
    expect(await runs()).toHaveLength(2)
  })

  test('only one of two processes can claim it', async () => {
    const { app, make } = await world()
    await advanceTo(app, '07:55')
    await Promise.all([make()(never), make()(never)])
    expect(calls(app)).toHaveLength(1)
  })

  test('it is not run when the automation is changed or deleted while it is claimed', async () => {
    const { app, job } = await world()
    await advanceTo(app, '07:55')
    const automation = await getAutomation(app.db, job.id)
    const claim = () =>
      commit(app.db, (tx) =>
        claimSlot(tx, app.clock.now(), { automation, accountIds: [], now: app.clock.now(), random: seededRandom(5) }),
      )
    await app.ask(`PATCH /api/automations/${job.id}`, { json: { enabled: false } })
    expect(await claim()).toBeNull()
    await app.ask(`DELETE /api/automations/${job.id}`)
    expect(await claim()).toBeNull()
  })

  test('only on its weekdays, and not while it is disabled', async () => {
    const { app, run, runs, job } = await world()
    await advanceTo(app, '08:00', '2026-01-03') // a Saturday: Friday's time is a day ago
    await run()
    expect((await runs()).map(({ scheduledFor }) => scheduledFor)).toEqual(['2026-01-02T07:55:00.000Z'])
    expect(calls(app)).toEqual([])
    await app.ask(`PATCH /api/automations/${job.id}`, { json: { enabled: false } })
    await advanceTo(app, '07:55', '2026-01-05')
    await run()
    expect(await runs()).toHaveLength(1)
  })

  test('a time before it was created or changed is not run', async () => {
    const { app, run, runs, job } = await world()
    await advanceTo(app, '08:00')
    await app.ask(`PATCH /api/automations/${job.id}`, { json: { schedule: { time: '07:59' } } })
    await create(app, { name: 'Late', schedule: { time: '07:58' } })
    await run()
    expect(await runs()).toEqual([])
    expect(calls(app)).toEqual([])
  })

  test('a time more than an hour ago is skipped with a message, and only the latest', async () => {
    const { app, run, runs } = await world()
    await advanceTo(app, '08:56', '2026-01-02')
    await run()
    await run()
    expect(calls(app)).toEqual([])
    expect(await runs()).toMatchObject([
      {
        status: 'failed',
        scheduledFor: '2026-01-02T07:55:00.000Z',
        errorCode: 'missed',
        errorMessage: expect.stringContaining('more than an hour ago'),
        totalAccounts: 0,
      },
    ])
  })

  test('a time within the last hour is caught up', async () => {
    const { app, run } = await world()
    await advanceTo(app, '08:55')
    await run()
    expect(calls(app)).toHaveLength(1)
  })
})

describe('the accounts of a run', () => {
  test('are fixed at its time and start within the spread', async () => {
    const { app, run, runs, details } = await world(3, { schedule: { thresholdMinutes: 60 } })
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toHaveLength(1)
    const [started] = await runs()
    expect(started).toMatchObject({ status: 'running', completedAccounts: 1, pendingAccounts: 2 })
    await app.addAccount()
    await app.bindings.pool.reload()
    const planned = (await details(started?.id ?? '')).accounts
    for (const { scheduledFor } of planned.slice(1)) {
      await app.clock.advance(Math.max(0, Date.parse(scheduledFor) - app.clock.now()))
      await run()
    }
    expect(calls(app)).toHaveLength(3)
    expect(await runs()).toMatchObject([{ status: 'success', totalAccounts: 3 }])
  })

  test('are skipped once the automation is disabled', async () => {
    const { app, job, run, runs, details } = await world(3, { schedule: { thresholdMinutes: 60 } })
    await advanceTo(app, '07:55')
    await run()
    expect((await app.ask(`PATCH /api/automations/${job.id}`, { json: { enabled: false } })).status).toBe(200)
    await advanceTo(app, '08:55')
    await run()
    expect(calls(app)).toHaveLength(1)
    const [done] = await runs()
    expect(done).toMatchObject({ status: 'success', skippedAccounts: 2 })
    const { accounts } = await details(done?.id ?? '')
    expect(accounts.map(({ errorCode }) => errorCode)).toEqual([null, 'automation_disabled', 'automation_disabled'])
  })

  test('that cannot serve are skipped with the reason, and not replaced by others', async () => {
    const { app, run, runs, details } = await world(6)
    const ids = app.members.map(({ id }) => id)
    const now = app.clock.now()
    const { pool } = app.bindings
    const refusal = { at: now, evidence: 'seen', resetAt: now + 2 * DAY_MS, retryAfterMs: null }
    pool.apply(ids[1] ?? '', { kind: 'rate_limited', ...refusal })
    pool.apply(ids[2] ?? '', { kind: 'quota_exceeded', ...refusal })
    pool.apply(ids[3] ?? '', { kind: 'auth_failed', at: now, code: 'invalid_grant', evidence: 'seen' })
    pool.apply(ids[4] ?? '', { kind: 'auth_failed', at: now, code: 'account_deleted', evidence: 'seen' })
    pool.apply(ids[5] ?? '', { kind: 'pause', at: now })
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toHaveLength(1)
    const [done] = await runs()
    expect(done).toMatchObject({ status: 'success', skippedAccounts: 5 })
    const { accounts } = await details(done?.id ?? '')
    expect(ids.map((id) => accounts.find(({ accountId }) => accountId === id)?.errorCode)).toEqual([
      null,
      'account_rate_limited',
      'account_quota_exceeded',
      'account_needs_sign_in',
      'account_deactivated',
      'account_paused',
    ])
  })

  test('include a paused one when requested, which stays paused', async () => {
    const { app, run } = await world(1, { includePausedAccounts: true })
    const id = app.members[0]?.id ?? ''
    await commit(app.db, (tx) => pauseAccount(tx, id, { id: 'test', method: null, address: null, at: app.clock.now() }))
    await app.bindings.pool.reload()
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toHaveLength(1)
    expect(app.bindings.pool.get(id)?.state.status).toBe('paused')
  })

  test('that are paused and need sign-in are skipped even then', async () => {
    const { app, run, runs } = await world(1, { includePausedAccounts: true })
    const id = app.members[0]?.id ?? ''
    app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
    app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'seen' })
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toEqual([])
    expect(await runs()).toMatchObject([{ status: 'failed', errorCode: 'no_accounts' }])
  })

  test('that were deleted are skipped', async () => {
    const app = await testApp({ accounts: 2 })
    const [kept, gone] = app.members.map(({ id }) => id)
    const { job } = await create(app, { accountIds: [gone, kept] })
    await app.ask(`DELETE /api/accounts/${gone}`)
    const { status } = await app.ask(`PATCH /api/automations/${job.id}`, { json: { name: 'Renamed' } })
    expect(status).toBe(200)
    await app.ask(`POST /api/automations/${job.id}/run-now`)
    const bindings = app.bindings
    await automationsJob({
      ...bindings,
      ping: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'automation' }, signal),
      readUsage: async () => {},
    })(never)
    const [done] = await getRuns(app)
    expect((await getDetails(app, done?.id ?? '')).accounts.map(({ errorCode }) => errorCode)).toEqual([
      'account_not_found',
      null,
    ])
  })

  test('that fail are not sent to another account: the run is partial', async () => {
    const { app, run, runs, details } = await world(2)
    app.members[0]?.sim.always({ status: 400, body: { error: { message: 'Not now', code: 'not_now', type: null } } })
    await advanceTo(app, '07:55')
    await run()
    expect(calls(app)).toHaveLength(2)
    const [done] = await runs()
    expect(done).toMatchObject({ status: 'partial', errorCode: 'not_now' })
    expect((await details(done?.id ?? '')).accounts.map(({ status }) => status).toSorted()).toEqual([
      'failed',
      'success',
    ])
  })

  test('a run of kind probe reads the usage afterwards and adds an event to the account', async () => {
    const { app, run } = await world(1, { kind: 'probe' })
    const id = app.members[0]?.id ?? ''
    app.members[0]?.sim.setUsage({ primary: { usedPercent: 3, windowMinutes: 300, resetAt: app.clock.now() + DAY_MS } })
    await advanceTo(app, '07:55')
    await run()
    expect(app.bindings.pool.get(id)?.usage?.windows.fiveHour?.usedPercent).toBe(3)
    expect(app.sqlite.query("SELECT result FROM account_events WHERE kind = 'probe'").all()).toEqual([
      { result: 'served' },
    ])
  })
})

describe('a process that ends in the middle', () => {
  test('the request that was running is not repeated, the others follow', async () => {
    const { app, make, runs, details } = await world(2, { schedule: { thresholdMinutes: 10 } })
    await advanceTo(app, '07:55')
    let sent = 0
    const ping = () => {
      sent++
      return new Promise<void>(() => {})
    }
    void make({ ping })(never) // the process ends before the answer
    await app.clock.advance(0)
    expect(sent).toBe(1)
    await app.restart()
    const again = make()
    await app.clock.advance(10 * MINUTE_MS)
    await again(never)
    expect(calls(app)).toHaveLength(1)
    const [done] = await runs()
    const { accounts } = await details(done?.id ?? '')
    expect(accounts.map(({ status, errorCode }) => [status, errorCode])).toEqual([
      ['failed', 'interrupted'],
      ['success', null],
    ])
    expect(done).toMatchObject({ status: 'partial', errorCode: 'interrupted' })
  })

  test('accounts that are more than an hour late are skipped', async () => {
    const { app, run, make, runs } = await world(3, { schedule: { thresholdMinutes: 1 } })
    await advanceTo(app, '07:55')
    await run()
    await app.restart()
    await app.clock.advance(2 * HOUR_MS)
    await make()(never)
    expect(calls(app).length).toBeLessThan(3)
    expect(await runs()).toMatchObject([{ pendingAccounts: 0, status: 'success' }])
  })

  test('nothing is sent while Sluice is stopping or busy; it waits for the next run', async () => {
    const { app, run } = await world()
    await advanceTo(app, '07:55')
    app.bindings.lifecycle.draining = true
    await run()
    expect(calls(app)).toEqual([])
    app.bindings.lifecycle.draining = false
    await run()
    expect(calls(app)).toHaveLength(1)
  })
})

test('run now responds first, then the schedule sends the requests without waiting for the next half minute', async () => {
  const { app, job, runs } = await world(2, { enabled: false })
  const { bindings, clock } = app
  const schedule = new Schedule({ clock, random: bindings.random, onError: () => {} })
  scheduleJobs(schedule, bindings, {
    startWindow: async () => {},
    ping: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'automation' }, signal),
  })
  schedule.start()
  await clock.advance('1s')
  const response = await app.ask(`POST /api/automations/${job.id}/run-now`)
  expect(response.status).toBe(202)
  expect(await response.json()).toMatchObject({ trigger: 'manual', status: 'running', pendingAccounts: 2 })
  await clock.advance('1s')
  expect(AUTOMATIONS_BEAT_MS).toBe(30_000)
  expect(await runs()).toMatchObject([{ status: 'success', trigger: 'manual' }])
  expect(calls(app)).toHaveLength(2)
  await schedule.stop()
})

test('runs are deleted after 90 days', async () => {
  const { app, run, runs } = await world()
  await advanceTo(app, '07:55')
  await run()
  await app.clock.advance(89 * DAY_MS)
  await advanceClockDuring(app, retain({ ...app.bindings }, never))
  expect(await runs()).toHaveLength(1)
  await app.clock.advance(2 * DAY_MS)
  await advanceClockDuring(app, retain({ ...app.bindings }, never))
  expect(await app.db.select().from(automationRuns).all()).toEqual([])
})
