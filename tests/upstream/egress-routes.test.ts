/** Connections by route: through the first endpoint that connects, only of its pool, and not shared between routes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { systemClock } from '../../src/lib/clock.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { getEgressReason, type ProxyRoute } from '../../src/model/egress/route.ts'
import { failureFromThrown } from '../../src/proxy/exchange/upstream-failure.ts'
import { createDial, type Dial } from '../../src/upstream/dial.ts'
import { openSocket } from '../../src/upstream/socket.ts'
import { cert, key } from '../process/certificate.ts'
import { HIDDEN_HOST, PASSWORD, startEgressProxy } from '../process/egress-proxy.ts'
import { startSocksProxy } from '../process/socks-proxy.ts'
import { rejection } from './pool-of-one.ts'

const DEAD = 'http://127.0.0.1:1'
const PLAIN = `http://${HIDDEN_HOST}/x`
const SECURE = `https://${HIDDEN_HOST}/x`

let upstream: Bun.Server<undefined>
let dial: Dial
let noted: [id: string, hasConnected: boolean][] = []

beforeAll(() => {
  upstream = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response(request.body ?? 'ok', { headers: { 'x-served': 'yes' } }),
    websocket: { message: () => {} },
  })
})
beforeEach(() => {
  noted = []
  dial = dialIn({})
})
afterEach(() => dial.close())
afterAll(() => upstream.stop(true))

/** Longer than anything that works takes on a busy machine, but for the tests of what never answers. */
const dialIn = (environment: Record<string, string>, endpointTimeoutMs = 10_000) =>
  createDial(environment, fetch, { trustsSocketEnvironment: true, random: systemRandom, endpointTimeoutMs })

const routeOver = (...urls: string[]): ProxyRoute => ({
  kind: 'proxies',
  key: urls.join(' '),
  endpoints: () => urls.map((url, place) => ({ id: `egr_${place}`, url })),
  note: (id, failure) => void noted.push([id, failure === null]),
})

const port = (): number => upstream.port ?? 0

/** Accepts connections and sends nothing. */
const startMute = async () => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: (scheme: string) => `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, // as: it listens on a port
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const get = (route: ProxyRoute, url = PLAIN, init: RequestInit = {}) =>
  dial.fetch(url, { ...init, ...(url === SECURE && { tls: { ca: cert } }) } as RequestInit, route) // as: Bun's own option

describe('endpoints in their order', () => {
  test('the first that connects is used, with its credentials', async () => {
    await using http = await startEgressProxy(port())
    await using socks = await startSocksProxy(port())
    const route = routeOver(http.url, socks.url('socks5h'))
    expect(await (await get(route, PLAIN, { method: 'POST', body: 'sent' })).text()).toBe('sent')
    expect([http.passed, socks.passed, noted]).toEqual([[`CONNECT ${HIDDEN_HOST}:80`], [], [['egr_0', true]]])
  })

  test.each([
    ['refuses connections', async () => DEAD],
    ['has no such host', async () => 'http://nowhere.invalid:8080'],
    ['rejects the credentials', async () => wrongLogin.http],
    ['rejects the credentials (SOCKS)', async () => wrongLogin.socks],
    ['has no route', async () => wrongLogin.cutOff],
    ['has an untrusted certificate', async () => wrongLogin.tls],
  ])('the next one is used when the first %s', async (_why, first) => {
    await using socks = await startSocksProxy(port())
    const route = routeOver(await first(), socks.url('socks5h'))
    expect((await get(route)).status).toBe(200)
    expect([socks.passed, noted]).toEqual([
      [`${HIDDEN_HOST}:80`],
      [
        ['egr_0', false],
        ['egr_1', true],
      ],
    ])
  })

  test.each(['http', 'https', 'socks5h'])('and when it accepts and never responds (%s)', async (scheme) => {
    dial.close()
    dial = dialIn({}, 1000)
    await using mute = await startMute()
    await using http = await startEgressProxy(port(), { key, cert })
    expect((await get(routeOver(mute.url(scheme), http.url), SECURE)).headers.get('x-served')).toBe('yes')
    expect([http.passed, noted.map(([id]) => id)]).toEqual([[`CONNECT ${HIDDEN_HOST}:443`], ['egr_0', 'egr_1']])
  })

  test('a request that was sent is not repeated through the next one', async () => {
    const heads: string[] = []
    const closing = createServer((socket) => {
      socket
        .on('error', () => {})
        .once('data', (bytes) => {
          heads.push(bytes.toString().split(' ')[0] ?? '')
          socket.resetAndDestroy()
        })
    })
    await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve))
    const { port: target } = closing.address() as AddressInfo // as: it listens on a port
    await using first = await startSocksProxy(target)
    await using second = await startSocksProxy(port())
    const route = routeOver(first.url('socks5h'), second.url('socks5h'))
    const err = await rejection(get(route, PLAIN, { method: 'POST', body: 'once' }))
    closing.close()
    expect([heads, second.passed, getEgressReason(err)]).toEqual([['POST'], [], null])
  })
})

const wrongLogin = { http: '', socks: '', cutOff: '', tls: '' }
const broken: AsyncDisposable[] = []
beforeAll(async () => {
  const [http, socks, cutOff] = await Promise.all([
    startEgressProxy(1),
    startSocksProxy(1),
    startSocksProxy(1, { isCutOff: true }),
  ])
  const tls = createTlsServer({ key, cert }, () => {})
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
  wrongLogin.http = http.url.replace('egress:', 'stranger:')
  wrongLogin.socks = socks.url('socks5h').replace('egress:', 'stranger:')
  wrongLogin.cutOff = cutOff.url('socks5h')
  wrongLogin.tls = `https://127.0.0.1:${(tls.address() as AddressInfo).port}` // as: it listens on a port
  broken.push(http, socks, cutOff, { [Symbol.asyncDispose]: async () => void tls.close() })
})
afterAll(async () => {
  for (const each of broken) await each[Symbol.asyncDispose]()
})

