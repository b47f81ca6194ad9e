/** Incomplete frames on a socket count in the budget of all bodies, and a stalled one is closed. */
import { describe, expect, test } from 'bun:test'
import type { Peer } from '../../src/lib/tcp-info.ts'
import { ArrivingFrames } from '../../src/proxy/ingress/arriving-frames.ts'
import { BodyBudget } from '../../src/proxy/ingress/raw-body.ts'
import { create, NATIVE, startSocketWorld } from '../sockets/ground.ts'
import { codexBody } from '../support/app.ts'
import { ManualClock } from '../support/clock.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

/** Connections whose received bytes the test sets, by port. */
const pretendSystem = (limitMib = 16) => {
  const clock = new ManualClock()
  const bodies = new BodyBudget(() => limitMib * MIB)
  const received = new Map<number, number>()
  const tcp = {
    find: (peers: readonly Peer[]) => peers.map(({ port }) => (received.has(port) ? port : null)),
    received: (descriptor: number) => received.get(descriptor) ?? null,
  }
  const frames = new ArrivingFrames({ clock, bodies, open: () => tcp })
  const ends: [port: number, why: string][] = []
  const watch = (port: number, earlierBytes = 0) => {
    received.set(port, earlierBytes)
    const arrivals = frames.watch({ address: '127.0.0.1', port }, (why) => {
      ends.push([port, why])
      arrivals.stop()
    })
    return arrivals
  }
  return { clock, bodies, received, watch, ends }
}

test('received bytes of a frame count until it is delivered', async () => {
  const { clock, bodies, received, watch } = pretendSystem()
  const arrivals = watch(1)
  received.set(1, 5 * MIB)
  await clock.advance('300ms')
  expect(bodies.heldBytes).toBe(5 * MIB)
  received.set(1, 6 * MIB)
  await clock.advance('50ms')
  expect(bodies.heldBytes).toBe(6 * MIB)
  arrivals.delivered()
  expect(bodies.heldBytes).toBe(0)
  received.set(1, 9 * MIB)
  await clock.advance('300ms')
  expect(bodies.heldBytes).toBe(3 * MIB)
  arrivals.stop()
  expect([bodies.heldBytes, clock.pending]).toEqual([0, 0])
})

test('a frame over the remaining budget ends its socket, not those before it', async () => {
  const { clock, bodies, received, watch, ends } = pretendSystem()
  watch(1)
  watch(2)
  received.set(1, 10 * MIB)
  await clock.advance('300ms')
  received.set(2, 10 * MIB)
  await clock.advance('300ms')
  expect([ends, bodies.heldBytes]).toEqual([[[2, 'busy']], 10 * MIB])
})

test('a frame without new bytes for 30 s ends its socket; a slow one does not', async () => {
  const { clock, bodies, received, watch, ends } = pretendSystem()
  for (const port of [1, 2]) {
    watch(port)
    received.set(port, MIB)
  }
  for (let times = 0; times < 3; times++) {
    await clock.advance('20s')
    received.set(2, MIB * (times + 2))
  }
  await clock.advance('1s')
  expect([ends, bodies.heldBytes]).toEqual([[[1, 'silent']], 4 * MIB])
})

test('a frame delivered before the first check is not counted afterwards', async () => {
  const { clock, bodies, received, watch, ends } = pretendSystem()
  const arrivals = watch(1)
  received.set(1, 5 * MIB)
  arrivals.delivered()
  await clock.advance('1m')
  expect([ends, bodies.heldBytes]).toEqual([[], 0])
})

test('an idle socket is left alone', async () => {
  const { clock, watch, ends } = pretendSystem()
  watch(1)
  await clock.advance('10m')
  expect(ends).toEqual([])
})

