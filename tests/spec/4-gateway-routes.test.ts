/**
 * Every route for model clients in one table: key, capability, kind in the log, limits, timeout and its test. A route
 * that is missing here, or that no test names, fails.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { requests } from '../../db/schema/requests.ts'
import type { KeyNeed, OwnerNeed } from '../../src/http/gates.ts'
import { type RouteRow, routeTable } from '../../src/http/route-table.ts'
import { gateway } from '../../src/routes/gateway.ts'
import { type Ask, codexBody, expectNothingLeft, getAnswer, testApp } from '../support/app.ts'
import { addSource } from '../support/source/add.ts'
import type { FaultRoute } from '../support/upstream/faults.ts'

type Kind = (typeof requests.$inferSelect)['kind']

interface Row {
  route: string
  key: KeyNeed | OwnerNeed
  capability: 'refuse' | 'narrow' | 'local'
  /** In the log, and counted by the limits of its key; null: answered by Sluice alone, and not logged. */
  kind: Kind | null
  /** A valid request, for routes that are logged over HTTP. */
  ask?: Ask
  /** Status of its answer; 200 when absent. */
  status?: number
  /** Seconds until a request that is not answered ends with 504. */
  timeoutSeconds?: number
  /** Which fault of the stand-in delays its response; `source`: a model source answers, not ChatGPT. */
  fault?: FaultRoute | 'source'
  /** Below `tests/`. */
  testedIn: string
}

const NATIVE = '/backend-api/codex'
const QUESTION = { json: { model: 'gpt-5.5', input: 'hello' } }
const GOAL = { json: { threadId: 'thread-1' } }
const PIXEL = { image_url: 'data:image/png;base64,AAAA' }
const EDIT = { json: { model: 'gpt-image-2', prompt: 'Red', images: [PIXEL] } }
const { stream: _stream, store: _store, include: _include, ...COMPACT } = codexBody()

const turn = { key: 'optional', capability: 'refuse', kind: 'normal', timeoutSeconds: 180, fault: 'responses' } as const
const compaction = { ...turn, kind: 'compaction', fault: 'compact' } as const
const control = {
  key: 'optional',
  capability: 'refuse',
  kind: 'control',
  timeoutSeconds: 600,
  fault: 'control',
  testedIn: 'proxy/relay/control.test.ts',
} as const
const image = {
  key: 'optional',
  capability: 'refuse',
  kind: 'image',
  timeoutSeconds: 300,
  fault: 'image',
  testedIn: 'proxy/relay/images.test.ts',
} as const
const file = {
  key: 'optional',
  capability: 'refuse',
  kind: 'file',
  timeoutSeconds: 60,
  fault: 'file',
  testedIn: 'proxy/relay/files.test.ts',
} as const
const SPEECH = {
  body: [
    '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n',
    '--x\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\nID3\r\n--x--\r\n',
  ].join(''),
  headers: { 'content-type': 'multipart/form-data; boundary=x' },
}
const audio = {
  key: 'optional',
  capability: 'refuse',
  kind: 'audio',
  timeoutSeconds: 120,
  fault: 'transcribe',
  ask: SPEECH,
  testedIn: 'proxy/relay/transcription.test.ts',
} as const
const live = {
  key: 'always',
  capability: 'refuse',
  kind: 'live',
  status: 201,
  timeoutSeconds: 120,
  fault: 'live',
  ask: { body: 'v=0' },
  testedIn: 'proxy/relay/live.test.ts',
} as const
const embeddings = {
  key: 'optional',
  capability: 'refuse',
  kind: 'embedding',
  timeoutSeconds: 600,
  fault: 'source',
  ask: { json: { model: 'llama-4', input: 'hello' } },
  testedIn: 'proxy/sources/serve.test.ts',
} as const
const sideband = { key: 'always', capability: 'refuse', kind: 'live', testedIn: 'sockets/live.test.ts' } as const
const local = { capability: 'local', kind: null } as const
const owners = { ...local, testedIn: 'proxy/native-usage.test.ts' } as const

