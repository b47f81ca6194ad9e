/** Spec §1, restricted capability routing over HTTP: what the header does on each route, after the key and before any account. */
import { describe, expect, test } from 'bun:test'
import type { RouteRow } from '../../src/http/route-table.ts'
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, getEvents, testApp } from '../support/app.ts'
import { fetchCatalogs, publicModels } from './catalog.ts'
import { modelProblem, problemAt, statusAndCode } from './problems.ts'

const HEADER = 'x-codex-lb-required-capability'
const RESTRICTED = { [HEADER]: 'trusted_cyber' }
const UNSUPPORTED = [400, 'required_capability_transport_unsupported']
const NATIVE = 'POST /backend-api/codex/responses'

const getName = ({ method, path }: RouteRow) => `${method} ${path}`
const modelRows = everyRoute.filter((row) => row.access[0]?.access === 'client-key')

/** A path the pattern matches. */
const concrete = (path: string): string =>
  path
    .replace(/:callId(\{.*\})?$/, 'rtc_0123456789')
    .replace(/:mode/, 'normal')
    .replace(/:id/, 'some-id')

/** Every model route, classified by the words of rules 5 and 6. A new route must be added here before it is served. */
const FILED: Record<string, readonly string[]> = {
  'HTTP Responses': [
    'POST /backend-api/codex/responses',
    'POST /backend-api/codex/responses/',
    'POST /v1/responses',
    'POST /v1/responses/',
    'GET /v1/responses/:id',
    'DELETE /v1/responses/:id',
    'GET /v1/responses/:id/input_items',
  ],
  'compact fallback': ['POST /backend-api/codex/responses/compact', 'POST /v1/responses/compact'],
  'control, admission and warmup': [
    'GET /backend-api/codex/opportunistic/admission',
    'GET /backend-api/codex/thread/goal/get',
    'POST /backend-api/codex/thread/goal/get',
    'POST /backend-api/codex/thread/goal/set',
    'POST /backend-api/codex/thread/goal/clear',
    'POST /backend-api/codex/analytics-events/events',
    'POST /backend-api/codex/memories/trace_summarize',
    'POST /backend-api/codex/safety/arc',
    'POST /backend-api/codex/alpha/search',
    'GET /backend-api/codex/agent-identities/jwks',
    'GET /backend-api/wham/agent-identities/jwks',
    'POST /v1/warmup',
    'POST /v1/warmup/:mode',
    'GET /api/fleet/summary',
    'GET /api/fleet/observability',
    'POST /api/fleet/refresh',
  ],
  files: ['POST /backend-api/files', 'POST /backend-api/files/:id/uploaded'],
  transcription: ['POST /backend-api/transcribe', 'POST /v1/audio/transcriptions'],
  'Chat Completions': ['POST /v1/chat/completions'],
  Messages: ['POST /v1/messages', 'POST /v1/messages/count_tokens'],
  'Images and embeddings': [
    'POST /backend-api/codex/images/generations',
    'POST /backend-api/codex/images/edits',
    'POST /v1/images/generations',
    'POST /v1/images/edits',
    'POST /v1/images/variations',
    'POST /v1/embeddings',
  ],
  'reset-credit consume': ['POST /v1/reset-credit'],
  'Live and other WebSockets': [
    'GET /backend-api/codex/:callId{rtc_.*|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}}',
    'POST /backend-api/codex/realtime/calls',
    'POST /backend-api/codex/live',
    'POST /v1/realtime/calls',
    'POST /v1/live',
    'GET /v1/live/:callId',
    'GET /v1/realtime',
  ],
}
/** For owners of accounts: a key is not enough, so without a ChatGPT token they are 401 whatever else is sent. */
const OF_OWNERS = [
  'POST /api/codex/rate-limit-reset-credits/consume',
  'POST /api/codex/rate-limit-reset-credits/consume/',
]
/** The one transport that serves restricted turns (`1-restricted-sockets.test.ts`). */
const NARROWED = ['GET /backend-api/codex/responses', 'GET /v1/responses']
const LOCAL = [
  'GET /backend-api/codex/models',
  'GET /v1/models',
  'GET /v1/models/:id',
  'GET /v1/usage',
  'GET /v1/capacity',
  'POST /mcp',
  'GET /mcp',
  'DELETE /mcp',
  'GET /v1/reset-credit',
  'GET /api/codex/usage',
  'GET /api/codex/usage/',
  'GET /wham/usage',
  'GET /backend-api/wham/usage',
  'GET /wham/rate-limit-reset-credits',
  'GET /backend-api/wham/rate-limit-reset-credits',
]

