/**
 * fetch through a real SOCKS proxy: bodies in both directions, disconnects of either side, and unauthorized clients.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { systemRandom } from '../../src/lib/random.ts'
import { NOT_FOR_AN_ACCOUNT, type Route } from '../../src/model/egress/route.ts'
import { failureFromThrown } from '../../src/proxy/exchange/upstream-failure.ts'
import { createDial, type Dial } from '../../src/upstream/dial.ts'
import { ProxyBridge } from '../../src/upstream/proxy-bridge.ts'
import { openerFor } from '../../src/upstream/tunnel.ts'
import { HIDDEN_HOST } from '../process/egress-proxy.ts'
import { type SocksProxy, startSocksProxy } from '../process/socks-proxy.ts'
import { PATIENCE_MS } from '../support/until.ts'
import { rejection } from './pool-of-one.ts'

const UPSTREAM = `http://${HIDDEN_HOST}`

let upstream: Bun.Server<undefined>
let proxy: SocksProxy
let dial: Dial
let headers: Headers | null = null
let wasAborted = Promise.withResolvers<void>()

beforeAll(async () => {
  upstream = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer })
  proxy = await startSocksProxy(upstream.port ?? 0)
  dial = createDial({ ALL_PROXY: proxy.url('socks5h') }, fetch, { trustsSocketEnvironment: true, random: systemRandom })
})
beforeEach(() => {
  proxy.passed.length = 0
  wasAborted = Promise.withResolvers()
})
afterAll(async () => {
  dial.close()
  await proxy[Symbol.asyncDispose]()
  await upstream.stop(true)
})

const answer = async (request: Request): Promise<Response> => {
  headers = request.headers
  request.signal.addEventListener('abort', () => wasAborted.resolve())
  switch (new URL(request.url).pathname) {
    case '/endless':
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue('first') }))
    case '/407':
      return new Response('', { status: 407 })
    default:
      return new Response(request.body, { headers: { 'x-query': new URL(request.url).search } })
  }
}

test('a large body arrives complete, in both directions, with query and headers and none of the bridge’s', async () => {
  const body = Buffer.alloc(8 * 1024 * 1024, 'abcdefghijk')
  const response = await dial.fetch(
    `${UPSTREAM}/echo?a=%20b&c`,
    { method: 'POST', body, headers: { 'x-ours': 'yes' } },
    NOT_FOR_AN_ACCOUNT,
  )
  expect(response.headers.get('x-query')).toBe('?a=%20b&c')
  expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true)
  expect(headers?.get('x-ours')).toBe('yes')
  expect(headers?.get('host')).toBe(HIDDEN_HOST)
  for (const name of ['proxy-authorization', 'proxy-connection']) expect(headers?.has(name)).toBe(false)
})

test('each request to an http: upstream has its own connection, so none reaches another host', async () => {
  for (const host of [HIDDEN_HOST, 'other.test:81', HIDDEN_HOST]) {
    const response = await dial.fetch(`http://${host}/echo`, { method: 'POST', body: host }, NOT_FOR_AN_ACCOUNT)
    expect(await response.text()).toBe(host)
  }
  expect(proxy.passed).toEqual([`${HIDDEN_HOST}:80`, 'other.test:81', `${HIDDEN_HOST}:80`])
})

test('data is passed on as it arrives, and a client that disconnects is noticed upstream', async () => {
  const leave = new AbortController()
  const response = await dial.fetch(`${UPSTREAM}/endless`, { signal: leave.signal }, NOT_FOR_AN_ACCOUNT)
  const first = await response.body?.getReader().read()
  expect(Buffer.from(first?.value ?? []).toString()).toBe('first')
  leave.abort()
  await wasAborted.promise
})

test('a 407 is not a response about an account', async () => {
  expect(await rejection(dial.fetch(`${UPSTREAM}/407`, {}, NOT_FOR_AN_ACCOUNT))).toMatchObject({
    code: 'upstream_unreachable',
  })
})

test('an interrupted stream does not end normally', async () => {
  let breakOff = () => {}
  using breaking = await upstreamThat((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n')
    breakOff = () => socket.resetAndDestroy()
  })
  await using way = await startSocksProxy(breaking.port, { isOpen: true })
  const options = { trustsSocketEnvironment: true, random: systemRandom }
  const broken = createDial({ ALL_PROXY: way.url('socks5') }, fetch, options)
  const response = await broken.fetch('http://127.0.0.1/x', {}, NOT_FOR_AN_ACCOUNT)
  const text = rejection(response.text())
  breakOff()
  expect(await text).toBeInstanceOf(Error)
  broken.close()
})

const upstreamThat = async (onRequest: (socket: Socket) => void) => {
  const server = createServer((socket) => socket.on('error', () => {}).once('data', () => onRequest(socket)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    [Symbol.dispose]: () => void server.close(),
  }
}

describe('a proxy that does not connect', () => {
  test.each([
    ['http', 'small'],
    ['https', 'small'],
    ['http', 'x'.repeat(4 * 1024 * 1024)],
  ])('is a failure to connect (%s)', async (scheme, body) => {
    await using cutOff = await startSocksProxy(1, { isCutOff: true })
    const options = { trustsSocketEnvironment: true, random: systemRandom }
    for (const url of [cutOff.url('socks5h'), cutOff.url('socks5h').replace('egress', 'x'), 'socks4://127.0.0.1:1']) {
      const closed = createDial({ ALL_PROXY: url }, fetch, options)
      const err = await rejection(
        closed.fetch(`${scheme}://127.0.0.1:${upstream.port}/`, { method: 'POST', body }, NOT_FOR_AN_ACCOUNT),
      )
      expect(failureFromThrown(err)).toMatchObject({ where: 'connect', code: 'ERR_PROXY_TUNNEL' })
      expect(Bun.inspect(err)).not.toContain('p@ss')
      closed.close()
    }
  })
})

describe('the bridge', () => {
  const ask = (url: string, target: string) =>
    fetch(target, { proxy: { url, respectNoProxy: false } as never, keepalive: false })

  test('serves no one without its secret', async () => {
    const bridge = new ProxyBridge(openerFor(proxy.url('socks5h'), 1000), 'a-secret')
    const url = await bridge.call(async (at) => at)
    expect((await ask(url, UPSTREAM)).status).toBe(200)
    for (const wrong of [
      url.replace('a-secret', 'a-sacret'),
      url.replace('sluice:a-secret@', ''),
      `${url}`.replace('sluice', 'other'),
    ]) {
      expect((await ask(wrong, UPSTREAM)).status).toBe(407)
      expect(await rejection(ask(wrong, `https://${HIDDEN_HOST}`))).toMatchObject({
        code: 'ERR_PROXY_TUNNEL',
        status: 407,
      })
    }
    expect(proxy.passed).toHaveLength(1)
    bridge.close()
  })

  test('is closed with everything that ran through it', async () => {
    const bridge = new ProxyBridge(openerFor(proxy.url('socks5h'), 1000), 'a-secret')
    const url = await bridge.call(async (at) => at)
    const response = await ask(url, `${UPSTREAM}/endless`)
    bridge.close()
    await wasAborted.promise
    expect(await rejection(ask(url, UPSTREAM))).toMatchObject({ code: 'ECONNREFUSED' })
    await response.body?.cancel().catch(() => {})
  })

  test.each([0, 1, 2, 5, 20])('serves a request that had begun when its route changed (%d)', async (steps) => {
    const route: Route = {
      kind: 'proxies',
      key: `pool ${steps}`,
      endpoints: () => [{ id: 'e', url: proxy.url('socks5h') }],
      note: () => {},
    }
    for (let round = 0; round < 3; round++) {
      const asked = dial.fetch(`${UPSTREAM}/echo`, {}, route)
      for (let step = 0; step < steps; step++) await Promise.resolve()
      dial.keepRoutes(new Set())
      expect((await asked).status).toBe(200)
    }
  })

  test('accepts no connections once it is retired and its requests have begun', async () => {
    const bridge = new ProxyBridge(openerFor(proxy.url('socks5h'), 1000), 'a-secret')
    let url = ''
    const response = await bridge.call((at) => {
      url = at
      bridge.retire()
      return ask(at, `${UPSTREAM}/endless`)
    })
    expect(await rejection(ask(url, UPSTREAM))).toMatchObject({ code: 'ECONNREFUSED' })
    await response.body?.cancel()
  })

  test('that is closed before it listens fails its request', async () => {
    const bridge = new ProxyBridge(openerFor(proxy.url('socks5h'), 1000), 'a-secret')
    const asked = rejection(bridge.call(async () => new Response('')))
    bridge.close()
    expect(await asked).toBeInstanceOf(Error)
  })

  test('does not keep an idle process alive', async () => {
    const script = `
      import { createDial } from './src/upstream/dial.ts'
      const random = { token: () => 'secret' }
      const environment = { ALL_PROXY: ${JSON.stringify(proxy.url('socks5h'))} }
      const dial = createDial(environment, fetch, { trustsSocketEnvironment: true, random })
      console.log((await dial.fetch('${UPSTREAM}/echo', {}, { kind: 'environment' })).status)`
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', timeout: PATIENCE_MS })
    expect(await new Response(child.stdout).text()).toBe('200\n')
    expect(await child.exited).toBe(0)
  })
})
