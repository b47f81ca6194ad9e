/**
 * The data of a downstream socket in both directions: nothing is lost or kept too long, and no event ends the socket.
 */
import { afterEach, describe, expect, test } from 'bun:test'
import { websocket } from '../../src/http/websocket.ts'
import { SocketSession } from '../../src/proxy/downstream/socket-session.ts'
import { testApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getEnds,
  getRefusal,
  getTypes,
  idOf,
  leave,
  NATIVE,
  open,
  PUBLIC,
  startSocketWorld,
} from './ground.ts'
import { createFakeSocket } from './pretend.ts'

const MIB = 1024 * 1024

describe('an error in one chunk with earlier events', () => {
  for (const hidesQuota of [false, true])
    test(`ends the turn and not the socket, quota ${hidesQuota ? 'hidden' : 'shown'}`, async () => {
      await using service = await startSocketWorld({
        settings: { hideUpstreamQuotaFromApiKeys: hidesQuota, apiKeyAuthEnabled: true },
      })
      const socket = await open(service, { headers: { authorization: `Bearer ${(await service.key()).key}` } })
      await service.change({ upstreamStreamTransport: 'http' })
      service.members[0]?.sim.next({
        rateLimitsEvent: true,
        manyEvents: { count: 2, bytes: 10, perChunk: 50 },
        errorEvent: { code: 'server_error', message: 'It broke.', afterEvents: 6 },
      })
      const events = await socket.turn(create())
      expect(getEnds(getTypes(events))).toEqual(['response.failed'])
      expect(getTypes(events)).toContain('response.output_text.delta')
      expect(getTypes(events)).not.toContain('(not JSON)')
      service.members[0]?.sim.next({ rateLimitsEvent: true })
      const whole = await socket.turn(create('again'))
      expectCompleted(whole)
      expect(getTypes(whole).includes('codex.rate_limits')).toBe(!hidesQuota)
      expect((await service.rows()).map(({ status }) => status)).toEqual(['error', 'ok'])
      await leave(service, socket)
      await expectNothingLeft(service)
    })
})

describe('events that arrive all at once', () => {
  test('are delivered only as fast as the client reads them', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ manyEvents: { count: 20, bytes: 100, perChunk: 40 } })
    const socket = createFakeSocket(app)
    const sip = () => Object.assign(socket, { takes: 'queues', room: 1 } as const)
    sip()
    socket.say(create())
    for (let sips = 0; sips < 100 && getEnds(getTypes(socket.frames)).length === 0; sips++) {
      await app.clock.advance('1s')
      expect(socket.frames).toHaveLength(sips + 1)
      sip()
      socket.session.drained()
    }
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed'])
    expect(socket.frames.map(({ sequence_number }) => sequence_number)).toEqual(Array.from(socket.frames.keys()))
    expect(socket.closed).toBeNull()
    await app.clock.advance('1s')
    socket.session.closed()
  })

  test('are all delivered when the first was queued for a moment only', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ manyEvents: { count: 20, bytes: 100, perChunk: 40 } })
    const socket = createFakeSocket(app)
    socket.takes = 'flushes'
    socket.say(create())
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames))).toEqual(['response.completed'])
    expect(socket.frames.map(({ sequence_number }) => sequence_number)).toEqual(Array.from(socket.frames.keys()))
    socket.session.closed()
  })

  /** A turn whose first event is queued, and nothing more is taken. */
  const stalledTurn = async () => {
    const app = await testApp()
    const socket = Object.assign(createFakeSocket(app), { takes: 'queues', room: 1 } as const)
    socket.say(create())
    await app.clock.advance('1s')
    expect(socket.frames).toHaveLength(1)
    return { app, socket }
  }

  test('do not end the socket when a rejection is to be sent before there is room', async () => {
    const { app, socket } = await stalledTurn()
    for (let n = 0; n < 2; n++) socket.say({ type: 'nonsense' })
    expect([socket.frames.length, socket.closed]).toEqual([1, null])
    Object.assign(socket, { takes: 'all', room: Number.POSITIVE_INFINITY })
    socket.session.drained()
    await app.clock.advance('1s')
    expect(getEnds(getTypes(socket.frames)).toSorted()).toEqual(['error', 'error', 'response.completed'])
    expect(socket.closed).toBeNull()
    socket.session.closed()
  })

  const batches = [
    { path: NATIVE, transport: 'http', count: 5, mib: 6 },
    { path: PUBLIC, transport: 'websocket', count: 3, mib: 17 },
  ] as const
  test.each(batches)(
    '$path: $count of $mib MiB over $transport reach a client that reads, whole',
    async (batch) => {
      const { path, transport, count, mib } = batch
      await using service = await startSocketWorld()
      const socket = await open(service, { path })
      await service.change({ upstreamStreamTransport: transport })
      service.members[0]?.sim.next({ manyEvents: { count, bytes: mib * MIB, perChunk: count } })
      const events = await socket.turn(create())
      expectCompleted(events)
      const deltas = events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [String(delta)] : []))
      expect(deltas.map(({ length }) => length)).toEqual(Array(count).fill(mib * MIB))
      expectCompleted(await socket.turn(create('again')))
      await leave(service, socket)
      await expectNothingLeft(service)
    },
    120_000,
  )
})

