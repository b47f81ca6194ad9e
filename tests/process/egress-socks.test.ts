/** A SOCKS proxy carries everything fetch sends upstream; when it rejects or is down, nothing connects directly. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import { cert, key as tlsKey } from './certificate.ts'
import { type EgressBench, startEgressBench, transport } from './egress-bench.ts'
import { HIDDEN_HOST } from './egress-proxy.ts'
import { startSocksProxy } from './socks-proxy.ts'
import { eventsUntilEnd, sendTurn } from './world.ts'

let bench: EgressBench
beforeAll(async () => {
  bench = await startEgressBench()
}, 120_000)
afterAll(() => bench?.[Symbol.asyncDispose]())

const lastType = async (response: Response) => (await eventsUntilEnd(response)).at(-1)?.type

describe('a SOCKS proxy with credentials', () => {
  test.each([
    ['ALL_PROXY', 'socks5h', 'http', HIDDEN_HOST, `${HIDDEN_HOST}:80`],
    ['https_proxy', 'socks5h', 'https', HIDDEN_HOST, `${HIDDEN_HOST}:443`],
    ['SOCKS_PROXY', 'socks4a', 'http', HIDDEN_HOST, `${HIDDEN_HOST}:80`],
    ['http_proxy', 'socks5', 'http', '127.1.2.3', '127.1.2.3:80'],
  ] as const)(
    '%s=%s://… carries model requests, refreshes and polls to an %s upstream',
    async (variable, kind, scheme, host, place) => {
      const { upstream, port, key, trust, serve, pathsSeen } = bench
      upstream.reset()
      await using proxy = await startSocksProxy(port, scheme === 'https' ? { tls: { key: tlsKey, cert } } : {})
      const env = { [variable]: proxy.url(kind), ...trust }
      await using server = await serve(`${scheme}://${host}`, env)
      await until(
        () => pathsSeen().has('GET /backend-api/wham/usage') && pathsSeen().has('GET /backend-api/codex/models'),
      )
      upstream.accounts[0]?.expireAccessToken()
      expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
      expect(pathsSeen()).toContain('POST /oauth/token')
      expect(new Set(proxy.passed)).toEqual(new Set([place]))
      expect(proxy.refused).toBe(0)
      expect(JSON.stringify(upstream.requests)).not.toContain('proxy-')
      expect(upstream.oddities).toEqual([])
      expect(server.output()).not.toContain('p%40ss')
      expect(server.output()).not.toContain('p@ss')
    },
    120_000,
  )

  test('socks5 resolves names here, socks5h lets the proxy do it', async () => {
    const { upstream, port, key, serve } = bench
    for (const [kind, seen] of [
      ['socks5', /^(127\.0\.0\.1|\[::1\]):81$/],
      ['socks5h', /^localhost:81$/],
    ] as const) {
      upstream.reset()
      await using proxy = await startSocksProxy(port)
      await using server = await serve('http://localhost:81', { ALL_PROXY: proxy.url(kind) })
      expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
      expect(proxy.passed.filter((place) => !seen.test(place))).toEqual([])
    }
  }, 120_000)
})

test('WebSocket requests use the proxy for handshakes, and everything else the one for fetch', async () => {
  const { upstream, port, key, serve, dataDir } = bench
  upstream.reset()
  await transport('websocket', dataDir)
  await using forFetch = await startSocksProxy(port)
  await using forSockets = await startSocksProxy(port)
  const env = { HTTP_PROXY: forFetch.url('socks5h'), WS_PROXY: forSockets.url('socks5h') }
  await using server = await serve(`http://${HIDDEN_HOST}`, env)
  expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
  await transport('http', dataDir)
  expect(forSockets.passed).toEqual([`${HIDDEN_HOST}:80`])
  expect(forFetch.passed.length).toBeGreaterThan(0)
}, 120_000)

describe('what a SOCKS proxy does not carry', () => {
  const isRefused = async (origin: string, proxyUrl: string) => {
    const { upstream, key, serve } = bench
    upstream.reset()
    await using server = await serve(origin, { ALL_PROXY: proxyUrl })
    const response = await sendTurn(server.url, key)
    expect(response.status).toBe(502)
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_unreachable' } })
    const listed = await fetch(`${server.url}/api/accounts`)
    expect(await listed.json()).toMatchObject({ accounts: [{ status: 'active' }] })
    expect((await fetch(`${server.url}/health/ready`)).status).toBe(200)
    expect(upstream.requests).toEqual([])
    expect(server.output()).not.toContain('p@ss')
  }

  test('with the wrong credentials nothing passes or connects directly, and no account is charged', async () => {
    await using proxy = await startSocksProxy(bench.port)
    await isRefused(`https://127.0.0.1:${bench.port}`, proxy.url('socks5h').replace('egress:', 'stranger:'))
    expect(proxy.refused).toBeGreaterThan(0)
    expect(proxy.passed).toEqual([])
  }, 120_000)

  test('a target the proxy cannot reach is not tried directly', async () => {
    await using proxy = await startSocksProxy(bench.port, { isCutOff: true })
    await isRefused(`http://127.0.0.1:${bench.port}`, proxy.url('socks5'))
  }, 120_000)

  test.each(['socks4', 'socks5h'])(
    'nothing passes a %s proxy that is down',
    (kind) => isRefused(`http://127.0.0.1:${bench.port}`, `${kind}://127.0.0.1:1`),
    120_000,
  )

  test('one that goes down between two requests fails the second, not the server', async () => {
    const { upstream, port, key, serve } = bench
    upstream.reset()
    const proxy = await startSocksProxy(port)
    await using server = await serve(`http://127.0.0.1:${port}`, { ALL_PROXY: proxy.url('socks5h') })
    expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
    const before = upstream.requests.length
    await proxy[Symbol.asyncDispose]()
    expect((await sendTurn(server.url, key)).status).toBe(502)
    expect(upstream.requests).toHaveLength(before)
  }, 120_000)

  test('targets in NO_PROXY connect directly', async () => {
    const { upstream, port, key, serve } = bench
    upstream.reset()
    const env = { ALL_PROXY: 'socks5h://127.0.0.1:1', NO_PROXY: '127.0.0.1' }
    await using server = await serve(`http://127.0.0.1:${port}`, env)
    expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
  }, 120_000)
})
