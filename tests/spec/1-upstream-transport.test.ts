/** Spec §1.10 and §1.11: the upstream transport setting, and the proxies of its handshakes. */
import { describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/boot/env.ts'
import { chooseProxy } from '../../src/lib/env-proxy.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { NOT_FOR_AN_ACCOUNT } from '../../src/model/egress/route.ts'
import { Settings } from '../../src/settings/schema.ts'
import { createDial, EgressError } from '../../src/upstream/dial.ts'
import {
  create,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  leave,
  NATIVE,
  open,
  PUBLIC,
  type SocketWorld,
  startSocketWorld,
} from '../sockets/ground.ts'
import { codexBody, testApp } from '../support/app.ts'

const JSON_HEADERS = { 'content-type': 'application/json', 'user-agent': 'test' }
const NATIVE_CLIENT = { ...JSON_HEADERS, originator: 'codex_cli_rs' }

/** One turn over HTTP; gives the transport that carried it upstream. */
const getTransport = async (
  service: SocketWorld,
  { path = NATIVE, headers = JSON_HEADERS, body = {} }: { path?: string; headers?: object; body?: object } = {},
) => {
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: headers as Record<string, string>, // as: the values the tests pass
    body: JSON.stringify({ ...codexBody(), ...body }),
  })
  expect(await response.text()).toContain('response.completed')
  return (await service.rows()).at(-1)?.upstreamTransport
}

