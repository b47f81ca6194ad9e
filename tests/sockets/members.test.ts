/** Members that have a meaning on sockets only: those for Sluice are not sent upstream, and HTTP ignores them. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { accounts } from '../../db/schema/accounts.ts'
import { deleteKey } from '../../src/model/keys/api-keys.ts'
import { codexBody, parseEvents } from '../support/app.ts'
import {
  ACTOR,
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prefer,
  startSocketWorld,
  write,
} from './ground.ts'

const HEADERS = { 'content-type': 'application/json', 'user-agent': 'test' }

describe('a native HTTP client whose turn uses an upstream socket', () => {
  const said: [members: string][] = [
    ['{"previous_response_id":null}'],
    ['{"generate":false}'],
    ['{"generate":true}'],
    ['{"generate":null,"previous_response_id":null}'],
  ]
  test.each(said)('can send %s, as over HTTP', async (written) => {
    const members: Record<string, unknown> = JSON.parse(written)
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'websocket' } })
    const body = JSON.stringify(codexBody('hello', members))
    const response = await fetch(service.url + NATIVE, { method: 'POST', headers: HEADERS, body })
    const events = parseEvents(await response.text())
    expect([response.status, events.at(-1)?.type]).toEqual([200, 'response.completed'])
    expect(events.map(({ type }) => type)).toContain('response.output_text.delta')
    const [asked] = service.upstream.requests
    expect(asked?.method).toBe('WS')
    for (const name of Object.keys(members)) expect(asked?.body).not.toHaveProperty(name)
    expect(asked?.body).toMatchObject({ type: 'response.create', ...codexBody() })
    expect(await service.rows()).toMatchObject([{ kind: 'normal', upstreamTransport: 'websocket', status: 'ok' }])
    await expectNothingLeft(service)
  })

  test('is rejected without leaving a connection behind if its body nests too deep to become a frame', async () => {
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'websocket' } })
    const deep = `${'['.repeat(1500)}${']'.repeat(1500)}`
    const body = `{"generate":true,"deep":${deep},${JSON.stringify(codexBody()).slice(1)}`
    const response = await fetch(service.url + NATIVE, { method: 'POST', headers: HEADERS, body })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('nested too deeply')])
    expect(service.upstream.handshakes).toEqual([])
    await expectNothingLeft(service)
  })
})

test('a native frame that asks to be stored is not stored', async () => {
  await using service = await startSocketWorld()
  const socket = await open(service)
  expectCompleted(await socket.turn(create('hello', { store: true, stream: false })))
  expect(service.upstream.requests[0]?.body).toMatchObject({ store: false, stream: true })
  await leave(service, socket)
})

describe('a capability required by a frame', () => {
  const NAMES = ['x-codex-lb-required-capability', 'X-Codex-LB-Required-Capability', 'X-CODEX-LB-REQUIRED-CAPABILITY']
  const asking = (name: string, value = 'trusted_cyber') =>
    create('x', { client_metadata: { kept: 'yes', [name]: value } })

  for (const path of [NATIVE, PUBLIC])
    test.each(NAMES)(`${path}: by the name %s, restricts the socket and is not sent upstream`, async (name) => {
      await using service = await startSocketWorld({ accounts: 2 })
      await prefer(service, service.members[0]!.id) // there are two
      const authorised = service.members[1]!
      await write(service, (tx) =>
        tx.update(accounts).set({ securityWorkAuthorized: true }).where(eq(accounts.id, authorised.id)).run(),
      )
      await service.bindings.pool.reload()
      const socket = await open(service, { path, headers: { authorization: `Bearer ${(await service.key()).key}` } })
      expectCompleted(await socket.turn(asking(name)))
      expectCompleted(await socket.turn(create('and ever after')))
      expect(service.upstream.requests.map(({ account }) => account)).toEqual(
        Array(2).fill(authorised.sim.chatgptAccountId),
      )
      expect(service.upstream.requests[0]?.bodyText.toLowerCase()).not.toContain('capability')
      expect(service.upstream.requests[0]?.body).toMatchObject({ client_metadata: { kept: 'yes' } })
      await leave(service, socket)
      await expectNothingLeft(service)
    })

  test.each([NATIVE, PUBLIC])('%s: of duplicate metadata neither is used', async (path) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path, headers: { authorization: `Bearer ${(await service.key()).key}` } })
    const asked = JSON.stringify(create('x', { client_metadata: {} }))
    const twice = `{"client_metadata":{"${NAMES[0]}":"trusted_cyber"},${asked.slice(1)}`
    expect(getRefusal(await socket.turn(twice))).toEqual([400, 'invalid_request_error'])
    expect(service.upstream.requests).toEqual([])
    expectCompleted(await socket.turn(create('and said once')))
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('nor is a duplicate model, in any spelling', async () => {
    await using service = await startSocketWorld()
    const key = await service.key({ allowedModels: ['gpt-5.5'] })
    const socket = await open(service, { headers: { authorization: `Bearer ${key.key}` } })
    for (const name of ['model', 'm\\u006fdel'])
      expect(getRefusal(await socket.turn(`{"${name}":"gpt-5.4",${JSON.stringify(create()).slice(1)}`))).toEqual([
        400,
        'invalid_request_error',
      ])
    expect(service.upstream.requests).toEqual([])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each(NAMES)('by the name %s, needs a key and a known value', async (name) => {
    await using service = await startSocketWorld()
    const anonymous = await open(service)
    expect(getRefusal(await anonymous.turn(asking(name)))).toEqual([401, 'invalid_api_key'])
    const known = await open(service, { headers: { authorization: `Bearer ${(await service.key()).key}` } })
    expect(getRefusal(await known.turn(asking(name, 'other')))).toEqual([400, 'unsupported_required_capability'])
    expect(service.upstream.requests).toEqual([])
    await leave(service, anonymous, known)
  })
})

describe('an invalid frame', () => {
  const refused = { transport: 'websocket', status: 'error', phase: 'request', accountId: null, attempts: 0 }

  test.each([NATIVE, PUBLIC])(
    '%s: leaves one row in the log, as a request does; one answered by asking for a full resend leaves none',
    async (path) => {
      await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
      const key = await service.key()
      const socket = await open(service, { path, headers: { authorization: `Bearer ${key.key}` } })
      expect(getRefusal(await socket.turn(create('x', { model: undefined })))).toEqual([400, 'invalid_request_error'])
      expect(getRefusal(await socket.turn(createFollowUp('resp_of_nobody')))).toEqual([
        400,
        'previous_response_not_found',
      ])
      expectCompleted(await socket.turn(create()))
      expect(await service.rows()).toMatchObject([
        { ...refused, route: path, keyId: key.row.id, model: null, errorCode: 'invalid_request_error' },
        { status: 'ok', route: path, keyId: key.row.id },
      ])
      await leave(service, socket)
      await expectNothingLeft(service)
    },
  )

  test('leaves none once its key was deleted', async () => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true } })
    const key = await service.key()
    const socket = await open(service, { headers: { authorization: `Bearer ${key.key}` } })
    await write(service, (tx) => deleteKey(tx, key.row.id, { scope: 'all', actor: ACTOR }))
    expect(getRefusal(await socket.turn(create('x', { model: undefined })))).toEqual([401, 'invalid_api_key'])
    expect(await service.rows()).toEqual([])
    await leave(service, socket)
  })
})
