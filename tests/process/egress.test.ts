/** A proxy of the environment carries all upstream traffic; when it is down, nothing connects directly. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runCommand } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { cert, key as tlsKey } from './certificate.ts'
import { type EgressBench, startEgressBench } from './egress-bench.ts'
import { HIDDEN_HOST, startEgressProxy } from './egress-proxy.ts'
import { eventsUntilEnd, sendTurn } from './world.ts'

const DEAD = 'http://127.0.0.1:1'

let bench: EgressBench
beforeAll(async () => {
  bench = await startEgressBench()
}, 120_000)
afterAll(() => bench?.[Symbol.asyncDispose]())

const lastType = async (response: Response) => (await eventsUntilEnd(response)).at(-1)?.type
describe('a proxy with credentials', () => {
  test.each([
    ['http_proxy', 'http', 'in absolute form'],
    ['HTTPS_PROXY', 'https', 'through a tunnel'],
    ['ALL_PROXY', 'http', 'in absolute form'],
  ])(
    '%s carries model requests, refreshes and polls to an %s upstream %s',
    async (variable, scheme) => {
      const { upstream, port, trust, key, pathsSeen, serve } = bench
      upstream.reset()
      await using proxy = await startEgressProxy(port, { key: tlsKey, cert })
      const env = { [variable]: proxy.url, ...trust }
      await using server = await serve(`${scheme}://${HIDDEN_HOST}`, env)
      await until(
        () => pathsSeen().has('GET /backend-api/wham/usage') && pathsSeen().has('GET /backend-api/codex/models'),
      )
      upstream.accounts[0]?.expireAccessToken()
      expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
      const seen = pathsSeen()
      for (const needed of ['POST /backend-api/codex/responses', 'POST /oauth/token']) expect(seen).toContain(needed)
      const place =
        scheme === 'https' ? `CONNECT ${HIDDEN_HOST}:443` : `POST http://${HIDDEN_HOST}/backend-api/codex/responses`
      expect(proxy.passed).toContain(place)
      expect(JSON.stringify(upstream.requests)).not.toContain('proxy-authorization')
      expect(upstream.oddities).toEqual([])
      expect(server.output()).not.toContain('p%40ss')
    },
    120_000,
  )

  test.each(['http', 'https'])(
    'with the wrong ones nothing passes or connects directly, and no account is charged (%s)',
    async (scheme) => {
      const { upstream, port, key, serve } = bench
      upstream.reset()
      await using proxy = await startEgressProxy(port)
      const wrong = proxy.url.replace('egress:', 'stranger:')
      await using server = await serve(`${scheme}://127.0.0.1:${port}`, { ALL_PROXY: wrong })
      const response = await sendTurn(server.url, key)
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({ error: { code: 'upstream_unreachable' } })
      const listed = await fetch(`${server.url}/api/accounts`)
      expect(await listed.json()).toMatchObject({ accounts: [{ status: 'active' }] })
      expect(proxy.refused).toBeGreaterThan(0)
      expect(proxy.passed).toEqual([])
      expect(upstream.requests).toEqual([])
    },
    120_000,
  )
})

describe('NO_PROXY', () => {
  test.each(['*', '10.0.0.0/8, 127.0.0.0/8'])(
    '%s is respected: the request connects directly',
    async (list) => {
      const { upstream, port, key, serve } = bench
      upstream.reset()
      await using server = await serve(`http://127.0.0.1:${port}`, { ALL_PROXY: DEAD, NO_PROXY: list })
      expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
      expect(upstream.requests.length).toBeGreaterThan(0)
    },
    120_000,
  )

  test('for another host it changes nothing', async () => {
    const { upstream, port, key, serve } = bench
    upstream.reset()
    await using server = await serve(`http://127.0.0.1:${port}`, {
      HTTP_PROXY: DEAD,
      NO_PROXY: 'localhost,example.com',
    })
    expect((await sendTurn(server.url, key)).status).toBe(502)
    expect(upstream.requests).toEqual([])
  }, 120_000)
})

describe('a proxy that is down', () => {
  test.each(['ALL_PROXY', 'http_proxy'])(
    '%s: requests fail as unreachable, the server keeps running, and nothing connects directly',
    async (variable) => {
      const { upstream, port, key, serve } = bench
      upstream.reset()
      await using server = await serve(`http://127.0.0.1:${port}`, { [variable]: DEAD })
      const response = await sendTurn(server.url, key)
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({ error: { code: 'upstream_unreachable', type: 'server_error' } })
      expect((await fetch(`${server.url}/health/ready`)).status).toBe(200)
      expect(upstream.requests).toEqual([])
    },
    120_000,
  )

  test('one that goes down between two requests fails the second, not the server', async () => {
    const { upstream, port, key, serve } = bench
    upstream.reset()
    const proxy = await startEgressProxy(port)
    await using server = await serve(`http://127.0.0.1:${port}`, { ALL_PROXY: proxy.url })
    expect(await lastType(await sendTurn(server.url, key))).toBe('response.completed')
    const before = upstream.requests.length
    await proxy[Symbol.asyncDispose]()
    const response = await sendTurn(server.url, key)
    expect(response.status).toBe(502)
    expect(upstream.requests).toHaveLength(before)
  }, 120_000)
})

describe('an unusable proxy stops the start', () => {
  test.each([
    ['ALL_PROXY', 'socks6://user:secret@127.0.0.1:1080', 'cannot be used as a proxy'],
    ['https_proxy', 'socks5h://user:secret%zz@127.0.0.1:1080', 'percent-encoded'],
    ['WSS_PROXY', 'ftp://127.0.0.1', 'cannot be used as a proxy'],
  ])(
    '%s=%s',
    async (variable, value, message) => {
      const env = { [variable]: value, PORT: '0', CODEX_LB_UPSTREAM_BASE_URL: 'https://upstream.test' }
      const { exitCode, stdout, stderr } = await runCommand(['serve'], { dataDir: bench.dataDir, env })
      expect(exitCode).toBe(1)
      expect(stderr).toContain(variable)
      expect(stderr).toContain(message)
      expect(stderr).not.toContain('secret')
      expect(stderr).not.toContain('    at ')
      expect(stdout).not.toContain('listening')
    },
    120_000,
  )
})