describe('§1 restricted 1: the header is a requirement, not a grant', () => {
  test('a key has no more rights with it than without', async () => {
    const app = await testApp({ accounts: [{ models: ['one', 'two'] }] })
    await fetchCatalogs(app)
    const { key } = await app.key({ allowedModels: ['one'] })
    const listed = await publicModels(app, { ...RESTRICTED, authorization: `Bearer ${key}` })
    expect(listed.map(({ id }) => id)).toEqual(['one'])
  })

  test.each(['', 'Trusted_Cyber', 'trusted_cyber, trusted_cyber', 'none', 'true'])(
    'the value %p is unknown, and reported so after the key check',
    async (value) => {
      const { ask, key } = await testApp()
      const headers = { [HEADER]: value }
      expect(await statusAndCode('/v1', await ask(NATIVE, { json: codexBody(), headers }))).toEqual([
        401,
        'invalid_api_key',
      ])
      const authorization = `Bearer ${(await key()).key}`
      const refused = await ask(NATIVE, { json: codexBody(), headers: { ...headers, authorization } })
      expect(await statusAndCode('/v1', refused)).toEqual([400, 'unsupported_required_capability'])
    },
  )
})

describe('§1 restricted 2: every request that carries the header is restricted', () => {
  test('none is served as an ordinary request, whatever it asks for', async () => {
    const { ask, key, upstream } = await testApp()
    const headers = { ...RESTRICTED, authorization: `Bearer ${(await key()).key}` }
    for (const json of [codexBody(), codexBody('hi', { model: 'unknown' }), codexBody('hi', { stream: false })])
      expect(await statusAndCode('/v1', await ask(NATIVE, { json, headers }))).toEqual([400, UNSUPPORTED[1] as string])
    expect(upstream.requests).toEqual([])
  })
})

describe('§1 restricted 3: the header always needs a valid key', () => {
  const refusals: [string, (app: Awaited<ReturnType<typeof testApp>>) => Promise<Record<string, string>>][] = [
    ['no key', async () => ({})],
    ['a wrong key', async () => ({ authorization: 'Bearer sk-clb-wrong' })],
    ['an empty bearer', async () => ({ authorization: 'Bearer ' })],
    ['another scheme', async ({ key }) => ({ authorization: `Basic ${(await key()).key}` })],
    [
      'a key that expired',
      async ({ key, clock }) => ({ authorization: `Bearer ${(await key({ expiresAt: clock.now() })).key}` }),
    ],
  ]
  for (const apiKeyAuthEnabled of [false, true])
    test.each(refusals)(
      `%s is rejected on this machine, key auth ${apiKeyAuthEnabled ? 'on' : 'off'}`,
      async (_name, authorization) => {
        const app = await testApp({ settings: { apiKeyAuthEnabled } })
        const headers = { ...RESTRICTED, ...(await authorization(app)) }
        for (const route of ['GET /v1/models', NATIVE, 'POST /v1/chat/completions']) {
          const response = await app.ask(route, { headers, json: route.startsWith('GET') ? undefined : {} })
          expect(await statusAndCode('/v1', response)).toEqual([401, 'invalid_api_key'])
        }
        expect(app.upstream.requests).toEqual([])
      },
    )

  test('without the header the same deployment keeps its normal behavior', async () => {
    const { ask } = await testApp()
    expect((await ask('GET /v1/models')).status).toBe(200)
    expect((await ask(NATIVE, { json: codexBody() })).status).toBe(200)
  })
})

describe('§1 restricted 5: rejected on every transport except the Responses WebSocket', () => {
  test('every model route has a class of the rule', () => {
    const filed = [...Object.values(FILED).flat(), ...OF_OWNERS, ...NARROWED, ...LOCAL]
    expect(modelRows.map(getName).toSorted()).toEqual(filed.toSorted())
  })

  test('each row declares it: refused, narrowed or local', () => {
    const said = (restriction: RouteRow['capability']) =>
      modelRows.filter(({ capability }) => capability === restriction).map(getName)
    expect(said('refuse').toSorted()).toEqual([...Object.values(FILED).flat(), ...OF_OWNERS].toSorted())
    expect(said('narrow').toSorted()).toEqual(NARROWED.toSorted())
    expect(said('local').toSorted()).toEqual(LOCAL.toSorted())
    expect(modelRows.filter(({ capability }) => capability === null).map(getName)).toEqual([])
  })

  for (const [group, routes] of Object.entries(FILED))
    test(`${group}: rejected after the key check, before any account`, async () => {
      const { ask, key, upstream, rows } = await testApp()
      const authorization = `Bearer ${(await key()).key}`
      for (const route of routes) {
        const [method = '', pattern = ''] = route.split(' ')
        const path = concrete(pattern)
        const json = method === 'POST' ? {} : undefined
        const withoutKey = await ask(`${method} ${path}`, { json, headers: RESTRICTED })
        expect([route, ...(await statusAndCode(path, withoutKey))]).toEqual([route, 401, 'invalid_api_key'])
        const withKey = await ask(`${method} ${path}`, { json, headers: { ...RESTRICTED, authorization } })
        expect([route, ...(await statusAndCode(path, withKey))]).toEqual([route, ...UNSUPPORTED])
        const unknown = await ask(`${method} ${path}`, { json, headers: { [HEADER]: 'other', authorization } })
        expect([route, (await problemAt(path, unknown)).code]).toEqual([route, 'unsupported_required_capability'])
      }
      expect(upstream.requests).toEqual([])
      expect(await rows()).toEqual([])
    })

  test('redeeming as an owner: 401 without a ChatGPT token, rejected with one', async () => {
    const app = await testApp()
    const { sim } = app.members[0]!
    const owner = { authorization: `Bearer ${sim.accessToken}`, 'chatgpt-account-id': sim.chatgptAccountId }
    const json = { redeem_request_id: 'one' }
    for (const route of OF_OWNERS) {
      const withoutToken: Record<string, string>[] = [{}, { authorization: `Bearer ${(await app.key()).key}` }]
      for (const headers of withoutToken) {
        const response = await app.ask(route, { json, headers: { ...RESTRICTED, ...headers } })
        expect(await statusAndCode('/api', response)).toEqual([401, 'invalid_api_key'])
      }
      const response = await app.ask(route, { json, headers: { ...RESTRICTED, ...owner } })
      expect(await statusAndCode('/api', response)).toEqual([400, 'required_capability_transport_unsupported'])
    }
    expect(app.upstream.requests.map(({ path }) => path)).toEqual(['/backend-api/wham/usage'])
  })

  test('the rejection comes before the body is read', async () => {
    const { ask, key } = await testApp()
    const headers = { ...RESTRICTED, authorization: `Bearer ${(await key()).key}` }
    const response = await ask(NATIVE, { body: '{"not json', headers })
    expect(await statusAndCode('/v1', response)).toEqual([400, 'required_capability_transport_unsupported'])
  })
})