const TABLE: Row[] = [
  { ...turn, route: `POST ${NATIVE}/responses`, ask: { json: codexBody() }, testedIn: 'spec/4-proxy-routes.test.ts' },
  {
    ...turn,
    route: `POST ${NATIVE}/responses/`,
    ask: { json: codexBody() },
    testedIn: 'spec/1-restricted-capability.test.ts',
  },
  { ...turn, route: 'POST /v1/responses', ask: QUESTION, testedIn: 'spec/4-proxy-routes.test.ts' },
  { ...turn, route: 'POST /v1/responses/', ask: QUESTION, testedIn: 'spec/4-proxy-routes.test.ts' },
  {
    ...turn,
    route: 'POST /v1/chat/completions',
    ask: { json: { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] } },
    testedIn: 'spec/4-proxy-routes.test.ts',
  },
  {
    ...turn,
    route: 'POST /v1/messages',
    ask: { json: { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] } },
    testedIn: 'proxy/messages.test.ts',
  },
  {
    ...local,
    route: 'POST /v1/messages/count_tokens',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/messages.test.ts',
  },
  {
    ...compaction,
    route: `POST ${NATIVE}/responses/compact`,
    ask: { json: COMPACT },
    testedIn: 'spec/4-proxy-routes.test.ts',
  },
  { ...compaction, route: 'POST /v1/responses/compact', ask: QUESTION, testedIn: 'proxy/v1.test.ts' },
  {
    route: `GET ${NATIVE}/responses`,
    key: 'optional',
    capability: 'narrow',
    kind: 'normal',
    testedIn: 'sockets/ground.ts',
  },
  {
    route: 'GET /v1/responses',
    key: 'optional',
    capability: 'narrow',
    kind: 'normal',
    testedIn: 'sockets/ground.ts',
  },
  { ...control, route: `POST ${NATIVE}/alpha/search`, ask: { body: '{}' } },
  { ...control, route: `POST ${NATIVE}/analytics-events/events`, ask: { body: '{}' } },
  { ...control, route: `POST ${NATIVE}/memories/trace_summarize`, ask: { body: '{}' } },
  { ...control, route: `POST ${NATIVE}/safety/arc`, ask: { body: '{}' } },
  { ...control, route: `GET ${NATIVE}/thread/goal/get`, ask: {} },
  { ...control, route: `POST ${NATIVE}/thread/goal/get`, ask: GOAL },
  { ...control, route: `POST ${NATIVE}/thread/goal/set`, ask: GOAL },
  { ...control, route: `POST ${NATIVE}/thread/goal/clear`, ask: GOAL },
  { ...control, route: `GET ${NATIVE}/agent-identities/jwks`, ask: {} },
  { ...control, route: 'GET /backend-api/wham/agent-identities/jwks', ask: {} },
  { ...image, route: `POST ${NATIVE}/images/generations`, ask: { json: { model: 'gpt-image-2', prompt: 'Red' } } },
  { ...image, route: `POST ${NATIVE}/images/edits`, ask: EDIT },
  { ...image, route: 'POST /v1/images/generations', ask: { json: { prompt: 'Red' } } },
  { ...image, route: 'POST /v1/images/edits', ask: EDIT },
  { ...live, route: `POST ${NATIVE}/realtime/calls` },
  { ...live, route: `POST ${NATIVE}/live` },
  { ...live, route: 'POST /v1/realtime/calls' },
  { ...live, route: 'POST /v1/live' },
  { ...sideband, route: `GET ${NATIVE}/:callId{rtc_.*|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}}` },
  { ...sideband, route: 'GET /v1/live/:callId' },
  { ...sideband, route: 'GET /v1/realtime' },
  {
    ...local,
    route: 'POST /v1/images/variations',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/relay/images.test.ts',
  },
  { ...file, route: 'POST /backend-api/files', ask: { json: { file_name: 'a', file_size: 1, use_case: 'codex' } } },
  { ...file, route: 'POST /backend-api/files/:id/uploaded' },
  {
    ...local,
    route: `GET ${NATIVE}/opportunistic/admission`,
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/opportunistic.test.ts',
  },
  // The request itself is answered by Sluice; each account's small request is logged with the kind `warmup`.
  {
    ...local,
    route: 'POST /v1/warmup',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/handlers/warmup.test.ts',
  },
  {
    ...local,
    route: 'POST /v1/warmup/:mode',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/handlers/warmup.test.ts',
  },
  { ...audio, route: 'POST /backend-api/transcribe' },
  { ...audio, route: 'POST /v1/audio/transcriptions' },
  { ...embeddings, route: 'POST /v1/embeddings' },
  { ...local, route: `GET ${NATIVE}/models`, key: 'optional', testedIn: 'spec/4-proxy-routes.test.ts' },
  { ...local, route: 'GET /v1/models', key: 'optional', testedIn: 'spec/4-proxy-routes.test.ts' },
  { ...local, route: 'GET /v1/models/:id', key: 'optional', testedIn: 'proxy/handlers/models.test.ts' },
  {
    ...local,
    route: 'GET /v1/responses/:id',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/responses-store/stateful.test.ts',
  },
  {
    ...local,
    route: 'DELETE /v1/responses/:id',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/responses-store/stateful.test.ts',
  },
  {
    ...local,
    route: 'GET /v1/responses/:id/input_items',
    key: 'optional',
    capability: 'refuse',
    testedIn: 'proxy/responses-store/stateful.test.ts',
  },
  { ...local, route: 'GET /v1/usage', key: 'always', testedIn: 'proxy/handlers/key-usage.test.ts' },
  { ...local, route: 'GET /v1/capacity', key: 'always', testedIn: 'proxy/capacity.test.ts' },
  { ...local, route: 'POST /mcp', key: 'always', testedIn: 'proxy/mcp.test.ts' },
  { ...local, route: 'GET /mcp', key: 'always', testedIn: 'proxy/mcp.test.ts' },
  { ...local, route: 'DELETE /mcp', key: 'always', testedIn: 'proxy/mcp.test.ts' },
  { ...local, route: 'GET /v1/reset-credit', key: 'always', testedIn: 'proxy/handlers/key-usage.test.ts' },
  { ...owners, route: 'GET /wham/usage', key: 'key-or-owner' },
  { ...owners, route: 'GET /backend-api/wham/usage', key: 'key-or-owner' },
  { ...owners, route: 'GET /wham/rate-limit-reset-credits', key: 'owner' },
  { ...owners, route: 'GET /backend-api/wham/rate-limit-reset-credits', key: 'owner' },
  {
    ...local,
    route: 'POST /v1/reset-credit',
    key: 'always',
    capability: 'refuse',
    testedIn: 'proxy/handlers/key-usage.test.ts',
  },
]

