/** Uploaded files: creating and finalizing them, and the account of a request that names them. */
import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../../src/lib/random.ts'
import {
  type Ask,
  codexBody,
  expectNothingLeft,
  getAnswer,
  getEvents,
  type TestApp,
  testApp,
} from '../../support/app.ts'
import { type Fault, faults } from '../../support/upstream/faults.ts'

const CREATE = 'POST /backend-api/files'
const TURN = 'POST /backend-api/codex/responses'
const FILE = { file_name: 'secret plans.pdf', file_size: 12, use_case: 'codex' }
const finalizeRoute = (id: string) => `POST /backend-api/files/${id}/uploaded`

interface Failure {
  error: { code: string; message: string; param: string | null }
}
const getFailure = async (response: Response | { text: string }): Promise<Failure['error']> => {
  const text = typeof response.text === 'string' ? response.text : await response.text()
  return (JSON.parse(text) as Failure).error
}

const create = async (app: TestApp, ask: Ask = {}): Promise<string> => {
  const answer = await getAnswer(app, CREATE, { json: FILE, ...ask })
  expect(answer.status).toBe(200)
  return (JSON.parse(answer.text) as { file_id: string }).file_id
}
const finalize = (app: TestApp, id: string, ask: Ask = {}) => getAnswer(app, finalizeRoute(id), ask, 250)

/** Creates a file on this account. */
const createOn = async (app: TestApp, index: number, ask: Ask = {}): Promise<string> => {
  const id = app.members[index]!.id
  const others = app.members.filter((member) => member.id !== id)
  for (const other of others) await app.ask(`POST /api/accounts/${other.id}/pause`)
  const fileId = await create(app, ask)
  for (const other of others) await app.ask(`POST /api/accounts/${other.id}/reactivate`)
  return fileId
}
const naming = (...ids: string[]) =>
  codexBody('read', {
    input: [
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: 'read' }, ...ids.map((file_id) => ({ type: 'input_file', file_id }))],
      },
    ],
  })
const sentTo = (app: TestApp, path: RegExp): (string | undefined)[] =>
  app.upstream.requests
    .filter((request) => path.test(request.path))
    .map(({ account }) => app.members.find(({ sim }) => sim.chatgptAccountId === account)?.id)
const limit = (maxValue: number, modelFilter = '') => ({
  limitType: 'requests' as const,
  limitWindow: 'daily' as const,
  maxValue,
  modelFilter,
})

