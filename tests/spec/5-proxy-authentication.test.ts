/** Spec §5, proxy routes: when an API key is required. */
import { describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, type TestOptions, testApp } from '../support/app.ts'
import { modelProblem, statusAndCode } from './problems.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const REMOTE = '203.0.113.9'
const KEY_AUTH: TestOptions = { settings: { apiKeyAuthEnabled: true } }

/** Routes open to any client: for each, one request that succeeds once allowed. */
const ROUTES: [route: string, json?: unknown][] = [
  ['GET /v1/models'],
  ['GET /backend-api/codex/models'],
  [NATIVE, codexBody()],
  ['POST /v1/responses', { model: 'gpt-5.5', input: 'hello' }],
  ['POST /v1/chat/completions', { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }],
]

describe('§5 proxy 1: the key is a bearer token, created in the dashboard', () => {
  test('a key from the dashboard is shown once and works immediately', async () => {
    const { ask } = await testApp(KEY_AUTH)
    const made = await ask('POST /api/api-keys/', { json: { name: 'laptop' } })
    const { key } = (await made.json()) as { key: string }
    expect(key).toStartWith('sk-clb-')
    expect(await (await ask('GET /api/api-keys/')).text()).not.toContain(key)
    for (const [route, json] of ROUTES) {
      const response = await ask(route, { json, headers: { authorization: `Bearer ${key}` }, peer: REMOTE })
      expect([route, response.status]).toEqual([route, 200])
      await response.text()
    }
  })

  test('a deleted, disabled or regenerated key stops working on the next request', async () => {
    const { ask } = await testApp(KEY_AUTH)
    const make = async () => {
      const made = await ask('POST /api/api-keys/', { json: { name: 'k' } })
      return (await made.json()) as { id: string; key: string }
    }
    const ends: [string, unknown?][] = [
      ['DELETE', undefined],
      ['PATCH', { isActive: false }],
      ['POST', undefined],
    ]
    for (const [method, json] of ends) {
      const { id, key } = await make()
      const headers = { authorization: `Bearer ${key}` }
      expect((await ask('GET /v1/models', { headers })).status).toBe(200)
      await ask(`${method} /api/api-keys/${id}${method === 'POST' ? '/regenerate' : ''}`, { json })
      expect((await ask('GET /v1/models', { headers })).status).toBe(401)
    }
  })
})

