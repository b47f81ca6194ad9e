/** How many accounts a request tries, what is remembered about them, and what counts against an account. */
import { describe, expect, test } from 'bun:test'
import { PINNED_CLIENT_VERSION } from '../../src/model/catalog/client-version.ts'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import { fetchCatalogs, store } from '../spec/catalog.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { type Fault, faults, modelNotSupported } from '../support/upstream/faults.ts'
import { catalogFor } from '../support/upstream/models.ts'

const POST = 'POST /backend-api/codex/responses'
const HOUR_MS = 3_600_000
const MODEL = 'gpt-5.5'

/** A pool whose accounts are used in this order. */
const pool = async (accounts: number, ...struck: Fault[]) => {
  const app = await testApp({ accounts, settings: { routingStrategy: 'sequential_drain' } })
  const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  for (const [n, fault] of struck.entries()) inOrder[n]!.sim.always(fault)
  const ask = (more: Record<string, unknown> = {}) => getAnswer(app, POST, { json: codexBody('hello', more) })
  /** The places of the accounts that were tried so far, and how often the upstream was called. */
  const tried = async () =>
    (await app.attemptRows()).map(({ accountId }) => inOrder.findIndex(({ id }) => id === accountId))
  return { app, inOrder, ask, tried }
}

const getError = ({ text }: { text: string }) => JSON.parse(text).error
const errors = ({ bindings, members }: TestApp) => members.map(({ id }) => bindings.pool.get(id)!.health.errors)

describe('an account rejects a model', () => {
  const error = { code: 'permission_denied', message: 'No access to this model.', param: 'model' }
  test.each<[string, Fault]>([
    ['the message of ChatGPT', faults.modelNotSupported(MODEL)],
    ['a code', faults.modelNotFound(MODEL)],
    ['a member of the request', { status: 403, body: { error } }],
    ['an event', { errorEvent: { code: 'model_not_found', message: 'No such model.' } }],
  ])('is remembered, given as %s', async (_, fault) => {
    const { app, ask, tried } = await pool(2, fault)
    await fetchCatalogs(app)
    for (let n = 0; n < 6; n++) expect((await ask()).status).toBe(200)
    expect(await tried()).toEqual([0, 1, 1, 1, 1, 1, 1])
    const considered = (await app.attemptRows()).at(-1)!.considered as Considered[]
    expect(considered.map(({ skipped }) => skipped)).toContain('model_not_supported')
    expect(errors(app)).toEqual([0, 0])
    await expectNothingLeft(app)
  })

  test('applies to that model only, and for an hour', async () => {
    const { app, inOrder, ask, tried } = await pool(2, faults.modelNotSupported(MODEL))
    await fetchCatalogs(app)
    await ask()
    inOrder[0]!.sim.always(null)
    await ask({ model: 'codex-auto-review' })
    await app.clock.advance(HOUR_MS - 1000)
    await ask()
    await app.clock.advance(1000)
    await ask()
    expect(await tried()).toEqual([0, 1, 0, 1, 0])
    await expectNothingLeft(app)
  })

  test('is forgotten with the next catalog of the account', async () => {
    const { app, inOrder, ask, tried } = await pool(2, faults.modelNotSupported(MODEL))
    await fetchCatalogs(app)
    await ask()
    inOrder[0]!.sim.always(null)
    const { id, sim } = inOrder[0]!
    await store(app, id, catalogFor(sim, PINNED_CLIENT_VERSION).slice(0, -1))
    await ask()
    expect(await tried()).toEqual([0, 1, 0])
    await expectNothingLeft(app)
  })

  test('by every account costs later requests one attempt, answered with the upstream’s error', async () => {
    const { app, ask, tried } = await pool(3, ...Array<Fault>(3).fill(faults.modelNotSupported(MODEL)))
    await fetchCatalogs(app)
    for (let n = 0; n < 3; n++) {
      const answer = await ask()
      await app.clock.advance(1000)
      expect(answer.status).toBe(400)
      expect(getError(answer)).toMatchObject({ code: 'model_not_found', message: modelNotSupported(MODEL) })
    }
    expect(await tried()).toEqual([0, 1, 2, 0, 1])
    await expectNothingLeft(app)
  })
})