describe('creating a file', () => {
  test('sends the body byte for byte with the smallest headers, and relays the response', async () => {
    const app = await testApp()
    const body = '{ "file_name":"a.txt",\n "file_size": 3, "use_case":"codex", "more":1 }'
    const headers = {
      'user-agent': 'codex_exec/0.169.0',
      originator: 'codex_exec',
      'x-codex-window-id': 'w',
      cookie: 'a=b',
    }
    const answer = await getAnswer(app, CREATE, { body, headers })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toEqual({
      file_id: expect.stringMatching(/^file_/),
      upload_url: expect.stringMatching(/^https:/),
    })
    const [sent] = app.upstream.requests
    expect([sent?.path, sent?.bodyText]).toEqual(['/backend-api/files', body])
    expect(sent?.headers).toMatchObject({ 'user-agent': 'codex_exec/0.169.0', 'content-type': 'application/json' })
    expect(Object.keys(sent?.headers ?? {})).not.toContain('originator')
    await expectNothingLeft(app)
  })

  test.each([
    ['file_name', { ...FILE, file_name: '' }],
    ['file_name', { ...FILE, file_name: 7 }],
    ['file_name', { file_size: 1, use_case: 'codex' }],
    ['file_size', { ...FILE, file_size: 0 }],
    ['file_size', { ...FILE, file_size: 536_870_913 }],
    ['file_size', { ...FILE, file_size: 1.5 }],
    ['file_size', { ...FILE, file_size: '12' }],
    ['use_case', { ...FILE, use_case: 'assistants' }],
    ['use_case', { file_name: 'a', file_size: 1 }],
  ])('rejects a wrong %s: %p', async (param, json) => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const key = await app.key({ limits: [limit(1)] })
    const headers = { authorization: `Bearer ${key.key}` }
    const response = await app.ask(CREATE, { json, headers })
    expect([response.status, await getFailure(response)]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_request_error', param }),
    ])
    expect(app.upstream.requests).toEqual([])
    expect((await getAnswer(app, CREATE, { json: FILE, headers })).status).toBe(200) // nothing was charged
    await expectNothingLeft(app)
  })

  test.each([1, 536_870_912])('accepts a file of %d bytes', async (file_size) => {
    const app = await testApp()
    expect((await getAnswer(app, CREATE, { json: { ...FILE, file_size } })).status).toBe(200)
  })

  test('counts as one request of the key, under its own name, and ignores the models of the key', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    expect((await app.ask(CREATE, { json: FILE })).status).toBe(401)
    const key = await app.key({ allowedModels: ['gpt-5.5'], limits: [limit(1, 'files-create')] })
    const headers = { authorization: `Bearer ${key.key}` }
    const id = await create(app, { headers })
    const second = await app.ask(CREATE, { json: FILE, headers })
    expect([second.status, (await getFailure(second)).code]).toEqual([429, 'rate_limit_exceeded'])
    expect((await finalize(app, id, { headers })).status).toBe(200) // another name
    expect(await app.rows()).toMatchObject([
      {
        kind: 'file',
        model: 'files-create',
        status: 'ok',
        inputTokens: null,
        costMicros: null,
        route: '/backend-api/files',
      },
      { kind: 'file', model: 'files-create', status: 'error', httpStatus: 429 },
      { kind: 'file', model: 'files-finalize', status: 'ok', attempts: 1, route: '/backend-api/files/{id}/uploaded' },
    ])
    expect(app.sqlite.query('SELECT sum(unpriced) AS unpriced FROM request_hours').get()).toEqual({ unpriced: 0 })
    await expectNothingLeft(app)
  })

  test('uses an account at its limit when there is no other, and the owner of the conversation when there is one', async () => {
    const app = await testApp({ accounts: 3 })
    const headers = { 'session-id': 's1' }
    await (await app.ask(TURN, { json: codexBody(), headers })).text()
    const owner = (await app.rows())[0]?.accountId
    for (let time = 0; time < 4; time++) await create(app, { headers })
    expect(new Set(sentTo(app, /files$/))).toEqual(new Set([owner ?? '']))
    for (const { id } of app.members)
      app.bindings.pool.apply(id, {
        kind: 'rate_limited',
        at: app.clock.now(),
        evidence: '',
        resetAt: app.clock.now() + 3_600_000,
        retryAfterMs: null,
        cause: 'usage_limit_reached',
      })
    await create(app)
  })

  test('moves to another account when one rejects it, but not when the file may have been created', async () => {
    const app = await testApp({ accounts: 2 })
    await app.prefer(app.members[0]!.id)
    app.members[0]!.sim.next({ on: 'file', ...faults.rateLimited() })
    const id = await create(app)
    expect(sentTo(app, /files$/)).toEqual(app.members.map((member) => member.id))
    expect((await finalize(app, id)).status).toBe(200)
    app.upstream.reset()
    app.members[0]!.sim.next({ on: 'file', reset: true })
    expect((await getAnswer(app, CREATE, { json: FILE })).status).toBe(502)
    expect(app.upstream.requests).toHaveLength(1)
    await expectNothingLeft(app)
  })

  test('refreshes a rejected token once', async () => {
    const app = await testApp()
    app.members[0]!.sim.expireAccessToken()
    await create(app)
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/files')).map(({ status }) => status)).toEqual([
      401, 200,
    ])
  })

  test('says that the request was blocked after two pages with 403, and charges no account', async () => {
    const app = await testApp({ accounts: 3 })
    for (const { sim } of app.members) sim.always({ on: 'file', ...faults.forbiddenHtml() })
    const answer = await getAnswer(app, CREATE, { json: FILE })
    expect([answer.status, (await getFailure(answer)).code]).toEqual([502, 'upstream_blocked'])
    expect(app.upstream.requests).toHaveLength(2)
    for (const { health, state } of app.bindings.pool.all())
      expect([health.errors, state.status]).toEqual([0, 'active'])
  })

  test('rejects the capability header, an address outside the firewall, a large body, and requests while draining', async () => {
    const app = await testApp()
    const headers = {
      authorization: `Bearer ${(await app.key()).key}`,
      'x-codex-lb-required-capability': 'trusted_cyber',
    }
    for (const route of [CREATE, finalizeRoute('file_1')]) {
      expect((await app.ask(route, { json: FILE, headers })).status).toBe(400)
      app.bindings.lifecycle.draining = true
      expect((await app.ask(route, { json: FILE })).status).toBe(503)
      app.bindings.lifecycle.draining = false
      const large = await app.ask(route, { json: { ...FILE, more: 'x'.repeat(65 * 1024) } })
      expect([large.status, (await getFailure(large)).code]).toEqual([400, 'payload_too_large'])
    }
    await app.ask('POST /api/firewall/ips', { json: { ipAddress: '203.0.113.9' } })
    for (const route of [CREATE, finalizeRoute('file_1')])
      expect((await app.ask(route, { json: FILE, peer: '198.51.100.7' })).status).toBe(403)
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })
})