describe('§1.10 the setting', () => {
  test('is auto by default, and has three values', async () => {
    const { ask, bindings } = await testApp({ settings: { upstreamStreamTransport: 'auto' } })
    expect(bindings.settings.current().upstreamStreamTransport).toBe('auto')
    expect(Settings.shape.upstreamStreamTransport.options).toEqual(['auto', 'http', 'websocket'])
    for (const upstreamStreamTransport of ['http', 'websocket', 'auto']) {
      const changed = await ask('PATCH /api/settings', { json: { upstreamStreamTransport } })
      expect([changed.status, await changed.json()]).toMatchObject([200, { upstreamStreamTransport }])
    }
    expect((await ask('PATCH /api/settings', { json: { upstreamStreamTransport: 'quic' } })).status).toBe(422)
  })

  test('takes effect for the next request, without a restart and without a new connection', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    const carried: unknown[] = []
    for (const upstreamStreamTransport of ['websocket', 'http', 'auto', 'http', 'websocket'] as const) {
      await service.change({ upstreamStreamTransport })
      expectCompleted(await socket.turn(create()))
      carried.push((await service.rows()).at(-1)?.upstreamTransport)
    }
    expect(carried).toEqual(['websocket', 'http', 'websocket', 'http', 'websocket'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each([
    ['always_http', 'websocket', 'http'],
    ['always_websocket', 'http', 'websocket'],
  ] as const)('a key decides only for its HTTP clients: %s', async (transportPolicyOverride, setting, carried) => {
    await using service = await startSocketWorld({
      settings: { apiKeyAuthEnabled: true, upstreamStreamTransport: setting },
    })
    const authorization = `Bearer ${(await service.key({ transportPolicyOverride })).key}`
    expect(await getTransport(service, { headers: { ...JSON_HEADERS, authorization } })).toBe(carried)
    const socket = await open(service, { path: PUBLIC, headers: { authorization } })
    expectCompleted(await socket.turn(create()))
    expect((await service.rows()).at(-1)?.upstreamTransport).toBe(setting)
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test.each(['UPSTREAM_STREAM_TRANSPORT', 'CODEX_LB_UPSTREAM_STREAM_TRANSPORT', 'upstreamStreamTransport'])(
    'no environment variable sets it: %s',
    async (name) => {
      await using service = await startSocketWorld({ environment: { [name]: 'http' } })
      expect(service.bindings.settings.current().upstreamStreamTransport).toBe('auto')
    },
  )

  test.each([
    ['http', 'http'],
    ['websocket', 'websocket'],
  ] as const)('%s sends every stream over %s, for any client', async (upstreamStreamTransport, wanted) => {
    await using service = await startSocketWorld({ settings: { upstreamStreamTransport } })
    for (const headers of [JSON_HEADERS, NATIVE_CLIENT])
      for (const path of [NATIVE, PUBLIC, '/v1/chat/completions']) {
        const messages = path.endsWith('completions') && [{ role: 'user', content: 'hi' }]
        if (!messages) expect(await getTransport(service, { path, headers })).toBe(wanted)
        else {
          const body = JSON.stringify({ model: 'gpt-5.5', messages, stream: true })
          const response = await fetch(service.url + path, { method: 'POST', headers, body })
          expect(await response.text()).toEndWith('data: [DONE]\n\n')
        }
      }
    await expectNothingLeft(service)
    expect(new Set((await service.rows()).map(({ upstreamTransport }) => upstreamTransport))).toEqual(new Set([wanted]))
  })
})

describe('§1.10 auto uses a socket', () => {
  test.each([
    ['for native client headers', { headers: NATIVE_CLIENT }, 'websocket'],
    ['for native turn metadata', { headers: { ...JSON_HEADERS, 'x-codex-turn-metadata': '{}' } }, 'websocket'],
    ['not for others', {}, 'http'],
    ['not for others on /v1', { path: PUBLIC }, 'http'],
    ['not for image generation', { headers: NATIVE_CLIENT, body: { tools: [{ type: 'image_generation' }] } }, 'http'],
  ] as const)('%s', async (_name, asked, wanted) => {
    await using service = await startSocketWorld()
    expect(await getTransport(service, asked)).toBe(wanted)
    await expectNothingLeft(service)
  })

  test('not for requests with an image', async () => {
    await using service = await startSocketWorld()
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA' }
    const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'see' }, image] }]
    expect(await getTransport(service, { headers: NATIVE_CLIENT, body: { input } })).toBe('http')
  })

  test('for models that prefer it', async () => {
    await using service = await startSocketWorld()
    service.bindings.proxyDeps.prefersSockets = (model) => model === 'gpt-5.5'
    expect(await getTransport(service)).toBe('websocket')
  })

  test('for a client that connected on one', async () => {
    await using service = await startSocketWorld()
    const socket = await open(service, { path: PUBLIC })
    expectCompleted(await socket.turn(create()))
    expect(await service.rows()).toMatchObject([{ transport: 'websocket', upstreamTransport: 'websocket' }])
    await leave(service, socket)
  })

  test('an HTTP request opens its own socket and closes it after its terminal event', async () => {
    await using service = await startSocketWorld()
    for (let turn = 1; turn <= 3; turn++) {
      expect(await getTransport(service, { headers: NATIVE_CLIENT })).toBe('websocket')
      expect(service.upstream.handshakes).toHaveLength(turn)
    }
    await expectNothingLeft(service)
  })

  test('a 426 puts the account on HTTP for a while, unnoticed', async () => {
    await using service = await startSocketWorld()
    service.members[0]?.sim.always({ on: 'handshake', status: 426, body: { detail: 'Upgrade Required' } })
    for (let turn = 0; turn < 3; turn++) expect(await getTransport(service, { headers: NATIVE_CLIENT })).toBe('http')
    expect(service.upstream.handshakes).toHaveLength(1)
    const { httpUntil } = service.bindings.pool.get(service.members[0]?.id ?? '') ?? { httpUntil: 0 }
    expect(httpUntil - Date.now()).toBeWithin(9 * 60_000, 10 * 60_000 + 1)
  })
})

describe('§1.11 the variables a handshake uses, in their order', () => {
  const VARIABLES = {
    'wss:': ['wss_proxy', 'socks_proxy', 'https_proxy', 'all_proxy'],
    'ws:': ['ws_proxy', 'socks_proxy', 'https_proxy', 'http_proxy', 'all_proxy'],
  }
  const getProxy = (name: string) => `http://${name.replace('_', '-')}.test:3128`

  for (const [scheme, names] of Object.entries(VARIABLES))
    for (const [index, name] of names.entries())
      test(`${scheme}// takes ${name} when none before it is set`, () => {
        const environment = Object.fromEntries(names.slice(index).map((each) => [each, getProxy(each)]))
        const target = `${scheme}//upstream.test`
        expect(chooseProxy(target, environment)).toMatchObject({
          url: expect.stringContaining(new URL(getProxy(name)).host),
        })
        expect(chooseProxy(target, { ...environment, no_proxy: 'upstream.test' })).toEqual({ kind: 'direct' })
      })

  test('wss:// ignores those of plain connections', () => {
    const environment = { ws_proxy: getProxy('ws'), http_proxy: getProxy('http') }
    expect(chooseProxy('wss://upstream.test', environment)).toEqual({ kind: 'direct' })
  })

  test('a handshake uses an agent, and connects directly without a variable', async () => {
    const dial = dialWith({ wss_proxy: getProxy('wss') }, true)
    expect(await dial.socketAgent('wss://upstream.test/x', NOT_FOR_AN_ACCOUNT)).toBeDefined()
    expect(await dial.socketAgent('ws://upstream.test/x', NOT_FOR_AN_ACCOUNT)).toBeUndefined()
    const broken = dialWith({ wss_proxy: 'gopher://proxy.test' }, true)
    await expect(broken.socketAgent('wss://upstream.test/x', NOT_FOR_AN_ACCOUNT)).rejects.toThrow(EgressError)
  })

  test.each(['http', 'https', 'socks5', 'socks5h'])('%s proxies with credentials', async (scheme) => {
    const dial = dialWith({ wss_proxy: `${scheme}://user:secret@proxy.test:1080` }, true)
    expect(await dial.socketAgent('wss://upstream.test/x', NOT_FOR_AN_ACCOUNT)).toBeDefined()
  })

  test.each(['all_proxy', 'ws_proxy'])('a proxy that is down is never bypassed: %s', async (name) => {
    await using service = await startSocketWorld({ proxies: { [name]: 'http://127.0.0.1:1' } })
    const socket = await open(service)
    expect(getRefusal(await socket.turn(create()))).toEqual([502, 'upstream_unreachable'])
    expect([service.upstream.handshakes, service.upstream.requests]).toEqual([[], []])
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})

describe('§1.11 CODEX_LB_UPSTREAM_WEBSOCKET_TRUST_ENV', () => {
  const NAME = 'CODEX_LB_UPSTREAM_WEBSOCKET_TRUST_ENV'

  test('is true by default', () => {
    expect(readConfig({}).UPSTREAM_WEBSOCKET_TRUST_ENV).toBeTrue()
    expect(readConfig({ [NAME]: 'false' }).UPSTREAM_WEBSOCKET_TRUST_ENV).toBeFalse()
  })

  test('false makes handshakes bypass the variables', async () => {
    const environment = { wss_proxy: 'http://proxy.test:3128', ws_proxy: 'http://proxy.test:3128' }
    for (const url of ['wss://upstream.test/x', 'ws://upstream.test/x']) {
      expect(await dialWith(environment, true).socketAgent(url, NOT_FOR_AN_ACCOUNT)).toBeDefined()
      expect(await dialWith(environment, false).socketAgent(url, NOT_FOR_AN_ACCOUNT)).toBeUndefined()
    }
  })
})

const dialWith = (environment: Record<string, string>, trustsSocketEnvironment: boolean) =>
  createDial(environment, fetch, { trustsSocketEnvironment, random: systemRandom })
