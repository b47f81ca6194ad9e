/** Keys that users with the role Member create and change, within `memberKeyDefaults`. */
import { describe, expect, test } from 'bun:test'
import { listKeys } from '../../src/model/keys/api-keys.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { testApp } from '../support/app.ts'
import { people, problem } from '../support/people.ts'

type Defaults = Settings['memberKeyDefaults']
const WEEKLY = { limitType: 'total_tokens', limitWindow: 'weekly', maxValue: 1000 } as const
const DAY_MS = 86_400_000

const open = async (defaults: Partial<Defaults> = {}) => {
  const app = await testApp()
  await app.change({ memberKeyDefaults: { maxKeys: 2, models: null, limits: [], expiresDays: null, ...defaults } })
  const crowd = people(app)
  const mia = await crowd.as('member', { username: 'mia' })
  const create = (json: object) => mia.ask('POST /api/api-keys', { json: { name: 'laptop', ...json } })
  const edit = (id: string, json: object) => mia.ask(`PATCH /api/api-keys/${id}`, { json })
  const toKey = async (input: object = {}) => (await app.key({ ownerUserId: mia.person.row.id, ...input })).row
  return { app, ...crowd, mia, create, edit, toKey, at: (days: number) => new Date(app.clock.now() + days * DAY_MS) }
}

const getFields = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string; details?: { fields: object } } } // as: an error response
  return [response.status, error.code, Object.keys(error.details?.fields ?? {})]
}

describe('creating', () => {
  test('a key belongs to the Member and gets the defaults', async () => {
    const { create, mia, at } = await open({ models: ['gpt-5.5'], limits: [WEEKLY], expiresDays: 30 })
    const response = await create({})
    expect([response.status, await response.json()]).toMatchObject([
      200,
      {
        ownerUserId: mia.person.row.id,
        allowedModels: ['gpt-5.5'],
        limits: [WEEKLY],
        expiresAt: at(30).toISOString(),
      },
    ])
  })

  test('works as a form', async () => {
    const { mia, app } = await open({ limits: [WEEKLY] })
    const html = await (await mia.ask('GET /keys/new', { headers: { accept: 'text/html' } })).text()
    for (const name of ['trafficClass', 'assignedAccountIds', 'usageSections', 'ownerUserId'])
      expect(html).not.toContain(`name="${name}"`)
    const made = await mia.submit('POST /api/api-keys/', {
      name: 'phone',
      neverExpires: 'true',
      'limits.0.amount': 500,
      'limits.0.type': 'total_tokens',
      'limits.0.window': 'weekly',
    })
    expect(made.status).toBe(200)
    expect((await listKeys(app.db, 'all')).map(({ name, limits }) => [name, limits.length])).toEqual([['phone', 1]])
  })

  test('the list of own keys has no owner column', async () => {
    const { mia, as, toKey } = await open()
    await toKey({ name: 'laptop' })
    const list = async (who: typeof mia) => (await who.ask('GET /keys', { headers: { accept: 'text/html' } })).text()
    expect(await list(mia)).not.toMatch(/Owner|or owner/)
    expect(await list(await as('operator'))).toMatch(/Owner[\s\S]*or owner|or owner[\s\S]*Owner/)
  })

  test('is rejected beyond the maximum number of keys', async () => {
    const { create, toKey, mia } = await open()
    await toKey()
    const second = (await (await create({})).json()) as { id: string } // as: it was created
    expect(await problem(await create({}))).toEqual([409, 'key_limit_reached'])
    await mia.ask(`DELETE /api/api-keys/${second.id}`)
    expect(await problem(await create({}))).toEqual([200, null])
  })

  test.each<[string, Partial<Defaults>, object, string[]]>([
    ['a model outside the list', { models: ['gpt-5.5'] }, { allowedModels: ['gpt-5.5', 'gpt-4'] }, ['allowedModels']],
    ['a higher limit', { limits: [WEEKLY] }, { limits: [{ ...WEEKLY, maxValue: 1001 }] }, ['limits']],
    ['a later expiry', { expiresDays: 1 }, { expiresAt: '2027-01-01T00:00:00Z' }, ['expiresAt']],
    ['no expiry', { expiresDays: 1 }, { expiresAt: null }, ['expiresAt']],
    [
      'an enforced model outside the list',
      { models: ['gpt-5.5'] },
      { enforcedModel: 'gpt-4', allowedModels: ['gpt-4'] },
      ['allowedModels'],
    ],
  ])('rejects %s', async (_, defaults, json, fields) => {
    const { create, app } = await open(defaults)
    expect(await getFields(await create(json))).toEqual([422, 'validation_error', fields])
    expect(await listKeys(app.db, 'all')).toEqual([])
  })

  test('accepts narrower values and additional limits', async () => {
    const { create } = await open({ models: ['gpt-5.5', 'gpt-4'], limits: [WEEKLY], expiresDays: 30 })
    const daily = { limitType: 'requests', limitWindow: 'daily', maxValue: 5 }
    const json = {
      allowedModels: ['gpt-4'],
      limits: [{ ...WEEKLY, maxValue: 10 }, daily],
      expiresAt: '2026-01-02T00:00:00Z',
    }
    const response = await create(json)
    const made = (await response.json()) as { limits: object[]; allowedModels: string[] } // as: checked here
    expect([response.status, made.limits.length, made.allowedModels]).toEqual([200, 2, ['gpt-4']])
  })

  test.each([
    ['an owner', { ownerUserId: null }],
    ['accounts', { assignedAccountIds: ['acc_x'] }],
    ['tags', { assignedTags: ['x'] }],
    ['the traffic class', { trafficClass: 'foreground' }],
    ['the visibility of the pool', { usageSections: 'upstream_limits,account_pool_usage' }],
    ['fast mode', { prohibitFastMode: 'off' }],
    ['Claude models', { claudeModels: { opus: { model: 'gpt-5.5' } } }],
  ])('does not let a Member choose %s', async (_, json) => {
    const { create, app } = await open()
    const response = await create(json)
    expect([response.status, await response.json()]).toMatchObject([
      403,
      { error: { code: 'permission_required', param: 'api_keys:write' } },
    ])
    expect(await listKeys(app.db, 'all')).toEqual([])
  })
})