describe('finalizing a file', () => {
  test('polls the account that created it every 250 ms until the file is ready, and relays the response', async () => {
    const app = await testApp({ accounts: 4 })
    for (const index of [2, 0, 3]) {
      const id = await createOn(app, index)
      app.upstream.reset()
      const began = app.clock.now()
      const answer = await finalize(app, id)
      expect(JSON.parse(answer.text)).toMatchObject({ status: 'success', file_name: FILE.file_name })
      expect(sentTo(app, /uploaded$/)).toEqual([app.members[index]!.id, app.members[index]!.id])
      expect(app.upstream.requests.map(({ at }) => at - began)).toEqual([0, 250])
      expect(app.upstream.requests.map(({ bodyText }) => bodyText)).toEqual(['{}', '{}'])
    }
    await expectNothingLeft(app)
  })

  test('returns the last response when the file is not ready after 30 s', async () => {
    const app = await testApp()
    const id = await create(app)
    app.upstream.reset()
    app.upstream.answerRelay(() => Response.json({ status: 'retry', note: 'later' }))
    const began = app.clock.now()
    const answer = await finalize(app, id)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { status: 'retry', note: 'later' }])
    expect(app.upstream.requests).toHaveLength(121)
    expect((app.upstream.requests.at(-1)?.at ?? 0) - began).toBe(30_000)
    expect((await app.rows()).at(-1)).toMatchObject({ model: 'files-finalize', status: 'ok', attempts: 1 })
    await expectNothingLeft(app)
  })

  test.each(['failed', 'expired', undefined])('relays any other status immediately: %p', async (status) => {
    const app = await testApp()
    const id = await create(app)
    app.upstream.answerRelay(() => Response.json({ status, reason: 'x' }))
    expect(JSON.parse((await finalize(app, id)).text)).toEqual({ ...(status && { status }), reason: 'x' })
  })

  test.each([
    ['before the first response', 0, 'cancelled'],
    ['during the first wait', 100, 'ok'],
    ['during a wait after several polls', 1100, 'ok'],
  ])('ends when the client disconnects %s, and is charged one request', async (_when, ms, outcome) => {
    const app = await testApp()
    const headers = { authorization: `Bearer ${(await app.key({ limits: [limit(2)] })).key}` }
    const id = await create(app, { headers })
    if (ms === 0) app.members[0]!.sim.next({ on: 'file', delayHeadersMs: 1000 })
    else app.upstream.answerRelay(() => Response.json({ status: 'retry' }))
    const client = new AbortController()
    const left = app.ask(finalizeRoute(id), { headers, signal: client.signal })
    await app.clock.advance(ms)
    client.abort()
    await left
    await app.clock.advance(1000)
    expect((await app.rows()).at(-1)).toMatchObject({ model: 'files-finalize', status: 'cancelled', attempts: 1 })
    expect((await app.attemptRows()).at(-1)).toMatchObject({ n: 1, outcome })
    const next = await getAnswer(app, CREATE, { json: FILE, headers })
    expect([next.status, (await getFailure(next)).code]).toEqual([429, 'rate_limit_exceeded'])
    await expectNothingLeft(app)
  })

  test('is not charged when the client disconnects before an account was reached', async () => {
    const app = await testApp()
    const headers = { authorization: `Bearer ${(await app.key({ limits: [limit(2)] })).key}` }
    const id = await create(app, { headers })
    app.members[0]!.sim.next({ on: 'file', ...faults.serverError() })
    const client = new AbortController()
    const left = app.ask(finalizeRoute(id), { headers, signal: client.signal })
    await app.clock.advance(50) // waits to retry the account that failed
    client.abort()
    await left
    await app.clock.advance(0)
    expect((await app.attemptRows()).at(-1)).toMatchObject({ outcome: 'failed' })
    expect((await getAnswer(app, CREATE, { json: FILE, headers })).status).toBe(200)
    await expectNothingLeft(app)
  })

  test.each([
    ['an unknown file', 'file_unknown', async () => {}],
    ['a file whose account is paused', null, (app: TestApp, id: string) => app.ask(`POST /api/accounts/${id}/pause`)],
    [
      'a file whose account needs sign-in',
      null,
      async (app: TestApp, id: string) =>
        app.bindings.pool.apply(id, {
          kind: 'auth_failed',
          at: app.clock.now(),
          code: 'token_invalidated',
          evidence: '',
        }),
    ],
    ['a file whose account was deleted', null, (app: TestApp, id: string) => app.ask(`DELETE /api/accounts/${id}`)],
    ['a file that was not used for 30 minutes', null, (app: TestApp) => app.clock.advance('31m')],
  ] as const)('answers 502 for %s, and sends nothing', async (_name, id, prepare) => {
    const app = await testApp({ accounts: 2 })
    const fileId = id ?? (await createOn(app, 0))
    await prepare(app, app.members[0]!.id)
    app.upstream.reset()
    const answer = await finalize(app, fileId)
    expect([answer.status, (await getFailure(answer)).code]).toEqual([502, 'file_owner_unavailable'])
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(app.upstream.requests).toEqual([])
    expect((await app.rows()).at(-1)).toMatchObject({
      status: 'error',
      httpStatus: 502,
      errorCode: 'file_owner_unavailable',
    })
    await expectNothingLeft(app)
  })

  test('a file belongs to the key that created it, and to the accounts of that key', async () => {
    const app = await testApp({ accounts: 2 })
    const [one, other] = [await app.key(), await app.key({ name: 'other' })].map(({ key }) => ({
      authorization: `Bearer ${key}`,
    }))
    const id = await create(app, { headers: one! })
    expect((await finalize(app, id, { headers: other! })).status).toBe(502)
    expect((await finalize(app, id)).status).toBe(502)
    expect((await finalize(app, id, { headers: one! })).status).toBe(200)
  })

  test('is retried on its account after a failure, and passes on rejections of ChatGPT', async () => {
    const app = await testApp({ accounts: 3 })
    const id = await createOn(app, 1)
    app.members[1]!.sim.next({ on: 'file', ...faults.serverError() }, { on: 'file', reset: true })
    expect((await finalize(app, id)).status).toBe(200)
    expect(new Set(sentTo(app, /uploaded$/))).toEqual(new Set([app.members[1]!.id]))
    const status = 409
    app.members[1]!.sim.next({
      on: 'file',
      status,
      body: { error: { message: 'Not uploaded.', code: 'missing_blob' } },
    })
    const rejected = await finalize(app, id)
    expect([rejected.status, (await getFailure(rejected)).code]).toEqual([409, 'missing_blob'])
    const [account] = app.bindings.pool.all().filter((each) => each.id === app.members[1]!.id)
    expect([account?.health.errors, account?.state.status]).toEqual([0, 'active'])
    await expectNothingLeft(app)
  })

  test('works on an account at its limit', async () => {
    const app = await testApp({ accounts: 2 })
    const id = await createOn(app, 0)
    app.bindings.pool.apply(app.members[0]!.id, {
      kind: 'rate_limited',
      at: app.clock.now(),
      evidence: '',
      resetAt: app.clock.now() + 3_600_000,
      retryAfterMs: null,
      cause: 'usage_limit_reached',
    })
    expect((await finalize(app, id)).status).toBe(200)
  })

  test('each use gives the file another 30 minutes', async () => {
    const app = await testApp({ accounts: 3 })
    const id = await createOn(app, 1)
    for (let time = 0; time < 3; time++) {
      await app.clock.advance('25m')
      expect((await finalize(app, id)).status).toBe(200)
    }
  })
})

