/** WebSocket handshakes through real proxies: their destination and credentials, and that none connects directly. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import WebSocket from 'ws'
import type { Environment } from '../../src/lib/env-proxy.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { NOT_FOR_AN_ACCOUNT } from '../../src/model/egress/route.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { cert, key } from './certificate.ts'
import { startEgressProxy, terminateTls } from './egress-proxy.ts'
import { startSocksProxy } from './socks-proxy.ts'

const HIDDEN = 'hidden-upstream.test'

let target: Bun.Server<undefined>
let handshakes: (string | null)[] = []
beforeAll(() => {
  target = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) => {
      handshakes.push(request.headers.get('host'))
      if (new URL(request.url).pathname === '/refused') return new Response('no', { status: 401 })
      return server.upgrade(request) ? undefined : new Response('no upgrade', { status: 400 })
    },
    websocket: { message: (socket, text) => void socket.send(`echo ${text}`) },
  })
})
beforeEach(() => {
  handshakes = []
})
afterAll(() => target.stop(true))

const dialIn = (environment: Environment, trustsSocketEnvironment = true) =>
  createDial(environment, fetch, { trustsSocketEnvironment, random: systemRandom })

/** The result of one message: a response, the status of a rejection, or the code of the failure. */
const talk = async (url: string, environment: Environment, trustsSocketEnvironment = true): Promise<string> => {
  const agent = await dialIn(environment, trustsSocketEnvironment).socketAgent(url, NOT_FOR_AN_ACCOUNT)
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = new WebSocket(url, { agent, ca: cert })
  socket.on('open', () => socket.send('hello'))
  socket.on('message', (text) => resolve(String(text)))
  socket.on('unexpected-response', (_, response) => resolve(`status ${response.statusCode}`))
  socket.on('error', (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message))
  return promise.finally(() => socket.terminate())
}

type Start = (tls?: { key: string; cert: string }) => Promise<{ url: string; passed: string[] } & AsyncDisposable>

const overSocks =
  (kind: 'socks4a' | 'socks5h'): Start =>
  async (tls) => {
    const proxy = await startSocksProxy(target.port ?? 0, tls ? { tls } : {})
    return Object.assign(proxy, { url: proxy.url(kind) })
  }

describe.each<[string, Start, string]>([
  ['an HTTP proxy', (tls) => startEgressProxy(target.port ?? 0, tls), 'CONNECT '],
  ['a SOCKS 5 proxy that resolves names', overSocks('socks5h'), ''],
  ['a SOCKS 4a proxy', overSocks('socks4a'), ''],
])('%s with credentials', (_, start, word) => {
  test('carries a ws: handshake to a host only it can find', async () => {
    await using proxy = await start()
    expect(await talk(`ws://${HIDDEN}/turn`, { WS_PROXY: proxy.url })).toBe('echo hello')
    expect(proxy.passed).toEqual([`${word}${HIDDEN}:80`])
    expect(handshakes).toEqual([HIDDEN])
  })

  test('carries a wss: handshake, whose certificate is checked against the requested name', async () => {
    await using proxy = await start({ key, cert })
    expect(await talk(`wss://${HIDDEN}/turn`, { https_proxy: proxy.url })).toBe('echo hello')
    expect(await talk('wss://other.test/turn', { https_proxy: proxy.url })).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    expect(proxy.passed).toEqual([`${word}${HIDDEN}:443`, `${word}other.test:443`])
    expect(handshakes).toEqual([HIDDEN])
  })

  test('returns the status of a handshake the upstream rejects', async () => {
    await using proxy = await start()
    expect(await talk(`ws://${HIDDEN}/refused`, { ALL_PROXY: proxy.url })).toBe('status 401')
  })

  test('with wrong credentials fails, and its rejection is not taken for the upstream’s', async () => {
    await using proxy = await start()
    const url = `ws://127.0.0.1:${target.port}/turn`
    expect(await talk(url, { SOCKS_PROXY: '', WS_PROXY: proxy.url.replace('egress:', 'stranger:') })).toBe(
      'ERR_PROXY_TUNNEL',
    )
    expect(proxy.passed).toEqual([])
    expect(handshakes).toEqual([])
  })

  test('is used even if NO_PROXY of the process, which the runtime reads itself, lists the target', async () => {
    await using proxy = await start()
    using _set = withNoProxy('*')
    expect(await talk(`ws://127.0.0.1:${target.port}/turn`, { WS_PROXY: proxy.url })).toBe('echo hello')
    expect(proxy.passed).toEqual([`${word}127.0.0.1:${target.port}`])
  })
})

