/** Every kind of upstream failure, before the commit point with and without another account, and after it. */
import { describe, expect, test } from 'bun:test'
import { Hono } from 'hono'
import type { AppEnv } from '../../src/boot/bindings.ts'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import { answerWithStream } from '../../src/proxy/downstream/answer.ts'
import { publicContract } from '../../src/proxy/downstream/contracts.ts'
import { admitTurn, readTurnBody } from '../../src/proxy/handlers/turn-route.ts'
import { attempt } from '../../src/proxy/turn/attempts.ts'
import { codexBody, expectNothingLeft, getAnswer, isTerminal, testApp } from '../support/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'

const POST = 'POST /backend-api/codex/responses'
/** created, in_progress, and four events of the answer. */
const AFTER_COMMIT = 6

interface Case {
  fault: Fault
  /** One request only; every one when absent. */
  once?: true
  /** The client's error without another account: status and code. */
  alone: [status: number, code: string] | 'served'
  /** How often the account is tried before another one, and whether one is. */
  asked: number
  goesElsewhere: boolean
  /** What is charged to the account: its state, and its transient errors. */
  state?: string
  errors?: number
  /** The same where another account then serves the turn. */
  errorsBesideOthers?: number
  retryAfter?: string
  /** Time passes in larger steps. */
  stepMs?: number
}

const failed = (code: string, afterEvents = 1): Fault => ({
  failAfterCreated: { code, message: 'It failed.', afterEvents },
})
const RESETS_AT = Date.UTC(2026, 0, 1, 3)