const getName = ({ method, path }: RouteRow) => `${method} ${path}`
const toKey = ({ access: [access] }: RouteRow) => (access && 'key' in access ? access.key : null)
const rows = routeTable(gateway).filter((row) => toKey(row) !== null)
const built = rows.filter(({ isPlanned }) => !isPlanned)

test('every route is in the table, with its key and its capability', () => {
  const sorted = (list: readonly string[]) => list.toSorted()
  expect(sorted(built.map((row) => `${getName(row)} ${toKey(row)} ${row.capability}`))).toEqual(
    sorted(TABLE.map(({ route, key, capability }) => `${route} ${key} ${capability}`)),
  )
})

/** Its last two parts: tests write the beginning of a path as they like. */
const getEnd = (route: string) =>
  (route.split(' ')[1] ?? '')
    .replace(/\/:\w+(\{.*\})?/, '')
    .split('/')
    .filter(Boolean)
    .slice(-2)

test.each(TABLE)('$route is named by a test', ({ route, testedIn }) => {
  const text = readFileSync(resolve(import.meta.dir, '..', testedIn), 'utf8')
  const [parent = '', last = ''] = getEnd(route)
  const isNamed = text.includes(`${parent}/${last}`) || text.includes(`/${last}`) || text.includes(`'${last}'`)
  expect([testedIn, isNamed]).toEqual([testedIn, true])
})

const logged = TABLE.filter(({ ask }) => ask !== undefined)

describe.each(logged)('$route', (row) => {
  const { route, key: need, ask = {}, kind, status: served = 200, timeoutSeconds = 0, fault = 'responses' } = row
  const settings = { forwardClientAnalytics: true }

  test(`is logged as ${kind} and counted by the limits of its key`, async () => {
    const app = await testApp({ settings })
    if (fault === 'source') await addSource(app, { models: ['llama-4'] })
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 2, modelFilter: '' }]
    const { key } = await app.key({ limits })
    const headers = { ...ask.headers, authorization: `Bearer ${key}` }
    const statuses: number[] = []
    for (let time = 0; time < 3; time++) statuses.push((await getAnswer(app, route, { ...ask, headers })).status)
    expect(statuses).toEqual([served, served, 429])
    expect((await app.rows()).map((row) => row.kind)).toEqual([kind!, kind!, kind!])
    await expectNothingLeft(app)
  })

  test(`ends with 504 after ${timeoutSeconds} s without an answer`, async () => {
    const app = await testApp({ settings })
    if (fault === 'source') {
      await addSource(app, { models: ['llama-4'] })
      app.source.fail('hang')
    } else app.members[0]?.sim.always({ on: fault, delayHeadersMs: 10 * 3_600_000 })
    const began = app.clock.now()
    const headers: Record<string, string> =
      need === 'always' ? { authorization: `Bearer ${(await app.key()).key}` } : {}
    const { status, events, text } = await getAnswer(
      app,
      route,
      { ...ask, headers: { ...ask.headers, ...headers } },
      5000,
    )
    const seconds = (app.clock.now() - began) / 1000
    const isTold = status === 504 || events.at(-1)?.type === 'response.failed' || text.includes('upstream_timeout')
    expect([isTold, seconds >= timeoutSeconds, seconds <= timeoutSeconds + 10]).toEqual([true, true, true])
    expect(await app.rows()).toMatchObject([{ kind, status: 'error', errorCode: 'upstream_timeout' }])
    await expectNothingLeft(app)
  })
})

const pathWithParameters = (path: string) =>
  path.includes('callId') ? path.replace(/:callId.*$/, 'rtc_abc') : path.replace(/:\w+/g, 'x')

test.each(rows.filter(({ isPlanned }) => isPlanned).map((row) => [getName(row), row] as const))(
  '%s is not implemented: its gates exist, followed by a 404',
  async (_name, row) => {
    const app = await testApp()
    const headers = { authorization: `Bearer ${(await app.key()).key}` }
    const response = await app.ask(`${row.method} ${pathWithParameters(row.path)}`, { headers })
    expect(response.status).toBe(404)
  },
)