describe('a request that names files', () => {
  const turn = async (app: TestApp, ...ids: string[]) => {
    const response = await app.ask(TURN, { json: naming(...ids) })
    return response.status === 200
      ? { status: 200, events: await getEvents(response) }
      : { status: response.status, error: await getFailure(response) }
  }

  test('of one account is sent there, whichever account would be selected', async () => {
    const app = await testApp({ accounts: 4 })
    for (const index of [1, 3, 0]) {
      const ids = [await createOn(app, index), await createOn(app, index)]
      await app.prefer(app.members[2]!.id)
      app.upstream.reset()
      expect((await turn(app, ...ids)).status).toBe(200)
      expect(sentTo(app, /responses$/)).toEqual([app.members[index]!.id])
    }
    await expectNothingLeft(app)
  })

  test('of one account in the output of a tool, and over /v1, is sent there too', async () => {
    const app = await testApp({ accounts: 4 })
    const file_id = await createOn(app, 2)
    const output = [{ type: 'input_file', file_id }]
    const input = [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] },
      { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output },
    ]
    await (await app.ask(TURN, { json: codexBody('', { input }) })).text()
    const { input: named } = naming(file_id)
    await (await app.ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: named } })).text()
    expect(sentTo(app, /responses$/)).toEqual([app.members[2]!.id, app.members[2]!.id])
  })

  test('leaves the account of its conversation for that of the files', async () => {
    const app = await testApp({ accounts: 3 })
    const headers = { 'session-id': 's1' }
    await (await app.ask(TURN, { json: codexBody(), headers })).text()
    const owner = (await app.rows())[0]?.accountId
    const index = app.members.findIndex(({ id }) => id !== owner)
    const id = await createOn(app, index)
    expect((await app.ask(TURN, { json: naming(id), headers })).status).toBe(200)
    expect(sentTo(app, /responses$/)).toEqual([owner ?? '', app.members[index]!.id])
  })

  const rejected = async (app: TestApp, ids: string[], code: string) => {
    app.upstream.reset()
    const answer = await turn(app, ...ids)
    expect(answer).toMatchObject({ status: 502, error: { code } })
    expect(app.upstream.requests).toEqual([])
    expect((await app.rows()).at(-1)).toMatchObject({
      kind: 'normal',
      status: 'error',
      httpStatus: 502,
      phase: 'select',
      errorCode: code,
    })
    await expectNothingLeft(app)
  }

  test('of two accounts is rejected', async () => {
    const app = await testApp({ accounts: 3 })
    const ids = [await createOn(app, 0), await createOn(app, 1)]
    await rejected(app, ids, 'continuity_owner_conflict')
    await rejected(app, [...ids, 'file_unknown'], 'continuity_owner_conflict')
  })

  test('of which Sluice knows only some is rejected', async () => {
    const app = await testApp({ accounts: 3 })
    const id = await createOn(app, 0)
    await rejected(app, [id, 'file_unknown'], 'file_owner_unavailable')
    await rejected(app, ['file_unknown', id], 'file_owner_unavailable')
    await app.clock.advance('31m')
    await rejected(app, [await createOn(app, 0), id], 'file_owner_unavailable')
  })

  test('charges nothing when it is rejected', async () => {
    const app = await testApp({ accounts: 2, settings: { apiKeyAuthEnabled: true } })
    const headers = { authorization: `Bearer ${(await app.key({ limits: [limit(1, 'gpt-5.5')] })).key}` }
    const id = await create(app, { headers })
    expect((await app.ask(TURN, { json: naming(id, 'file_other'), headers })).status).toBe(502)
    expect((await app.ask(TURN, { json: naming(id), headers })).status).toBe(200)
  })

  test('that Sluice does not know is served as before', async () => {
    const app = await testApp({ accounts: 2 })
    expect((await turn(app, 'file_elsewhere', 'file_more')).status).toBe(200)
    const id = await createOn(app, 0)
    await app.clock.advance('31m')
    await app.prefer(app.members[0]!.id)
    expect((await turn(app, id)).status).toBe(200)
  })

  test('is not served elsewhere when its account is paused', async () => {
    const app = await testApp({ accounts: 3 })
    const id = await createOn(app, 0)
    await app.ask(`POST /api/accounts/${app.members[0]!.id}/pause`)
    app.upstream.reset()
    expect(await turn(app, id)).toMatchObject({ status: 502, error: { code: 'file_owner_unavailable' } })
    expect(app.upstream.requests).toEqual([])
  })

  test('is not served elsewhere when its account fails', async () => {
    const app = await testApp({ accounts: 3 })
    const id = await createOn(app, 1)
    app.upstream.reset()
    app.members[1]!.sim.always(faults.serverError())
    const answer = await getAnswer(app, TURN, { json: naming(id) })
    expect(answer.status).toBe(500)
    expect(new Set(sentTo(app, /responses$/))).toEqual(new Set([app.members[1]!.id]))
    await expectNothingLeft(app)
  })

  test('stays on its account when that cannot read reasoning of another', async () => {
    const app = await testApp({ accounts: 2 })
    const headers = { 'session-id': 's1' }
    const events = await getEvents(await app.ask(TURN, { json: codexBody(), headers }))
    const output = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    const used = (await app.rows())[0]?.accountId
    const other = app.members.findIndex(({ id }) => id !== used)
    const { input } = naming(await createOn(app, other))
    app.upstream.reset()
    app.members[other]!.sim.next(faults.invalidEncryptedContent())
    const answer = await getAnswer(app, TURN, { json: codexBody('', { input: [...output, ...input] }), headers })
    expect(answer.status).toBe(200)
    expect(sentTo(app, /responses$/)).toEqual([app.members[other]!.id, app.members[other]!.id])
    await expectNothingLeft(app)
  })

  test('extends the life of its files', async () => {
    const app = await testApp({ accounts: 4 })
    const id = await createOn(app, 1)
    for (let time = 0; time < 3; time++) {
      await app.clock.advance('25m')
      expect((await turn(app, id)).status).toBe(200)
    }
    expect(new Set(sentTo(app, /responses$/))).toEqual(new Set([app.members[1]!.id]))
  })
})