describe('when no endpoint connects', () => {
  test.each([PLAIN, SECURE])(
    'the request fails before anything is sent, with an error without a password: %s',
    async (url) => {
      const direct = `${url.slice(0, url.indexOf(':'))}://127.0.0.1:${port()}/`
      const err = await rejection(get(routeOver(DEAD, wrongLogin.socks, wrongLogin.http), direct))
      expect(err).toMatchObject({ code: 'egress_unavailable' })
      expect(getEgressReason(err)).toBe('endpoints_unreachable')
      expect(failureFromThrown(err)).toMatchObject({ where: 'connect', code: 'egress_unavailable' })
      expect(Bun.inspect(err)).not.toContain(PASSWORD)
      expect(noted).toEqual([
        ['egr_0', false],
        ['egr_1', false],
        ['egr_2', false],
      ])
    },
  )

  test('neither the environment nor a direct connection is used instead', async () => {
    await using environment = await startEgressProxy(port())
    const other = dialIn({ ALL_PROXY: environment.url, NO_PROXY: '127.0.0.1' })
    const direct = `http://127.0.0.1:${port()}/`
    expect(getEgressReason(await rejection(other.fetch(PLAIN, {}, routeOver(DEAD))))).toBe('endpoints_unreachable')
    expect(getEgressReason(await rejection(other.fetch(direct, {}, routeOver(DEAD))))).toBe('endpoints_unreachable')
    const closed = { kind: 'closed', reason: 'pool_unavailable' } as const
    expect(getEgressReason(await rejection(other.fetch(direct, {}, closed)))).toBe('pool_unavailable')
    expect(getEgressReason(await rejection(other.socketAgent('ws://127.0.0.1/', closed)))).toBe('pool_unavailable')
    expect(environment.passed).toEqual([])
    other.close()
  })

  test('a handshake fails with the same message', async () => {
    const url = `ws://127.0.0.1:${port()}/`
    const agent = await dial.socketAgent(url, routeOver(DEAD))
    const err = await rejection(
      openSocket({
        url,
        headers: {},
        agent,
        clock: systemClock,
        timeoutMs: 5000,
        signal: new AbortController().signal,
      }),
    )
    expect(getEgressReason(err)).toBe('endpoints_unreachable')
  })
})

test('socks5 sends the address that Sluice looked up, socks5h the name', async () => {
  await using socks = await startSocksProxy(port())
  for (const scheme of ['socks5', 'socks5h'] as const) await get(routeOver(socks.url(scheme)), 'http://localhost/x')
  expect(socks.passed.map((target) => (target === 'localhost:80' ? 'name' : 'address'))).toEqual(['address', 'name'])
})

describe('kept connections', () => {
  test('are never used for another route, nor for a request without one', async () => {
    await using a = await startEgressProxy(port(), { key, cert })
    await using b = await startEgressProxy(port(), { key, cert })
    await using socks = await startSocksProxy(port(), { tls: { key, cert } })
    const routes = [routeOver(a.url), routeOver(b.url), routeOver(socks.url('socks5h'))]
    for (const route of [...routes, ...routes]) await (await get(route, SECURE)).text()
    const tunnel = `CONNECT ${HIDDEN_HOST}:443`
    expect([a.passed, b.passed, socks.passed]).toEqual([[tunnel], [tunnel], [`${HIDDEN_HOST}:443`]])
    expect(await rejection(dial.fetch(SECURE, {}, { kind: 'environment' }))).toBeInstanceOf(Error)
  })

  test('are separate for two users of one proxy, whose user name can choose the exit', async () => {
    await using proxy = await startEgressProxy(port(), { key, cert })
    const stranger = proxy.url.replace('egress:', 'stranger:')
    await (await get(routeOver(proxy.url), SECURE)).text()
    expect(getEgressReason(await rejection(get(routeOver(stranger), SECURE)))).toBe('endpoints_unreachable')
    expect([proxy.passed.length, proxy.refused]).toEqual([1, 1])
  })

  test('are not used any more once the route is removed', async () => {
    await using proxy = await startEgressProxy(port(), { key, cert })
    const route = routeOver(proxy.url)
    await (await get(route, SECURE)).text()
    dial.keepRoutes(new Set([route.key]))
    await (await get(route, SECURE)).text()
    expect(proxy.passed).toHaveLength(1)
    dial.keepRoutes(new Set())
    await (await get(route, SECURE)).text()
    expect(proxy.passed).toHaveLength(2)
  })
})
