/** The handshake: what is sent and read, and each way it can fail. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { AppError } from '../../src/errors.ts'
import { failureFromThrown } from '../../src/proxy/exchange/upstream-failure.ts'
import { HandshakeRejected } from '../../src/upstream/socket-errors.ts'
import { openerFor } from '../../src/upstream/tunnel.ts'
import { tunnelAgent } from '../../src/upstream/tunnel-agent.ts'
import { ManualClock } from '../support/clock.ts'
import { until } from '../support/until.ts'
import { acceptance, connectTo, startPeer, startRaw } from './socket-peer.ts'

const failure = (socket: Promise<unknown>): Promise<unknown> =>
  socket.then(
    () => 'it opened',
    (err) => err,
  )

const agentFor = (scheme: string, url: string) => {
  const proxy = url.replace(/^ws/, scheme)
  return tunnelAgent(openerFor(proxy, 1000), { isSecure: false })
}

const refusing = async (status: number, body: string | Buffer, headers: Record<string, string> = {}) => {
  const server = createServer((_, response) => response.end('no upgrade'))
  server.on('upgrade', (_, connection) => {
    const lines = Object.entries({ ...headers, 'content-length': String(body.length) }).map(([k, v]) => `${k}: ${v}`)
    connection.write(`HTTP/1.1 ${status} No\r\n${lines.join('\r\n')}\r\n\r\n`)
    connection.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return { url: `ws://127.0.0.1:${port}/`, [Symbol.dispose]: () => void server.close() }
}

test('our headers are sent without those of the runtime; those of the 101 are read', async () => {
  await using peer = startPeer()
  const clock = new ManualClock()
  await clock.advance(500)
  const headers = { Authorization: 'Bearer t', 'User-Agent': 'codex/1', 'OpenAI-Beta': 'b' }
  const socket = await connectTo(peer.url, { headers, clock })
  expect([...peer.seen.handshakes[0]!.keys()].sort()).toEqual([
    'authorization',
    'connection',
    'host',
    'openai-beta',
    'sec-websocket-key',
    'sec-websocket-version',
    'upgrade',
    'user-agent',
  ])
  expect(peer.seen.handshakes[0]!.get('user-agent')).toBe('codex/1')
  expect(socket.headers.get('x-codex-turn-state')).toBe('kept')
  expect(socket.openedAt).toBe(500)
  expect(socket.isOpen).toBe(true)
  socket.terminate()
})

describe('a rejection has its status, headers and body', () => {
  for (const status of [200, 302, 400, 401, 403, 404, 426, 429, 500, 502, 503]) {
    test(String(status), async () => {
      using server = await refusing(status, `{"error":{"code":"c${status}"}}`, {
        'retry-after': '7',
        location: 'ws://127.0.0.1:1/',
      })
      const refused = await failure(connectTo(server.url))
      expect(refused).toBeInstanceOf(HandshakeRejected)
      if (!(refused instanceof HandshakeRejected)) return
      expect(refused.status).toBe(status)
      expect(refused.headers.get('retry-after')).toBe('7')
      expect(refused.body).toBe(`{"error":{"code":"c${status}"}}`)
    })
  }

  test('of a long body the first 64 KiB, whatever its bytes', async () => {
    using server = await refusing(500, Buffer.alloc(1_000_000, 'x'))
    const refused = await failure(connectTo(server.url))
    expect(refused instanceof HandshakeRejected && refused.body.length).toBe(64 * 1024)
    using other = await refusing(500, Buffer.from([0xff, 0x41]), { 'x-odd': 'caf\xe9' })
    expect(await failure(connectTo(other.url))).toMatchObject({ status: 500, body: '\ufffdA' })
  })

  test('a body without end is truncated at the limit; it is still a rejection', async () => {
    using server = await startRaw((connection) => connection.write('HTTP/1.1 429 No\r\ncontent-length: 9\r\n\r\npart'))
    const clock = new ManualClock()
    const refused = failure(connectTo(server.url, { clock, timeoutMs: 1000 }))
    await until(() => [...server.connections].some(({ bytesWritten }) => bytesWritten > 0))
    await Bun.sleep(5) // for the four bytes to be read at our end
    await clock.advance('1s')
    expect(await refused).toMatchObject({ name: 'HandshakeRefused', status: 429, body: 'part' })
  })

  test('and so is one whose connection is lost', async () => {
    using server = await startRaw((connection) => connection.end('HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\npart'))
    expect(await failure(connectTo(server.url))).toMatchObject({ name: 'HandshakeRefused', status: 401, body: 'part' })
  })
})

describe('a failed connection has the runtime’s code', () => {
  test('refused', async () => {
    const closed = await startRaw(() => {})
    closed[Symbol.dispose]()
    const err = await failure(connectTo(closed.url))
    expect(err).toMatchObject({ code: 'ECONNREFUSED' })
    expect(failureFromThrown(err).where).toBe('connect')
  })

  test('unknown name', async () => {
    expect(await failure(connectTo('ws://no-such-host.invalid/'))).toMatchObject({ code: 'ENOTFOUND' })
  })

  test('no TLS at the other end', async () => {
    await using peer = startPeer()
    const err = await failure(connectTo(peer.url.replace('ws:', 'wss:')))
    expect(err).toMatchObject({ code: 'EPROTO' })
    expect(failureFromThrown(err).where).toBe('connect')
  })

  test('reset or closed before the answer', async () => {
    using resetting = await startRaw((connection) => connection.resetAndDestroy())
    expect(await failure(connectTo(resetting.url))).toMatchObject({ code: 'ECONNRESET' })
    using ending = await startRaw((connection) => connection.end())
    expect(await failure(connectTo(ending.url))).toMatchObject({ code: 'ECONNRESET' })
  })

  test('an invalid response is lost before the headers', async () => {
    using odd = await startRaw((connection) => connection.end('hello\r\n\r\n'))
    expect(failureFromThrown(await failure(connectTo(odd.url))).where).toBe('headers')
    using forged = await startRaw((connection) => connection.write(acceptance('sec-websocket-key: x')))
    expect(failureFromThrown(await failure(connectTo(forged.url))).where).toBe('headers')
    expect(await failure(connectTo('nonsense'))).toBeInstanceOf(Error)
  })
})

describe('a failing proxy is a connection that cannot be made', () => {
  for (const [what, scheme, answer] of [
    ['wants other credentials', 'http', 'HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n'],
    ['cannot reach the upstream', 'http', 'HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n'],
    ['wants other credentials', 'socks5h', Buffer.from([5, 255])],
  ] as const) {
    test(`${scheme}: ${what}`, async () => {
      await using peer = startPeer()
      using proxy = await startRaw((connection) => connection.end(answer))
      const err = await failure(connectTo(peer.url, { agent: agentFor(scheme, proxy.url) }))
      expect(failureFromThrown(err)).toMatchObject({ where: 'connect', code: 'ERR_PROXY_TUNNEL' })
      expect(peer.seen.handshakes).toEqual([])
    })
  }

  for (const scheme of ['http', 'socks5h']) {
    test(`${scheme}: not there`, async () => {
      await using peer = startPeer()
      const closed = await startRaw(() => {})
      closed[Symbol.dispose]()
      const err = await failure(connectTo(peer.url, { agent: agentFor(scheme, closed.url) }))
      expect(failureFromThrown(err).where).toBe('connect')
      expect(peer.seen.handshakes).toEqual([])
    })
  }
})

test('a handshake that hangs times out', async () => {
  using server = await startRaw(() => {})
  const clock = new ManualClock()
  const err = failure(connectTo(server.url, { clock, timeoutMs: 3000 }))
  await until(() => server.connections.size > 0)
  await clock.advance('2.999s')
  expect(clock.pending).toBe(1)
  await clock.advance('1ms')
  expect(await err).toEqual(new AppError('upstream_timeout'))
  await until(() => [...server.connections].every(({ destroyed }) => destroyed))
})

test('an abort ends it with its reason, immediately or midway, and leaves nothing', async () => {
  using server = await startRaw(() => {})
  const clock = new ManualClock()
  expect(await failure(connectTo(server.url, { signal: AbortSignal.abort('gone') }))).toBe('gone')
  expect(server.connections.size).toBe(0)
  const controller = new AbortController()
  const err = failure(connectTo(server.url, { clock, signal: controller.signal }))
  await until(() => server.connections.size > 0)
  controller.abort('left')
  expect(await err).toBe('left')
  expect(clock.pending).toBe(0)
  await until(() => [...server.connections].every(({ destroyed }) => destroyed))
})

test('an abort after the handshake does not affect the socket', async () => {
  await using peer = startPeer()
  const controller = new AbortController()
  const socket = await connectTo(peer.url, { signal: controller.signal })
  controller.abort()
  expect(socket.isOpen).toBe(true)
  socket.terminate()
})

test('unusual headers of a 101 are read', async () => {
  using server = await startRaw((connection, request) =>
    connection.write(
      Buffer.from(acceptance(request, 'x-odd: caf\xe9\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n'), 'latin1'),
    ),
  )
  const socket = await connectTo(server.url)
  expect(socket.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(socket.headers.get('x-odd')).toStartWith('caf')
  socket.terminate()
})

test.skipIf(process.platform !== 'linux')('failed handshakes leave no descriptor', async () => {
  using refused = await refusing(401, 'no')
  using hanging = await startRaw(() => {})
  const descriptors = () => readdirSync('/proc/self/fd').length
  const fail = async () => {
    await failure(connectTo(refused.url))
    await failure(connectTo(hanging.url, { timeoutMs: 1 }))
  }
  await fail()
  await until(() => [...hanging.connections].every(({ destroyed }) => destroyed))
  const before = descriptors()
  for (let i = 0; i < 30; i++) await fail()
  await until(() => descriptors() <= before)
})