describe('a model in no catalog', () => {
  test.each(['gpt-5.9-typo', 'GPT-5.5', 'o9'])('%s costs one attempt and is one clear error', async (model) => {
    const { app, ask, tried } = await pool(6)
    await fetchCatalogs(app)
    const answer = await ask({ model })
    expect([answer.status, getError(answer).code]).toEqual([400, 'model_not_found'])
    expect(getError(answer).message).toBe(modelNotSupported(model))
    expect(await tried()).toEqual([0])
    expect((await app.rows())[0]).toMatchObject({ errorCode: 'model_not_found', phase: 'upstream' })
    await expectNothingLeft(app)
  })

  test('is served if an account has it after all', async () => {
    const { app, ask } = await pool(2)
    for (const { id, sim } of app.members)
      await store(
        app,
        id,
        catalogFor(sim, PINNED_CLIENT_VERSION).filter(({ slug }) => slug !== MODEL),
      )
    expect((await ask()).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('is not reported as a rate limit when every account is used up', async () => {
    const { app, ask } = await pool(2, faults.usageLimit(), faults.usageLimit())
    await fetchCatalogs(app)
    expect((await ask()).status).toBe(429)
    const answer = await ask({ model: 'gpt-5.9-typo' })
    expect(answer.status).not.toBe(429)
    expect(getError(answer).message).toContain('gpt-5.9-typo')
    expect((await app.rows()).at(-1)!.errorCode).not.toBe('usage_limit_reached')
    await expectNothingLeft(app)
  })
})

describe('a response without an upstream error', () => {
  const page = '<html><body><h1>Not here</h1></body></html>'
  const WORDLESS: [string, Fault][] = [
    ['404 with an empty body', { status: 404, body: '' }],
    ['404 with a page', { status: 404, body: page, headers: { 'content-type': 'text/html' } }],
    ['405', { status: 405, body: 'Method Not Allowed' }],
    ['451', { status: 451, body: page }],
    ['400 with empty JSON', { status: 400, body: {} }],
    ['418 in the words of a gateway', { status: 418, body: { message: 'no Route matched with those values' } }],
  ]

  test.each(WORDLESS)('%s: another account serves, and it counts against the first', async (_, fault) => {
    const { app, ask, tried } = await pool(2, fault)
    expect((await ask()).status).toBe(200)
    expect(await tried()).toEqual([0, 1])
    const [first] = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(app.bindings.pool.get(first!.id)!.health.errors).toBe(1)
    await expectNothingLeft(app)
  })

  test.each(WORDLESS)('%s of every account: 502 with a message, and no account is charged', async (_, fault) => {
    const { app, ask, tried } = await pool(2, fault, fault)
    const answer = await ask()
    expect([answer.status, getError(answer).code]).toEqual([502, 'upstream_error'])
    expect(getError(answer).message).toBe(`ChatGPT answered with status ${fault.status} and no explanation.`)
    expect([await tried(), errors(app)]).toEqual([
      [0, 1],
      [0, 0],
    ])
    await expectNothingLeft(app)
  })

  test.each<[string, Fault, number, string]>([
    ['an error', { status: 404, body: { error: { code: 'not_found', message: 'No such item.' } } }, 404, 'not_found'],
    ['a detail', { status: 405, body: { detail: 'Method Not Allowed' } }, 405, 'invalid_request_error'],
    ['an error of a type', { status: 451, body: { error: { type: 'legal' } } }, 451, 'invalid_request_error'],
    ['a size, which needs no message', { status: 413, body: page }, 413, 'invalid_request_error'],
  ])('with %s it stays a client error', async (_, fault, status, code) => {
    const { app, ask, tried } = await pool(2, fault)
    const answer = await ask()
    expect([answer.status, getError(answer).code, await tried()]).toEqual([status, code, [0]])
    await expectNothingLeft(app)
  })
})

describe('the number of accounts tried', () => {
  test.each<[string, Fault]>([
    ['429', faults.rateLimited()],
    ['a usage limit', faults.usageLimit()],
    ['a revoked token', faults.unauthorized()],
    ['a model that the account does not have', faults.modelNotFound(MODEL)],
    ['403', faults.forbidden()],
  ])('%s: up to ten', async (_, fault) => {
    const { app, ask, tried } = await pool(12, ...Array<Fault>(9).fill(fault))
    expect((await ask()).status).toBe(200)
    expect(new Set(await tried()).size).toBe(10)
    const all = await pool(12, ...Array<Fault>(12).fill(fault))
    expect((await all.ask()).status).toBeGreaterThanOrEqual(400)
    expect(new Set(await all.tried()).size).toBe(10)
    await expectNothingLeft(app)
    await expectNothingLeft(all.app)
  })

  test.each<[string, Fault]>([
    ['500', faults.serverError()],
    ['a page of a gateway', faults.badGatewayHtml()],
    ['a reset', { reset: true }],
    ['an early end', { dropAfter: { events: 1, how: 'fin' } }],
  ])('%s: three, with two more attempts on the first', async (_, fault) => {
    const { app, ask, tried } = await pool(12, ...Array<Fault>(12).fill(fault))
    expect((await ask()).status).toBeGreaterThanOrEqual(500)
    expect(await tried()).toEqual([0, 0, 0, 1, 2])
    await expectNothingLeft(app)
  })

  test('rejections do not use up the attempts for slow failures', async () => {
    const limits = Array<Fault>(5).fill(faults.rateLimited())
    const { app, ask, tried } = await pool(12, ...limits, faults.serverError(), faults.serverError())
    expect((await ask()).status).toBe(200)
    expect(await tried()).toEqual([0, 1, 2, 3, 4, 5, 5, 5, 6, 7])
    await expectNothingLeft(app)
  })
})

describe('an overloaded model', () => {
  const atCapacity = { message: 'Selected model is at capacity. Please try a different model.', type: 'server_error' }
  test.each<[string, Fault, number, string]>([
    ['server_is_overloaded', faults.overloaded(), 503, 'server_is_overloaded'],
    ['slow_down', faults.slowDown(), 503, 'slow_down'],
    ['429 slow_down', { status: 429, body: { error: { code: 'slow_down', message: 'Slow.' } } }, 429, 'slow_down'],
    ['the sentence', { status: 503, body: { error: atCapacity } }, 503, 'upstream_error'],
  ])('%s: one other account, then passed on as it came', async (_, fault, status, code) => {
    const { app, ask, tried } = await pool(5, ...Array<Fault>(5).fill(fault))
    const answer = await ask()
    expect(await tried()).toEqual([0, 1])
    expect([answer.status, getError(answer).code, answer.headers.get('retry-after')]).toEqual([status, code, null])
    expect(errors(app)).toEqual([0, 0, 0, 0, 0])
    await expectNothingLeft(app)
  })

  test.each<[string, Fault, string]>([
    ['response.failed', { failAfterCreated: { code: 'slow_down', message: 'Busy.' } }, 'slow_down'],
    ['an error event', { errorEvent: { code: 'server_is_overloaded', message: 'Busy.' } }, 'server_is_overloaded'],
  ])('reported by %s: an event for native clients, a status for others', async (_, fault, code) => {
    const { app, ask, tried } = await pool(5, ...Array<Fault>(5).fill(fault))
    const answer = await ask()
    expect([answer.status, answer.events.at(-1)]).toMatchObject([200, { response: { error: { code } } }])
    expect(await tried()).toEqual([0, 1])
    const other = await getAnswer(app, 'POST /v1/responses', { json: codexBody() })
    expect([other.status, getError(other).code]).toEqual([503, code])
    expect((await app.rows()).map(({ errorCode }) => errorCode)).toEqual([code, code])
    await expectNothingLeft(app)
  })

  test.each([1, 2, 5])(
    'of %p accounts: thirty requests of a client cost at most 45 of the upstream',
    async (accounts) => {
      const { app, inOrder, ask } = await pool(accounts, ...Array<Fault>(accounts).fill(faults.slowDown()))
      for (let n = 0; n < 30; n++) {
        expect((await ask()).status).toBe(503)
        await app.clock.advance(800)
      }
      expect((await app.attemptRows()).length).toBeLessThanOrEqual(45)
      for (const { sim } of inOrder) sim.always(null)
      expect((await ask()).status).toBe(200)
      await expectNothingLeft(app)
    },
  )

  test('is tried once with one account, and the requested wait of the upstream is kept', async () => {
    const { app, ask, tried } = await pool(1, faults.slowDown(7))
    const answer = await ask()
    expect([answer.status, answer.headers.get('retry-after'), await tried()]).toEqual([503, '7', [0]])
    await expectNothingLeft(app)
  })

  test('is served by another account that has capacity', async () => {
    const { app, ask, tried } = await pool(3, faults.overloaded())
    expect([(await ask()).status, await tried()]).toEqual([200, [0, 1]])
    await expectNothingLeft(app)
  })
})

describe('connections that break', () => {
  const CUTS: [string, Fault][] = [
    ['reset', { reset: true }],
    ['reset after the first event', { dropAfter: { events: 1, how: 'reset' } }],
    ['ended early', { dropAfter: { events: 1, how: 'fin' } }],
    ['reset in the middle of a stream', { dropAfter: { events: 6, how: 'reset' } }],
    ['ended in the middle of a stream', { dropAfter: { events: 6, how: 'fin' } }],
  ]

  /** A hundred requests of conversations of their own. */
  const traffic = async (app: TestApp, bad: string, pauseMs: number) => {
    const calls: boolean[] = []
    for (let n = 0; n < 100; n++) {
      await getAnswer(app, POST, { json: codexBody(`conversation ${n}`) })
      await app.clock.advance(pauseMs)
      app.bindings.pool.tick()
    }
    for (const { accountId } of await app.attemptRows()) calls.push(accountId === bad)
    return calls
  }

  test.each(
    CUTS.flatMap(([name, fault]) => [100, 1000, 10_000, 60_000].map((pauseMs) => [name, pauseMs, fault] as const)),
  )('%s by one of three accounts, a request every %p ms: it is skipped', async (_, pauseMs, fault) => {
    const app = await testApp({ accounts: 3 })
    const bad = app.members[1]!
    bad.sim.always(fault)
    const calls = await traffic(app, bad.id, pauseMs)
    const later = calls.slice(calls.indexOf(true)).slice(10)
    expect(calls.length).toBeLessThanOrEqual(130)
    expect(later.filter(Boolean).length).toBeLessThanOrEqual(later.length / 10)
    await expectNothingLeft(app)
  })

  test.each(CUTS)('%s by the first of three that are drained in order: it is skipped', async (_, fault) => {
    const { app, inOrder } = await pool(3, fault)
    const calls = await traffic(app, inOrder[0]!.id, 10_000)
    const later = calls.slice(10)
    expect(calls.length).toBeLessThanOrEqual(130)
    expect(later.filter(Boolean).length).toBeLessThanOrEqual(later.length / 10)
    await expectNothingLeft(app)
  })

  test.each(CUTS)('%s by all accounts: no account is charged, even once the network is back', async (_, fault) => {
    const app = await testApp({ accounts: 3 })
    for (const { sim } of app.members) sim.always(fault)
    for (let n = 0; n < 10; n++) {
      const { text } = await getAnswer(app, POST, { json: codexBody(`conversation ${n}`) })
      expect(text).not.toContain('response.completed')
    }
    for (const { sim } of app.members) sim.always(null)
    for (let n = 10; n < 20; n++)
      expect((await getAnswer(app, POST, { json: codexBody(`conversation ${n}`) })).status).toBe(200)
    for (const { id } of app.members)
      expect(app.bindings.pool.get(id)!.health).toMatchObject({ errors: 0, backoffUntil: null, failing: null })
    await expectNothingLeft(app)
  })

  test('a conversation leaves an account that broke its stream twice', async () => {
    const app = await testApp({ accounts: 2 })
    const [first, second] = app.members
    await app.prefer(first!.id)
    const headers = { 'session-id': 'one', 'thread-id': 'one' }
    const ask = () => getAnswer(app, POST, { json: codexBody(), headers })
    await ask()
    first!.sim.always({ dropAfter: { events: 6, how: 'reset' } })
    for (let n = 0; n < 3; n++) await ask()
    const [a, b] = [first!.id, second!.id]
    expect((await app.rows()).map(({ accountId }) => accountId)).toEqual([a, a, a, b])
    await expectNothingLeft(app)
  })
})

describe('an upstream that fails on all accounts', () => {
  test.each<[string, number, Fault]>([
    ['500', 1, faults.serverError()],
    ['500', 3, faults.serverError()],
    ['500', 12, faults.serverError()],
    ['a reset', 1, { reset: true }],
    ['a reset', 3, { reset: true }],
    ['a reset', 12, { reset: true }],
    ['503', 3, { status: 503, body: '' }],
    ['404 without an error', 3, { status: 404, body: '' }],
    ['an early end', 3, { dropAfter: { events: 1, how: 'fin' } }],
  ])('%s on %p accounts: thirty requests of a client cost at most 45 of the upstream', async (_, accounts, fault) => {
    const app = await testApp({ accounts })
    for (const { sim } of app.members) sim.always(fault)
    for (let n = 0; n < 30; n++) {
      const answer = await getAnswer(app, POST, { json: codexBody() })
      expect(answer.status).toBeGreaterThanOrEqual(500)
      expect(answer.headers.get('retry-after')).toBeNull()
      await app.clock.advance(800)
    }
    expect((await app.attemptRows()).length).toBeLessThanOrEqual(45)
    await expectNothingLeft(app)
  })

  test.each(['sequential_drain', 'round_robin', 'capacity_weighted'] as const)(
    'half of twenty accounts failing does not count: the others serve (%s)',
    async (routingStrategy) => {
      const app = await testApp({ accounts: 20, settings: { routingStrategy } })
      const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const { sim } of inOrder.slice(0, 10)) sim.always(faults.serverError())
      let failed = 0
      for (let n = 0; n < 40; n++) {
        const { status } = await getAnswer(app, POST, { json: codexBody(`hello ${n}`) })
        if (status !== 200) failed++
        await app.clock.advance(500)
        app.bindings.pool.tick()
      }
      expect(failed).toBeLessThanOrEqual(4)
    },
  )

  test('the log says why no other account was tried', async () => {
    const { app, ask } = await pool(2, faults.serverError(), faults.serverError())
    for (let n = 0; n < 2; n++) await ask()
    expect((await app.failedSelections()).at(-1)).toMatchObject({
      code: 'upstream_failing',
      message: expect.stringContaining('No other account was tried'),
    })
    await expectNothingLeft(app)
  })

  test('one account that recovers ends it, and all are tried again', async () => {
    const { app, inOrder, ask, tried } = await pool(3, ...Array<Fault>(3).fill({ reset: true }))
    for (let n = 0; n < 2; n++) await ask()
    inOrder[0]!.sim.always(null)
    expect((await ask()).status).toBe(200)
    inOrder[0]!.sim.always({ reset: true })
    inOrder[2]!.sim.always(null)
    expect((await ask()).status).toBe(200)
    expect((await tried()).slice(7)).toEqual([0, 0, 0, 1, 2])
    await expectNothingLeft(app)
  })
})

test.each([201, 202, 206])('a valid stream with status %p is served', async (status) => {
  const app = await testApp()
  app.members[0]!.sim.always({ streamStatus: status })
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect([answer.status, answer.events.at(-1)?.type]).toEqual([200, 'response.completed'])
  expect(await app.attemptRows()).toHaveLength(1)
  await expectNothingLeft(app)
})

describe('unreadable ciphertext, recognized by the message alone', () => {
  const verified =
    'The encrypted content gAAAAABo could not be verified. Reason: Encrypted content could not be decrypted or parsed.'
  const ofRequest = (message: string, code: string | null): Fault => ({
    status: 400,
    body: { error: { message, type: 'invalid_request_error', code, param: null } },
  })
  test.each<[string, Fault]>([
    ['with code null', ofRequest(verified, null)],
    ['of an item', ofRequest('The encrypted content for item rs_1 could not be verified.', null)],
    ['as a detail', { status: 400, body: { detail: 'Encrypted content could not be decrypted or parsed.' } }],
    ['as an event', { failAfterCreated: { code: null as never, message: verified } }],
  ])('%s: retried without it, and no account is charged', async (_, fault) => {
    const app = await testApp()
    const { sim } = app.members[0]!
    sim.next(fault)
    const input = [
      { type: 'reasoning', summary: [], encrypted_content: `enc.${sim.chatgptAccountId}.x` },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go on' }] },
    ]
    const answer = await getAnswer(app, POST, { json: codexBody('hello', { input }) })
    expect(answer.status).toBe(200)
    const sent = app.upstream.requests.map(({ bodyText }) => JSON.parse(bodyText).input.map(({ type }: never) => type))
    expect(sent).toEqual([['reasoning', 'message'], ['message']])
    expect(app.bindings.pool.get(app.members[0]!.id)).toMatchObject({
      state: { status: 'active' },
      health: { errors: 0 },
    })
    await expectNothingLeft(app)
  })

  test('a request that only quotes the message keeps its reasoning', async () => {
    const { app, ask, tried } = await pool(2, ofRequest(`Invalid value: '${verified}'`, 'invalid_value'))
    expect([(await ask()).status, await tried()]).toEqual([400, [0]])
    await expectNothingLeft(app)
  })
})
