/** The key routes of the dashboard as a JSON client sees them. */
import { describe, expect, test } from 'bun:test'
import { createApiKey, deleteApiKey, editApiKey, listApiKeys, regenerateApiKey } from '../../src/admin/keys/keys.ts'
import { fewRoutes } from '../support/few-routes.ts'

const open = () =>
  fewRoutes((app) => {
    app.get('/api/api-keys/', ...listApiKeys)
    app.post('/api/api-keys/', ...createApiKey)
    app.patch('/api/api-keys/:id', ...editApiKey)
    app.delete('/api/api-keys/:id', ...deleteApiKey)
    app.post('/api/api-keys/:id/regenerate', ...regenerateApiKey)
  })

const create = async (app: Awaited<ReturnType<typeof open>>, json: Record<string, unknown> = { name: 'laptop' }) =>
  (await app.ask('POST /api/api-keys/', { json })).body as { id: string; key: string }

describe('API keys', () => {
  test('a new key is shown once, works immediately and is listed without its secret', async () => {
    const app = await open()
    const { status, body } = await app.ask('POST /api/api-keys/', { json: { name: 'laptop' } })
    expect(status).toBe(200)
    expect(app.keys.find(body.key)?.id).toBe(body.id)
    const list = await app.ask('GET /api/api-keys/')
    const { key, ...rest } = body
    expect(list).toEqual({ status: 200, body: [rest] })
  })

  test('an edit returns the whole key', async () => {
    const app = await open()
    const { key, ...made } = await create(app)
    const edited = await app.ask(`PATCH /api/api-keys/${made.id}`, { json: { isActive: false } })
    const version = expect.any(String)
    expect(edited).toEqual({ status: 200, body: { ...made, version, isActive: false, deactivatedReason: 'manual' } })
    expect(app.keys.find(key)?.isActive).toBe(false)
  })

  test('a regenerated key replaces the old one', async () => {
    const app = await open()
    const made = await create(app)
    const renewed = await app.ask(`POST /api/api-keys/${made.id}/regenerate`)
    expect(renewed.status).toBe(200)
    expect(app.keys.find(made.key)).toBeNull()
    expect(app.keys.find(renewed.body.key)?.id).toBe(made.id)
  })

  test('a deleted key answers 204 and no longer exists', async () => {
    const app = await open()
    const { id } = await create(app)
    expect(await app.ask(`DELETE /api/api-keys/${id}`)).toEqual({ status: 204, body: null })
    expect((await app.ask('GET /api/api-keys/')).body).toEqual([])
  })

  test.each(['PATCH /api/api-keys/key_x', 'DELETE /api/api-keys/key_x', 'POST /api/api-keys/key_x/regenerate'])(
    'an unknown key is not found: %s',
    async (route) => {
      const { status, body } = await (await open()).ask(route, { json: {} })
      expect([status, body.error.code]).toEqual([404, 'not_found'])
    },
  )

  test.each<[string, Record<string, unknown>, string]>([
    ['no name', {}, 'name'],
    ['an unknown field', { name: 'x', colour: 'red' }, 'colour'],
    [
      'a limit of zero',
      { name: 'x', limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 0 }] },
      'limits.0.maxValue',
    ],
    ['a contradiction', { name: 'x', allowedModels: ['a'], enforcedModel: 'b' }, 'enforcedModel'],
  ])('%s is named in details.fields', async (_, json, field) => {
    const app = await open()
    const { status, body } = await app.ask('POST /api/api-keys/', { json })
    expect([status, body.error.code, Object.keys(body.error.details.fields)]).toEqual([
      422,
      'validation_error',
      [field],
    ])
    expect((await app.ask('GET /api/api-keys/')).body).toEqual([])
  })

  test.each([
    'GET /api/api-keys/',
    'POST /api/api-keys/',
    'PATCH /api/api-keys/key_x',
    'DELETE /api/api-keys/key_x',
    'POST /api/api-keys/key_x/regenerate',
  ])('%s is not available to other machines', async (route) => {
    const { status, body } = await (await open()).ask(route, { peer: '203.0.113.9' })
    expect([status, body.error.code]).toEqual([401, 'bootstrap_required'])
  })
})
