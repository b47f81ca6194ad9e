/** Turns that are refused before any account is asked: by the key's policy, by a limit, or for text nobody may store. */
import { describe, expect, test } from 'bun:test'
import { requestHours } from '../../db/schema/requests.ts'
import type { NewKey } from '../../src/model/api-keys.ts'
import { answerOf, codexBody, expectNothingLeft, type TestApp, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const COMPACT = 'POST /backend-api/codex/responses/compact'
const KEY_AUTH = { settings: { apiKeyAuthEnabled: true } }

const withKey = (input: Partial<NewKey>) => {
  const app = testApp(KEY_AUTH)
  const headers = { authorization: `Bearer ${app.key(input).key}` }
  return { app, send: (route: string, json: unknown) => answerOf(app, route, { json, headers }) }
}

const errorOf = ({ text }: { text: string }) => JSON.parse(text).error
const sent = ({ upstream }: TestApp) => upstream.requests.map(({ bodyText }) => JSON.parse(bodyText))

/** As a native client compacts the old way: neither `stream` nor `store`. */
const compactBody = (more: Record<string, unknown> = {}) => {
  const { stream: _stream, store: _store, include: _include, ...body } = codexBody('hello', more)
  return body
}

describe.each([
  ['a native turn', NATIVE, codexBody],
  ['a native compaction', COMPACT, (_text: string, more?: Record<string, unknown>) => compactBody(more)],
] as const)('what a key enforces on %s', (_name, route, bodyOf) => {
  test('another effort or tier is refused and named', async () => {
    const { app, send } = withKey({ enforcedReasoningEffort: 'low', enforcedServiceTier: 'flex' })
    const effort = await send(route, bodyOf('hello', { reasoning: { effort: 'high' } }))
    expect([effort.status, errorOf(effort).param]).toEqual([400, 'reasoning.effort'])
    expect(errorOf(effort).message).toContain('low')
    const tier = await send(route, bodyOf('hello', { service_tier: 'priority' }))
    expect([tier.status, errorOf(tier).param]).toEqual([400, 'service_tier'])
    expect(errorOf(tier).message).toContain('flex')
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test('what the request leaves open is put in at its place, the rest stays as it came', async () => {
    const { app, send } = withKey({ enforcedReasoningEffort: 'low', enforcedServiceTier: 'flex' })
    await send(route, bodyOf('hello', { reasoning: { summary: 'auto' } }))
    await send(route, bodyOf('hello', { reasoning: null, service_tier: null }))
    await send(route, bodyOf('hello', { reasoning: { effort: 'low' }, service_tier: 'flex' }))
    expect(sent(app)).toMatchObject([
      { reasoning: { summary: 'auto', effort: 'low' }, service_tier: 'flex' },
      { reasoning: { effort: 'low' }, service_tier: 'flex' },
      { reasoning: { effort: 'low' }, service_tier: 'flex' },
    ])
    expect(app.rows()).toMatchObject(Array.from({ length: 3 }, () => ({ reasoningEffort: 'low', status: 'ok' })))
  })

  test('the ordinary tier is enforced by sending none', async () => {
    const { app, send } = withKey({ enforcedServiceTier: 'default' })
    expect((await send(route, bodyOf('hello', { service_tier: 'priority' }))).status).toBe(400)
    expect((await send(route, bodyOf('hello', { service_tier: 'auto' }))).status).toBe(200)
    expect((await send(route, bodyOf('hello', {}))).status).toBe(200)
    expect(sent(app)[1]).not.toHaveProperty('service_tier')
  })
})

test('the priority tier may be called fast, as the native client does', async () => {
  const { app, send } = withKey({ enforcedServiceTier: 'priority' })
  expect((await send(NATIVE, codexBody('hello', { service_tier: 'fast' }))).status).toBe(200)
  expect(app.upstream.requests).toHaveLength(1)
})

describe('text of the client that would be stored', () => {
  const long = 'x'.repeat(65)

  test.each([
    ['reasoning.effort', { reasoning: { effort: long } }],
    ['service_tier', { service_tier: long }],
  ])('%s has at most 64 characters', async (param, more) => {
    const app = testApp()
    for (const route of [NATIVE, 'POST /v1/responses']) {
      const answer = await answerOf(app, route, { json: codexBody('hello', more) })
      expect([answer.status, errorOf(answer).param]).toEqual([400, param])
    }
    expect(app.upstream.requests).toEqual([])
    expect(JSON.stringify(app.rows())).not.toContain(long)
    await expectNothingLeft(app)
  })

  test('a model nobody offers and the upstream refuses has no line of its own in the hourly sums', async () => {
    const app = testApp()
    app.members[0]!.sim.always({ status: 400, body: { error: { code: 'invalid_value', message: 'no such model' } } })
    for (const model of ['made-up-1', 'made-up-2', 'made-up-3'])
      await answerOf(app, NATIVE, { json: codexBody('hello', { model }) })
    expect(app.rows().map(({ model }) => model)).toEqual(['made-up-1', 'made-up-2', 'made-up-3'])
    expect(app.db.select().from(requestHours).all()).toMatchObject([{ model: '', requests: 3, errors: 3 }])
  })

  test('a model that the upstream took has one, before any catalog is known', async () => {
    const app = testApp()
    expect(app.bindings.pool.offers('gpt-5.5')).toBe(false)
    await answerOf(app, NATIVE, { json: codexBody() })
    app.rows()
    expect(app.db.select().from(requestHours).all()).toMatchObject([{ model: 'gpt-5.5', requests: 1 }])
  })
})

describe('a turn that its key refuses leaves one row', () => {
  const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]

  test.each([
    ['a model', { allowedModels: ['other'] }, NATIVE, 404, 'model_not_found'],
    ['a model on /v1', { allowedModels: ['other'] }, 'POST /v1/responses', 403, 'model_not_allowed'],
    ['an effort', { enforcedReasoningEffort: 'low' }, NATIVE, 400, 'invalid_request_error'],
  ] as const)('%s', async (_name, input, route, status, code) => {
    const { app, send } = withKey({ ...input, allowedModels: 'allowedModels' in input ? ['other'] : null })
    const answer = await send(route, codexBody('hello', { reasoning: { effort: 'high' } }))
    expect(answer.status).toBe(status)
    expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
    const refused = { status: 'error', httpStatus: status, errorCode: code, phase: 'auth', attempts: 0 }
    expect(app.rows()).toMatchObject([{ ...refused, model: 'gpt-5.5', accountId: null, inputTokens: null }])
    expect(app.rows()[0]!.keyId).not.toBeNull()
    expect([...app.attemptRows(), ...app.failedSelections()]).toEqual([])
    await expectNothingLeft(app)
  })

  test('a limit', async () => {
    const { app, send } = withKey({ limits })
    await send(NATIVE, codexBody())
    const answer = await send(NATIVE, codexBody())
    expect(answer.status).toBe(429)
    expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
    expect(app.rows()).toMatchObject([
      { status: 'ok' },
      { status: 'error', httpStatus: 429, errorCode: 'rate_limit_exceeded', phase: 'auth', attempts: 0 },
    ])
    await expectNothingLeft(app)
  })
})

describe('a selection that finds nobody is in the log with its reasons', () => {
  test('as the only row of a turn that never reached an account', async () => {
    const app = testApp({ accounts: 2 })
    for (const { id } of app.members) app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
    const answer = await answerOf(app, NATIVE, { json: codexBody() })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
    expect(app.rows()).toMatchObject([{ phase: 'select', attempts: 0, upstreamTransport: null, accountId: null }])
    expect(app.attemptRows()).toEqual([])
    expect(app.failedSelections()).toMatchObject([
      {
        n: 1,
        accountId: null,
        outcome: 'failed',
        upstreamStatus: null,
        code: 'no_accounts',
        considered: app.members.map(({ id }) => ({ id, skipped: 'paused' })),
      },
    ])
    await expectNothingLeft(app)
  })

  test('behind the attempts that came first', async () => {
    const app = testApp()
    app.members[0]!.sim.next({ status: 429, body: { error: { code: 'rate_limit_exceeded', message: 'slow down' } } })
    await answerOf(app, NATIVE, { json: codexBody() })
    expect(app.rows()).toMatchObject([{ status: 'error', attempts: 1, upstreamTransport: 'http' }])
    expect(app.attemptRows()).toMatchObject([{ n: 1, accountId: app.members[0]!.id }])
    expect(app.failedSelections()).toMatchObject([
      { n: 2, outcome: 'failed', considered: [{ id: app.members[0]!.id, skipped: 'rate_limited' }] },
    ])
    const { requests } = await (await app.ask('GET /api/request-logs')).json()
    expect(requests).toMatchObject([{ upstreamStatusCode: 429, upstreamErrorCode: 'rate_limit_exceeded' }])
  })

  test('with how long it waited for a slot', async () => {
    const app = testApp({ settings: { proxyAccountStreamLimit: 1 } })
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const reader = (await app.ask(NATIVE, { json: codexBody() })).body!.getReader()
    await answerOf(app, NATIVE, { json: codexBody() })
    const [waited] = app.failedSelections()
    expect(waited).toMatchObject({ code: 'account_stream_cap', considered: [{ skipped: 'at_cap' }] })
    expect(waited!.durationMs).toBeWithin(5000, 5200)
    await reader.cancel()
    await expectNothingLeft(app)
  })
})
