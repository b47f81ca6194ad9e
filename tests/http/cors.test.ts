/** Browser clients of listed origins: preflight, readable responses, and a required key. */
import { describe, expect, test } from 'bun:test'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { problem } from '../support/people.ts'

const APP = 'https://app.example'
const LOCAL = 'http://localhost:3000'
const DESKTOP = 'app://obsidian.md'
const CORS = { settings: { corsOrigins: `${APP} ${LOCAL}, ${DESKTOP}` } }
const CHAT = 'POST /v1/chat/completions'
const json = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }

/** As openai-node sends from a page. */
const ASKED =
  'authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout'

const preflight = (origin: string, more: Record<string, string> = {}) => ({
  origin,
  'sec-fetch-site': 'cross-site',
  'access-control-request-method': 'POST',
  'access-control-request-headers': ASKED,
  ...more,
})

const getCors = ({ headers }: { headers: Headers }) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'))

const getList = (headers: Headers, name: string) => headers.get(name)?.toLowerCase().split(/, */) ?? []

describe('a preflight', () => {
  test.each([APP, LOCAL, DESKTOP])('of %s is answered on any route', async (origin) => {
    const { ask } = await testApp(CORS)
    for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/models', '/v1/models/gpt-5.5', '/v1/nothing']) {
      const answer = await ask(`OPTIONS ${path}`, { headers: preflight(origin), peer: '203.0.113.9' })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
      expect(getList(answer.headers, 'access-control-allow-headers')).toEqual(ASKED.split(','))
      expect(getList(answer.headers, 'access-control-allow-methods')).toEqual(['get', 'post', 'delete'])
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      expect(getList(answer.headers, 'vary')).toContain('origin')
      expect(answer.headers.get('x-request-id')).toStartWith('req_')
    }
  })

  test.each([
    ['another origin', 'https://evil.example'],
    ['another port', 'http://localhost:3001'],
    ['another scheme', 'http://app.example'],
    ['a name with the same suffix', 'https://evil-app.example'],
    ['a sandboxed page', 'null'],
    ['a very long name', `https://${'a'.repeat(3000)}.example`],
  ])('of %s is not: the error names the origin and the setting', async (_name, origin) => {
    const { ask } = await testApp(CORS)
    const answer = await ask('OPTIONS /v1/chat/completions', { headers: preflight(origin) })
    expect([answer.status, getCors(answer), getList(answer.headers, 'vary').includes('origin')]).toEqual([
      403,
      [],
      true,
    ])
    const { error } = JSON.parse(await answer.text())
    expect(error.code).toBe('cross_site_request_rejected')
    expect(error.message).toContain(origin === 'null' ? 'no origin' : origin.slice(0, 100))
    expect(error.message).toContain('corsOrigins')
    expect(error.message.length).toBeLessThan(300)
  })

  test('requires a requested method', async () => {
    const headers = preflight(APP, { 'access-control-request-method': '' })
    const answer = await (await testApp(CORS)).ask('OPTIONS /v1/chat/completions', { headers })
    expect([answer.status, answer.headers.get('access-control-allow-methods')]).toEqual([404, null])
  })

  test.each(['/backend-api/codex/responses', '/api/settings', '/dashboard', '/chat/completions'])(
    'of %s is not: pages can use only /v1',
    async (path) => {
      const answer = await (await testApp(CORS)).ask(`OPTIONS ${path}`, { headers: preflight(APP) })
      expect(getCors(answer)).toEqual([])
    },
  )

  test('of any page is not while no origin is listed', async () => {
    const answer = await (await testApp()).ask('OPTIONS /v1/chat/completions', { headers: preflight(APP) })
    expect([answer.status, getCors(answer)]).toEqual([403, []])
    expect((await answer.json()).error.message).toContain(APP)
  })

  test('for private network access is granted when requested', async () => {
    const headers = preflight(APP, { 'access-control-request-private-network': 'true' })
    const answer = await (await testApp(CORS)).ask('OPTIONS /v1/responses', { headers })
    expect(answer.headers.get('access-control-allow-private-network')).toBe('true')
  })
})

