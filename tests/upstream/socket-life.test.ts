/** The life cycle of a socket: back-pressure, pings to a silent peer, closing, and cleanup. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { SocketStream } from '../../src/upstream/socket-stream.ts'
import type { UpstreamStream } from '../../src/upstream/stream.ts'
import { ManualClock } from '../support/clock.ts'
import { until, untilUnchanged } from '../support/until.ts'
import { acceptance, COMPLETED, collectTexts, connectTo, DELTA, rest, startPeer, startRaw } from './socket-peer.ts'

const MIB = 1024 * 1024
const KILOBYTE = `{"type":"response.output_text.delta","delta":"${'a'.repeat(977)}"}`

/** With the two bytes that state a length of up to 65,535. */
const textFrame = (text: string): Buffer => {
  const { length } = Buffer.from(text)
  const head = length < 126 ? [0x81, length] : [0x81, 126, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), Buffer.from(text)])
}
/** With the code 1000. */
const CLOSE_FRAME = Buffer.from([0x88, 2, 0x03, 0xe8])

const queued = (stream: UpstreamStream): number => {
  if (!(stream instanceof SocketStream)) throw new TypeError('not a socket’s stream')
  return stream.queuedBytes
}

describe('an unread flood', () => {
  const COUNT = 30_000
  const flood = () =>
    startPeer((client) => {
      for (let i = 0; i < COUNT; i++) client.send(KILOBYTE)
      client.send(COMPLETED)
    })
  /** Written by hand: a few seconds after a close, Bun's server drops a connection that has not taken everything. */
  const floodAndClose = () =>
    startRaw((connection, request) => {
      connection.write(acceptance(request))
      const texts = [...Array<Buffer>(COUNT).fill(textFrame(KILOBYTE)), textFrame(COMPLETED)]
      connection.once('data', () => connection.end(Buffer.concat([...texts, CLOSE_FRAME])))
    })
  const stalled = async (stream: UpstreamStream) => {
    await until(() => queued(stream) > MIB)
    await untilUnchanged(() => queued(stream))
    expect(queued(stream)).toBeLessThan(3 * MIB)
  }

  for (const command of ['and stay', 'and close']) {
    test(`waits at its sender and can be read completely later (${command})`, async () => {
      await using peer = command === 'and stay' ? flood() : await floodAndClose()
      const clock = new ManualClock()
      const socket = await connectTo(peer.url, { clock })
      const ends: boolean[] = []
      const stream = socket.turn(command, (isClean) => ends.push(isClean))
      await stalled(stream)
      if ('clients' in peer) expect(peer.clients[0]?.getBufferedAmount()).toBeGreaterThan(10 * MIB)
      for (let second = 0; second < 20; second++) {
        await clock.advance('1s')
        await Bun.sleep(1)
      }
      expect(queued(stream)).toBeLessThan(3 * MIB)
      expect(clock.pending).toBe(1)
      expect(ends).toEqual([])
      const texts = await rest(stream)
      expect(texts).toHaveLength(COUNT + 1)
      expect(texts.at(-1)).toBe(COMPLETED)
      expect(ends).toEqual([true])
      if (command === 'and close') await until(() => !socket.isOpen)
      else expect(socket.isOpen).toBe(true)
      socket.terminate()
    })
  }

  test('ends with its socket', async () => {
    await using peer = flood()
    const socket = await connectTo(peer.url)
    const stream = socket.turn('x')
    await stalled(stream)
    socket.close()
    expect(queued(stream)).toBeLessThan(3 * MIB)
    await Bun.sleep(5)
    expect(queued(stream)).toBeLessThan(3 * MIB)
    socket.terminate()
    await until(() => peer.seen.closes.length === 1)
  })
})

test('a close behind a pause is noticed within seconds, even with unread events', async () => {
  await using peer = startPeer((client) => {
    for (let i = 0; i < 1400; i++) client.send(KILOBYTE)
    setTimeout(() => client.close(1000), 2)
  })
  const clock = new ManualClock()
  const socket = await connectTo(peer.url, { clock })
  let isOver = false
  const stream = socket.turn('x', () => {
    isOver = true
  })
  await until(() => queued(stream) > MIB)
  await Bun.sleep(10) // for the close to come, and not be noticed
  expect(isOver).toBe(false)
  // Each check reads what has arrived, some 300 frames more.
  for (let second = 0; second < 6 && !isOver; second++) {
    await clock.advance('1s')
    await Bun.sleep(5)
  }
  await until(() => isOver)
  expect((await collectTexts(stream)).texts).toHaveLength(1400)
})