const CASES: Record<string, Case> = {
  '401 once': { fault: faults.unauthorized(), once: true, alone: 'served', asked: 2, goesElsewhere: false },
  '401 always': {
    fault: faults.unauthorized(),
    alone: [400, 'no_accounts'],
    asked: 2,
    goesElsewhere: true,
    state: 'reauth_required',
  },
  '402 of a deleted workspace': {
    fault: faults.deactivatedWorkspace(),
    alone: [400, 'no_accounts'],
    asked: 1,
    goesElsewhere: true,
    state: 'deactivated',
  },
  '402': {
    fault: { status: 402, body: {} },
    alone: [429, 'usage_limit_reached'],
    asked: 1,
    goesElsewhere: true,
    state: 'quota_exceeded',
  },
  '403': {
    fault: faults.forbidden(),
    alone: [502, 'upstream_error'],
    asked: 1,
    goesElsewhere: true,
    errorsBesideOthers: 1,
  },
  '403 with a page': {
    fault: faults.forbiddenHtml(),
    alone: [502, 'upstream_error'],
    asked: 1,
    goesElsewhere: true,
    errorsBesideOthers: 1,
  },
  '404': {
    fault: { status: 404, body: { detail: 'Not Found' } },
    alone: [404, 'invalid_request_error'],
    asked: 1,
    goesElsewhere: false,
  },
  '404 of a model': {
    fault: faults.modelNotFound('gpt-5.5'),
    alone: [404, 'model_not_found'],
    asked: 1,
    goesElsewhere: true,
  },
  '400 of the request': { fault: faults.invalidValue(), alone: [400, 'invalid_value'], asked: 1, goesElsewhere: false },
  '408': { fault: { status: 408, body: {} }, alone: [502, 'upstream_error'], asked: 3, goesElsewhere: true, errors: 3 },
  '429': {
    fault: faults.rateLimited(),
    alone: [429, 'rate_limit_exceeded'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
    retryAfter: '60',
  },
  '429 with Retry-After': {
    fault: faults.rateLimited(7),
    alone: [429, 'rate_limit_exceeded'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
    retryAfter: '7',
  },
  '429 usage limit': {
    fault: faults.usageLimit({ resetsAt: RESETS_AT }),
    alone: [429, 'usage_limit_reached'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
    retryAfter: '60',
  },
  '429 insufficient quota': {
    fault: faults.insufficientQuota(),
    alone: [429, 'insufficient_quota'],
    asked: 1,
    goesElsewhere: true,
    state: 'quota_exceeded',
  },
  '500': { fault: faults.serverError(), alone: [500, 'server_error'], asked: 3, goesElsewhere: true, errors: 3 },
  '504 with Retry-After': {
    fault: { status: 504, headers: { 'retry-after': '7' }, body: {} },
    alone: [504, 'upstream_error'],
    asked: 3,
    goesElsewhere: true,
    errors: 3,
    retryAfter: '7',
  },
  '502 with a page': {
    fault: faults.badGatewayHtml(),
    alone: [502, 'upstream_error'],
    asked: 3,
    goesElsewhere: true,
    errors: 3,
  },
  '503 overloaded': {
    fault: faults.overloaded(),
    alone: [503, 'server_is_overloaded'],
    asked: 1,
    goesElsewhere: true,
  },
  'a reset before headers': {
    fault: { reset: true },
    alone: [502, 'upstream_unreachable'],
    asked: 3,
    goesElsewhere: true,
    errorsBesideOthers: 1,
  },
  'a malformed chunk': {
    fault: { malformedChunk: { afterEvents: 0 } },
    alone: 'served',
    asked: 1,
    goesElsewhere: false,
  },
  'an error event on a connection that stays open': {
    fault: { errorEvent: { code: 'server_error', message: 'It failed.' }, silence: { afterEvents: 2 } },
    alone: [502, 'server_error'],
    asked: 3,
    goesElsewhere: true,
    errors: 3,
  },
  'an error event': {
    fault: { errorEvent: { code: 'server_error', message: 'It failed.' } },
    alone: [502, 'server_error'],
    asked: 3,
    goesElsewhere: true,
    errors: 3,
  },
  'an error event with a usage limit': {
    fault: { errorEvent: { code: 'usage_limit_reached', message: 'Used up.' } },
    alone: [429, 'usage_limit_reached'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
  },
  'response.failed server_error': {
    fault: failed('server_error'),
    alone: [502, 'server_error'],
    asked: 3,
    goesElsewhere: true,
    errors: 3,
  },
  'response.failed rate_limit_exceeded': {
    fault: failed('rate_limit_exceeded'),
    alone: [429, 'rate_limit_exceeded'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
  },
  'response.failed usage_limit_reached': {
    fault: failed('usage_limit_reached'),
    alone: [429, 'usage_limit_reached'],
    asked: 1,
    goesElsewhere: true,
    state: 'rate_limited',
  },
  'response.failed insufficient_quota': {
    fault: failed('insufficient_quota'),
    alone: [429, 'insufficient_quota'],
    asked: 1,
    goesElsewhere: true,
    state: 'quota_exceeded',
  },
  'response.failed context_length_exceeded': {
    fault: failed('context_length_exceeded'),
    alone: [400, 'context_length_exceeded'],
    asked: 1,
    goesElsewhere: false,
  },
  'response.failed invalid_prompt': {
    fault: failed('invalid_prompt'),
    alone: [400, 'invalid_prompt'],
    asked: 1,
    goesElsewhere: false,
  },
  'response.failed model_not_found': {
    fault: failed('model_not_found'),
    alone: [400, 'model_not_found'],
    asked: 1,
    goesElsewhere: true,
  },
  'response.failed with an unknown code': {
    fault: failed('zzz'),
    alone: [502, 'zzz'],
    asked: 1,
    goesElsewhere: false,
  },
  'response.failed token_revoked once': {
    fault: failed('token_revoked'),
    once: true,
    alone: 'served',
    asked: 2,
    goesElsewhere: false,
  },
  'response.failed token_expired once': {
    fault: failed('token_expired'),
    once: true,
    alone: 'served',
    asked: 2,
    goesElsewhere: false,
  },
  'response.incomplete': {
    fault: { incomplete: { reason: 'max_output_tokens' } },
    alone: 'served',
    asked: 1,
    goesElsewhere: false,
  },
  'the end after created': {
    fault: { dropAfter: { events: 1, how: 'fin' } },
    alone: [502, 'stream_incomplete'],
    asked: 3,
    goesElsewhere: true,
    errorsBesideOthers: 1,
  },
  'a reset after created': {
    fault: { dropAfter: { events: 1, how: 'reset' } },
    alone: [502, 'upstream_unreachable'],
    asked: 3,
    goesElsewhere: true,
    errorsBesideOthers: 1,
  },
}

const struck = async (accounts: number, { fault, once }: Pick<Case, 'fault' | 'once'>) => {
  const app = await testApp({ accounts })
  const first = app.members[0]!
  await app.prefer(first.id)
  if (once) first.sim.next(fault)
  else first.sim.always(fault)
  const asked = async () =>
    (await app.attemptRows()).map(({ accountId }) => app.members.findIndex(({ id }) => id === accountId))
  return { app, first, asked }
}

const expectCharged = (
  { app, first }: Awaited<ReturnType<typeof struck>>,
  { state = 'active', errors = 0 }: Pick<Case, 'state' | 'errors'>,
) => {
  const live = app.bindings.pool.get(first.id)!
  expect<[string, number]>([live.state.status, live.health.errors]).toEqual([state, errors])
  if (state !== 'active') expect(live.state.evidence).toBeTruthy()
  if (state === 'rate_limited' || state === 'quota_exceeded')
    expect(live.state.until ?? live.state.nextCheckAt).toBeGreaterThan(app.clock.now())
}

const times = (account: number, n: number) => Array<number>(n).fill(account)

test('an upstream that quotes the client’s words does not affect the account', async () => {
  const app = await testApp({ accounts: 3 })
  const message = "Invalid value: 'account has been deactivated'."
  const body = { error: { code: 'invalid_value', message, type: 'invalid_request_error' } }
  for (const { sim } of app.members) sim.always({ status: 400, body })
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'invalid_value'])
  expect(await app.attemptRows()).toHaveLength(1)
  expect(app.bindings.pool.all().map(({ state }) => state.status)).toEqual(['active', 'active', 'active'])
})

describe('before the commit point, no other account', () => {
  for (const [name, one] of Object.entries(CASES))
    test(name, async () => {
      const setting = await struck(1, one)
      const { app, asked } = setting
      const answer = await getAnswer(app, POST, { json: codexBody() }, one.stepMs)
      expect(await asked()).toEqual(times(0, one.asked))
      expect(await app.rows()).toHaveLength(1)
      const row = (await app.rows())[0]!
      if (one.alone === 'served') {
        expect(answer.status).toBe(200)
        expect(answer.events.filter(({ type }) => isTerminal(type))).toHaveLength(1)
        expect(row).toMatchObject({ status: 'ok', httpStatus: 200, phase: null, errorCode: null, attempts: one.asked })
      } else {
        const [status, code] = one.alone
        const { error } = JSON.parse(answer.text)
        expect([answer.status, error.code]).toEqual([status, code])
        expect(error.message).toBeString()
        expect(row).toMatchObject({ status: 'error', httpStatus: status, errorCode: code, attempts: one.asked })
        expect<string[]>(['connect', 'first_event', 'upstream']).toContain(row.phase!)
        if (one.retryAfter) expect(answer.headers.get('retry-after')).toBe(one.retryAfter)
        if (status === 429) expect(answer.headers.get('retry-after')).not.toBeNull()
      }
      expectCharged(setting, one)
      await expectNothingLeft(app)
    })
})

describe('before the commit point, with another account', () => {
  for (const [name, one] of Object.entries(CASES))
    test(name, async () => {
      const setting = await struck(2, one)
      const { app, asked } = setting
      const answer = await getAnswer(app, POST, { json: codexBody() }, one.stepMs)
      expect(await asked()).toEqual([...times(0, one.asked), ...times(1, one.goesElsewhere ? 1 : 0)])
      const isServed = one.goesElsewhere || one.alone === 'served'
      expect(answer.status).toBe(isServed ? 200 : Number(one.alone[0]))
      if (isServed) {
        expect(answer.events.filter(({ type }) => type === 'response.created')).toHaveLength(1)
        expect(answer.events.filter(({ type }) => isTerminal(type)).map(({ type }) => type)).toEqual([
          name === 'response.incomplete' ? 'response.incomplete' : 'response.completed',
        ])
      }
      expect(await app.rows()).toHaveLength(1)
      expectCharged(setting, { ...one, errors: one.errorsBesideOthers ?? one.errors ?? 0 })
      await expectNothingLeft(app)
    })
})

describe('after the commit point', () => {
  const cases: Record<string, { fault: Fault; code: string; state?: string; errors?: number }> = {
    'an error event': {
      fault: { errorEvent: { code: 'server_error', message: 'x', afterEvents: AFTER_COMMIT } },
      code: 'server_error',
      errors: 1,
    },
    'response.failed server_error': { fault: failed('server_error', AFTER_COMMIT), code: 'server_error', errors: 1 },
    'response.failed usage_limit_reached': {
      fault: failed('usage_limit_reached', AFTER_COMMIT),
      code: 'usage_limit_reached',
      state: 'rate_limited',
    },
    'response.failed context_length_exceeded': {
      fault: failed('context_length_exceeded', AFTER_COMMIT),
      code: 'context_length_exceeded',
    },
    'the end': { fault: { dropAfter: { events: AFTER_COMMIT, how: 'fin' } }, code: 'stream_incomplete' },
    'the end right before the terminal event': { fault: { omitTerminal: true }, code: 'stream_incomplete' },
    'a reset': { fault: { dropAfter: { events: AFTER_COMMIT, how: 'reset' } }, code: 'stream_incomplete' },
  }
  for (const [name, one] of Object.entries(cases))
    for (const route of [POST, 'POST /v1/responses'])
      test(`${name}, ${route}`, async () => {
        const { app, first, asked } = await struck(2, one)
        const answer = await getAnswer(app, route, { json: codexBody() })
        expect(answer.status).toBe(200)
        const terminals = answer.events.filter(({ type }) => isTerminal(type))
        const expected = route === POST ? ['response.failed'] : ['error', 'response.failed']
        expect(terminals.map(({ type }) => type)).toEqual(expected)
        expect(answer.events.at(-1)?.type).toBe('response.failed')
        const { id, error } = terminals.at(-1)!.response as { id: string; error: { code: string } } // as: its shape is the test
        expect(error.code).toBe(one.code)
        expect(id).toBe((answer.events[0]!.response as { id: string }).id)
        const numbers = answer.events.map(({ sequence_number }) => sequence_number)
        expect(numbers).toEqual(numbers.map((_, index) => index))
        expect(await asked()).toEqual([0])
        expect(await app.rows()).toHaveLength(1)
        expect((await app.rows())[0]).toMatchObject({
          status: 'error',
          httpStatus: 200,
          phase: 'stream',
          errorCode: one.code,
          attempts: 1,
        })
        expect((await app.rows())[0]!.inputTokens).toBeGreaterThan(0)
        expectCharged({ app, first, asked }, one)
        await expectNothingLeft(app)
      })

  test('garbage between events is skipped and the response completes', async () => {
    const { app } = await struck(2, { fault: { malformedChunk: { afterEvents: AFTER_COMMIT } } })
    const response = await app.ask(POST, { json: codexBody() })
    expect(await response.text()).toContain('"type":"response.completed"')
    expect((await app.rows())[0]).toMatchObject({ status: 'ok' })
    await expectNothingLeft(app)
  })
})

test('another account is used rather than waiting for one that cools down', async () => {
  const { app, asked } = await struck(2, { fault: faults.serverError() })
  for (const { id } of app.members)
    for (let errors = 0; errors < 2; errors++)
      app.bindings.pool.health(id, { kind: 'error', at: app.clock.now(), evidence: '500' })
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect(answer.status).toBe(200)
  expect(await asked()).toEqual([0, 1])
  await expectNothingLeft(app)
})

test('a refused connection is retried, then another account is used, and it counts as one error of the first', async () => {
  const { app, first, asked } = await struck(2, { fault: {} })
  app.wire.before = async (_url, init) => {
    const { authorization } = init.headers as Record<string, string> // as: this is how the upstream layer calls
    if (authorization === `Bearer ${first.sim.accessToken}`)
      throw Object.assign(new TypeError('Unable to connect.'), { code: 'ConnectionRefused' })
  }
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect(answer.status).toBe(200)
  expect(await asked()).toEqual([0, 0, 0, 1])
  const { state, health } = app.bindings.pool.get(first.id)!
  expect([state.status, health.errors]).toEqual(['active', 1])
  await expectNothingLeft(app)
})

test('a second attempt on the same account is not logged as its conversation’s account', async () => {
  const { app, first } = await struck(2, { fault: faults.serverError() })
  await getAnswer(app, POST, { json: codexBody() })
  const others = (await app.attemptRows()).map(({ considered }) =>
    (considered as Considered[]).filter(({ id }) => id !== first.id).map(({ skipped }) => skipped),
  )
  expect(others).toEqual([['policy_class'], ['other_retried'], ['other_retried'], [null]])
})

describe('an unknown rejection', () => {
  const setUp = async () => {
    const app = await testApp({ accounts: 2, settings: { routingStrategy: 'sequential_drain' } })
    const [first, second] = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const turn = (session: string) => getAnswer(app, POST, { json: codexBody(session) })
    return { app, first: first!, second: second!, turn }
  }

  test('is charged to the only account that gives it, which is skipped until its next try', async () => {
    const { app, first, second, turn } = await setUp()
    first.sim.always(faults.forbidden())
    for (const session of ['a', 'b', 'c', 'd']) expect((await turn(session)).status).toBe(200)
    const { health } = app.bindings.pool.get(first.id)!
    expect(health.errors).toBe(1)
    expect(health.lastError?.evidence).toStartWith('403: ')
    expect((await app.attemptRows()).filter(({ accountId }) => accountId === first.id)).toHaveLength(1)
    expect(app.bindings.pool.get(second.id)?.health.errors).toBe(0)
    await expectNothingLeft(app)
  })

  test('is charged to no account if it names the model: the account serves others', async () => {
    const { app, first, second, turn } = await setUp()
    const error = { code: 'permission_denied', message: 'No access to this model.', param: 'model' }
    first.sim.always({ status: 403, body: { error } })
    for (const session of ['a', 'b', 'c', 'd']) expect((await turn(session)).status).toBe(200)
    expect((await app.rows()).map(({ accountId }) => accountId)).toEqual(Array(4).fill(second.id))
    expect(app.bindings.pool.get(first.id)?.health).toMatchObject({ errors: 0, backoffUntil: null })
    await expectNothingLeft(app)
  })

  test('of all healthy accounts does not end the request before one in cooldown was tried', async () => {
    const { app, first, second, turn } = await setUp()
    first.sim.always(faults.forbidden())
    const error = { kind: 'error', at: app.clock.now(), evidence: '500' } as const
    for (let n = 0; n < 3; n++) app.bindings.pool.health(second.id, error)
    expect((await turn('a')).status).toBe(200)
    expect((await app.attemptRows()).map(({ accountId }) => accountId)).toEqual([first.id, second.id])
    await expectNothingLeft(app)
  })

  const region = { code: 'unsupported_country_region_territory', message: 'Country not supported.' }
  test.each<[string, Fault, number, string]>([
    ['no code', faults.forbidden(), 502, 'ChatGPT rejected the request.'],
    ['a code', { status: 403, body: { error: { ...region, type: 'request_forbidden' } } }, 403, region.message],
  ])(
    'with %s is charged to no account if all give it, and returned if nothing else comes',
    async (_, fault, status, message) => {
      const { app, first, second, turn } = await setUp()
      for (const { sim } of [first, second]) sim.always(fault)
      for (const session of ['a', 'b', 'c']) expect((await turn(session)).status).toBe(status)
      for (const { id } of [first, second]) expect(app.bindings.pool.get(id)?.health.errors).toBe(0)
      expect(app.bindings.ops.outage.current).toEqual({ turns: 3, message })
      await expectNothingLeft(app)
    },
  )
})

describe('accounts that are used up', () => {
  const HOUR_MS = 3_600_000
  /** In the order of use, each used up for so many hours. */
  const usedUp = async (accounts: number, ...hours: number[]) => {
    const app = await testApp({ accounts, settings: { routingStrategy: 'sequential_drain' } })
    const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    for (const [n, long] of hours.entries())
      inOrder[n]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + long * HOUR_MS }))
    return { app, inOrder }
  }
  const getError = ({ text }: { text: string }) => JSON.parse(text).error

  test('that are all there are: the request that finds out reports when the first is back', async () => {
    const { app } = await usedUp(3, 27, 1, 8)
    for (let turn = 0; turn < 2; turn++) {
      const answer = await getAnswer(app, POST, { json: codexBody() })
      expect(getError(answer)).toMatchObject({ type: 'usage_limit_reached', resets_at: app.clock.now() / 1000 + 3600 })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '60'])
      expect(answer.headers.get('x-should-retry')).toBe('false')
    }
    await expectNothingLeft(app)
  })

  test.each([2, 3])('beside one of %d that turns out to be deleted: they count, and it does not', async (accounts) => {
    const { app, inOrder } = await usedUp(accounts, ...[27, 8].slice(3 - accounts))
    inOrder.at(-1)!.sim.always(faults.deactivatedWorkspace())
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect(getError(answer)).toMatchObject({
      type: 'usage_limit_reached',
      resets_at: app.clock.now() / 1000 + 8 * 3600,
    })
    expect(await app.attemptRows()).toHaveLength(accounts)
    await expectNothingLeft(app)
  })

  test('ten of eleven: the client may retry immediately, and gets the eleventh', async () => {
    const { app, inOrder } = await usedUp(11, ...Array<number>(10).fill(1))
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect([answer.status, getError(answer).code, answer.headers.get('retry-after')]).toEqual([503, 'no_accounts', '1'])
    expect(answer.headers.get('x-should-retry')).toBeNull()
    expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
    expect((await app.rows()).at(-1)!.accountId).toBe(inOrder[10]!.id)
    await expectNothingLeft(app)
  })

  test('and available again before a timer ran: the client gets the current failure', async () => {
    const { app, inOrder } = await usedUp(1, 1)
    await getAnswer(app, POST, { json: codexBody() })
    await app.clock.advance('1h')
    inOrder[0]!.sim.always(faults.serverError())
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect([answer.status, getError(answer).code]).toEqual([500, 'server_error'])
    await expectNothingLeft(app)
  })

  test.each([0, 1])('beside one that only failed, as number %d: the client gets that failure', async (stumbles) => {
    const { app, inOrder } = await usedUp(2, 100, 100)
    inOrder[stumbles]!.sim.always(faults.serverError())
    const answer = await getAnswer(app, POST, { json: codexBody() })
    expect([answer.status, getError(answer).code]).toEqual([500, 'server_error'])
    await expectNothingLeft(app)
  })
})

