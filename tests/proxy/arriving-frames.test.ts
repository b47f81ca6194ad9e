/** Frames that are still arriving on a socket: they count in the budget of all bodies, and a silent one ends. */
import { expect, test } from 'bun:test'
import type { Peer } from '../../src/lib/tcp-info.ts'
import { ArrivingFrames } from '../../src/proxy/arriving-frames.ts'
import { BodyBudget } from '../../src/proxy/raw-body.ts'
import { create, ground, NATIVE, until } from '../sockets/ground.ts'
import { ManualClock } from '../support/clock.ts'

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
  const frames = new ArrivingFrames({ clock, bodies, open: async () => tcp })
  const ends: [port: number, why: string][] = []
  const watch = (port: number) => {
    received.set(port, 0)
    const arrivals = frames.watch({ address: '127.0.0.1', port }, (why) => {
      ends.push([port, why])
      arrivals.stop()
    })
    return arrivals
  }
  return { clock, bodies, received, watch, ends }
}

test('what has arrived of a frame counts until the frame is delivered', async () => {
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

test('a frame that exceeds what is left of the budget ends its socket, not those before it', async () => {
  const { clock, bodies, received, watch, ends } = pretendSystem()
  watch(1)
  watch(2)
  received.set(1, 10 * MIB)
  await clock.advance('300ms')
  received.set(2, 10 * MIB)
  await clock.advance('300ms')
  expect([ends, bodies.heldBytes]).toEqual([[[2, 'busy']], 10 * MIB])
})

test('a frame of which nothing arrives for 30 s ends its socket; a slow one does not', async () => {
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

test('a frame that was delivered before the system could be asked is not counted afterwards', async () => {
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

/** A native socket that sends `bytes` of a frame of 100 MB. */
const unfinishedFrame = async (url: string, bytes: number) => {
  const handshake = [
    `GET ${NATIVE} HTTP/1.1`,
    'host: 127.0.0.1',
    'upgrade: websocket',
    'connection: Upgrade',
    'sec-websocket-version: 13',
    'sec-websocket-key: YmVuY2htYXJrYmVuY2htYQ==',
  ]
  const header = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x05, 0xf5, 0xe1, 0, 0, 0, 0, 0])
  let rest: Uint8Array = Buffer.concat([
    Buffer.from(`${handshake.join('\r\n')}\r\n\r\n`),
    header,
    Buffer.alloc(bytes, 'x'),
  ])
  const client = { isOpen: true, drop: () => {} }
  const send = (socket: Bun.Socket<undefined>) => {
    rest = rest.subarray(Math.max(0, socket.write(rest)))
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: {
      data: () => {},
      drain: send,
      close: () => {
        client.isOpen = false
      },
      error: () => {},
    },
  })
  client.drop = () => socket.terminate()
  send(socket)
  return client
}

test.skipIf(process.platform !== 'linux')(
  'a real connection: the second of two large frames is one too many',
  async () => {
    await using service = ground({ settings: { inFlightBodyMiB: 16 } })
    const { bodies, sockets } = service.bindings
    const first = await unfinishedFrame(service.url, 10 * MIB)
    await until('the first frame counted', () => bodies.heldBytes > 9 * MIB)
    const second = await unfinishedFrame(service.url, 10 * MIB)
    await until('the second closed', () => !second.isOpen)
    expect([first.isOpen, sockets.size]).toEqual([true, 1])
    const answer = await fetch(service.url + NATIVE, {
      method: 'POST',
      body: JSON.stringify(create('x'.repeat(7 * MIB))),
    })
    expect(answer.status).toBe(503)
    first.drop()
    await until('nothing held', () => bodies.heldBytes === 0 && sockets.size === 0)
  },
)