describe('changing', () => {
  test('a Member renames, disables, regenerates and deletes their own key', async () => {
    const { edit, toKey, mia } = await open()
    const { id } = await toKey()
    for (const json of [{ name: 'tablet' }, { isActive: false }, { isActive: true }, { holderMayRegenerate: true }])
      expect([json, ...(await problem(await edit(id, json)))]).toEqual([json, 200, null])
    expect((await mia.ask(`POST /api/api-keys/${id}/regenerate`)).status).toBe(200)
    expect((await mia.ask(`DELETE /api/api-keys/${id}`)).status).toBe(204)
  })

  test('a key stays within the defaults or its previous rights', async () => {
    const { edit, toKey, at } = await open({ models: ['gpt-5.5'], limits: [WEEKLY], expiresDays: 30 })
    const { id } = await toKey({ allowedModels: ['gpt-5.5', 'gpt-4'], limits: [{ ...WEEKLY, maxValue: 5000 }] })
    expect(await problem(await edit(id, { name: 'kept' }))).toEqual([200, null])
    expect(await problem(await edit(id, { limits: [{ ...WEEKLY, maxValue: 4000 }] }))).toEqual([200, null])
    expect(await getFields(await edit(id, { limits: [{ ...WEEKLY, maxValue: 4001 }] }))).toEqual([
      422,
      'validation_error',
      ['limits'],
    ])
    expect(await getFields(await edit(id, { limits: [] }))).toEqual([422, 'validation_error', ['limits']])
    expect(await problem(await edit(id, { allowedModels: ['gpt-4'] }))).toEqual([200, null])
    const defaults = { allowedModels: ['gpt-5.5'], limits: [WEEKLY], expiresAt: at(30).toISOString() }
    expect(await problem(await edit(id, defaults))).toEqual([200, null])
    expect(await getFields(await edit(id, { allowedModels: null }))).toEqual([
      422,
      'validation_error',
      ['allowedModels'],
    ])
  })

  test.each<[string, object, object, string[]]>([
    ['a higher limit', { limits: [{ ...WEEKLY, maxValue: 10 }] }, { limits: [WEEKLY] }, ['limits']],
    ['a later expiry', { expiresAt: Date.parse('2026-01-02') }, { expiresAt: '2026-01-20T00:00:00Z' }, ['expiresAt']],
    ['an expiry after it expired', { expiresAt: 1 }, { expiresAt: '2026-01-20T00:00:00Z' }, ['expiresAt']],
  ])('the defaults do not give %s to a key with other models', async (_, narrow, json, fields) => {
    const { edit, toKey } = await open({ models: ['gpt-5.5'], limits: [WEEKLY], expiresDays: 30 })
    const given = { allowedModels: ['gpt-5.5-pro'], limits: [WEEKLY], expiresAt: Date.parse('2026-01-02') }
    const { id } = await toKey({ ...given, ...narrow })
    expect(await getFields(await edit(id, json))).toEqual([422, 'validation_error', fields])
    expect(await problem(await edit(id, { ...json, allowedModels: ['gpt-5.5'], limits: [WEEKLY] }))).toEqual([
      200,
      null,
    ])
  })

  test.each([
    ['models', { allowedModels: ['gpt-5.5', 'gpt-5.5-pro'] }],
    ['limits', { allowedModels: ['gpt-5.5'], limits: [] }],
  ])('a key with more %s than the defaults cannot be enabled again', async (_, given) => {
    const { app, edit, toKey, as } = await open({ models: ['gpt-5.5'], limits: [WEEKLY] })
    const { id } = await toKey({ limits: [WEEKLY], ...given })
    await (await as('operator')).ask(`PATCH /api/api-keys/${id}`, { json: { isActive: false } })
    expect((await getFields(await edit(id, { isActive: true }))).slice(0, 2)).toEqual([422, 'validation_error'])
    expect((await listKeys(app.db, 'all'))[0]?.isActive).toBe(false)
    const within = { isActive: true, allowedModels: ['gpt-5.5'], limits: [WEEKLY] }
    expect(await problem(await edit(id, within))).toEqual([200, null])
  })

  test('an enforced model does not extend the list, which images and audio are checked against', async () => {
    const { create, edit, toKey } = await open({ models: ['gpt-5.5'] })
    const wide = { enforcedModel: 'gpt-5.5', allowedModels: ['gpt-5.5', 'gpt-image-2'] }
    expect(await getFields(await create(wide))).toEqual([422, 'validation_error', ['allowedModels']])
    const { id } = await toKey({ enforcedModel: 'gpt-5.5', allowedModels: ['gpt-5.5'] })
    for (const json of [{ allowedModels: null }, { allowedModels: wide.allowedModels }])
      expect(await getFields(await edit(id, json))).toEqual([422, 'validation_error', ['allowedModels']])
  })

  test('a key restricted to model sources stays restricted to them', async () => {
    const { app, edit, toKey } = await open()
    const { id } = await toKey({ assignedSourceIds: [] })
    expect(await problem(await edit(id, { assignedSourceIds: null }))).toEqual([403, 'permission_required'])
    expect(await problem(await edit(id, { assignedSourceIds: [], name: 'renamed' }))).toEqual([200, null])
    expect((await listKeys(app.db, 'all'))[0]).toMatchObject({ assignedSourceIds: [], name: 'renamed' })
    expect(await problem(await edit((await toKey()).id, { assignedSourceIds: null, name: 'phone' }))).toEqual([
      200,
      null,
    ])
  })

  test('the usage of a limit cannot be reset, and an enforced model cannot be removed', async () => {
    const { edit, toKey } = await open({ models: ['gpt-5.5'] })
    const { id } = await toKey({ enforcedModel: 'gpt-5.5' })
    expect(await problem(await edit(id, { resetUsage: true }))).toEqual([403, 'permission_required'])
    expect(await getFields(await edit(id, { enforcedModel: null }))).toEqual([
      422,
      'validation_error',
      ['allowedModels'],
    ])
  })

  test('Members without permission to create keys can restrict the keys they were given, and not enable them again', async () => {
    const { app, edit, toKey, as, create } = await open({ maxKeys: 0 })
    const { id } = await toKey({ limits: [WEEKLY] })
    expect(await problem(await create({}))).toEqual([409, 'key_limit_reached'])
    expect(await problem(await edit(id, { limits: [{ ...WEEKLY, maxValue: 10 }] }))).toEqual([200, null])
    expect(await getFields(await edit(id, { limits: [] }))).toEqual([422, 'validation_error', ['limits']])
    await (await as('operator')).ask(`PATCH /api/api-keys/${id}`, { json: { isActive: false } })
    expect(await problem(await edit(id, { isActive: true }))).toEqual([403, 'permission_required'])
    expect((await listKeys(app.db, 'all'))[0]?.isActive).toBe(false)
  })
})

