/** `/api/quota-planner`: settings, forecast, decisions, a start now, and the card on the reports. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { storePlan } from '../../src/model/planner/decisions.ts'
import type { Forecast } from '../../src/proxy/replay/forecast.ts'
import { advanceClockDuring, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import { faults } from '../support/upstream/faults.ts'
import { logWorkdays } from '../support/workdays.ts'

const HOUR = 3_600_000
const PLANNER = '/api/quota-planner'

const DEFAULTS = {
  mode: 'off',
  zone: 'UTC',
  workingDays: [0, 1, 2, 3, 4],
  workingHoursStart: '09:00',
  workingHoursEnd: '18:00',
  maxStartsPerDay: 3,
  minGainPercent: 5,
}

const jsonOf = async <T>(response: Response | Promise<Response>): Promise<T> => (await (await response).json()) as T // as: checked by each test

const plan = (app: TestApp, ...ids: string[]) =>
  commit(app.db, (tx) =>
    storePlan(
      tx,
      ids.map((id, n) => ({
        id,
        createdAt: app.clock.now(),
        mode: 'advise' as const,
        accountId: app.members[0]!.id,
        scheduledAt: app.clock.now() + (n + 1) * HOUR,
        gainPercent: 12,
        gainFrom: app.clock.now() + 5 * HOUR,
        gainTo: app.clock.now() + 8 * HOUR,
        status: 'planned' as const,
        reason: '+12 % served between 05:00 and 08:00',
        idempotencyKey: `day-${n}:${app.members[0]!.id}`,
      })),
      app.clock.now(),
    ),
  )

describe('settings', () => {
  test('are read and changed under the names of codex-lb, through the settings of Sluice', async () => {
    const app = await testApp()
    expect(await jsonOf<object>(app.ask(`GET ${PLANNER}/settings`))).toEqual(DEFAULTS)
    const change = {
      mode: 'act',
      zone: 'Europe/Berlin',
      workingDays: [6, 0],
      workingHoursStart: '07:30',
      maxStartsPerDay: 2,
    }
    const changed = await app.ask(`PUT ${PLANNER}/settings`, { json: change })
    expect(await jsonOf<object>(changed)).toEqual({ ...DEFAULTS, ...change, workingDays: [0, 6] })
    expect(app.bindings.settings.current()).toMatchObject({ plannerMode: 'act', plannerWorkingDays: 'mon sun' })
    const events = await app.db.select({ action: auditLogs.event }).from(auditLogs).all()
    expect(events.filter(({ action }) => action === 'settings_updated')).toHaveLength(1)
  })

  test('unknown fields, as codex-lb has them, are rejected by name', async () => {
    const app = await testApp()
    const json = { mode: 'act', prewarmLeadMinutes: 300, dryRun: true }
    const response = await app.ask(`PUT ${PLANNER}/settings`, { json })
    expect(response.status).toBe(422)
    const text = await response.text()
    expect(text).toContain('prewarmLeadMinutes')
    expect(text).toContain('dryRun')
    expect(await jsonOf<object>(app.ask(`GET ${PLANNER}/settings`))).toEqual(DEFAULTS)
  })

  test.each([
    ['zone', { zone: 'Mars/Olympus' }],
    ['workingDays', { workingDays: [7] }],
    ['workingHoursStart', { workingHoursStart: '9:00' }],
    ['workingHoursEnd', { workingHoursEnd: '24:00' }],
    ['maxStartsPerDay', { maxStartsPerDay: 0 }],
    ['minGainPercent', { minGainPercent: 2.5 }],
  ])('%s is checked', async (param, json) => {
    const response = await (await testApp()).ask(`PUT ${PLANNER}/settings`, { json })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_quota_planner', param } })
  })
})

describe('the forecast', () => {
  test('has a slot for each quarter of an hour, and what the windows can serve', async () => {
    const app = await testApp()
    await logWorkdays(app, { days: 28, units: 40 })
    const forecast = await jsonOf<Forecast>(app.ask(`GET ${PLANNER}/forecast?horizonHours=24`))
    expect(forecast).toMatchObject({ horizonHours: 24, slotSeconds: 900, sufficient: true })
    expect(forecast.slots).toHaveLength(96)
    // Thursday 10:00: the same time and hour had 40 credits each, the last day 36 × 40 in 96 slots, working hours 40.
    const ten = forecast.slots[40]!
    expect(ten).toMatchObject({ slotStart: '2026-01-01T10:00:00.000Z', source: 'history' })
    expect(ten.demandUnits).toBeCloseTo(0.5 * 40 + 0.25 * 40 + 0.15 * 15 + 0.1 * 40, 2)
    expect(forecast.slots[0]).toMatchObject({ source: 'calendar', servableUnits: 225 })
    // 36.25 credits fit six times into 225, in the windows from 09:00 and 14:00: 24 of 36 slots are unmet.
    expect(forecast.simulation.unmetDemand).toBeCloseTo(24 * 36.25, 1)
    expect(forecast.slots[37]?.servableUnits).toBeCloseTo(225 - 36.25, 1)
    expect(forecast.totalDemandUnits).toBeCloseTo(
      forecast.slots.reduce((sum, { demandUnits }) => sum + demandUnits, 0),
      0,
    )
  })

  test('says when there are not yet 14 days of data', async () => {
    const app = await testApp()
    await logWorkdays(app, { days: 10, units: 5 })
    expect(await jsonOf<Forecast>(app.ask(`GET ${PLANNER}/forecast`))).toMatchObject({
      sufficient: false,
      horizonHours: 36,
    })
    expect(await jsonOf<Forecast>((await testApp({ accounts: 0 })).ask(`GET ${PLANNER}/forecast`))).toMatchObject({
      sufficient: false,
      totalDemandUnits: 0,
      peakSlotStart: null,
    })
  })

  test.each(['0', '169', 'x'])('rejects a horizon of %s hours', async (hours) => {
    expect((await (await testApp()).ask(`GET ${PLANNER}/forecast?horizonHours=${hours}`)).status).toBe(422)
  })
})

describe('decisions', () => {
  test('are listed, latest first, and canceled once', async () => {
    const app = await testApp()
    await plan(app, 'plan_a', 'plan_b')
    const list = await jsonOf<Record<string, unknown>[]>(app.ask(`GET ${PLANNER}/decisions?limit=1`))
    expect(list).toEqual([
      {
        id: 'plan_b',
        createdAt: '2026-01-01T00:00:00.000Z',
        mode: 'advise',
        accountId: app.members[0]!.id,
        action: 'start_window',
        scheduledAt: '2026-01-01T02:00:00.000Z',
        executedAt: null,
        score: 12,
        reason: '+12 % served between 05:00 and 08:00',
        details: {
          gainPercent: 12,
          gainFrom: '2026-01-01T05:00:00.000Z',
          gainTo: '2026-01-01T08:00:00.000Z',
          model: null,
        },
        status: 'planned',
        idempotencyKey: `day-1:${app.members[0]!.id}`,
      },
    ])
    const cancel = () => jsonOf<object>(app.ask(`POST ${PLANNER}/decisions/plan_a/cancel`))
    const canceled = {
      decisionId: 'plan_a',
      status: 'canceled',
      reason: 'Canceled by a user.',
      requestId: null,
      executedAt: null,
    }
    expect(await cancel()).toEqual(canceled)
    expect(await cancel()).toEqual(canceled)
  })

  test('a start whose time has come cannot be canceled, because it may be running', async () => {
    const app = await testApp()
    await plan(app, 'plan_a', 'plan_b')
    await app.clock.advance(HOUR)
    const late = await app.ask(`POST ${PLANNER}/decisions/plan_a/cancel`)
    expect([late.status, await jsonOf<unknown>(late)]).toMatchObject([
      400,
      { error: { code: 'invalid_quota_planner' } },
    ])
    const statuses = await jsonOf<{ id: string; status: string }[]>(app.ask(`GET ${PLANNER}/decisions`))
    expect(statuses.find(({ id }) => id === 'plan_a')?.status).toBe('planned')
  })

  test('an unknown or ended start cannot be canceled', async () => {
    const app = await testApp()
    const missing = await app.ask(`POST ${PLANNER}/decisions/plan_x/cancel`)
    expect([missing.status, await jsonOf<unknown>(missing)]).toMatchObject([
      400,
      { error: { code: 'quota_planner_decision_not_found' } },
    ])
    const { decisionId } = await jsonOf<{ decisionId: string }>(
      app.ask(`POST ${PLANNER}/warm-now`, { json: { accountId: app.members[0]!.id } }),
    )
    const ended = await app.ask(`POST ${PLANNER}/decisions/${decisionId}/cancel`)
    expect([ended.status, await jsonOf<unknown>(ended)]).toMatchObject([
      400,
      { error: { code: 'invalid_quota_planner' } },
    ])
  })

  test('stay when their account is deleted', async () => {
    const app = await testApp()
    await plan(app, 'plan_a')
    await app.ask(`DELETE /api/accounts/${app.members[0]!.id}`)
    expect(await jsonOf<object[]>(app.ask(`GET ${PLANNER}/decisions`))).toMatchObject([
      { id: 'plan_a', accountId: null },
    ])
  })
})

describe('a start now', () => {
  const warm = (app: TestApp, json: object) =>
    advanceClockDuring(app, jsonOf<{ status: string; reason: string }>(app.ask(`POST ${PLANNER}/warm-now`, { json })))
  const see = (app: TestApp, usedPercent: number) =>
    app.bindings.pool.observe(app.members[0]!.id, {
      at: app.clock.now(),
      windows: {
        fiveHour: { usedPercent, windowMinutes: 300, resetAt: app.clock.now() + HOUR },
        weekly: null,
        monthly: null,
      },
      credits: null,
      planType: null,
    })

  test('sends one tiny request', async () => {
    const app = await testApp()
    see(app, 0)
    const accountId = app.members[0]!.id
    expect(await warm(app, { accountId, model: 'gpt-5.5' })).toMatchObject({ status: 'executed' })
    expect(await app.rows()).toMatchObject([{ kind: 'warmup', accountId, model: 'gpt-5.5', status: 'ok' }])
    see(app, 0)
    expect(await warm(app, { accountId })).toMatchObject({
      status: 'skipped',
      reason: 'The window was started a moment ago.',
    })
    expect(await app.rows()).toHaveLength(1)
  })

  test('is skipped when the window has started or is unknown, and 404 for an unknown account', async () => {
    const app = await testApp()
    const accountId = app.members[0]!.id
    expect(await warm(app, { accountId })).toMatchObject({
      status: 'skipped',
      reason: 'ChatGPT has reported no five-hour window for this account.',
    })
    see(app, 40)
    expect(await warm(app, { accountId })).toMatchObject({
      status: 'skipped',
      reason: 'The five-hour window of this account has already started.',
    })
    expect(await app.rows()).toEqual([])
    const unknown = await app.ask(`POST ${PLANNER}/warm-now`, { json: { accountId: 'acc_none' } })
    expect(unknown.status).toBe(404)
    const extra = await app.ask(`POST ${PLANNER}/warm-now`, { json: { accountId, forceProbe: true } })
    expect(extra.status).toBe(422)
    expect(await extra.text()).toContain('forceProbe')
  })
})

describe('permissions for the planner', () => {
  test('operators can change it, viewers only read it', async () => {
    const app = await testApp()
    await plan(app, 'plan_a')
    const { as } = people(app)
    const viewer = await as('viewer')
    const operator = await as('operator')
    for (const path of ['settings', 'forecast', 'decisions'])
      expect((await viewer.ask(`GET ${PLANNER}/${path}`)).status).toBe(200)
    for (const who of [viewer, operator]) {
      const status = who === operator ? 200 : 403
      const accountId = app.members[0]!.id
      expect((await who.ask(`PUT ${PLANNER}/settings`, { json: { mode: 'advise' } })).status).toBe(status)
      expect((await who.ask(`POST ${PLANNER}/decisions/plan_a/cancel`)).status).toBe(status)
      expect((await who.ask(`POST ${PLANNER}/warm-now`, { json: { accountId } })).status).toBe(status)
    }
  })

  test('viewers and guests cannot read ChatGPT’s error messages', async () => {
    const app = await testApp()
    const { id: accountId } = app.members[0]!
    const windows = { fiveHour: { usedPercent: 0, windowMinutes: 300, resetAt: app.clock.now() + HOUR }, weekly: null }
    app.bindings.pool.observe(accountId, {
      ...{ at: app.clock.now(), credits: null, planType: null },
      windows: { ...windows, monthly: null },
    })
    app.members[0]!.sim.always({ on: 'responses', ...faults.invalidValue() })
    await advanceClockDuring(app, app.ask(`POST ${PLANNER}/warm-now`, { json: { accountId, model: 'gpt-5.5' } }))
    const viewer = await people(app).as('viewer')
    const list = await (await viewer.ask(`GET ${PLANNER}/decisions`)).text()
    expect(list).toContain('"status":"skipped"')
    expect(list).toContain('invalid_value')
    expect(list).not.toContain('Invalid value: bad')
    await app.change({ plannerMode: 'advise' })
    const page = await (await viewer.ask('GET /reports', { headers: { accept: 'text/html' } })).text()
    expect(page).toContain('invalid_value')
    expect(page).not.toContain('Invalid value: bad')
  })

  test('the card shows the plan, and a button only to operators', async () => {
    const app = await testApp({ settings: { plannerMode: 'advise' } })
    await logWorkdays(app, { days: 20, units: 5 })
    await plan(app, 'plan_a')
    const { as } = people(app)
    const page = async (role: 'viewer' | 'operator') =>
      (await (await as(role)).ask('GET /reports', { headers: { accept: 'text/html' } })).text()
    const [seen, edited] = [await page('viewer'), await page('operator')]
    expect(seen).toContain('+12 % served between 05:00 and 08:00')
    expect(seen).toContain('These starts are only advice.')
    expect(seen).not.toContain('/plan_a/cancel')
    expect(edited).toContain('/plan_a/cancel')
    expect(edited).toContain('/settings/routing#planner')
    await app.change({ plannerMode: 'off' })
    expect(await page('viewer')).not.toContain('Quota planner')
  })
})