describe('when bodies have used up their memory', () => {
  const full = async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 16 } })
    const { bodies } = app.bindings
    const others = bodies.open(0)
    others.resize(16 * MIB)
    return { app, others, socket: createFakeSocket(app) }
  }

  test('a frame is rejected before it is parsed', async () => {
    const { app, others, socket } = await full()
    socket.session.received('x'.repeat(MIB))
    expect(getRefusal(socket.frames)).toEqual([503, 'busy'])
    expect(app.bindings.bodies.heldBytes).toBe(16 * MIB)
    others.release()
    socket.session.received('x'.repeat(MIB))
    expect(getRefusal(socket.frames.slice(1))).toEqual([400, 'malformed_json'])
    expect(app.bindings.bodies.heldBytes).toBe(0)
    socket.session.closed()
  })

  test('a turn can be cancelled', async () => {
    const { app, others, socket } = await full()
    others.resize(15 * MIB)
    app.members[0]?.sim.next({ silence: { afterEvents: 3 } })
    socket.say(create())
    await app.clock.advance('1s')
    others.resize(17 * MIB)
    socket.say({ type: 'response.interrupt' })
    await app.clock.advance('1s')
    expect(getTypes(socket.frames).at(-1)).toBe('response.incomplete')
    expect(getTypes(socket.frames)).not.toContain('error')
    others.release()
    socket.session.closed()
  })
})

describe('the bytes of a frame', () => {
  const { from } = Buffer
  const { received } = SocketSession.prototype
  afterEach(() => {
    Buffer.from = from
    SocketSession.prototype.received = received
  })

  /** Holds a weak reference to every large buffer created for a frame. */
  const watchFrames = () => {
    const refs: WeakRef<Buffer>[] = []
    SocketSession.prototype.received = function (data) {
      Buffer.from = ((...args: Parameters<typeof from>) => {
        const buffer = from.apply(Buffer, args)
        if (buffer.length > MIB) refs.push(new WeakRef(buffer))
        return buffer
      }) as typeof from // as: one signature for all of them
      try {
        received.call(this, data)
      } finally {
        Buffer.from = from
      }
    }
    return refs
  }

  test('are released once the response has begun', async () => {
    await using service = await startSocketWorld()
    const refs = watchFrames()
    const SOCKETS = 4
    const sockets = []
    for (let n = 0; n < SOCKETS; n++) {
      service.members[0]?.sim.next({ silence: { afterEvents: 6 } })
      const socket = await open(service)
      socket.send(create('x'.repeat(4 * MIB)))
      await socket.next(({ type }) => type === 'response.output_item.added')
      sockets.push(socket)
    }
    expect([refs.length, service.bindings.turns.size]).toEqual([SOCKETS, SOCKETS])
    expect(service.bindings.bodies.heldBytes).toBe(0)
    const alive = () => refs.filter((ref) => ref.deref() !== undefined).length
    await until(() => {
      Bun.gc(true)
      return alive() < 2 // the collector may keep one whose address is still on the stack
    })
    await leave(service, ...sockets)
    await expectNothingLeft(service)
  }, 120_000)
})

test('an internal error on a socket closes it with 1011, and no other', async () => {
  await using service = await startSocketWorld()
  const [broken, other] = [await open(service), await open(service)]
  const id = idOf(await other.turn(create()))
  const [session] = service.bindings.sockets
  expect(websocket.error).toBeFunction()
  session!.received = () => {
    throw new TypeError('a fault of our own')
  }
  broken.send(create())
  expect((await broken.closed).code).toBe(1011)
  expectCompleted(await other.turn(createFollowUp(id)))
  await leave(service, other)
  await expectNothingLeft(service)
})
