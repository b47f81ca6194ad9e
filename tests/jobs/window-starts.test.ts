/** Starting five-hour windows: when, for which accounts, and never twice. */
import { describe, expect, test } from 'bun:test'
import { windowStartsJob } from '../../src/jobs/window-starts.ts'
import type { UsageWindow } from '../../src/model/accounts/usage-windows.ts'
import { confirmedReset, dueHour } from '../../src/model/accounts/window-due.ts'
import { lastWindowStart } from '../../src/model/accounts/window-starts.ts'
import { pingForJob } from '../../src/proxy/relay/ping.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { advanceClockDuring, expectNothingLeft, type TestApp, testApp } from '../support/app.ts'
import { loseAnswer, loseDatabase } from '../support/lost-answer.ts'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const NOW = Date.UTC(2026, 0, 1)
const never = new AbortController().signal

const window = (usedPercent: number, resetAt: number | null, windowMinutes = 300): UsageWindow => ({
  usedPercent,
  windowMinutes,
  resetAt,
})

describe('a confirmed reset', () => {
  const later = NOW + 5 * HOUR_MS
  test.each([
    ['the old reset has passed', window(40, NOW - 1), window(0, later), NOW - 1],
    ['the old window was unused but ran', window(0, NOW - 1), window(0, later), NOW - 1],
    ['the used percent fell to 0 before the reset', window(80, NOW + HOUR_MS), window(0, later), NOW + HOUR_MS],
    ['an unused window moves with the time', window(0, later), window(0, later + MINUTE_MS), null],
    ['a correction leaves the reset', window(80, NOW + HOUR_MS), window(0, NOW + HOUR_MS + 2000), null],
    ['something is used again', window(80, NOW - 1), window(3, later), null],
    ['the window has another length', window(80, NOW - 1, 300), window(0, later, 360), null],
    ['there is no report before', null, window(0, later), null],
    ['no reset is known', window(80, null), window(0, later), null],
  ])('%s', (_, before, after, reset) => expect(confirmedReset(before, after, NOW)).toBe(reset))
})

describe('a set hour', () => {
  const unused = (at: number) => ({
    at,
    windows: { fiveHour: window(0, null), weekly: null, monthly: null },
    credits: null,
    planType: null,
  })
  const due = (at: string, hours: string[], zone = 'UTC') => {
    const result = dueHour(unused(Date.parse(at)), { hours, zone }, Date.parse(at))
    return result === null ? null : new Date(result).toISOString().slice(0, 16)
  }
  test('counts for ten minutes, in its zone, also past midnight and where clocks change', () => {
    expect(due('2026-01-01T08:00:00Z', ['08:00', '13:30'])).toBe('2026-01-01T08:00')
    expect(due('2026-01-01T08:09:59Z', ['08:00'])).toBe('2026-01-01T08:00')
    expect(due('2026-01-01T08:10:00Z', ['08:00'])).toBeNull()
    expect(due('2026-01-01T07:59:59Z', ['08:00'])).toBeNull()
    expect(due('2026-01-02T00:03:00Z', ['23:58'])).toBe('2026-01-01T23:58')
    expect(due('2026-07-01T06:01:00Z', ['08:00'], 'Europe/Berlin')).toBe('2026-07-01T06:00')
    expect(due('2026-01-01T07:01:00Z', ['08:00'], 'Europe/Berlin')).toBe('2026-01-01T07:00')
    expect(due('2026-01-01T08:00:00Z', [''])).toBeNull()
  })
  test('leaves a running or unknown window alone', () => {
    const at = Date.parse('2026-01-01T08:00:00Z')
    const usage = unused(at)
    expect(dueHour(null, { hours: ['08:00'], zone: 'UTC' }, at)).toBeNull()
    const windows = { ...usage.windows, fiveHour: window(1, at + HOUR_MS) }
    expect(dueHour({ ...usage, windows }, { hours: ['08:00'], zone: 'UTC' }, at)).toBeNull()
  })
})

const report = (app: TestApp, fiveHour: UsageWindow | null, index = 0, weekly: UsageWindow | null = null) =>
  app.bindings.pool.observe(app.members[index]!.id, {
    at: app.clock.now(),
    windows: { fiveHour, weekly, monthly: null },
    credits: null,
    planType: null,
    additional: [],
  })
const calls = (app: TestApp) => app.upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))
const enable = (app: TestApp, index = 0, enabled = true) =>
  app.ask(`PUT /api/accounts/${app.members[index]!.id}/limit-warmup`, { json: { enabled } })