const withNoProxy = (list: string): Disposable => {
  const before = process.env.NO_PROXY
  process.env.NO_PROXY = list
  return {
    [Symbol.dispose]() {
      if (before === undefined) delete process.env.NO_PROXY
      else process.env.NO_PROXY = before
    },
  }
}

test('socks5 and socks4 proxies get addresses', async () => {
  await using proxy = await startSocksProxy(target.port ?? 0)
  for (const kind of ['socks5', 'socks4'] as const) {
    expect(await talk('ws://localhost:81/turn', { SOCKS_PROXY: proxy.url(kind) })).toBe('echo hello')
  }
  expect(proxy.passed[0]).toMatch(/^(127\.0\.0\.1|\[::1\]):81$/)
  expect(proxy.passed[1]).toBe('127.0.0.1:81')
  expect(await talk('ws://[::1]:81/turn', { SOCKS_PROXY: proxy.url('socks5') })).toBe('echo hello')
  expect(proxy.passed[2]).toBe('[::1]:81')
})

test('a proxy behind TLS is used only with a valid certificate of its own, whatever the handshake trusts', async () => {
  const sockets = new Set<Socket>()
  await using inner = await startEgressProxy(target.port ?? 0, { key, cert })
  const front = await terminateTls({ key, cert }, Number(new URL(inner.url).port), sockets)
  const proxy = inner.url.replace('http:', 'https:').replace(/\d+$/, String(front.port))
  expect(await talk(`wss://${HIDDEN}/turn`, { ALL_PROXY: proxy })).toBe('ERR_PROXY_TUNNEL')
  expect(inner.passed).toEqual([])
  expect(handshakes).toEqual([])
  front.close()
})

describe('nothing connects directly', () => {
  test.each(['http', 'https', 'socks4', 'socks4a', 'socks5', 'socks5h'])('when a %s proxy is down', async (scheme) => {
    const url = `ws://127.0.0.1:${target.port}/turn`
    expect(await talk(url, { ALL_PROXY: `${scheme}://user:password@127.0.0.1:1` })).toBe('ERR_PROXY_TUNNEL')
    expect(handshakes).toEqual([])
  })

  test.each(['http', 'socks4', 'socks5h'])(
    'when a %s proxy closes the connection at the first byte',
    async (scheme) => {
      using rude = await raw((socket) => socket.end())
      const url = `ws://127.0.0.1:${target.port}/turn`
      expect(await talk(url, { ALL_PROXY: `${scheme}://127.0.0.1:${rude.port}` })).toBe('ERR_PROXY_TUNNEL')
      expect(handshakes).toEqual([])
    },
  )

  test.each([
    ['speaks something else', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['never comes to an end', 'HTTP/1.1 200 OK\r\nx: '.padEnd(40_000, 'x')],
  ])('when an HTTP proxy %s', async (_, answer) => {
    using rude = await raw((socket) => void socket.write(answer))
    const url = `ws://127.0.0.1:${target.port}/turn`
    expect(await talk(url, { ALL_PROXY: `http://127.0.0.1:${rude.port}` })).toBe('ERR_PROXY_TUNNEL')
    expect(handshakes).toEqual([])
  })
})

const raw = async (onData: (socket: Socket) => void) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('data', () => onData(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    [Symbol.dispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

test('targets in NO_PROXY, and everything when handshakes do not trust the environment, connect directly', async () => {
  const url = `ws://127.0.0.1:${target.port}/turn`
  const dead = { WS_PROXY: 'socks5h://127.0.0.1:1' }
  expect(await talk(url, { ...dead, NO_PROXY: '127.0.0.0/8' })).toBe('echo hello')
  expect(await talk(url, dead, false)).toBe('echo hello')
  expect(await talk(url, dead)).toBe('ERR_PROXY_TUNNEL')
})