describe('a request of a listed origin', () => {
  test.each([
    [CHAT, json],
    [CHAT, { ...json, stream: true }],
    ['POST /v1/responses', { model: 'gpt-5.5', input: 'hello', temperature: 1 }],
    ['GET /v1/models', undefined],
  ])('%s is served with a key and can read our headers', async (route, body) => {
    const app = await testApp(CORS)
    const headers = { origin: APP, 'sec-fetch-site': 'cross-site', authorization: `Bearer ${(await app.key()).key}` }
    const answer = await getAnswer(app, route, { json: body, headers })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('access-control-allow-origin')).toBe(APP)
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    const exposed = getList(answer.headers, 'access-control-expose-headers')
    expect(exposed).toContain('x-request-id')
    for (const name of answer.headers.keys())
      if (name.startsWith('x-')) expect([name, exposed.includes(name)]).toEqual([name, true])
  })

  test.each([undefined, 'Bearer x', 'Basic eA=='])(
    'needs a key even if none is required (%p)',
    async (authorization) => {
      const app = await testApp(CORS)
      for (const [route, body] of [[CHAT, json], ['GET /v1/models']] as const) {
        const headers = { origin: APP, 'sec-fetch-site': 'cross-site', ...(authorization && { authorization }) }
        const answer = await getAnswer(app, route, { json: body, headers })
        expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, APP])
        expect(JSON.parse(answer.text).error.code).toBe('invalid_api_key')
      }
      expect(app.upstream.requests).toEqual([])
      expect((await app.ask('GET /v1/models')).status).toBe(200) // no page
    },
  )

  test('reads errors of every kind', async () => {
    const app = await testApp(CORS)
    const headers = { origin: LOCAL, authorization: `Bearer ${(await app.key({ allowedModels: ['other'] })).key}` }
    const asked: [string, unknown, number][] = [
      [CHAT, json, 403],
      ['POST /v1/responses', { input: 'hello' }, 400],
      ['GET /v1/nothing', undefined, 404],
      ['GET /v1/embeddings', undefined, 404],
    ]
    for (const [route, body, status] of asked) {
      const answer = await getAnswer(app, route, { json: body, headers })
      expect([route, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([route, status, LOCAL])
    }
    app.bindings.lifecycle.draining = true
    const draining = await getAnswer(app, CHAT, { json, headers })
    expect([draining.status, draining.headers.get('access-control-allow-origin')]).toEqual([503, LOCAL])
    expect(getList(draining.headers, 'access-control-expose-headers')).toContain('retry-after')
  })

  test('is not allowed by a cookie, nor by its source address', async () => {
    const environment = { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '203.0.113.0/24' }
    const app = await testApp({ ...CORS, environment })
    const headers = { origin: APP, cookie: 'sluice_session=abc' }
    expect((await app.ask('GET /v1/models', { headers, peer: '203.0.113.9' })).status).toBe(401)
  })

  test('of another one is unchanged', async () => {
    const app = await testApp(CORS)
    const answer = await getAnswer(app, CHAT, { json, headers: { origin: 'https://evil.example' } })
    expect([answer.status, getCors(answer)]).toEqual([403, []])
  })
})