/** What only a body says: the metadata of clients that send no header of their own. */
describe('§1 restricted 5: requested in the metadata of an HTTP body', () => {
  const BODIES: Record<string, Record<string, unknown>> = {
    'POST /backend-api/codex/responses': codexBody(),
    'POST /v1/responses': codexBody('hi', { stream: false }),
    'POST /backend-api/codex/responses/compact': { model: 'gpt-5.5', input: [], instructions: 'x' },
    'POST /v1/responses/compact': { model: 'gpt-5.5', input: 'hi' },
    'POST /v1/chat/completions': { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hi' }] },
  }
  const NAMES = [HEADER, 'X-Codex-LB-Required-Capability', HEADER.toUpperCase()]

  for (const [route, body] of Object.entries(BODIES))
    test.each(NAMES)(`${route}: by the name %s it is rejected, and nothing is sent upstream`, async (name) => {
      const { ask, key, upstream, rows, bindings } = await testApp()
      const authorization = `Bearer ${(await key()).key}`
      const path = route.slice('POST '.length)
      const asking = (value: string) => ({ ...body, client_metadata: { kept: 'yes', [name]: value } })
      const withoutKey = await ask(route, { json: asking('trusted_cyber') })
      expect(await statusAndCode(path, withoutKey)).toEqual([401, 'invalid_api_key'])
      const withKey = await ask(route, { json: asking('trusted_cyber'), headers: { authorization } })
      expect(await statusAndCode(path, withKey)).toEqual([400, 'required_capability_transport_unsupported'])
      const unknown = await ask(route, { json: asking('other'), headers: { authorization } })
      expect((await problemAt(path, unknown)).code).toBe('unsupported_required_capability')
      expect([upstream.requests, await rows(), bindings.bodies.heldBytes]).toEqual([[], [], 0])
    })

  test('other metadata has no effect', async () => {
    const { ask } = await testApp()
    const json = codexBody('hi', { client_metadata: { 'x-codex-turn-metadata': 'trusted_cyber' } })
    expect((await ask(NATIVE, { json })).status).toBe(200)
  })
})

describe('§1 restricted 6: still available with the header', () => {
  test.each(['/v1/models', '/backend-api/codex/models', '/v1/usage', '/v1/reset-credit'])(
    'GET %s with a key',
    async (path) => {
      const app = await testApp()
      await fetchCatalogs(app)
      const authorization = `Bearer ${(await app.key()).key}`
      const response = await app.ask(`GET ${path}`, { headers: { ...RESTRICTED, authorization } })
      expect(response.status).toBe(200)
      expect(app.upstream.requests).toEqual([])
      const withoutKey = await app.ask(`GET ${path}`, { headers: RESTRICTED })
      expect((await modelProblem(withoutKey)).code).toBe('invalid_api_key')
    },
  )
})

describe('§1 restricted 7: a model alone does not activate it', () => {
  test('the strongest model is an ordinary request on an account that is not authorized for security work', async () => {
    const app = await testApp({ accounts: [{ plan: 'pro', securityWorkAuthorized: false }] })
    await fetchCatalogs(app)
    const response = await app.ask(NATIVE, { json: codexBody('hi', { model: 'gpt-6-astra' }) })
    expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
  })
})

describe('§1 restricted 8: rolling back is not sending the header', () => {
  test('after a rejection the same client, key and conversation are ordinary again', async () => {
    const { ask, key } = await testApp()
    const headers = { authorization: `Bearer ${(await key()).key}`, 'session-id': 'thread-1' }
    const json = codexBody('hi', { prompt_cache_key: 'thread-1' })
    expect((await ask(NATIVE, { json, headers: { ...headers, ...RESTRICTED } })).status).toBe(400)
    const response = await ask(NATIVE, { json, headers })
    expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
  })
})
