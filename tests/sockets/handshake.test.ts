/** The handshake of a downstream socket: rejections before the upgrade with their status, and the 101 response. */
import { describe, expect, test } from 'bun:test'
import { addEntry } from '../../src/model/firewall.ts'
import { type Closed, SocketRefused, type TestSocket } from '../support/socket-client.ts'
import {
  ACTOR,
  CAPABILITY,
  expectNothingLeft,
  leave,
  NATIVE,
  open,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
  write,
} from './ground.ts'

const ROUTES = [NATIVE, PUBLIC]

/** The response to a rejected handshake, in the format of model routes. */
const refusedWith = async (handshake: Promise<TestSocket>) => {
  const refusal = await handshake.then(
    () => null,
    (error: unknown) => error,
  )
  if (!(refusal instanceof SocketRefused)) throw new Error(`The handshake was not refused: ${refusal}`)
  const { error } = JSON.parse(refusal.body) as { error: { code: string; type: string; message: string } } // as: checked below
  expect(error).toEqual({ ...error, message: expect.any(String), type: expect.any(String) })
  expect(refusal.headers['x-request-id']).toBeString()
  return { status: refusal.status, code: error.code, headers: refusal.headers }
}

interface Refusal {
  name: string
  prepare?: (service: SocketWorld) => Promise<unknown>
  headers?: (service: SocketWorld) => Promise<Record<string, string>>
  status: number
  code: string
}

const refusals: Refusal[] = [
  {
    name: 'no key when one is required',
    prepare: (service) => service.change({ apiKeyAuthEnabled: true }),
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'an unknown key',
    prepare: (service) => service.change({ apiKeyAuthEnabled: true }),
    headers: async () => ({ authorization: 'Bearer sk-clb-unknown' }),
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'an address blocked by the firewall',
    prepare: async (service) => void (await write(service, (tx) => addEntry(tx, '192.0.2.1', ACTOR))),
    status: 403,
    code: 'ip_forbidden',
  },
  {
    name: 'an unknown capability',
    headers: async (service) => ({ authorization: `Bearer ${(await service.key()).key}`, [CAPABILITY]: 'other' }),
    status: 400,
    code: 'unsupported_required_capability',
  },
  {
    name: 'the restricted pool without a key',
    headers: async () => ({ [CAPABILITY]: 'trusted_cyber' }),
    status: 401,
    code: 'invalid_api_key',
  },
  {
    name: 'while draining',
    prepare: async ({ bindings }) => {
      bindings.lifecycle.draining = true
    },
    status: 503,
    code: 'draining',
  },
  {
    name: 'at the limit of open sockets',
    prepare: async ({ bindings }) => {
      bindings.lifecycle.maxTurns = 0
    },
    status: 503,
    code: 'busy',
  },
]

describe('rejected before the upgrade', () => {
  for (const path of ROUTES)
    test.each(refusals)(`${path}: $name`, async ({ prepare, headers, status, code }) => {
      await using service = await startSocketWorld()
      await prepare?.(service)
      const refusal = await refusedWith(open(service, { path, headers: await headers?.(service) }))
      expect([refusal.status, refusal.code]).toEqual([status, code])
      if (status === 503) expect(Number(refusal.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(service.bindings.sockets.size).toBe(0)
      expect([service.upstream.handshakes, await service.rows()]).toEqual([[], []])
      await expectNothingLeft(service)
    })
})

describe('426, the only way to send the native client to HTTP', () => {
  test('while the transport is http, on the native route only', async () => {
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'http' } })
    const refusal = await refusedWith(open(service))
    expect([refusal.status, refusal.code]).toEqual([426, 'upgrade_required'])
    const socket = await open(service, { path: PUBLIC })
    await leave(service, socket)
  })

  test('never for the restricted pool, which has no other transport', async () => {
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport: 'http' } })
    const headers = { authorization: `Bearer ${(await service.key()).key}`, [CAPABILITY]: 'trusted_cyber' }
    await leave(service, await open(service, { headers }))
  })

  test('the setting is read at each handshake', async () => {
    await using service = await startSocketWorld()
    const before = await open(service)
    await service.change({ upstreamStreamTransport: 'http' })
    expect((await refusedWith(open(service))).status).toBe(426)
    expect(before.isOpen).toBeTrue()
    await service.change({ upstreamStreamTransport: 'websocket' })
    await leave(service, before, await open(service))
  })
})

describe('the 101 response', () => {
  test.each(ROUTES)('%s: gives a request id and a turn state', async (path) => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path })
    expect(socket.opened.headers['x-request-id']).toMatch(/\S{8,}/)
    expect(socket.opened.headers['x-codex-turn-state']).toMatch(/\S{8,}/)
    expect(socket.opened.headers).not.toHaveProperty('sec-websocket-extensions')
    await leave(service, socket)
  })

  test('returns the turn state and the request id the client sent', async () => {
    await using service = await startSocketWorld()
    const headers = { 'x-codex-turn-state': 'st0123456789abcdef.state', 'x-request-id': 'mine-1' }
    const socket = await open(service, { headers })
    expect(socket.opened.headers).toMatchObject(headers)
    await leave(service, socket)
  })

  test('two clients get separate turn states', async () => {
    await using service = await startSocketWorld()
    const sockets = [await open(service), await open(service)]
    expect(new Set(sockets.map(({ opened }) => opened.headers['x-codex-turn-state'])).size).toBe(2)
    await leave(service, ...sockets)
  })
})

describe('an invalid handshake', () => {
  test.each(ROUTES)('%s: a plain GET is not found', async (path) => {
    await using service = await startSocketWorld()
    const response = await fetch(service.url + path)
    expect([response.status, (await response.json()).error.code]).toEqual([404, 'not_found'])
  })

  test.each(ROUTES)('%s: an upgrade without a Sec-WebSocket-Key is rejected', async (path) => {
    await using service = await startSocketWorld()
    const headers = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const response = await fetch(service.url + path, { headers })
    expect([response.status, (await response.json()).error.code]).toEqual([400, 'bad_upgrade'])
    expect(service.bindings.sockets.size).toBe(0)
  })
})

test('a client that closes properly gets a close frame, and is forgotten', async () => {
  await using service = await startSocketWorld()
  const socket = await open(service)
  expect(service.bindings.sockets.size).toBe(1)
  socket.close(1000, 'done')
  const closed: Closed = await socket.closed
  expect(closed.code).toBe(1000)
  await leave(service)
  await expectNothingLeft(service)
})
