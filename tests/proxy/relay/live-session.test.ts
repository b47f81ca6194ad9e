/** How an open live call ends when one side stops reading, answering or closing, with the manual clock. */
import { afterEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import type { Bindings } from '../../../src/boot/bindings.ts'
import { AppError } from '../../../src/errors.ts'
import { type SocketPeer, websocket } from '../../../src/http/websocket.ts'
import { StreamTimer } from '../../../src/proxy/downstream/stream-timer.ts'
import type { Lease } from '../../../src/proxy/pool/live-account.ts'
import { LiveSession } from '../../../src/proxy/relay/live-session.ts'
import type { FlowEnd } from '../../../src/proxy/turn/open-answer.ts'
import type { Turn } from '../../../src/proxy/turn/turn.ts'
import { type LiveSocket, openLiveSocket } from '../../../src/upstream/live-socket.ts'
import { ManualClock } from '../../support/clock.ts'
import { connectSocket } from '../../support/socket-client.ts'
import { until, untilUnchanged } from '../../support/until.ts'
import { acceptance, startPeer, startRaw } from '../../upstream/socket-peer.ts'

const MIB = 1024 * 1024
const PING = 0x89
const CLOSE = 0x88

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const upstreamAt = (url: string, clock: ManualClock): Promise<LiveSocket> =>
  openLiveSocket({ url, headers: {}, agent: undefined, clock, timeoutMs: 5000, signal: new AbortController().signal })

/** A session between a client and an upstream, and what it leaves. */
const between = async (to: string | LiveSocket, { isLate = false } = {}) => {
  const clock = new ManualClock()
  const pulse = new StreamTimer(clock)
  const upstream = typeof to === 'string' ? await upstreamAt(to, clock) : to
  const turnAbort = new AbortController()
  const left = { lease: 0, place: 0, ends: [] as FlowEnd[] }
  const liveCalls = new Set<unknown>()
  const log = { error: (message: string) => expect(message).toBe('') }
  const session = new LiveSession({
    env: { clock, pulse, liveCalls, log } as unknown as Bindings, // as: all that a session without a peer uses
    turn: { signal: turnAbort.signal } as Turn, // as above
    lease: { release: () => left.lease++ } as unknown as Lease, // as above
    upstream,
    peer: null,
    leave: () => left.place++,
  })
  session.whenEnded({ ended: (end) => left.ends.push(end) })
  const server = Bun.serve<SocketPeer>({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, { upgrade }) => {
      if (isLate) turnAbort.abort(new AppError('draining'))
      if (!upgrade.call(server, request, { data: session })) return new Response(null, { status: 400 })
    },
    websocket,
  })
  cleanUps.push(() => server.stop(true))
  const client = await connectSocket(`ws://127.0.0.1:${server.port}`)
  cleanUps.push(() => client.terminate())
  /** Moves the clock by seconds, with time for the sockets in between. */
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await clock.advance('1s')
      await Bun.sleep(1)
    }
  }
  const expectEnded = async (end: { status: FlowEnd['status']; code?: AppError['code'] }) => {
    await until(() => left.ends.length > 0)
    expect(left.ends.map(({ status, error }) => [status, error?.code])).toEqual([[end.status, end.code]])
    expect([left.lease, left.place, liveCalls.size]).toEqual([1, 1, 0])
    await until(() => clock.pending === 0)
  }
  /** Bytes that the upstream has not taken. */
  const queued = () => upstream.queuedBytes
  /**
   * Advances the clock until the session has ended, and returns how many seconds passed since the last time `queued`
   * fell. The kernel continues to move bytes into its buffers after a test has stopped reading, for as long as a busy
   * machine takes.
   */
  const passUntilEnded = async () => {
    let seconds = 0
    for (let before = queued(); left.ends.length === 0; before = queued()) {
      await pass(1)
      seconds = left.ends.length === 0 && queued() < before ? 0 : seconds + 1
    }
    return seconds
  }
  return { clock, client, left, pass, passUntilEnded, expectEnded, queued }
}

/** The URL of an upstream that reads nothing after the handshake. */
const unread = async () => {
  const server = await startRaw((connection, request) => {
    connection.write(acceptance(request))
    connection.pause()
  })
  cleanUps.push(() => server[Symbol.dispose]())
  return server.url
}

describe('an upstream that does not read', () => {
  test('for 30 s while frames wait is closed: the client gets 1013, and the row says timeout', async () => {
    const { client, pass, passUntilEnded, expectEnded, left, queued } = await between(await unread())
    for (let n = 0; n < 16; n++) client.send(new Uint8Array(MIB))
    await until(() => queued() > 0)
    await pass(29)
    expect([left.ends, client.isOpen]).toEqual([[], true])
    expect(await passUntilEnded()).toBeLessThan(32)
    expect((await client.closed).code).toBe(1013)
    await pass(5) // the upstream does not answer the close
    await expectEnded({ status: 'error', code: 'upstream_timeout' })
  })

  test('is distinguished from one that reads a large frame slowly', async () => {
    // how much the kernel takes at a time cannot be chosen, so this upstream has none
    const upstream = {
      queuedBytes: 0,
      attach: () => {},
      send: (frame: Uint8Array) => {
        upstream.queuedBytes += frame.length
      },
      close: () => {},
    }
    const { client, pass, left, expectEnded } = await between(upstream as unknown as LiveSocket) // as: all that is used
    client.send(new Uint8Array(16 * MIB))
    await until(() => upstream.queuedBytes === 16 * MIB)
    for (let n = 0; n < 5; n++) {
      await pass(29)
      expect([left.ends, client.isOpen]).toEqual([[], true])
      upstream.queuedBytes -= 1
    }
    await pass(31)
    expect((await client.closed).code).toBe(1013)
    await expectEnded({ status: 'error', code: 'upstream_timeout' })
  })
})

