/** `/api/settings` over the JSON API, and its audit entries. */
import { expect, test } from 'bun:test'
import { auditLogs } from '../../db/schema/system.ts'
import { changeSettings, getSettings, putSettings } from '../../src/admin/settings/settings.ts'
import { demand, type Principal, requireWrite } from '../../src/auth/principal.ts'
import { PRESETS } from '../../src/model/users/permissions.ts'
import { DEFAULTS } from '../../src/settings/schema.ts'
import { testApp } from '../support/app.ts'
import { fewRoutes } from '../support/few-routes.ts'

const open = () =>
  fewRoutes((app) => {
    app.get('/api/settings', ...getSettings)
    app.put('/api/settings', ...putSettings)
    app.patch('/api/settings', ...changeSettings)
  })

type App = Awaited<ReturnType<typeof open>>

/** The fields beside the settings while there are no users. */
const NOBODY_YET = { guestPasswordConfigured: false, usersWithoutTotpCount: 0, adminsWithoutTotpCount: 0 }
const patch = ({ ask }: App, json: unknown) => ask('PATCH /api/settings', { json })
const audit = ({ db }: App) => db.select().from(auditLogs).all()

test('a fresh install returns every default and a version', async () => {
  expect(await (await open()).ask('GET /api/settings')).toEqual({
    status: 200,
    body: { ...DEFAULTS, ...NOBODY_YET, version: 1 },
  })
})

test('a change takes effect immediately, changes nothing else, increments the version, and is recorded', async () => {
  const app = await open()
  const { status, body } = await patch(app, { routingStrategy: 'round_robin', capacityWaitSeconds: 9 })
  expect(status).toBe(200)
  expect(body).toEqual({
    ...DEFAULTS,
    ...NOBODY_YET,
    routingStrategy: 'round_robin',
    capacityWaitSeconds: 9,
    version: 2,
  })
  expect((await app.ask('GET /api/settings')).body).toEqual(body)
  expect(await audit(app)).toMatchObject([
    {
      event: 'settings_updated',
      actor: 'bootstrap',
      method: 'local_bootstrap',
      address: '127.0.0.1',
      details: {
        changes: {
          routingStrategy: { from: 'capacity_weighted', to: 'round_robin' },
          capacityWaitSeconds: { from: 5, to: 9 },
        },
      },
    },
  ])
})

test('PUT means the same as PATCH', async () => {
  const app = await open()
  await patch(app, { capacityWaitSeconds: 9 })
  const { body } = await app.ask('PUT /api/settings', { json: { connectTimeoutSeconds: 4 } })
  expect(body).toMatchObject({ capacityWaitSeconds: 9, connectTimeoutSeconds: 4, version: 3 })
})

test('PUT accepts the complete document that GET returned, and changes nothing', async () => {
  const app = await open()
  await patch(app, { capacityWaitSeconds: 9 })
  const { body: read } = await app.ask('GET /api/settings')
  const { status, body } = await app.ask('PUT /api/settings', { json: read })
  expect([status, body, (await audit(app)).length]).toEqual([200, read, 1])
})

test('PUT stores the settings of such a document and ignores its read-only fields, whatever their values', async () => {
  const app = await open()
  const { body: read } = await app.ask('GET /api/settings')
  const edited = {
    ...read,
    connectTimeoutSeconds: 4,
    version: 99,
    guestPasswordConfigured: 'yes',
    usersWithoutTotpCount: null,
    adminsWithoutTotpCount: -1,
  }
  const { status, body } = await app.ask('PUT /api/settings', { json: edited })
  expect([status, body]).toEqual([200, { ...read, connectTimeoutSeconds: 4, version: 2 }])
})

test('fields that GET does not return are rejected, and PATCH takes no read-only fields', async () => {
  const app = await open()
  const getFields = async (route: string, json: object) => {
    const { status, body } = await app.ask(route, { json })
    return [status, Object.keys(body.error.details.fields)]
  }
  expect(await getFields('PUT /api/settings', { version: 1, colour: 'red' })).toEqual([422, ['colour']])
  expect(await getFields('PATCH /api/settings', { version: 1 })).toEqual([422, ['version']])
})

test('storing the current values changes nothing and is not recorded', async () => {
  const app = await open()
  const { status, body } = await patch(app, { ...DEFAULTS })
  expect([status, body.version, await audit(app)]).toEqual([200, 1, []])
})

test('an outdated expectedVersion is rejected and nothing is stored', async () => {
  const app = await open()
  await patch(app, { capacityWaitSeconds: 9 })
  const stale = await patch(app, { capacityWaitSeconds: 1, expectedVersion: 1 })
  expect([stale.status, stale.body.error.code]).toEqual([409, 'settings_conflict'])
  expect((await patch(app, { capacityWaitSeconds: 2, expectedVersion: 2 })).status).toBe(200)
  expect(await audit(app)).toHaveLength(2)
})

test('unknown and impossible values are named, and nothing is stored', async () => {
  const app = await open()
  const { status, body } = await patch(app, { capacityWaitSeconds: -1, dessert: true, connectTimeoutSeconds: 3 })
  expect([status, body.error.code]).toEqual([422, 'validation_error'])
  expect(Object.keys(body.error.details.fields).toSorted()).toEqual(['capacityWaitSeconds', 'dessert'])
  expect((await app.ask('GET /api/settings')).body.version).toBe(1)
})

test('the combination is validated, not only each field', async () => {
  const app = await open()
  const { status, body } = await patch(app, { routingStrategy: 'single_account' })
  expect([status, Object.keys(body.error.details.fields)]).toEqual([422, ['singleAccountId']])
  expect(await audit(app)).toEqual([])
})

test('the single account must exist when it is selected, and can be deleted later', async () => {
  const app = await testApp()
  const { id } = app.members[0]!
  const set = async (json: unknown) => (await app.ask('PATCH /api/settings', { json })).status
  expect(await set({ routingStrategy: 'single_account', singleAccountId: 'acc_nobody' })).toBe(422)
  expect(await set({ routingStrategy: 'single_account', singleAccountId: id })).toBe(200)
  expect((await app.ask(`DELETE /api/accounts/${id}`)).status).toBe(200)
  expect(await set({ capacityWaitSeconds: 3 })).toBe(200)
  const page = await (await app.ask('GET /dashboard')).text()
  expect(page).toContain('The account chosen for the “Single account” strategy was deleted.')
})

test('a passwordless local install can change a security setting without a confirmation', async () => {
  const app = await open()
  expect((await patch(app, { apiKeyAuthEnabled: true })).body.apiKeyAuthEnabled).toBe(true)
})

test('other machines can neither read nor change', async () => {
  const { ask } = await open()
  for (const method of ['GET', 'PUT', 'PATCH']) {
    const { status, body } = await ask(`${method} /api/settings`, { peer: '192.0.2.7' })
    expect([status, body.error.code]).toEqual([401, 'bootstrap_required'])
  }
})

test('a viewer cannot write, and an operator cannot change security settings, at the level below the routes', () => {
  const as = (grants: Principal['grants']): Principal => ({ kind: 'guest', id: 'guest', grants, session: null })
  expect(() => requireWrite(as(PRESETS.viewer))).toThrow(expect.objectContaining({ code: 'read_only_access' }))
  expect(() => requireWrite(as(PRESETS.operator))).not.toThrow()
  expect(() => demand(as(PRESETS.operator), 'security:write')).toThrow(
    expect.objectContaining({
      code: 'permission_required',
      extra: expect.objectContaining({ param: 'security:write' }),
    }),
  )
})
