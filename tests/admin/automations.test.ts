/** `/api/automations` and its pages: lists, filters, changes, and who sees what. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { beginAccount, endAccount } from '../../src/model/automations/runs.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people, type TestUser } from '../support/people.ts'

const HTML = { accept: 'text/html' }
type Json = Record<string, unknown>

const json = async (response: Response): Promise<Json> => (await response.json()) as Json // as: an object
const get = async (app: TestApp, path: string) => json(await app.ask(`GET ${path}`))
const create = async (app: TestApp, fields: Json = {}) =>
  json(await app.ask('POST /api/automations', { json: { name: 'Mornings', schedule: { time: '07:55' }, ...fields } }))
const getIds = (page: Json) => (page.items as Json[]).map(({ id }) => id)

test('a new automation has defaults for everything except name and time', async () => {
  const app = await testApp()
  const made = await create(app, { schedule: { time: '07:55', timezone: 'UTC' } })
  expect(made).toMatchObject({
    name: 'Mornings',
    kind: 'ping',
    enabled: true,
    includePausedAccounts: false,
    schedule: {
      type: 'daily',
      time: '07:55',
      timezone: 'UTC',
      thresholdMinutes: 0,
      days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
    },
    model: null,
    reasoningEffort: null,
    prompt: 'ping',
    accountIds: [],
    accountScopeAll: true,
    nextRunAt: '2026-01-01T07:55:00.000Z',
    lastRun: null,
  })
  expect(await get(app, '/api/automations')).toMatchObject({ items: [made], total: 1, hasMore: false })
})

test('a change keeps omitted fields, also in the schedule, and an empty list of accounts means all', async () => {
  const app = await testApp({ accounts: 2 })
  const accountIds = app.members.map(({ id }) => id)
  const { id } = await create(app, { accountIds, schedule: { time: '07:55', timezone: 'UTC', days: ['sun', 'mon'] } })
  const change = async (patch: Json) => json(await app.ask(`PATCH /api/automations/${id}`, { json: patch }))
  expect(await change({ schedule: { time: '09:00' } })).toMatchObject({
    name: 'Mornings',
    schedule: { time: '09:00', timezone: 'UTC', days: ['mon', 'sun'] },
    accountIds,
    accountScopeAll: false,
  })
  expect(await change({ accountIds: [], enabled: false })).toMatchObject({
    accountIds: [],
    accountScopeAll: true,
    nextRunAt: null,
  })
  const events = app.sqlite.query('SELECT event FROM audit_logs WHERE target = ? ORDER BY id').values(String(id)).flat()
  expect(events).toEqual(['automation_created', 'automation_updated', 'automation_updated'])
})

describe('invalid input', () => {
  const schedule = { time: '07:55' }
  test.each<[string, Json]>([
    ['invalid_schedule_time', { schedule: {} }],
    ['invalid_schedule_time', { schedule: { time: '7:55' } }],
    ['invalid_schedule_time', { schedule: { time: '07:60' } }],
    ['invalid_schedule_timezone', { schedule: { ...schedule, timezone: '' } }],
    ['invalid_schedule_timezone', { schedule: { ...schedule, timezone: 'CET/Nowhere' } }],
    ['invalid_schedule_days', { schedule: { ...schedule, days: ['monday'] } }],
    ['invalid_schedule_days', { schedule: { ...schedule, days: ['mon', 'mon'] } }],
    ['invalid_schedule_threshold', { schedule: { ...schedule, thresholdMinutes: -1 } }],
    ['invalid_schedule_threshold', { schedule: { ...schedule, thresholdMinutes: 1.5 } }],
    ['invalid_schedule_type', { schedule: { ...schedule, type: 'cron' } }],
    ['invalid_reasoning_effort', { reasoningEffort: 'HIGH' }],
  ])('%s: %j', async (code, fields) => {
    const app = await testApp()
    const { error } = (await create(app, fields)) as { error: Json } // as: an error
    expect(error.code).toBe(code)
    expect(await get(app, '/api/automations')).toMatchObject({ total: 0 })
  })

  test('accounts: unknown ones, duplicates, more than 128', async () => {
    const app = await testApp({ accounts: 1 })
    const id = app.members[0]?.id ?? ''
    for (const accountIds of [['acc_unknown'], [id, id], Array.from({ length: 129 }, () => id)])
      expect(await create(app, { accountIds })).toMatchObject({ error: { code: 'invalid_account_ids' } })
  })

  test('a model that no account offers, once a catalog is known', async () => {
    const app = await testApp()
    expect(await create(app, { model: 'gpt-unknown' })).toMatchObject({ model: 'gpt-unknown' })
    await app.ask('GET /backend-api/codex/models?client_version=0.150.0')
    expect(await create(app, { model: 'gpt-unknown' })).toMatchObject({ error: { code: 'invalid_model' } })
    expect(await create(app, { model: 'gpt-5.5' })).toMatchObject({ model: 'gpt-5.5' })
  })

  test('names and wrong types are rejected as fields', async () => {
    const app = await testApp()
    for (const fields of [{ name: '' }, { name: 'x'.repeat(201) }, { enabled: 'yes' }, { shedule: {} }])
      expect(await create(app, fields)).toMatchObject({ error: { code: 'validation_error' } })
  })

  test('unknown automations and runs are 404', async () => {
    const app = await testApp()
    for (const route of [
      'PATCH /api/automations/auto_x',
      'DELETE /api/automations/auto_x',
      'POST /api/automations/auto_x/run-now',
      'GET /api/automations/auto_x/runs',
      'GET /settings/automations/auto_x',
    ])
      expect(await json(await app.ask(route, { json: route.startsWith('GET') ? undefined : {} }))).toMatchObject({
        error: { code: 'automation_not_found' },
      })
    expect(await get(app, '/settings/automations/runs/run_x')).toMatchObject({
      error: { code: 'automation_run_not_found' },
    })
  })
})

describe('lists', () => {
  const world = async () => {
    const app = await testApp({ accounts: 2 })
    const [ada, bob] = app.members.map(({ id }) => id) as [string, string]
    const all = await create(app, { name: 'All', model: 'gpt-5.5' })
    await app.clock.advance(1000)
    const one = await create(app, { name: 'Only Ada', accountIds: [ada], enabled: false })
    return { app, ada, bob, all: String(all.id), one: String(one.id) }
  }

  test('automations are filtered by text, account, model, status and page', async () => {
    const { app, bob, all, one } = await world()
    const found = async (query: string) => getIds(await get(app, `/api/automations?${query}`))
    expect(await found('')).toEqual([all, one])
    expect(await found('search=ada')).toEqual([one])
    expect(await found('search=GPT-5')).toEqual([all])
    expect(await found(`accountId=${bob}`)).toEqual([all])
    expect(await found('model=gpt-5.5')).toEqual([all])
    expect(await found('status=disabled')).toEqual([one])
    expect(await found('status=disabled&status=enabled&scheduleType=daily')).toEqual([all, one])
    expect(await get(app, '/api/automations?limit=1')).toMatchObject({ total: 2, hasMore: true })
    expect(await found('limit=1&offset=1')).toEqual([one])
    expect((await app.ask('GET /api/automations?limit=1001')).status).toBe(422)
    expect((await app.ask('GET /api/automations?scheduleType=weekly')).status).toBe(422)
  })

  test('options are the values that occur', async () => {
    const { app, ada } = await world()
    expect(await get(app, '/api/automations/options')).toEqual({
      accountIds: [ada],
      models: ['gpt-5.5'],
      statuses: ['enabled', 'disabled'],
      scheduleTypes: ['daily'],
    })
    expect(await get(app, '/api/automations/options?status=disabled')).toMatchObject({ statuses: ['disabled'] })
  })

  test('runs are filtered by text, account, model, status, trigger, automation and page, newest first', async () => {
    const { app, ada, bob, all, one } = await world()
    const start = async (id: string) => {
      await app.clock.advance(1000)
      return String((await json(await app.ask(`POST /api/automations/${id}/run-now`))).id)
    }
    const first = await start(one)
    const second = await start(all)
    await commit(app.db, async (tx) => {
      await beginAccount(tx, first, { accountId: ada, now: app.clock.now() })
      await endAccount(tx, first, { accountId: ada, now: app.clock.now(), status: 'success', ended: null })
    })
    const found = async (query: string) => getIds(await get(app, `/api/automations/runs?${query}`))
    expect(await found('')).toEqual([second, first])
    expect(await found(`accountId=${bob}`)).toEqual([second])
    expect(await found(`accountId=${ada}&accountId=${bob}`)).toEqual([second, first])
    expect(await found('model=gpt-5.5')).toEqual([second])
    expect(await found('status=success')).toEqual([first])
    expect(await found('trigger=scheduled')).toEqual([])
    expect(await found(`automationId=${one}`)).toEqual([first])
    expect(await found('search=only')).toEqual([first])
    expect(await found('search=%25')).toEqual([])
    expect(await get(app, '/api/automations/runs?limit=1')).toMatchObject({ total: 2, hasMore: true })
    expect(await get(app, `/api/automations/${one}/runs?limit=1`)).toMatchObject({
      items: [{ id: first, status: 'success', attemptCount: 1, accountId: ada }],
      total: 1,
      hasMore: false,
    })
    expect((await app.ask(`GET /api/automations/${one}/runs?limit=201`)).status).toBe(422)
    expect(await get(app, '/api/automations/runs/options')).toEqual({
      accountIds: [ada, bob].toSorted(),
      models: ['gpt-5.5'],
      statuses: ['running', 'success'],
      triggers: ['manual'],
    })
    await app.ask(`DELETE /api/automations/${one}`)
    expect(await found('')).toEqual([second])
  })
})

describe('pages', () => {
  const page = async (app: TestApp, path: string, who?: TestUser) => {
    const reader = who ?? (await people(app).as('admin'))
    return (await reader.ask(`GET ${path}`, { headers: HTML })).text()
  }

  test.each([
    ['mornings', 'Start windows on working mornings', 'ping', '07:55', ['mon', 'tue', 'wed', 'thu', 'fri']],
    ['nightly', 'Nightly check', 'probe', '03:00', ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']],
  ] as const)('the example %s can be submitted unchanged, without scripts', async (ready, name, kind, time, days) => {
    const app = await testApp()
    const admin = await people(app).as('admin')
    const form = getFields(await page(app, `/settings/automations/new?ready=${ready}`, admin), 'form-automation')
    const response = await admin.ask('POST /api/automations', {
      body: new URLSearchParams(form).toString(),
      headers: { ...HTML, 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
    })
    expect(response.status).toBe(303)
    const [made] = (await json(await admin.ask('GET /api/automations'))).items as Json[]
    expect(made).toMatchObject({ name, kind, schedule: { time, days }, accountScopeAll: true, model: null })
    expect(response.headers.get('location')).toBe(`/settings/automations/${made?.id}?done=automation_created`)
  })

  test('the run page names its accounts, and refreshes while the run continues', async () => {
    const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
    const { id } = await create(app)
    const { id: run } = await json(await app.ask(`POST /api/automations/${id}/run-now`))
    const admin = await people(app).as('admin')
    const path = `/settings/automations/runs/${run}`
    const text = await page(app, path, admin)
    expect(text).toContain('ada@example.test')
    expect(text).toContain(`data-live="automations" data-live-src="${path}"`)
    expect(text).toContain('0 of 1')
    const seen = app.bindings.live.lastId
    const accountId = app.members[0]?.id ?? ''
    const now = app.clock.now()
    await commit(app.db, async (tx) => {
      const ended = { code: 'account_paused', message: null }
      await endAccount(tx, String(run), { accountId, now, status: 'skipped', ended })
    })
    expect(app.bindings.live.since(seen)).toEqual(['automations'])
    expect(await page(app, path, admin)).toContain('Skipped: the account was paused.')
  })

  test('a viewer sees schedules and runs without buttons, prompts or addresses', async () => {
    const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
    const crowd = people(app)
    const viewer = await crowd.as('viewer')
    const admin = await crowd.as('admin')
    const made = await json(
      await admin.ask('POST /api/automations', {
        json: { name: 'Mornings', schedule: { time: '07:55' }, prompt: 'secret words' },
      }),
    )
    for (const path of ['/settings/automations', `/settings/automations/${made.id}`]) {
      const text = await page(app, path, viewer)
      expect(text).toContain('Mornings')
      for (const hidden of ['<button class="button" type="submit"', 'Run now', 'secret words', 'ada@'])
        expect(text).not.toContain(hidden)
    }
    expect(await json(await viewer.ask('GET /api/automations'))).toMatchObject({ items: [{ prompt: null }] })
    expect((await viewer.ask(`POST /api/automations/${made.id}/run-now`)).status).toBe(403)
    expect((await (await crowd.as('operator')).ask(`POST /api/automations/${made.id}/run-now`)).status).toBe(202)
  })
})