describe('ownership', () => {
  test('survives a restart, for finalizing and for requests', async () => {
    const app = await testApp({ accounts: 5 })
    const ids: string[] = []
    for (let index = 0; index < 5; index++) ids.push(await createOn(app, index))
    await app.restart()
    app.upstream.reset()
    for (const id of ids) expect((await finalize(app, id)).status).toBe(200)
    expect(sentTo(app, /uploaded$/)).toEqual(app.members.flatMap(({ id }) => [id, id]))
    for (const id of ids) await (await app.ask(TURN, { json: naming(id) })).text()
    expect(sentTo(app, /responses$/)).toEqual(app.members.map(({ id }) => id))
  })

  test('stores hashes and no names: not in rows, not in lines, not when ChatGPT repeats them', async () => {
    const app = await testApp({ accounts: 1 })
    const id = await create(app)
    await finalize(app, id)
    const message = `'${FILE.file_name}' is too large.`
    app.members[0]!.sim.next({ on: 'file', status: 400, body: { error: { message, code: 'too_large' } } })
    const failed = await getAnswer(app, CREATE, { json: FILE })
    expect(await getFailure(failed)).toMatchObject({ message, code: 'too_large' })
    app.members[0]!.sim.always({ on: 'file', status: 500, body: { error: { message } } })
    await finalize(app, id)
    await app.bindings.ledger.flush()
    const tables = app.sqlite.query("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
    const stored = tables
      .map(({ name }) => JSON.stringify(app.sqlite.query(`SELECT * FROM "${name}"`).all()))
      .join('\n')
    for (const text of [stored, app.lines.join('\n')])
      for (const secret of ['secret plans', id, 'sig=secret']) expect(text).not.toContain(secret)
  })

  test('1,000 files over five accounts, with random failures: each is finalized where it was created', async () => {
    const app = await testApp({ accounts: 5 })
    const random = seededRandom(34)
    const flaws: Fault[] = [
      faults.serverError(),
      faults.rateLimited(),
      faults.forbidden(),
      faults.forbiddenHtml(),
      faults.unauthorized(),
      { reset: true },
    ]
    let failures = 0
    const upset = () => {
      for (const { sim } of app.members) {
        sim.clearFaults()
        if (random.float() < 0.5) sim.next({ on: 'file', ...flaws[Math.floor(random.float() * flaws.length)]! })
      }
    }
    /** As a client that tries again. */
    const insist = async (ask: () => ReturnType<typeof getAnswer>): Promise<string> => {
      for (let time = 0; time < 10; time++) {
        upset()
        const { status, text } = await ask()
        if (status === 200) return text
        failures++
      }
      throw new Error('it failed ten times')
    }
    const createdBy = new Map<string, number>()
    for (let batch = 0; batch < 50; batch++) {
      const creating = Array.from({ length: 20 }, () => insist(() => getAnswer(app, CREATE, { json: FILE })))
      const ids = (await Promise.all(creating)).map((text) => (JSON.parse(text) as { file_id: string }).file_id)
      if (batch % 10 === 5) await app.restart()
      const finalizing = ids.map((id) => insist(() => finalize(app, id)))
      for (const text of await Promise.all(finalizing)) expect(JSON.parse(text)).toMatchObject({ status: 'success' })
    }
    for (const { kind, model, status, accountId } of await app.rows())
      if (kind === 'file' && model === 'files-create' && status === 'ok')
        createdBy.set(accountId ?? '', (createdBy.get(accountId ?? '') ?? 0) + 1)
    expect(createdBy.size).toBe(5)
    expect([...createdBy.values()].reduce((sum, count) => sum + count)).toBe(1000)
    expect(failures).toBeGreaterThan(100)
    await expectNothingLeft(app) // no file was finalized by another account: the stand-in records that, and answers 404
  }, 120_000)
})