describe('§5 proxy 2: key authentication is optional', () => {
  test('enabled: every proxy request needs a valid key, also from this machine', async () => {
    const { ask, upstream } = await testApp(KEY_AUTH)
    for (const [route, json] of ROUTES)
      for (const authorization of [undefined, 'Bearer ', 'Bearer wrong', 'Basic a2V5', 'sk-clb-naked'])
        for (const peer of ['127.0.0.1', REMOTE]) {
          const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
          const response = await ask(route, { json, headers, peer })
          expect(await statusAndCode('/v1', response)).toEqual([401, 'invalid_api_key'])
        }
    expect(upstream.requests).toEqual([])
  })

  test('enabled: it holds for every row of the route table', async () => {
    const { ask } = await testApp(KEY_AUTH)
    const rows = everyRoute.filter((row) => row.access[0]?.access === 'client-key')
    expect(rows.length).toBeGreaterThan(40)
    for (const { method, path } of rows) {
      const asked = path.replace(/:callId(\{.*\})?$/, 'rtc_0123456789').replaceAll(/:(id|mode)/g, 'x')
      const response = await ask(`${method} ${asked}`, { json: method === 'POST' ? {} : undefined })
      expect([method, path, ...(await statusAndCode(asked, response))]).toEqual([method, path, 401, 'invalid_api_key'])
    }
  })

  test.each([undefined, 'Bearer x', 'Bearer sk-clb-unknown', 'any string'])(
    'disabled: this machine can omit the key or send any string (%p)',
    async (authorization) => {
      const { ask } = await testApp()
      for (const [route, json] of ROUTES) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        const response = await ask(route, { json, headers })
        expect([route, response.status]).toEqual([route, 200])
        await response.text()
      }
    },
  )

  test.each([
    ['another address', { peer: REMOTE }],
    ['a foreign Host on this machine', { headers: { host: 'proxy.example' } }],
    ['a forwarded client', { headers: { 'x-forwarded-for': '127.0.0.1' } }],
    ['a forwarded client (RFC 7239)', { headers: { forwarded: 'for=127.0.0.1' } }],
  ] as [string, { peer?: string; headers?: Record<string, string> }][])(
    'disabled: %s is rejected until proxy authentication is configured, with a key or without',
    async (_name, from) => {
      const { ask, key, upstream } = await testApp()
      for (const authorization of [undefined, `Bearer ${(await key()).key}`])
        for (const [route, json] of ROUTES) {
          const headers = { ...from.headers, ...(authorization && { authorization }) }
          const response = await ask(route, { json, ...from, headers })
          expect(response.status).toBe(401)
          expect((await modelProblem(response)).message).toContain('Proxy authentication must be configured')
        }
      expect(upstream.requests).toEqual([])
    },
  )

  test('disabled: ranges that need no key count as configuring it, for these peers', async () => {
    const { ask } = await testApp({ environment: { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' } })
    expect((await ask('GET /v1/models', { peer: REMOTE })).status).toBe(200)
    expect((await ask('GET /v1/models', { peer: '198.51.100.1' })).status).toBe(401)
    const forwarded = { 'x-forwarded-for': REMOTE }
    expect((await ask('GET /v1/models', { peer: '198.51.100.1', headers: forwarded })).status).toBe(401)
  })

  test('the switch takes effect on the next request', async () => {
    const { ask, change, key } = await testApp()
    const { key: secret } = await key()
    expect((await ask('GET /v1/models')).status).toBe(200)
    await change({ apiKeyAuthEnabled: true })
    expect((await ask('GET /v1/models')).status).toBe(401)
    expect((await ask('GET /v1/models', { peer: REMOTE, headers: { authorization: `Bearer ${secret}` } })).status).toBe(
      200,
    )
  })
})

describe('§5 proxy 3: the capability header always needs a valid key', () => {
  test('an exempt range does not satisfy it', async () => {
    const { ask } = await testApp({ environment: { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' } })
    const headers = { 'x-codex-lb-required-capability': 'trusted_cyber' }
    const response = await ask('GET /v1/models', { peer: REMOTE, headers })
    expect(await statusAndCode('/v1', response)).toEqual([401, 'invalid_api_key'])
  })
})

describe('§5 proxy 4: opaque bearers and chatgpt-account-id pass', () => {
  const OPAQUE = {
    authorization: 'Bearer an-opaque-token-of-another-issuer',
    'chatgpt-account-id': 'account-of-the-client',
  }

  test('with key auth off, a client signed in elsewhere is served by the pool', async () => {
    const { ask, upstream, members } = await testApp()
    const response = await ask(NATIVE, { json: codexBody(), headers: OPAQUE })
    expect(response.status).toBe(200)
    await response.text()
    const { headers } = upstream.requests[0]!
    expect(headers['chatgpt-account-id']).toBe(members[0]!.sim.chatgptAccountId)
    expect(headers.authorization).toBe(`Bearer ${members[0]!.sim.accessToken}`)
    expect(JSON.stringify(upstream.requests)).not.toContain('an-opaque-token')
    expect(upstream.oddities).toEqual([])
  })

  test('with key auth on, the header does not affect the key', async () => {
    const { ask, key } = await testApp(KEY_AUTH)
    expect((await ask(NATIVE, { json: codexBody(), headers: OPAQUE })).status).toBe(401)
    const headers = { ...OPAQUE, authorization: `Bearer ${(await key()).key}` }
    expect((await ask(NATIVE, { json: codexBody(), headers })).status).toBe(200)
  })
})

describe('§5 proxy 5: key policy', () => {
  test('an expired key is rejected from the millisecond it expires', async () => {
    const { ask, key, clock } = await testApp(KEY_AUTH)
    const headers = { authorization: `Bearer ${(await key({ expiresAt: clock.now() + 1000 })).key}` }
    await clock.advance(999)
    expect((await ask('GET /v1/models', { headers })).status).toBe(200)
    await clock.advance(1)
    const response = await ask('GET /v1/models', { headers })
    expect((await modelProblem(response)).message).toContain('expired')
  })

  test('a model outside the allowlist is rejected before any account: 403 on /v1, 404 on the native family', async () => {
    const { ask, key, upstream } = await testApp(KEY_AUTH)
    const headers = { authorization: `Bearer ${(await key({ allowedModels: ['other'] })).key}` }
    const asked = await ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hi' }, headers })
    expect(await statusAndCode('/v1', asked)).toEqual([403, 'model_not_allowed'])
    const native = await ask(NATIVE, { json: codexBody(), headers })
    expect(await statusAndCode('/v1', native)).toEqual([404, 'model_not_found'])
    expect(upstream.requests).toEqual([])
  })

  test('the firewall is checked before the key, on every model route', async () => {
    const { ask, key } = await testApp(KEY_AUTH)
    await ask('POST /api/firewall/ips', { json: { ipAddress: '198.51.100.0/24' } })
    const headers = { authorization: `Bearer ${(await key()).key}` }
    const rows = everyRoute.filter((row) => row.access[0]?.access === 'client-key')
    for (const { method, path } of rows) {
      const asked = path.replace(/:callId(\{.*\})?$/, 'rtc_0123456789').replaceAll(/:(id|mode)/g, 'x')
      const response = await ask(`${method} ${asked}`, { headers, peer: REMOTE })
      expect([path, ...(await statusAndCode(asked, response))]).toEqual([path, 403, 'ip_forbidden'])
    }
    expect((await ask('GET /v1/models', { headers, peer: '198.51.100.7' })).status).toBe(200)
  })
})

describe('§5 proxy 6: a page of another site cannot spend quota', () => {
  const FOREIGN: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example', 'content-type': 'text/plain' },
    { 'sec-fetch-site': 'same-site', origin: 'http://localhost:3000' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ]

  test.each(FOREIGN)('without a key: %p', async (headers) => {
    const { ask, upstream } = await testApp({ accounts: 1 })
    for (const [route, json] of ROUTES) {
      const response = await ask(route, { json, headers })
      expect([route, response.status]).toEqual([route, 403])
      expect((await modelProblem(response)).code).toBe('cross_site_request_rejected')
    }
    expect(upstream.requests).toEqual([])
  })

  test('nor from an exempt range', async () => {
    const { ask } = await testApp({ environment: { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' } })
    for (const headers of FOREIGN) expect((await ask('GET /v1/models', { peer: REMOTE, headers })).status).toBe(403)
  })

  test('nor under its own name that resolves here', async () => {
    const environment = { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' }
    const { ask, upstream } = await testApp({ accounts: 1, environment })
    const json = { model: 'gpt-5.5', input: 'hello' }
    const under = async (host: string, headers: Record<string, string>) =>
      (await ask('POST /v1/responses', { json, peer: REMOTE, headers: { host, ...headers } })).status
    const page = { origin: 'http://evil.example:2455', 'sec-fetch-site': 'same-origin' }
    expect(await under('evil.example:2455', page)).toBe(403)
    expect(await under('evil.example:2455', { origin: page.origin })).toBe(403)
    expect(await under('evil.example:2455', { 'sec-fetch-site': 'same-origin' })).toBe(403)
    expect(upstream.requests).toEqual([])
    expect(await under('evil.example:2455', { ...page, authorization: 'Bearer x' })).toBe(200)
    expect(await under('sluice.example:2455', {})).toBe(200)
    for (const host of ['192.0.2.9:2455', 'nas:2455'])
      expect([host, await under(host, { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })]).toEqual([
        host,
        200,
      ])
    const named = await testApp({ environment: { ...environment, CODEX_LB_PUBLIC_URL: 'http://sluice.example:2455' } })
    const headers = { host: 'sluice.example:2455', origin: 'http://sluice.example:2455' }
    expect((await named.ask('GET /v1/models', { peer: REMOTE, headers })).status).toBe(200)
  })

  test('a page cannot attach a key, or any bearer, so Origin does not matter', async () => {
    const keyed = await testApp(KEY_AUTH)
    const authorization = `Bearer ${(await keyed.key()).key}`
    for (const headers of FOREIGN)
      expect((await keyed.ask('GET /v1/models', { headers: { ...headers, authorization } })).status).toBe(200)
    const { ask } = await testApp()
    const opaque = { origin: 'vscode-webview://x', authorization: 'Bearer x' }
    expect((await ask('GET /v1/models', { headers: opaque })).status).toBe(200)
    expect((await ask('GET /v1/models', { headers: { ...opaque, authorization: 'Basic eA==' } })).status).toBe(403)
  })

  test.each<Record<string, string>>([
    { 'sec-fetch-mode': 'cors' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:2455' },
  ])('requests of SDKs, scripts and users pass: %p', async (headers) => {
    const { ask } = await testApp()
    for (const [route, json] of ROUTES) expect((await ask(route, { json, headers })).status).toBe(200)
  })
})
