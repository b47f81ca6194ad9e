/**
 * Proxies of outgoing connections: always passed explicitly to fetch and handshakes, and their errors named as such.
 */
import { describe, expect, test } from 'bun:test'
import type { Environment } from '../../src/lib/env-proxy.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { NOT_FOR_AN_ACCOUNT } from '../../src/model/egress/route.ts'
import { createDial, EgressError } from '../../src/upstream/dial.ts'
import { rejection } from './pool-of-one.ts'

type Sent = RequestInit & { proxy?: unknown; keepalive?: boolean }

const dialIn = (environment: Environment, { trusts = true, status = 200 } = {}) => {
  const sent: Sent[] = []
  const fetch = async (_: string, init: Sent) => {
    sent.push(init)
    return new Response('', { status })
  }
  const options = { trustsSocketEnvironment: trusts, random: seededRandom(1) }
  return { sent, dial: createDial(environment, fetch as unknown as typeof globalThis.fetch, options) } // as: called so
}

const HTTP = 'http://u:p@proxy:8080'
const SOCKS = 'socks5h://u:p@proxy:1080'

test('fetch gets its proxy or none, and has no redirects, timeout or decompression of its own', async () => {
  const { sent, dial } = dialIn({ HTTPS_PROXY: HTTP, NO_PROXY: 'b.test' })
  for (const url of ['https://a.test/x', 'https://b.test/x', 'http://a.test/x'])
    await dial.fetch(url, { method: 'PUT' }, NOT_FOR_AN_ACCOUNT)
  const always = { method: 'PUT', redirect: 'manual', timeout: false, decompress: false }
  expect(sent).toEqual([
    { ...always, proxy: { url: HTTP, respectNoProxy: false } },
    { ...always, proxy: false },
    { ...always, proxy: false },
  ] as never)
})

test('fetch uses a SOCKS proxy through a local port with its own secret', async () => {
  const { sent, dial } = dialIn({ ALL_PROXY: SOCKS })
  await dial.fetch('https://a.test/x', {}, NOT_FOR_AN_ACCOUNT)
  await dial.fetch('http://a.test/x', {}, NOT_FOR_AN_ACCOUNT)
  dial.close()
  const [first, second] = sent.map(({ proxy }) => proxy as { url: string; respectNoProxy: boolean })
  expect(first).toEqual({
    url: expect.stringMatching(/^http:\/\/sluice:[\w-]{43}@127\.0\.0\.1:\d+$/),
    respectNoProxy: false,
  })
  expect(second).toEqual(first as never)
  expect(sent.map(({ keepalive }) => keepalive)).toEqual([undefined, false])
})

test('handshakes use another route than fetch if the variables say so', async () => {
  const { dial } = dialIn({ WS_PROXY: HTTP, WSS_PROXY: SOCKS })
  const plain = await dial.socketAgent('ws://a.test/x', NOT_FOR_AN_ACCOUNT)
  const secure = await dial.socketAgent('wss://a.test/x', NOT_FOR_AN_ACCOUNT)
  expect([plain, secure].map((agent) => (agent as unknown as { protocol: string }).protocol)).toEqual([
    'http:',
    'https:',
  ])
  expect(await dialIn({ HTTP_PROXY: HTTP }).dial.socketAgent('wss://a.test/x', NOT_FOR_AN_ACCOUNT)).toBeUndefined()
  expect(await dialIn({ HTTP_PROXY: HTTP }).dial.socketAgent('ws://a.test/x', NOT_FOR_AN_ACCOUNT)).toBeDefined()
  expect(
    await dialIn({ ALL_PROXY: HTTP, NO_PROXY: 'a.test:443' }).dial.socketAgent('wss://a.test', NOT_FOR_AN_ACCOUNT),
  ).toBeUndefined()
})

test('no agent exposes its proxy, because the runtime would connect itself and apply its own NO_PROXY', async () => {
  for (const proxy of [HTTP, SOCKS]) {
    const agent = await dialIn({ ALL_PROXY: proxy }).dial.socketAgent('wss://a.test', NOT_FOR_AN_ACCOUNT)
    for (const member of ['proxy', 'connectOpts', 'proxyRequestOptions']) expect(agent).not.toHaveProperty(member)
  }
})

test('without trust handshakes connect directly, even with an unusable variable, and fetch does not', async () => {
  const { sent, dial } = dialIn({ ALL_PROXY: HTTP, WSS_PROXY: 'ftp://h' }, { trusts: false })
  expect(await dial.socketAgent('wss://a.test/x', NOT_FOR_AN_ACCOUNT)).toBeUndefined()
  dial.check('wss://a.test/x')
  await dial.fetch('https://a.test/x', {}, NOT_FOR_AN_ACCOUNT)
  expect(sent[0]?.proxy).toEqual({ url: HTTP, respectNoProxy: false })
})