describe('a request of an unlisted origin', () => {
  test.each([
    ['an empty origin', { origin: '' }, 'GET /v1/models'],
    ['an empty origin of a preflight', { ...preflight(''), origin: '' }, 'OPTIONS /v1/models'],
    ['spaces for an origin', { origin: ' ' }, 'GET /v1/models'],
  ])('%s is not listed, whatever the list', async (_name, headers, route) => {
    for (const corsOrigins of ['', `${APP},`, `${APP} ,, ${LOCAL}`]) {
      const answer = await (await testApp({ settings: { corsOrigins } })).ask(route, { headers })
      expect([corsOrigins, answer.status === 204, getCors(answer)]).toEqual([corsOrigins, false, []])
    }
  })

  test.each([
    ['no origin', {}, 'GET /v1/models', 200],
    ['another origin', { origin: 'https://evil.example' }, 'GET /v1/models', 403],
    ['an unknown path', {}, 'GET /v1/nothing', 404],
  ])('%s: caches keep its response separate from that of a listed origin', async (_name, headers, route, status) => {
    const answer = await (await testApp(CORS)).ask(route, { headers })
    expect([answer.status, getList(answer.headers, 'vary').includes('origin')]).toEqual([status, true])
    const without = await (await testApp()).ask(route, { headers })
    expect(getList(without.headers, 'vary')).not.toContain('origin')
  })

  test('routes that are not for pages do not depend on the origin', async () => {
    const answer = await (await testApp(CORS)).ask('GET /backend-api/codex/models?client_version=1.0.0')
    expect(getList(answer.headers, 'vary')).not.toContain('origin')
  })
})

describe('the setting', () => {
  test.each([
    ['', ''],
    ['HTTPS://App.Example', 'https://app.example'],
    [' https://a.example:8443,\nhttp://[::1]:3000 ', 'https://a.example:8443,\nhttp://[::1]:3000'],
    ['chrome-extension://abcdefg', 'chrome-extension://abcdefg'],
    ['app://obsidian.md tauri://localhost', 'app://obsidian.md tauri://localhost'],
    ['https://a.example:443', 'https://a.example'],
    ['http://b.example:80 https://c.example:80', 'http://b.example https://c.example:80'],
    ['https://MÜNCHEN.example, https://a.example:443', 'https://xn--mnchen-3ya.example, https://a.example'],
    ['http://[0:0::1]:3000', 'http://[::1]:3000'],
  ])('%p is kept as %p', async (given, kept) => {
    const { ask, bindings } = await testApp()
    expect((await ask('PATCH /api/settings', { json: { corsOrigins: given } })).status).toBe(200)
    expect(bindings.settings.current().corsOrigins).toBe(kept)
  })

  test.each([
    '*',
    'null',
    'app.example',
    'https://app.example/',
    'https://app.example/path',
    'https://a b.example',
    'https://*.example',
    'https://a.example:99999',
    'https://[::1',
  ])('%p is rejected', async (given) => {
    const { ask } = await testApp()
    expect(await problem(await ask('PATCH /api/settings', { json: { corsOrigins: given } }))).toEqual([
      422,
      'validation_error',
    ])
  })

  test('takes effect on the next request', async () => {
    const { ask, change } = await testApp()
    const status = async () => (await ask('OPTIONS /v1/models', { headers: preflight(APP) })).status
    expect(await status()).toBe(403)
    await change({ corsOrigins: APP })
    expect(await status()).toBe(204)
    await change({ corsOrigins: '' })
    expect(await status()).toBe(403)
  })

  test('is a text on its page', async () => {
    const { ask } = await testApp(CORS)
    const page = await (await ask('GET /settings/network', { headers: { accept: 'text/html' } })).text()
    const general = await (await ask('GET /settings', { headers: { accept: 'text/html' } })).text()
    expect(page + general).toMatch(/<input[^>]*name="corsOrigins"[^>]*value="https:\/\/app.example http/)
  })
})

test('the native body of a page is the same model request as before', async () => {
  const app = await testApp(CORS)
  const headers = { origin: APP, authorization: `Bearer ${(await app.key()).key}` }
  expect((await getAnswer(app, 'POST /v1/responses', { json: codexBody(), headers })).status).toBe(200)
  expect(app.upstream.oddities).toEqual([])
  expect(Object.keys(app.upstream.requests[0]?.headers ?? {})).not.toContain('origin')
})