const setup = async (settings: Partial<Settings> = { windowStart: 'at_reset' }, accounts = 1) => {
  const app = await testApp({ accounts, settings })
  const ends = app.clock.now() + HOUR_MS
  for (let index = 0; index < accounts; index++) {
    report(app, window(40, ends), index)
    expect((await enable(app, index)).status).toBe(200)
  }
  const job = (stopping?: AbortSignal) => {
    const { bindings } = app
    return windowStartsJob({
      ...bindings,
      stopping,
      ping: (wanted, signal) => pingForJob(bindings, { ...wanted, route: 'window-start' }, signal),
    })
  }
  const run = job()
  await run(never)
  /** The window ends, and the next report says so. */
  const reset = async (index = 0) => {
    await app.clock.advance(HOUR_MS + MINUTE_MS)
    report(app, window(0, app.clock.now() + 5 * HOUR_MS), index)
  }
  return { app, run, job, reset, ends, id: app.members[0]!.id }
}

describe('after a reset', () => {
  test('one small request begins the window, and is shown on the account', async () => {
    const { app, run, reset, ends, id } = await setup()
    expect(calls(app)).toEqual([])
    await reset()
    await run(never)
    expect(calls(app)).toHaveLength(1)
    expect(await app.rows()).toMatchObject([{ kind: 'warmup', route: 'window-start', status: 'ok', keyId: null }])
    expect(await lastWindowStart(app.db, id)).toMatchObject({ resetAt: ends, result: 'started', errorCode: null })
    const { accounts } = (await (await app.ask('GET /api/accounts')).json()) as { accounts: unknown[] }
    expect(accounts).toMatchObject([
      {
        limitWarmupEnabled: true,
        limitWarmup: { window: 'five_hour', resetAt: ends / 1000, status: 'started', model: 'gpt-5.5' },
      },
    ])
    const page = await (await app.ask(`GET /accounts/${id}`, { headers: { accept: 'text/html' } })).text()
    expect(page).toContain(
      'Sluice can send a tiny request, so that the five-hour window begins before your first request.',
    )
    expect(page).toContain('the window began.')
    await expectNothingLeft(app)
  })

  test('it is not repeated: not by the next runs, not after a restart, not for reports that differ by seconds', async () => {
    const { app, run, job, reset, ends } = await setup()
    await reset()
    await run(never)
    await run(never)
    await app.restart()
    const again = job()
    report(app, window(40, ends + 2000))
    await again(never)
    report(app, window(0, app.clock.now() + 5 * HOUR_MS))
    await again(never)
    expect(calls(app)).toHaveLength(1)
  })

  test('it is made if PostgreSQL fails over during its claim, which also ends the jobs of this process', async () => {
    const { app, job, reset, id } = await setup()
    await reset()
    const leadership = new AbortController()
    const isLost = loseAnswer(app.db, { sql: /insert into "window_starts"/ })
    const done = Promise.resolve(job(never)(leadership.signal)).catch(() => {})
    await until(isLost)
    const restore = loseDatabase(app.db)
    await app.clock.advance('30s')
    leadership.abort(new Error('The schedule was stopped.'))
    restore()
    await advanceClockDuring(app, done)
    expect(calls(app)).toHaveLength(1)
    expect(await lastWindowStart(app.db, id)).toMatchObject({ result: 'started' })
  })

  test('a reset that is reported right before a restart is not missed', async () => {
    const { app, job, reset, ends, id } = await setup()
    await reset()
    await app.restart()
    await job()(never)
    expect(calls(app)).toHaveLength(1)
    expect(await lastWindowStart(app.db, id)).toMatchObject({ resetAt: ends, result: 'started' })
    await app.restart()
    await job()(never)
    expect(calls(app)).toHaveLength(1)
  })

  test('a reset while Sluice is off is found by the first report after it', async () => {
    const { app, job, reset } = await setup()
    await app.restart()
    const run = job()
    await run(never)
    await reset()
    await app.restart()
    await job()(never)
    expect(calls(app)).toHaveLength(1)
  })

  test('while Sluice is stopping or busy nothing is claimed, and the next run starts the window', async () => {
    const { app, run, job, reset, id } = await setup()
    await reset()
    app.bindings.lifecycle.maxTurns = 0
    await run(never)
    expect([calls(app).length, await lastWindowStart(app.db, id)]).toEqual([0, null])
    app.bindings.lifecycle.maxTurns = 100
    app.bindings.lifecycle.draining = true
    await run(never)
    expect([calls(app).length, await lastWindowStart(app.db, id)]).toEqual([0, null])
    await app.restart()
    await job()(never)
    expect(calls(app)).toHaveLength(1)
    expect(await lastWindowStart(app.db, id)).toMatchObject({ result: 'started' })
  })

  test('a reset before the setting was turned off is not used', async () => {
    const { app, run, job, reset } = await setup()
    await app.change({ windowStart: 'off' })
    await app.bindings.settings.reload()
    await reset()
    await run(never)
    await app.restart()
    await app.change({ windowStart: 'at_reset' })
    await app.bindings.settings.reload()
    await job()(never)
    expect(calls(app)).toEqual([])
  })

  test('the row exists before the request, so a crash in between leaves it and no second request', async () => {
    const { app, reset, job, id } = await setup()
    const seen: unknown[] = []
    const crashing = windowStartsJob({
      ...app.bindings,
      ping: async () => {
        seen.push((await lastWindowStart(app.db, id))?.result)
        throw new Error('killed')
      },
    })
    await crashing(never)
    await reset()
    await crashing(never)
    expect(seen).toEqual([null])
    const again = job()
    await again(never)
    expect(calls(app)).toEqual([])
  })

  test('a failure is recorded once and not repeated', async () => {
    const { app, run, reset, id } = await setup()
    app.members[0]!.sim.always({ on: 'responses', ...faults.serverError() })
    await reset()
    await run(never)
    await run(never)
    expect(calls(app)).toHaveLength(1)
    expect(await lastWindowStart(app.db, id)).toMatchObject({ result: 'failed', errorCode: expect.any(String) })
    const page = await (await app.ask(`GET /accounts/${id}?tab=events`, { headers: { accept: 'text/html' } })).text()
    expect(page).toContain('Window')
  })

  test('nothing is sent for accounts that are off or paused, nor while the setting is off', async () => {
    const { app, run, reset, id } = await setup()
    await enable(app, 0, false)
    await reset()
    await run(never)
    await enable(app)
    await app.ask(`POST /api/accounts/${id}/pause`)
    await reset()
    await run(never)
    expect(calls(app)).toEqual([])
    const off = await setup({})
    await off.reset()
    await off.run(never)
    expect(calls(off.app)).toEqual([])
  })

  test('at most four run at a time, with the model of the setting', async () => {
    const { app, run, reset } = await setup({ windowStart: 'at_reset', windowStartModel: 'gpt-5.5' }, 6)
    await reset(0)
    for (let index = 1; index < 6; index++) report(app, window(0, app.clock.now() + 5 * HOUR_MS), index)
    let most = 0
    app.wire.before = async () => {
      most = Math.max(most, app.bindings.turns.size)
    }
    await run(never)
    expect([calls(app).length, most]).toEqual([6, 4])
  })
})