describe('an unusable variable', () => {
  const { sent, dial } = dialIn({ WSS_PROXY: 'ftp://h:secret@h', HTTPS_PROXY: 'http://' })

  test.each(['wss://a.test/x', 'https://a.test/x', 'https://a.test'])(
    'is an error for %s, not ignored',
    async (url) => {
      expect(() => dial.check(url)).toThrow(EgressError)
      if (url.startsWith('wss'))
        await expect(dial.socketAgent(url, NOT_FOR_AN_ACCOUNT)).rejects.toThrow(
          /^WSS_PROXY cannot be used as a proxy: (?!.*secret)/,
        )
      else expect(await rejection(dial.fetch(url, {}, NOT_FOR_AN_ACCOUNT))).toBeInstanceOf(EgressError)
      expect(sent).toEqual([])
    },
  )

  test('does not affect other targets', () => dial.check('http://a.test'))
})

test('a URL without a path is matched by its whole host', async () => {
  const { dial } = dialIn({ ALL_PROXY: HTTP, NO_PROXY: 'a.test' })
  expect(await dial.socketAgent('wss://a.test', NOT_FOR_AN_ACCOUNT)).toBeUndefined()
  expect(await dial.socketAgent('wss://a.testing', NOT_FOR_AN_ACCOUNT)).toBeDefined()
})

test('407 comes from the proxy if there is one, and from the upstream otherwise', async () => {
  const refused = dialIn({ ALL_PROXY: HTTP }, { status: 407 }).dial.fetch('http://a.test/x', {}, NOT_FOR_AN_ACCOUNT)
  expect(await rejection(refused)).toMatchObject({ code: 'upstream_unreachable' })
  expect((await dialIn({}, { status: 407 }).dial.fetch('http://a.test/x', {}, NOT_FOR_AN_ACCOUNT)).status).toBe(407)
})

test('a connection check uses the proxy', async () => {
  using listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  for (const scheme of ['http', 'socks5', 'socks5h']) {
    const { dial } = dialIn({ ALL_PROXY: `${scheme}://127.0.0.1:${listener.port}` })
    expect(await dial.canConnect('https://127.0.0.1:1/x', NOT_FOR_AN_ACCOUNT)).toBe(true)
  }
  const { dial } = dialIn({ ALL_PROXY: 'socks5://127.0.0.1:1' })
  expect(await dial.canConnect(`http://127.0.0.1:${listener.port}/x`, NOT_FOR_AN_ACCOUNT)).toBe(false)
  expect(await dialIn({}).dial.canConnect(`http://127.0.0.1:${listener.port}/x`, NOT_FOR_AN_ACCOUNT)).toBe(true)
  expect(await dialIn({}).dial.canConnect('http://127.0.0.1:1/x', NOT_FOR_AN_ACCOUNT)).toBe(false)
})

describe('a connection to an address that is already known', () => {
  test('keeps the name in the Host header, over a real connection', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (c) => new Response(c.headers.get('host')) })
    const dial = createDial({}, fetch, { trustsSocketEnvironment: true, random: seededRandom(1) })
    const answer = await dial.fetchAt(`http://no-such-name.test:${server.port}/x`, '127.0.0.1', {})
    expect(await answer.text()).toBe(`no-such-name.test:${server.port}`)
    await server.stop(true)
  })

  test('keeps the name in the TLS handshake; a proxy is given the name', async () => {
    const seen: unknown[] = []
    const fetch = (async (url: string, { headers, tls }: BunFetchRequestInit) => {
      seen.push([url, new Headers(headers).get('host'), tls])
      return new Response('')
    }) as typeof globalThis.fetch // as: called with these two only
    const options = { trustsSocketEnvironment: true, random: seededRandom(1) }
    const dial = createDial({}, fetch, options)
    await dial.fetchAt('https://a.test:8443/x', '10.0.0.1', {})
    await dial.fetchAt('https://a.test/x', 'fd00::1', {})
    await dial.fetchAt('https://10.0.0.2/x', '10.0.0.2', {})
    await createDial({ HTTPS_PROXY: HTTP }, fetch, options).fetchAt('https://a.test/x', '10.0.0.1', {})
    expect(seen).toEqual([
      ['https://10.0.0.1:8443/x', 'a.test:8443', { serverName: 'a.test' }],
      ['https://[fd00::1]/x', 'a.test', { serverName: 'a.test' }],
      ['https://10.0.0.2/x', null, undefined],
      ['https://a.test/x', null, undefined],
    ])
  })
})
