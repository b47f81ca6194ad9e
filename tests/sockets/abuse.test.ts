/** Abusive clients: floods of rejected frames, notices, pings and pongs, and clients that never read. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { SocketRefused } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import {
  CAPABILITY,
  create,
  expectCompleted,
  getTypes,
  leave,
  NATIVE,
  open,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'
import { createFakeSocket, type FakeSocket } from './pretend.ts'

describe('20 rejected frames in a row', () => {
  const floods: [name: string, frame: Record<string, unknown> | string | Uint8Array][] = [
    ['of an unknown type', { type: 'x' }],
    ['that are not JSON', 'GET / HTTP/1.1'],
    ['that are empty', ''],
    ['that are binary', new Uint8Array(8)],
    ['with a list in place of an object', '[]'],
    ['with an invalid member', create('x', { generate: 'no' })],
  ]
  for (const path of [NATIVE, PUBLIC])
    test.each(floods)(`${path}: close the socket with 1008: frames %s`, async (_name, frame) => {
      await using service = await startSocketWorld()
      const socket = await open(service, { path })
      for (let n = 0; n < 25; n++) socket.send(frame)
      expect(await socket.closed).toEqual({ code: 1008, reason: 'Too many rejected frames' })
      expect(getTypes(socket.events)).toEqual(Array(20).fill('error'))
    })

  test('close it during a turn too: creates beyond the queue', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.next({ silence: { afterEvents: 3 } })
    const socket = await open(service)
    for (let n = 0; n < 22; n++) socket.send(create(`turn ${n}`))
    expect((await socket.closed).code).toBe(1008)
    expect(socket.events.filter(({ status }) => status === 409)).toHaveLength(20)
  })

  test('are counted again from zero after an accepted one', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 19; n++) socket.send({ type: 'x' })
      for (let n = 0; n < 19; n++) await socket.next(({ type }) => type === 'error')
      expectCompleted(await socket.turn(create()))
    }
    expect(socket.isOpen).toBeTrue()
  })
})

describe('frames that start no turn are limited', () => {
  test.each(['response.processed', 'response.interrupt'])('a flood of %s closes the socket with 1008', async (type) => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    for (let n = 0; n < 2000; n++) socket.send({ type })
    expect(await socket.closed).toEqual({ code: 1008, reason: 'Too many frames' })
  })

  test('rejected frames alternating with accepted ones do too', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    for (let n = 0; n < 2000; n++) socket.send({ type: n % 10 === 0 ? 'response.processed' : 'x' })
    expect((await socket.closed).code).toBe(1008)
  })

  const ping = { send: (socket: FakeSocket) => socket.session.pinged(0) }
  const pong = { send: (socket: FakeSocket) => socket.session.ponged(125) }
  const mixed = { send: (socket: FakeSocket, n: number) => (n % 2 === 0 ? ping : pong).send(socket) }
  test.each(Object.entries({ pings: ping, pongs: pong, 'alternating pings and pongs': mixed }))(
    'and %s too',
    async (_name, { send }) => {
      const socket = createFakeSocket(await testApp())
      for (let n = 0; n < 50; n++) send(socket, n)
      expect(socket.closed).toBeNull()
      send(socket, 50)
      expect(socket.closed).toEqual({ code: 1008, reason: 'Too many frames' })
    },
  )

  test('a flood of pongs on a real connection closes it', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service)
    for (let n = 0; n < 2000; n++) socket.pong()
    expect(await socket.closed).toEqual({ code: 1008, reason: 'Too many frames' })
  })

  test('a steady trickle of them is allowed', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    for (let seconds = 0; seconds < 60; seconds++) {
      for (let n = 0; n < 20; n++) socket.say({ type: 'response.processed' })
      for (let n = 0; n < 20; n++) socket.session.pinged(0)
      await app.clock.advance('1s')
    }
    expect(socket.closed).toBeNull()
    socket.session.closed()
  })
})

describe('a client that reads nothing is closed after 30 s', () => {
  test('between turns, when only pongs of the runtime are queued', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    await app.clock.advance('1m')
    socket.takes = 'queues'
    socket.session.pinged(0)
    await app.clock.advance('29s')
    expect(socket.closed).toBeNull()
    await app.clock.advance('2s')
    expect([socket.closed?.code, socket.isTerminated]).toEqual([1013, true])
    expect(app.bindings.sockets.size).toBe(0)
  })

  test('when only an error frame is queued', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    socket.takes = 'queues'
    socket.say({ type: 'x' })
    await app.clock.advance('31s')
    expect(socket.closed?.code).toBe(1013)
  })

  test('but not one that reads slowly', async () => {
    const app = await testApp()
    const socket = createFakeSocket(app)
    socket.takes = 'queues'
    for (let sips = 0; sips < 5; sips++) {
      await app.clock.advance('25s')
      socket.session.drained()
    }
    expect(socket.closed).toBeNull()
    socket.session.closed()
  })
})

describe('open sockets are limited', () => {
  /** Status and code of a rejected handshake; null when it was accepted. */
  const getRejection = (handshake: Promise<unknown>) =>
    handshake.then(
      () => null,
      (err: unknown) => {
        if (!(err instanceof SocketRefused)) throw err
        return [err.status, JSON.parse(err.body).error.code, JSON.parse(err.body).error.message]
      },
    )
  const keyed = async (service: SocketWorld) => ({ headers: { authorization: `Bearer ${(await service.key()).key}` } })
  const OF_KEY = 'This API key has reached its limit of 2 open sockets. Close one, or send requests over HTTP.'
  const OF_CLIENT = 'This client has reached its limit of 2 open sockets. Close one, or send requests over HTTP.'

  test('for each key, whichever route they are on; another key is not affected', async () => {
    await using service = await startSocketWorld({ settings: { apiKeyAuthEnabled: true, socketsPerKey: 2 } })
    const mine = await keyed(service)
    const sockets = [await open(service, mine), await open(service, { ...mine, path: PUBLIC })]
    expect(await getRejection(open(service, mine))).toEqual([426, 'too_many_sockets', OF_KEY])
    expect(await getRejection(open(service, { ...mine, path: PUBLIC }))).toEqual([429, 'too_many_sockets', OF_KEY])
    sockets.push(await open(service, await keyed(service)))
    await leave(service, ...sockets)
    expect(await getRejection(open(service, mine))).toBeNull()
  })

  test('for each client address, also without a key', async () => {
    await using service = await startSocketWorld({ settings: { socketsPerClient: 2 } })
    const first = await open(service)
    await open(service)
    expect(await getRejection(open(service))).toEqual([426, 'too_many_sockets', OF_CLIENT])
    first.terminate()
    await until(() => service.bindings.sockets.size === 1, 'the first gone')
    expect(await getRejection(open(service))).toBeNull()
  })

  describe('with all IPv6 addresses of one /64 as one client', () => {
    const environment = {
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
    }
    test.each([
      ['two of one /64', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 426],
      ['in another notation', '2001:db8:0:0:1::', '2001:db8::2', 426],
      ['two /64 of one /48', '2001:db8:1:2::1', '2001:db8:1:3::1', null],
      ['two IPv4 addresses of one /24', '203.0.113.8', '203.0.113.9', null],
      ['an IPv4 address written as IPv6', '203.0.113.8', '::ffff:203.0.113.8', 426],
    ])('%s', async (_name, first, second, status) => {
      await using service = await startSocketWorld({
        environment,
        settings: { apiKeyAuthEnabled: true, socketsPerClient: 1 },
      })
      const from = async (address: string) => ({
        headers: { ...(await keyed(service)).headers, 'x-forwarded-for': address },
      })
      await open(service, await from(first))
      expect((await getRejection(open(service, await from(second))))?.[0] ?? null).toBe(status)
    })
  })

  test('with 429 for a restricted socket, which must not fall back to HTTP', async () => {
    await using service = await startSocketWorld({ settings: { socketsPerKey: 1 } })
    const { headers } = await keyed(service)
    const restricted = { headers: { ...headers, [CAPABILITY]: 'trusted_cyber' } }
    await open(service, restricted)
    expect((await getRejection(open(service, restricted)))?.[0]).toBe(429)
  })

  test('and a socket closed for a flood frees its place', async () => {
    await using service = await startSocketWorld({ settings: { socketsPerClient: 1 } })
    const socket = await open(service)
    for (let n = 0; n < 20; n++) socket.send('{')
    await socket.closed
    expect(await getRejection(open(service))).toBeNull()
  })
})