describe('a silent peer', () => {
  /** Counts pings and answers them only when configured to. */
  const byHand = () =>
    startRaw((connection, request) => {
      connection.write(acceptance(request))
    })
  const PING = 0x89
  const countPings = (connection: Socket) => {
    let count = 0
    connection.on('data', (data) => {
      if (data[0] === PING) count++
    })
    return () => count
  }

  test('is pinged every 30 s and given up a minute after the first ping without an answer', async () => {
    using server = await byHand()
    const clock = new ManualClock()
    const socket = await connectTo(server.url, { clock })
    const pings = countPings([...server.connections][0]!)
    let isClosed = false
    socket.onClosed(() => {
      isClosed = true
    })
    const stream = socket.turn('x')
    await clock.advance('29.999s')
    expect(pings()).toBe(0)
    await clock.advance('1ms')
    await until(() => pings() === 1)
    await clock.advance('59.999s')
    expect(socket.isOpen).toBe(true)
    await clock.advance('1ms')
    expect(await stream.read().catch((err) => err)).toMatchObject({ code: 'ECONNRESET' })
    await until(() => isClosed)
    expect(clock.pending).toBe(0)
  })

  test('that answers its pings is kept, with and without a turn', async () => {
    await using peer = startPeer()
    const clock = new ManualClock()
    const socket = await connectTo(peer.url, { clock })
    const live = async () => {
      for (let pings = peer.seen.pings + 1, last = pings + 5; pings <= last; pings++) {
        await clock.advance('30s')
        await until(() => peer.seen.pings === pings)
        await Bun.sleep(2) // for the pong
      }
    }
    await live()
    const stream = socket.turn('x')
    await live()
    expect(socket.isOpen).toBe(true)
    peer.clients[0]!.send(COMPLETED)
    expect(await rest(stream)).toEqual([COMPLETED])
    socket.terminate()
  })

  test('does not count as silent while it sends frames', async () => {
    await using peer = startPeer()
    const clock = new ManualClock()
    const socket = await connectTo(peer.url, { clock })
    const stream = socket.turn('x')
    for (let i = 0; i < 6; i++) {
      peer.clients[0]!.send(DELTA)
      await stream.read()
      await clock.advance('30s')
    }
    await Bun.sleep(2)
    expect(peer.seen.pings).toBe(0)
    socket.terminate()
  })
})

describe('closing', () => {
  test('sends 1000 and calls the end listeners, once', async () => {
    await using peer = startPeer()
    const clock = new ManualClock()
    const socket = await connectTo(peer.url, { clock })
    let closed = 0
    socket.onClosed(() => closed++)
    socket.close()
    expect(socket.isOpen).toBe(false)
    socket.close()
    await until(() => closed === 1)
    socket.terminate()
    await Bun.sleep(2)
    expect(closed).toBe(1)
    expect(peer.seen.closes).toEqual([1000])
    expect(clock.pending).toBe(0)
    socket.onClosed(() => closed++)
    expect(closed).toBe(2)
  })

  test('disconnects a peer that does not answer within a second', async () => {
    using server = await startRaw((connection, request) => {
      connection.write(acceptance(request))
    })
    const clock = new ManualClock()
    const socket = await connectTo(server.url, { clock })
    let isClosed = false
    socket.onClosed(() => {
      isClosed = true
    })
    socket.close()
    await clock.advance('999ms')
    expect(isClosed).toBe(false)
    await clock.advance('1ms')
    await until(() => isClosed)
    expect(clock.pending).toBe(0)
  })

  test('breaks a running turn', async () => {
    await using peer = startPeer((client) => client.send(DELTA))
    const socket = await connectTo(peer.url)
    const ends: boolean[] = []
    const stream = socket.turn('x', (isClean) => ends.push(isClean))
    await stream.read()
    socket.close()
    expect(await stream.read()).toBeNull()
    expect(ends).toEqual([false])
    await until(() => peer.seen.closes.length === 1)
  })

  test('by the peer, in between, is noticed', async () => {
    await using peer = startPeer()
    const clock = new ManualClock()
    const socket = await connectTo(peer.url, { clock })
    let isClosed = false
    socket.onClosed(() => {
      isClosed = true
    })
    peer.clients[0]!.close(1001)
    await until(() => isClosed)
    expect(socket.isOpen).toBe(false)
    expect(clock.pending).toBe(0)
  })
})

test.skipIf(process.platform !== 'linux')(
  'two hundred sockets, however they end, leave no descriptor and no timer',
  async () => {
    await using peer = startPeer((client, text) => {
      const count = text === 'paused' || text === 'closed while paused' ? 1500 : 1
      for (let i = 0; i < count; i++) client.send(KILOBYTE)
      if (text === 'closed' || text === 'closed while paused') client.close(1000)
      else if (text === 'done') client.send(COMPLETED)
    })
    const clock = new ManualClock()
    const ways = {
      done: async (stream: UpstreamStream, close: () => void) => {
        await rest(stream)
        close()
      },
      cancelled: async (stream: UpstreamStream) => {
        await stream.read()
        stream.cancel()
      },
      closed: async (stream: UpstreamStream) => void (await collectTexts(stream)),
      paused: async (stream: UpstreamStream, close: () => void) => {
        await until(() => queued(stream) > MIB)
        close()
      },
      'closed while paused': async (stream: UpstreamStream, _: () => void, n: number) => {
        await until(() => queued(stream) > MIB)
        if (n % 2) await collectTexts(stream)
        else stream.cancel()
      },
    }
    const descriptors = () => readdirSync('/proc/self/fd').length
    const cycle = async (n: number) => {
      for (const [command, end] of Object.entries(ways)) {
        const socket = await connectTo(peer.url, { clock })
        await end(socket.turn(command), () => socket.close(), n)
      }
    }
    await cycle(0)
    await until(() => clock.pending === 0)
    const before = descriptors()
    for (let n = 0; n < 40; n++) await cycle(n)
    await until(() => clock.pending === 0 && descriptors() <= before)
    expect(peer.seen.closes).toHaveLength(205)
  },
)