test('ten of eleven that state a long wait: the client may retry immediately, and gets the eleventh', async () => {
  const app = await testApp({ accounts: 11, settings: { routingStrategy: 'sequential_drain' } })
  const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  for (const { sim } of inOrder.slice(0, 10)) sim.always(faults.rateLimited(300))
  const answer = await getAnswer(app, POST, { json: codexBody() })
  const { code } = JSON.parse(answer.text).error
  expect([answer.status, code, answer.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', '1'])
  expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
  expect((await app.rows()).at(-1)!.accountId).toBe(inOrder[10]!.id)
  await expectNothingLeft(app)
})

test('nine used-up accounts after one without the model: an eleventh can serve, so the model exists', async () => {
  const app = await testApp({ accounts: 11, settings: { routingStrategy: 'sequential_drain' } })
  const [without, ...others] = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  without!.sim.always(faults.modelNotFound('gpt-5.5'))
  for (const { sim } of others.slice(0, 9)) sim.always(faults.usageLimit())
  const answer = await getAnswer(app, POST, { json: codexBody() })
  const { code } = JSON.parse(answer.text).error
  expect([answer.status, code, answer.headers.get('retry-after')]).toEqual([503, 'no_accounts', '1'])
  await expectNothingLeft(app)
})

test.each(['is used up', 'has no slot left'])(
  'the tenth of eleven %s before it is tried again: the client gets that failure, and nothing about all accounts',
  async (how) => {
    const settings = { routingStrategy: 'sequential_drain', proxyAccountStreamLimit: 1 } as const
    const app = await testApp({ accounts: 11, settings })
    const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const tenth = inOrder[9]!
    for (const { sim } of inOrder.slice(0, 9)) sim.always(faults.forbidden())
    tenth.sim.always(faults.serverError())
    const turn = getAnswer(app, POST, { json: codexBody() })
    await app.clock.advance(50)
    const { pool, clock } = app.bindings
    const owner = { id: tenth.id, hard: true }
    const needs = { model: null, tried: new Set<string>(), scope: null, owner, restricted: false }
    const taken = await pool.lease(needs, new AbortController().signal)
    const until = clock.now() + 3_600_000
    if (how === 'is used up')
      pool.apply(tenth.id, {
        kind: 'quota_exceeded',
        at: clock.now(),
        evidence: 'x',
        resetAt: until,
        retryAfterMs: null,
      })
    const answer = await turn
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([500, 'server_error'])
    taken.release()
    await expectNothingLeft(app)
  },
)

test.each([
  [[300], '300'],
  [[20, 300], '20'],
  [[300, 20], '20'],
  [[300, 280], '280'],
  [[280, 300], '280'],
  [[280, 20, 300], '20'],
])('accounts that state a wait of %p s: the client waits for the first that is back', async (waits, retryAfter) => {
  const app = await testApp({ accounts: waits.length, settings: { routingStrategy: 'sequential_drain' } })
  const inOrder = app.members.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  for (const [n, seconds] of waits.entries()) inOrder[n]!.sim.always(faults.rateLimited(seconds))
  const answer = await getAnswer(app, POST, { json: codexBody() })
  const { code } = JSON.parse(answer.text).error
  expect([answer.status, code, answer.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', retryAfter])
  await expectNothingLeft(app)
})

test('an earlier wait of an account does not count beside its current one', async () => {
  const app = await testApp()
  const { sim } = app.members[0]!
  sim.next({ status: 503, headers: { 'retry-after': '100' }, body: {} })
  sim.always(faults.rateLimited(280))
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect((await app.attemptRows()).map(({ upstreamStatus }) => upstreamStatus)).toEqual([503, 429])
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '280'])
  await expectNothingLeft(app)
})

test('an internal error in the headers of a stream ends its request', async () => {
  const app = await testApp()
  const turns = { kind: 'normal', isNative: false, path: '/codex/responses', accept: 'text/event-stream' } as const
  const faulty = new Hono<AppEnv>().post('*', async (c) => {
    c.set('client', { key: null, hasUnrecognizedKey: false, ip: null })
    c.set('requestId', 'req_1')
    c.set('arrivedAt', app.clock.monotonic())
    const body = await readTurnBody(c, turns)
    const served = await admitTurn(c, { ...turns, route: '/v1/responses', body })
    const headers = { 'x-reasoning-included': 'да' }
    const open: typeof attempt = async (...args) => Object.assign(await attempt(...args), { headers })
    return answerWithStream(
      { ...served, open },
      publicContract({ model: 'gpt-5.5', createdAt: 0, rateEvents: 'unchanged', random: app.bindings.random }),
    )
  })
  const sent = { method: 'POST', body: JSON.stringify(codexBody()) }
  const answer = await faulty.request('/v1/responses', sent, { ...app.bindings, peer: null })
  expect(answer.status).toBe(500)
  expect(await app.rows()).toMatchObject([{ status: 'error', httpStatus: 500, errorCode: 'internal_error' }])
  await expectNothingLeft(app)
})
