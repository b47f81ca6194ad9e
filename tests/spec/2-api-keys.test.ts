/** Spec §2, API key: its owner, and who can change it. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { people, problem, REMOTE, type TestUser } from '../support/people.ts'

interface Key {
  id: string
  key: string
  isActive: boolean
  ownerUserId: string | null
  owner: { id: string; username: string; status: string } | null
}

const open = async () => {
  const app = await testApp({ accounts: 0, settings: { apiKeyAuthEnabled: true } })
  const models = async ({ key }: Key) =>
    (await app.ask('GET /v1/models', { headers: { authorization: `Bearer ${key}` }, peer: REMOTE })).status
  return { app, models, ...people(app) }
}

const make = async (who: TestUser, fields: Record<string, unknown> = {}): Promise<Key> =>
  (await (await who.ask('POST /api/api-keys/', { json: { name: 'laptop', ...fields } })).json()) as Key // as: checked by each test

/** Can write keys, but not assign them. */
const WRITER = {
  'dashboard:read': 'all',
  'accounts:write': 'all',
  'api_keys:read': 'all',
  'api_keys:write': 'all',
  'ops:write': 'all',
} as const

describe('§2 API key: the owner', () => {
  test('is its creator', async () => {
    const { as } = await open()
    const anna = await as('operator', { username: 'anna' })
    const { id } = anna.person.row
    expect(await make(anna)).toMatchObject({ ownerUserId: id, owner: { id, username: 'anna', status: 'active' } })
  })

  test('is empty on a passwordless install, and such a key works', async () => {
    const { app, browser, models } = await open()
    const made = (await (await browser().ask('POST /api/api-keys/', { json: { name: 'laptop' } })).json()) as Key // as: checked below
    expect([made.ownerUserId, await models(made)]).toEqual([null, 200])
    expect(app.bindings.keys.find(made.key)?.isActive).toBe(true)
  })

  test('is the first user for keys without an owner', async () => {
    const { browser } = await open()
    const first = browser()
    await first.ask('POST /api/api-keys/', { json: { name: 'laptop' } })
    expect(
      (await first.ask('POST /api/dashboard-auth/password/setup', { json: { password: 'correct horse' } })).status,
    ).toBe(200)
    const [key] = (await (await first.ask('GET /api/api-keys/')).json()) as Key[] // as: one was created
    expect(key?.owner?.username).toBe('admin')
  })

  test('can be another user, or none, for users who can assign keys', async () => {
    const { as, add, audit } = await open()
    const anna = await as('operator')
    const { id } = (await add({ username: 'berta' })).row
    const made = await make(anna, { ownerUserId: id })
    expect(made.owner?.username).toBe('berta')
    expect((await audit())[0]).toMatchObject({ event: 'api_key_created', details: { ownerUserId: id } })
    const given = await anna.ask(`PATCH /api/api-keys/${made.id}`, { json: { ownerUserId: null } })
    expect([given.status, ((await given.json()) as Key).ownerUserId]).toEqual([200, null])
  })

  test('but not for others', async () => {
    const { as, add, addRole, models } = await open()
    await addRole('writer', WRITER)
    const writer = await as('writer')
    const { id } = (await add()).row
    const own = await make(writer)
    expect([own.ownerUserId, await models(own)]).toEqual([writer.person.row.id, 200])
    const asked: [string, unknown][] = [
      ['POST /api/api-keys/', { name: 'x', ownerUserId: id }],
      ['POST /api/api-keys/', { name: 'x', ownerUserId: null }],
      [`PATCH /api/api-keys/${own.id}`, { ownerUserId: id }],
    ]
    for (const [route, json] of asked) {
      const response = await writer.ask(route, { json })
      expect([response.status, await response.json()]).toEqual([
        403,
        { error: { code: 'permission_required', message: expect.any(String), param: 'api_keys:assign' } },
      ])
    }
    const unchanged = { ownerUserId: writer.person.row.id, name: 'renamed' }
    expect((await writer.ask(`PATCH /api/api-keys/${own.id}`, { json: unchanged })).status).toBe(200)
  })

  test.each(['disabled', 'invited'] as const)('cannot be a user who is %s', async (status) => {
    const { as, add } = await open()
    const { id } = (await add({ status })).row
    for (const ownerUserId of [id, 'usr_nobody'])
      expect(
        await problem(await (await as('admin')).ask('POST /api/api-keys/', { json: { name: 'x', ownerUserId } })),
      ).toEqual([422, 'validation_error'])
  })

  test('must be active for the key to work, whatever the key’s own state', async () => {
    const { app, as, models } = await open()
    const anna = await as('operator')
    const made = await make(anna)
    const admin = await as('admin')
    const path = `/api/dashboard-users/${anna.person.row.id}`
    await admin.ask(`PATCH ${path}`, { json: { status: 'disabled' } })
    expect(await problem(await admin.ask(`PATCH /api/api-keys/${made.id}`, { json: { isActive: true } }))).toEqual([
      422,
      'validation_error',
    ])
    const kept = { isActive: true, ownerUserId: anna.person.row.id }
    expect(await problem(await admin.ask(`PATCH /api/api-keys/${made.id}`, { json: kept }))).toEqual([
      422,
      'validation_error',
    ])
    await admin.ask(`POST ${path}/reactivate-keys`)
    await app.restart()
    expect(await models(made)).toBe(401)
  })
})

describe('§2 API key: a manual revocation', () => {
  test('of a key disabled with its owner remains when the owner is enabled again', async () => {
    const { as, models } = await open()
    const anna = await as('operator')
    const made = await make(anna)
    const admin = await as('admin')
    const path = `/api/dashboard-users/${anna.person.row.id}`
    await admin.ask(`PATCH ${path}`, { json: { status: 'disabled' } })
    await admin.ask(`PATCH /api/api-keys/${made.id}`, { json: { isActive: false } })
    await admin.ask(`PATCH ${path}`, { json: { status: 'active' } })
    expect(await (await admin.ask(`POST ${path}/reactivate-keys`)).json()).toEqual({ reactivated: 0 })
    expect(await models(made)).toBe(401)
  })

  test('a key of a deleted user can be assigned to another one and enabled', async () => {
    const { as, models } = await open()
    const anna = await as('operator')
    const made = await make(anna)
    const admin = await as('admin')
    await admin.ask(`DELETE /api/dashboard-users/${anna.person.row.id}`)
    expect(await models(made)).toBe(401)
    const json = { ownerUserId: admin.person.row.id, isActive: true }
    expect((await admin.ask(`PATCH /api/api-keys/${made.id}`, { json })).status).toBe(200)
    expect(await models(made)).toBe(200)
  })
})