test('at a set hour, once', async () => {
  const { app, run } = await setup({ windowStart: 'at_hours', windowStartHours: '03:00', windowStartZone: 'UTC' })
  report(app, window(0, null))
  await run(never)
  expect(calls(app)).toEqual([])
  await app.clock.advance(3 * HOUR_MS)
  await run(never)
  report(app, window(0, app.clock.now() + 5 * HOUR_MS))
  await app.clock.advance(5 * MINUTE_MS)
  await run(never)
  expect(calls(app)).toHaveLength(1)
})

describe('PUT /api/accounts/:id/limit-warmup', () => {
  test('rejects an account without a five-hour window, and a last resort below its floor', async () => {
    const app = await testApp()
    const { id } = app.members[0]!
    const getCode = async (response: Response) =>
      [response.status, ((await response.json()) as { error?: { code: string } }).error?.code] as const
    expect(await getCode(await enable(app))).toEqual([409, 'window_start_refused'])
    await app.ask(`PUT /api/accounts/${id}/routing-policy`, { json: { routingPolicy: 'preserve' } })
    const now = app.clock.now()
    report(app, window(80, now + HOUR_MS), 0, window(10, now + 84 * HOUR_MS, 10_080))
    expect(await getCode(await enable(app))).toEqual([409, 'window_start_refused'])
    report(app, window(10, now + HOUR_MS), 0, window(10, now + 84 * HOUR_MS, 10_080))
    expect(await getCode(await enable(app))).toEqual([200, undefined])
    expect((await enable(app, 0, false)).status).toBe(200)
  })

  test('writes one audit entry for a change and none for a repetition', async () => {
    const { app, id } = await setup()
    await enable(app)
    const { items } = (await (await app.ask('GET /api/audit-logs')).json()) as {
      items: { action: string; details: unknown }[]
    }
    const rows = items.filter(({ action }) => action === 'account_updated')
    expect(rows).toMatchObject([{ details: { windowStartEnabled: true }, target: { id } }])
  })
})

test.each([
  ['windowStartHours', '8:00'],
  ['windowStartHours', '24:00'],
  ['windowStartHours', '08:00;09:00'],
  ['windowStartZone', 'Mars/Olympus'],
  ['windowStart', 'sometimes'],
  ['resetPercent', 49],
  ['resetKeepCredits', 10],
])('the setting %s rejects %p', async (name, value) => {
  const response = await (await testApp()).ask('PATCH /api/settings', { json: { [name]: value } })
  expect(response.status).toBe(422)
})