describe('bytes outside frames are not counted', () => {
  test.each([
    ['a request of 40 MB on the same connection', 40 * MIB],
    ['a few small ones', 300_000],
    ['more than the budget', 20 * 1024 * MIB],
  ])('bytes before the upgrade: %s', async (_name, earlierBytes) => {
    const { clock, bodies, received, watch, ends } = pretendSystem()
    watch(1, earlierBytes)
    await clock.advance('1m')
    expect([ends, bodies.heldBytes]).toEqual([[], 0])
    received.set(1, earlierBytes + 5 * MIB)
    await clock.advance('300ms')
    expect([ends, bodies.heldBytes]).toEqual([[], 5 * MIB])
  })

  test('pings and pongs, however many', async () => {
    const { clock, bodies, received, watch, ends } = pretendSystem()
    const arrivals = watch(1)
    for (let count = 1; count <= 5000; count++) {
      received.set(1, count * 131)
      arrivals.control(125)
    }
    await clock.advance('1m')
    expect([ends, bodies.heldBytes]).toEqual([[], 0])
  })

  test('fragments of a message between them are counted', async () => {
    const { clock, bodies, received, watch } = pretendSystem()
    const arrivals = watch(1)
    for (let count = 1; count <= 8; count++) {
      received.set(1, count * (MIB + 6))
      arrivals.control(0)
      await clock.advance('300ms')
    }
    expect(bodies.heldBytes).toBe(8 * MIB)
  })
})

const UPGRADE = [
  `GET ${NATIVE} HTTP/1.1`,
  'host: 127.0.0.1',
  'upgrade: websocket',
  'connection: Upgrade',
  'sec-websocket-version: 13',
  'sec-websocket-key: YmVuY2htYXJrYmVuY2htYQ==',
  '\r\n',
].join('\r\n')

/** A native socket that sends `bytes` of a frame of 100 MB. */
const unfinishedFrame = (url: string, bytes: number) => {
  const header = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x05, 0xf5, 0xe1, 0, 0, 0, 0, 0])
  return rawClient(url, Buffer.concat([Buffer.from(UPGRADE), header, Buffer.alloc(bytes, 'x')]))
}

/** A connection that sends these bytes, and more when `send` is called. */
const rawClient = async (url: string, first: Uint8Array) => {
  let rest = first
  const client = { isOpen: true, answers: '', drop: () => {}, send: (_more: Uint8Array) => {} }
  const send = (socket: Bun.Socket<undefined>) => {
    rest = rest.subarray(Math.max(0, socket.write(rest)))
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: {
      data: (_socket, data) => {
        client.answers += data.toString('latin1')
      },
      drain: send,
      close: () => {
        client.isOpen = false
      },
      error: () => {},
    },
  })
  client.drop = () => socket.terminate()
  client.send = (more) => {
    rest = Buffer.concat([rest, more])
    send(socket)
  }
  send(socket)
  return client
}

test.skipIf(process.platform !== 'linux')(
  'over a real connection the second of two large frames is rejected',
  async () => {
    await using service = await startSocketWorld({ settings: { inFlightBodyMiB: 16 } })
    const { bodies, sockets } = service.bindings
    const first = await unfinishedFrame(service.url, 10 * MIB)
    await until(() => bodies.heldBytes > 9 * MIB, 'the first frame counted')
    const second = await unfinishedFrame(service.url, 10 * MIB)
    await until(() => !second.isOpen, 'the second closed')
    expect([first.isOpen, sockets.size]).toEqual([true, 1])
    const answer = await fetch(service.url + NATIVE, {
      method: 'POST',
      body: JSON.stringify(create('x'.repeat(7 * MIB))),
    })
    expect(answer.status).toBe(503)
    first.drop()
    await until(() => bodies.heldBytes === 0 && sockets.size === 0, 'nothing held')
  },
)

test.skipIf(process.platform !== 'linux')(
  'a real connection upgraded after a large request starts with nothing counted',
  async () => {
    await using service = await startSocketWorld({ settings: { inFlightBodyMiB: 16 } })
    const { bodies, sockets, clock } = service.bindings
    const body = Buffer.from(JSON.stringify(codexBody('x'.repeat(3 * MIB))))
    const head = `POST ${NATIVE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    const client = await rawClient(service.url, Buffer.concat([Buffer.from(head), body]))
    await until(() => client.answers.endsWith('\r\n0\r\n\r\n') && bodies.heldBytes === 0, 'the request answered')
    client.send(Buffer.from(UPGRADE))
    await until(() => sockets.size === 1, 'the upgrade')
    const looks = Promise.withResolvers<void>()
    let left = 6
    const stop = clock.every(50, () => --left === 0 && looks.resolve())
    await looks.promise
    stop()
    expect([bodies.heldBytes, client.isOpen]).toEqual([0, true])
    client.drop()
  },
)
