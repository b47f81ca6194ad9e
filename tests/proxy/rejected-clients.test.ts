/** Rejected clients are logged: one row per client, reason and minute, never the secret. */
import { describe, expect, test } from 'bun:test'
import { rejectedClients } from '../../db/schema/rejections.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const REMOTE = '203.0.113.9'
const SECRET = 'sk-clb-this-is-nobodys-key-0123456789'
const KEY_AUTH = { settings: { apiKeyAuthEnabled: true } }
const MINUTE_MS = 60_000

const rejected = async ({ bindings, db }: TestApp) => {
  await bindings.ledger.flush()
  return db.select().from(rejectedClients).orderBy(rejectedClients.id).all()
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('each reason leaves a row', () => {
  test.each([PUBLIC, NATIVE, 'GET /v1/models', 'GET /v1/responses'])('%s: an unknown key', async (route) => {
    const app = await testApp(KEY_AUTH)
    await app.ask(route, {
      json: route.startsWith('POST') ? codexBody() : undefined,
      headers: bearer(SECRET),
      peer: REMOTE,
    })
    expect(await rejected(app)).toMatchObject([
      {
        client: REMOTE,
        reason: 'unknown_key',
        count: 1,
        keyStart: 'sk-clb-t',
        keyId: null,
        route: route.split(' ')[1],
      },
    ])
    expect(JSON.stringify(await rejected(app)) + app.lines.join()).not.toContain('this-is')
  })

  test.each([
    ['an expired key', { expiresAt: '2020-01-01T00:00:00Z' }, 'expired_key'],
    ['a key that is disabled', { isActive: false }, 'inactive_key'],
  ] as const)('%s', async (_name, patch, reason) => {
    const app = await testApp(KEY_AUTH)
    const { key, row } = await app.key()
    expect((await app.ask(`PATCH /api/api-keys/${row.id}`, { json: patch })).status).toBe(200)
    expect((await getAnswer(app, PUBLIC, { json: codexBody(), headers: bearer(key) })).status).toBe(401)
    expect(await rejected(app)).toMatchObject([
      { client: '127.0.0.1', reason, keyId: row.id, keyStart: key.slice(0, 8) },
    ])
  })

  test('no key, a remote client while keys are optional, and the firewall', async () => {
    const required = await testApp(KEY_AUTH)
    await required.ask('GET /v1/models')
    expect(await rejected(required)).toMatchObject([{ reason: 'missing_key', client: '127.0.0.1', keyStart: null }])
    const optional = await testApp()
    await optional.ask('GET /v1/models', { peer: REMOTE, headers: bearer((await optional.key()).key) })
    expect(await rejected(optional)).toMatchObject([{ reason: 'remote_client', client: REMOTE }])
    await optional.ask('POST /api/firewall/ips', { json: { ipAddress: '198.51.100.7' } })
    await optional.ask('GET /v1/models')
    expect((await rejected(optional))[1]).toMatchObject({ reason: 'firewall', client: '127.0.0.1' })
  })

  test.each([PUBLIC, NATIVE])('%s: a model that is not allowed', async (route) => {
    const app = await testApp()
    const { key, row } = await app.key({ allowedModels: ['other'] })
    for (let n = 0; n < 3; n++) await getAnswer(app, route, { json: codexBody(), headers: bearer(key) })
    expect(await rejected(app)).toMatchObject([
      { reason: 'model_not_allowed', keyId: row.id, model: 'gpt-5.5', count: 3 },
    ])
    expect(await app.rows()).toEqual([])
  })

  test('other failures leave none', async () => {
    const app = await testApp({ accounts: 0 })
    await getAnswer(app, PUBLIC, { json: codexBody() })
    await app.ask('GET /v1/nothing')
    await app.ask(PUBLIC, { body: '{' })
    app.bindings.lifecycle.draining = true
    await app.ask(PUBLIC, { json: codexBody() })
    expect(await rejected(app)).toEqual([])
  })
})

describe('never the secret', () => {
  test.each([
    ['hunter2', 'hun'],
    ['0123456789abcdef', '01234567'],
    ['x', null],
  ])('of %p only %p is kept', async (secret, kept) => {
    const app = await testApp(KEY_AUTH)
    await app.ask('GET /v1/models', { headers: bearer(secret) })
    expect(await rejected(app)).toMatchObject([{ reason: 'unknown_key', keyStart: kept }])
  })
})

describe('a flood', () => {
  test('of one client costs a row a minute and one line in the server log', async () => {
    const app = await testApp(KEY_AUTH)
    const warnings = () => app.lines.filter((line) => / warn /i.test(line) && line.includes(REMOTE))
    for (let n = 0; n < 500; n++) await app.ask('GET /v1/models', { headers: bearer(`${SECRET}${n}`), peer: REMOTE })
    await app.bindings.ledger.flush()
    for (let n = 0; n < 20; n++) await app.ask('GET /v1/models', { headers: bearer(SECRET), peer: REMOTE })
    await app.ask('GET /v1/models', { peer: REMOTE })
    expect((await rejected(app)).map(({ reason, count }) => [reason, count])).toEqual([
      ['unknown_key', 520],
      ['missing_key', 1],
    ])
    expect(warnings()).toHaveLength(1)
    await app.clock.advance(MINUTE_MS)
    await app.ask('GET /v1/models', { headers: bearer(SECRET), peer: REMOTE })
    expect((await rejected(app)).map(({ count }) => count)).toEqual([520, 1, 1])
    expect(warnings()).toHaveLength(2)
  })

  test('of many clients costs 1,000 rows an hour, also across a restart, and every rejection is counted', async () => {
    const app = await testApp(KEY_AUTH)
    const from = (n: number) => app.ask('GET /v1/models', { peer: `198.${18 + (n >> 8)}.0.${n & 255}` })
    for (let n = 0; n < 1500; n++) {
      if (n === 600) await app.restart()
      await from(n)
    }
    const rows = await rejected(app)
    expect(rows.length).toBeLessThanOrEqual(1000)
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(1500)
    expect(rows.filter(({ client }) => client === '*')).toMatchObject([{ reason: 'missing_key' }])
    await app.clock.advance(60 * MINUTE_MS)
    await from(7)
    expect(await rejected(app)).toHaveLength(rows.length + 1)
  })

  test('waits for no disk, and loses nothing while the database fails', async () => {
    const app = await testApp(KEY_AUTH)
    app.sqlite.run('ALTER TABLE rejected_clients RENAME TO away')
    await app.ask('GET /v1/models')
    await app.bindings.ledger.flush()
    expect(app.bindings.ledger.healthy).toBe(false)
    await app.ask('GET /v1/models')
    app.sqlite.run('ALTER TABLE away RENAME TO rejected_clients')
    expect(await rejected(app)).toMatchObject([{ count: 2 }])
    expect(app.bindings.ledger.healthy).toBe(true)
  })
})

test('real requests and their totals are unaffected', async () => {
  const app = await testApp(KEY_AUTH)
  const { key } = await app.key({ allowedModels: ['gpt-5.5'] })
  await getAnswer(app, PUBLIC, { json: codexBody(), headers: bearer(key) })
  const before = { rows: await app.rows(), hours: await app.db.select().from(requestHours).all() }
  await app.ask(PUBLIC, { json: codexBody(), headers: bearer(SECRET) })
  await getAnswer(app, PUBLIC, { json: codexBody('hi', { model: 'gpt-5.4' }), headers: bearer(key) })
  expect(await rejected(app)).toHaveLength(2)
  expect({ rows: await app.rows(), hours: await app.db.select().from(requestHours).all() }).toEqual(before)
})