describe('a client that does not read', () => {
  test('for 30 s while frames wait is closed, and the upstream gets 1013', async () => {
    await using peer = startPeer()
    const { client, pass, passUntilEnded, left, expectEnded } = await between(peer.url)
    client.pause()
    const [upstream] = peer.clients
    for (let n = 0; n < 32; n++) upstream?.send(new Uint8Array(MIB))
    await untilUnchanged(() => upstream?.getBufferedAmount() ?? 0)
    await pass(29)
    expect(left.ends).toEqual([])
    await passUntilEnded()
    await until(() => peer.seen.closes.length === 1)
    expect(peer.seen.closes).toEqual([1013])
    await expectEnded({ status: 'cancelled' })
  })

  test('is closed also when the upstream has closed before', async () => {
    await using peer = startPeer()
    const { client, passUntilEnded, expectEnded } = await between(peer.url)
    client.pause()
    const [upstream] = peer.clients
    for (let n = 0; n < 16; n++) upstream?.send(new Uint8Array(MIB))
    upstream?.close(1000)
    await passUntilEnded()
    await until(() => peer.seen.closes.length === 1)
    await expectEnded({ status: 'cancelled' })
  })
})

describe('an upstream that does not answer pings', () => {
  const silent = async (answers: boolean) => {
    let pings = 0
    const server = await startRaw((connection, request) => {
      connection.write(acceptance(request))
      connection.on('data', (data) => {
        if (data[0] !== PING) return
        pings++
        if (answers) connection.write(Buffer.from([0x8a, 0]))
      })
    })
    cleanUps.push(() => server[Symbol.dispose]())
    return { url: server.url, pings: () => pings, connection: () => [...server.connections][0] as Socket } // as above
  }

  test('is lost a minute after the first one: the client gets 1011', async () => {
    const { url, pings } = await silent(false)
    const { client, pass, left, expectEnded } = await between(url)
    await pass(29)
    expect(pings()).toBe(0)
    await pass(1)
    await until(() => pings() === 1)
    await pass(59)
    await until(() => pings() === 2)
    expect(left.ends).toEqual([])
    await pass(1)
    expect((await client.closed).code).toBe(1011)
    await expectEnded({ status: 'error', code: 'stream_incomplete' })
  })

  test('is not detected while frames wait for it, because a ping would wait behind them', async () => {
    const clock = new ManualClock()
    const upstream = await upstreamAt(await unread(), clock)
    cleanUps.push(() => upstream.terminate())
    let isClosed = false
    upstream.attach({
      received: () => {},
      closed: () => {
        isClosed = true
      },
    })
    upstream.send(new Uint8Array(64 * MIB), () => {})
    await until(() => upstream.queuedBytes > 0)
    await untilUnchanged(() => upstream.queuedBytes)
    await clock.advance('5m')
    await untilUnchanged(() => upstream.queuedBytes)
    expect(isClosed).toBe(false)
  })

  test.each(['pong', 'frame'])('is kept if a %s comes in time', async (what) => {
    const { url, connection } = await silent(what === 'pong')
    const { client, pass, left, expectEnded } = await between(url)
    for (let n = 0; n < 5; n++) {
      await pass(30)
      if (what === 'frame') connection().write(Buffer.from([0x81, 1, 0x61]))
      await Bun.sleep(2)
    }
    expect([left.ends, client.isOpen]).toEqual([[], true])
    client.close(1000)
    await until(() => left.ends.length === 1)
    await pass(5)
    await expectEnded({ status: 'ok' })
  })
})

describe('a close', () => {
  test('that the upstream does not answer cuts its connection after 5 s', async () => {
    let closes = 0
    let isGone = false
    const server = await startRaw((connection, request) => {
      connection.write(acceptance(request))
      connection.on('data', (data) => {
        if (data[0] === CLOSE) closes++
      })
      connection.on('close', () => {
        isGone = true
      })
    })
    cleanUps.push(() => server[Symbol.dispose]())
    const { client, clock, left, expectEnded } = await between(server.url)
    client.close(3000, 'over')
    await until(() => closes === 1 && left.ends.length === 1)
    await clock.advance('4.999s')
    await Bun.sleep(5)
    expect([isGone, clock.pending]).toEqual([false, 1])
    await clock.advance('1ms')
    await until(() => isGone)
    await expectEnded({ status: 'ok' })
  })

  test('of a session that ended before its client was connected leaves nothing', async () => {
    await using peer = startPeer()
    const { client, expectEnded } = await between(peer.url, { isLate: true })
    expect((await client.closed).code).toBe(1012)
    await until(() => peer.seen.closes.length === 1)
    await expectEnded({ status: 'error', code: 'draining' })
  })
})