describe('the setting', () => {
  test('is changed by an Operator, as JSON and as a form', async () => {
    const { app, as } = await open()
    const operator = await as('operator')
    const defaults = { maxKeys: 3, models: ['gpt-5.5'], limits: [WEEKLY], expiresDays: 90 }
    expect((await operator.ask('PATCH /api/settings', { json: { memberKeyDefaults: defaults } })).status).toBe(200)
    expect(app.bindings.settings.current().memberKeyDefaults).toEqual(defaults)
    const html = await (await operator.ask('GET /settings', { headers: { accept: 'text/html' } })).text()
    expect(html).toContain('name="memberKeyDefaults.maxKeys"')
    const saved = await operator.ask('PATCH /api/settings?section=members', {
      body: new URLSearchParams([
        ['memberKeyDefaults.maxKeys', '4'],
        ['memberKeyDefaults.expiresDays', ''],
        ['memberKeyDefaults.models', ''],
        ['memberKeyDefaults.unlimited', 'false'],
        ['memberKeyDefaults.limits.0.amount', '2.5'],
        ['memberKeyDefaults.limits.0.type', 'cost_usd'],
        ['memberKeyDefaults.limits.0.window', 'daily'],
        ['memberKeyDefaults.limits.0.model', ''],
        ['memberKeyDefaults.limits.1.amount', ''],
        ['memberKeyDefaults.limits.1.type', 'requests'],
      ]).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(saved.status).toBe(200)
    expect(app.bindings.settings.current().memberKeyDefaults).toEqual({
      maxKeys: 4,
      models: null,
      limits: [{ limitType: 'cost_usd', limitWindow: 'daily', maxValue: 2_500_000, modelFilter: null }],
      expiresDays: null,
    })
  })

  test('an unchanged value is no change, and invalid ones are rejected', async () => {
    const { as, audit } = await open()
    const operator = await as('operator')
    const same = { maxKeys: 2, models: null, limits: [], expiresDays: null }
    await operator.ask('PATCH /api/settings', { json: { memberKeyDefaults: same } })
    expect((await audit()).map(({ event }) => event)).not.toContain('settings_updated')
    for (const bad of [{ ...same, maxKeys: -1 }, { ...same, models: [] }, { ...same, limits: [{}] }, { maxKeys: 1 }, 5])
      expect(await problem(await operator.ask('PATCH /api/settings', { json: { memberKeyDefaults: bad } }))).toEqual([
        422,
        'validation_error',
      ])
  })
})
