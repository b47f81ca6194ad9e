/** The limits of a request: key limits, slots of an account, bodies in memory, timeouts, and shutdown. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import type { BodyBudget, BodyHold } from '../../src/proxy/ingress/raw-body.ts'
import {
  advanceClockDuring,
  codexBody,
  expectNothingLeft,
  getAnswer,
  isTerminal,
  type TestApp,
  type TestOptions,
  testApp,
} from '../support/app.ts'
import { blockUpdates } from '../support/lost-answer.ts'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const json = codexBody()
type LimitType = 'requests' | 'total_tokens' | 'output_tokens'

const YEAR_MS = 365 * 86_400_000

const withLimit = async (limitType: LimitType, maxValue: number, options: TestOptions = {}) => {
  const app = await testApp({ ...options, settings: { apiKeyAuthEnabled: true, ...options.settings } })
  const limits = [{ limitType, limitWindow: 'daily' as const, maxValue, modelFilter: '' }]
  const { key } = await app.key({ limits })
  const live = () => {
    const [limit] = app.bindings.keys.find(key)!.limits
    return { settled: limit!.settled, reserved: limit!.reserved }
  }
  return { app, live, headers: { authorization: `Bearer ${key}` } }
}

describe('a key limit', () => {
  test('is reserved while the request runs and charged once with the actual use', async () => {
    const { app, live, headers } = await withLimit('total_tokens', 1_000_000)
    app.members[0]!.sim.next({ dripMs: 10 })
    const asked = getAnswer(app, NATIVE, { json, headers })
    await app.clock.advance(0)
    expect(live().reserved).toBeGreaterThan(0)
    await asked
    const [row] = await app.rows()
    expect(live()).toEqual({ settled: row!.inputTokens! + row!.outputTokens!, reserved: 0 })
    await app.restart()
    expect(live()).toEqual({ settled: row!.inputTokens! + row!.outputTokens!, reserved: 0 })
    await expectNothingLeft(app)
  })

  test('of requests is exact for parallel requests', async () => {
    const { app, headers } = await withLimit('requests', 3)
    const answers = await Promise.all(Array.from({ length: 8 }, () => getAnswer(app, NATIVE, { json, headers })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
    const refused = answers.find(({ status }) => status === 429)!
    expect(JSON.parse(refused.text).error.code).toBe('rate_limit_exceeded')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await expectNothingLeft(app)
  })

  test('that is used up stops the native client with its reset, and is an ordinary limit to others', async () => {
    const { app, headers } = await withLimit('requests', 1)
    await getAnswer(app, NATIVE, { json, headers })
    const resets_at = app.bindings.keys.find(headers.authorization.slice(7))!.limits[0]!.resetAt / 1000
    const expected = { [NATIVE]: 'usage_limit_reached', 'POST /v1/responses': 'rate_limit_error' }
    for (const [route, type] of Object.entries(expected)) {
      const refused = await getAnswer(app, route, { json, headers })
      expect(JSON.parse(refused.text).error).toMatchObject({ code: 'rate_limit_exceeded', type, resets_at })
      // Without it an SDK sleeps until the reset, or for a minute twice over.
      expect(refused.headers.get('x-should-retry')).toBe('false')
    }
    expect((await app.rows()).at(-1)).toMatchObject({ httpStatus: 429, errorCode: 'rate_limit_exceeded' })
  })

  test('used up while the clock was a year ahead is available again after the correction, even after a restart', async () => {
    const { app, headers } = await withLimit('requests', 1)
    const status = async () => (await getAnswer(app, NATIVE, { json, headers })).status
    app.clock.set(YEAR_MS)
    expect([await status(), await status()]).toEqual([200, 429])
    app.clock.set(-YEAR_MS)
    await app.restart()
    expect([await status(), await status()]).toEqual([200, 429])
    await app.restart()
    expect(await status()).toBe(429)
    await expectNothingLeft(app)
  })

  test('filled by running requests is reported as temporary', async () => {
    const { app, headers } = await withLimit('requests', 1)
    const send = () => getAnswer(app, NATIVE, { json, headers })
    const answers = await Promise.all([send(), send()])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429])
    const rejected = answers.find(({ status }) => status === 429)!
    expect([rejected.headers.get('retry-after'), JSON.parse(rejected.text).error.type]).toEqual([
      '5',
      'rate_limit_error',
    ])
    expect(rejected.headers.get('x-should-retry')).toBeNull()
  })

  const endings: Record<string, { fault: Fault; isCharged: boolean }> = {
    'refused upstream': { fault: faults.invalidValue(), isCharged: false },
    'broken off': { fault: { dropAfter: { events: 6, how: 'reset' } }, isCharged: true },
    'failed in the stream': {
      fault: { failAfterCreated: { code: 'server_error', message: 'x', afterEvents: 6 } },
      isCharged: true,
    },
  }
  for (const [name, { fault, isCharged }] of Object.entries(endings))
    test(`is released after a request that was ${name}`, async () => {
      const { app, live, headers } = await withLimit('total_tokens', 1_000_000)
      app.members[0]!.sim.next(fault)
      await getAnswer(app, NATIVE, { json, headers })
      expect(live().reserved).toBe(0)
      expect(live().settled > 0).toBe(isCharged)
      expect((await app.rows())[0]!.inputTokens !== null).toBe(isCharged)
      await expectNothingLeft(app)
    })

  const untold = { id: 'resp_1', object: 'response', status: 'completed', output: [] }
  const { model, instructions, input } = json
  const unstated: Record<string, { route: string; body: object; fault: Fault; outputTokens: number }> = {
    'a stream': {
      route: NATIVE,
      body: json,
      fault: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: [
          { type: 'response.created', response: { id: 'resp_1' } },
          { type: 'response.output_text.delta', delta: 'x' },
          { type: 'response.completed', response: { ...untold, usage: null } },
        ]
          .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
          .join(''),
      },
      outputTokens: 1,
    },
    'a document': {
      route: `${NATIVE}/compact`,
      body: { model, instructions, input },
      fault: { on: 'compact', status: 200, body: { ...untold, object: 'response.compaction' } },
      outputTokens: 0,
    },
  }
  for (const [name, { route, body, fault, outputTokens }] of Object.entries(unstated))
    test(`counts ${name} that completed without stating its usage, with its estimate`, async () => {
      const { app, live, headers } = await withLimit('requests', 2)
      app.members[0]!.sim.always(fault)
      const statuses: number[] = []
      for (let turn = 0; turn < 3; turn++) statuses.push((await getAnswer(app, route, { json: body, headers })).status)
      expect(statuses).toEqual([200, 200, 429])
      expect(live()).toEqual({ settled: 2, reserved: 0 })
      const charged = { status: 'ok', inputTokens: JSON.stringify(body).length, outputTokens }
      expect(await app.rows()).toMatchObject([charged, charged, { status: 'error', inputTokens: null }])
      await expectNothingLeft(app)
    })

  test('is charged for input and the output seen when the client disconnects', async () => {
    const { app, live, headers } = await withLimit('total_tokens', 1_000_000)
    app.members[0]!.sim.next({ silence: { afterEvents: 11 } })
    const reader = (await app.ask(NATIVE, { json, headers })).body!.getReader()
    for (let seen = ''; !seen.includes('output_text.delta'); )
      seen += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
    const [row] = await app.rows()
    expect(row).toMatchObject({ status: 'cancelled', inputTokens: JSON.stringify(json).length })
    expect(live()).toEqual({ settled: row!.inputTokens! + row!.outputTokens!, reserved: 0 })
    await expectNothingLeft(app)
  })
})

/** A turn that holds its slot until `end` is called. */
const holding = async (app: TestApp) => {
  app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
  const reader = (await app.ask(NATIVE, { json })).body!.getReader()
  return { end: () => reader.cancel() }
}

describe('slots of an account', () => {
  test('a request waits for one and is served when it is released', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    const first = await holding(app)
    const second = getAnswer(app, NATIVE, { json })
    await app.clock.advance('3s')
    expect(app.upstream.requests).toHaveLength(1)
    await first.end()
    await app.clock.advance(0)
    expect(app.upstream.requests).toHaveLength(2) // immediately, not when the wait is over
    expect((await second).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('a waiting request immediately uses an added account', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    const first = await holding(app)
    const second = getAnswer(app, NATIVE, { json })
    await app.clock.advance('3s')
    const { id } = await app.addAccount()
    await app.clock.advance(0)
    expect((await second).status).toBe(200)
    expect((await app.rows())[0]!.accountId).toBe(id)
    expect(app.clock.monotonic()).toBeLessThan(4000)
    await first.end()
    await expectNothingLeft(app)
  })

  test('waiting requests are served in order', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    const first = await holding(app)
    const asked = ['a', 'b', 'c'].map((text) => getAnswer(app, NATIVE, { json: codexBody(text) }))
    await app.clock.advance(0)
    await first.end()
    await Promise.all(asked)
    const texts = app.upstream.requests.slice(1).map(({ bodyText }) => /"text":"(.)"/.exec(bodyText)?.[1])
    expect(texts).toEqual(['a', 'b', 'c'])
    await expectNothingLeft(app)
  })

  test.each([
    ['states a long wait', faults.rateLimited(3600)],
    ['has no such model', faults.modelNotFound('gpt-5.5')],
  ])('the wait ends the same way if another account %s', async (_, fault) => {
    const app = await testApp({ accounts: 2, settings: { proxyAccountStreamLimit: 1 } })
    const [busy, other] = app.members
    await app.prefer(busy!.id)
    const first = await holding(app)
    other!.sim.always(fault)
    const answer = await getAnswer(app, NATIVE, { json })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([429, 'account_stream_cap'])
    expect(answer.headers.get('retry-after')).toBe('5')
    await first.end()
    await expectNothingLeft(app)
  })

  test('the wait ends in 429 after five seconds, and the account is not charged', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    const first = await holding(app)
    const startedAt = app.clock.now()
    const answer = await getAnswer(app, NATIVE, { json })
    expect(app.clock.now() - startedAt).toBeWithin(5000, 5200)
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([429, 'account_stream_cap'])
    expect(answer.headers.get('retry-after')).toBe('5')
    expect(await app.rows()).toMatchObject([
      { status: 'error', httpStatus: 429, errorCode: 'account_stream_cap', phase: 'select', attempts: 0 },
    ])
    await first.end()
    await expectNothingLeft(app)
  })

  test('with other nodes, the error of the wait names the database if that cannot be written', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 }, isShared: true })
    const unblock = await blockUpdates(app.db, 'accounts')
    const startedAt = app.clock.now()
    const answer = await getAnswer(app, NATIVE, { json })
    expect(app.clock.now() - startedAt).toBeWithin(5000, 5200)
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([
      503,
      expect.objectContaining({
        code: 'busy',
        message:
          'Sluice cannot reach its database, which counts the running streams of each account. Try again shortly.',
      }),
    ])
    expect(answer.headers.get('retry-after')).toBe('5')
    await unblock()
    await app.clock.advance('1s')
    expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
    await app.clock.advance('2s')
    await expectNothingLeft(app)
  })

  test('with other nodes, a wait for streams of this node is not about the database, even if that cannot be written', async () => {
    const app = await testApp({ accounts: 2, settings: { proxyAccountStreamLimit: 1 }, isShared: true })
    const [full, other] = await Promise.all(
      app.members.map(async ({ id }) => ({
        authorization: `Bearer ${(await app.key({ assignedAccountIds: [id] })).key}`,
      })),
    )
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const reader = (await app.ask(NATIVE, { json, headers: full })).body!.getReader()
    const unblock = await blockUpdates(app.db, 'accounts')
    const answers = [getAnswer(app, NATIVE, { json, headers: full }), getAnswer(app, NATIVE, { json, headers: other })]
    const [ofFull, ofOther] = await Promise.all(answers)
    expect([ofFull!.status, JSON.parse(ofFull!.text).error.code]).toEqual([429, 'account_stream_cap'])
    expect([ofOther!.status, JSON.parse(ofOther!.text).error.code]).toEqual([503, 'busy'])
    await unblock()
    await reader.cancel()
    await app.clock.advance('2s')
    await expectNothingLeft(app)
  })

  test('the queue is bounded', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1, capacityQueueLimit: 1 } })
    const first = await holding(app)
    const waiting = getAnswer(app, NATIVE, { json })
    await app.clock.advance(0)
    const turnedAway = await app.ask(NATIVE, { json })
    expect(turnedAway.status).toBe(429)
    await first.end()
    expect((await waiting).status).toBe(200)
    const next = await holding(app)
    const last = getAnswer(app, NATIVE, { json }) // served clients are not in it any more
    await app.clock.advance(0)
    await next.end()
    expect((await last).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('another account is used before any request waits', async () => {
    const app = await testApp({ accounts: 2, settings: { proxyAccountStreamLimit: 1 } })
    await app.prefer(app.members[0]!.id)
    const first = await holding(app)
    const answer = await getAnswer(app, NATIVE, { json })
    expect(answer.status).toBe(200)
    expect((await app.rows())[0]).toMatchObject({ accountId: app.members[1]!.id })
    await first.end()
    await expectNothingLeft(app)
  })
})

describe('bodies in flight', () => {
  const MIB = 1024 * 1024
  /** A turn whose body is in memory, waiting for the upstream. */
  const heldBody = async (app: TestApp, mib: number) => {
    app.members[0]!.sim.next({ delayHeadersMs: 5000 })
    const asked = app.ask(NATIVE, { json: codexBody('x'.repeat(mib * MIB)) })
    for (let turn = 0; turn < 100 && app.upstream.requests.length === 0; turn++) await app.clock.advance(0)
    expect(app.bindings.bodies.heldBytes).toBeGreaterThan(mib * MIB)
    const end = () =>
      advanceClockDuring(
        app,
        asked.then((response) => response.text()),
        1000,
      )
    return { end }
  }
  const large = Buffer.from(JSON.stringify(codexBody('y'.repeat(10 * MIB))))
  const expectBusy = async (response: Response) => {
    expect([response.status, (await response.json()).error.code]).toEqual([503, 'busy'])
    expect(response.headers.get('retry-after')).toBe('2')
  }

  test('one too many is rejected before it is read', async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 16 } })
    const first = await heldBody(app, 10)
    await expectBusy(await app.ask(NATIVE, { body: large, headers: { 'content-length': String(large.length) } }))
    expect(await first.end()).toContain('response.completed')
    await expectNothingLeft(app)
  })

  test('one that turns out large while read or decoded is rejected too', async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 16 } })
    const first = await heldBody(app, 10)
    await expectBusy(await app.ask(NATIVE, { body: large }))
    const body = Bun.gzipSync(large)
    const headers = { 'content-encoding': 'gzip', 'content-length': String(body.length) }
    await expectBusy(await app.ask(NATIVE, { body, headers }))
    expect(await first.end()).toContain('response.completed')
    await expectNothingLeft(app)
  })

  const said = { model: 'gpt-5.5', input: 'hello' }
  const messages = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }
  test.each([
    [NATIVE, json],
    ['POST /v1/responses', { ...said, stream: true }],
    ['POST /v1/responses', said],
    ['POST /v1/chat/completions', { ...messages, stream: true }],
    ['POST /v1/chat/completions', messages],
    ['POST /v1/responses/compact', said],
    ['POST /backend-api/codex/responses/compact', { ...said, input: json.input, instructions: 'Be brief.' }],
  ])('a body is released at the commit point and does not stay in memory: %s %j', async (route, json) => {
    const app = await testApp()
    const { sim } = app.members[0]!
    sim.next({ on: 'compact', status: 404, body: { detail: 'Not Found' } }) // by the fallback
    sim.next({ on: 'responses', silence: { afterEvents: 3 } })
    const holds = watchHolds(app.bindings.bodies)
    const leaving = new AbortController()
    const asked = app.ask(route, { json, signal: leaving.signal })
    for (let turn = 0; turn < 100 && app.upstream.openStreams === 0; turn++) await app.clock.advance(0)
    for (let turn = 0; turn < 100 && app.bindings.bodies.heldBytes > 0; turn++) await app.clock.advance(0)
    expect([app.bindings.turns.size, app.bindings.bodies.heldBytes, holds.length]).toEqual([1, 0, 1])
    await until(() => {
      Bun.gc(true)
      return holds[0]!.deref() === undefined
    }, 'the collector did not take the body')
    leaving.abort()
    await asked.then((response) => response.body?.cancel()).catch(() => {}) // a JSON answer never comes
    await expectNothingLeft(app)
  })

  /** The bytes of bodies that the budget holds from now on, referenced only by their holders. */
  const watchHolds = (bodies: BodyBudget): WeakRef<BodyHold>[] => {
    const holds: WeakRef<BodyHold>[] = []
    const open = bodies.open.bind(bodies)
    bodies.open = (announcedBytes) => {
      const hold = open(announcedBytes)
      holds.push(new WeakRef(hold))
      return hold
    }
    return holds
  }
})

describe('time limits', () => {
  test('no first event: one more attempt on the account, then an error within 180 s', async () => {
    const app = await testApp({ settings: { compactTimeoutSeconds: 30 } })
    app.members[0]!.sim.always({ delayHeadersMs: 1_000_000 })
    const startedAt = app.clock.now()
    const answer = await getAnswer(app, 'POST /v1/responses', { json: codexBody('hello', { stream: false }) }, 1000)
    expect(app.clock.now() - startedAt).toBeWithin(179_000, 182_000)
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([504, 'upstream_timeout'])
    expect((await app.attemptRows()).map(({ code, durationMs }) => [code, Math.round(durationMs / 1000)])).toEqual([
      ['upstream_timeout', 120],
      ['upstream_timeout', 60],
    ])
    await expectNothingLeft(app)
  })

  test('no first event with another account: it gets the remaining time', async () => {
    const app = await testApp({ accounts: 2 })
    const [slow, other] = app.members
    await app.prefer(slow!.id)
    slow!.sim.always({ delayHeadersMs: 1_000_000 })
    const answer = await getAnswer(app, 'POST /v1/responses', { json: codexBody('hello', { stream: false }) }, 1000)
    expect(answer.status).toBe(200)
    expect((await app.attemptRows()).map(({ accountId, code }) => [accountId, code])).toEqual([
      [slow!.id, 'upstream_timeout'],
      [other!.id, null],
    ])
    await expectNothingLeft(app)
  })

  test('an account that only had the remaining time is not charged for being slow', async () => {
    const app = await testApp({ accounts: 2, settings: { firstEventTimeoutSeconds: 170 } })
    const [slow, other] = app.members
    await app.prefer(slow!.id)
    for (const { sim } of app.members) sim.always({ delayHeadersMs: 1_000_000 })
    const answer = await getAnswer(app, 'POST /v1/responses', { json: codexBody('hello', { stream: false }) }, 1000)
    expect(answer.status).toBe(504)
    const errors = ({ id }: { id: string }) => app.bindings.pool.get(id)!.health.errors
    expect([errors(slow!), errors(other!)]).toEqual([1, 0])
    await expectNothingLeft(app)
  })

  const trigger = { type: 'compaction_trigger' }
  test.each([
    ['the native route', NATIVE, { ...json, input: [...json.input, trigger] }],
    ['/v1', 'POST /v1/responses', { model: 'gpt-5.5', input: [{ role: 'user', content: 'hi' }, trigger] }],
    ['chat that is Responses-shaped', 'POST /v1/chat/completions', { model: 'gpt-5.5', input: [trigger] }],
  ])('a compaction on %s has the timeout of a compaction', async (_, route, body) => {
    const app = await testApp({ settings: { firstEventTimeoutSeconds: 4 } })
    app.members[0]!.sim.next({ delayFirstEventMs: 10_000 })
    expect((await getAnswer(app, route, { json: body }, 500)).status).toBe(200)
    expect(await app.rows()).toMatchObject([{ kind: 'compaction', status: 'ok', attempts: 1 }])
    expect(app.bindings.pool.all()[0]!.health.errors).toBe(0)
    await expectNothingLeft(app)
  })

  test('a trigger that is not at the end is not a compaction', async () => {
    const app = await testApp()
    await getAnswer(app, NATIVE, { json: { ...json, input: [trigger, ...json.input] } })
    expect(await app.rows()).toMatchObject([{ kind: 'normal' }])
    await expectNothingLeft(app)
  })

  test('silence after created counts as no first event', async () => {
    const app = await testApp({ settings: { firstEventTimeoutSeconds: 20 } })
    app.members[0]!.sim.next({ silence: { afterEvents: 2 } })
    const answer = await getAnswer(app, NATIVE, { json }, 1000)
    expect(answer.events.filter(({ type }) => isTerminal(type)).map(({ type }) => type)).toEqual(['response.completed'])
    expect((await app.attemptRows()).map(({ code }) => code)).toEqual(['upstream_timeout', null])
    await expectNothingLeft(app)
  })

  test('silence in the stream ends it after 300 s with one terminal event', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const answer = await getAnswer(app, NATIVE, { json }, 2000)
    expect(app.clock.monotonic()).toBeWithin(299_000, 304_000)
    const types = answer.events.map(({ type }) => type).filter((type) => type !== 'codex.keepalive')
    expect(types.filter(isTerminal)).toEqual(['response.failed'])
    expect(types.at(-1)).toBe('response.failed')
    expect((await app.rows())[0]).toMatchObject({ status: 'error', errorCode: 'upstream_timeout', phase: 'stream' })
    expect(app.bindings.pool.all()[0]!.health.errors).toBe(1)
    await expectNothingLeft(app)
  })

  test('a client that pauses does not count as upstream silence', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ manyEvents: { count: 50, bytes: 10 } })
    const reader = (await app.ask(NATIVE, { json })).body!.getReader()
    await reader.read()
    await app.clock.advance('20m')
    let text = ''
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += new TextDecoder().decode(part.value)
    expect(text).toContain('"type":"response.completed"')
    expect(text).not.toContain('keepalive') // nothing is buffered for a client that does not read
    expect((await app.rows())[0]).toMatchObject({ status: 'ok' })
    await expectNothingLeft(app)
  })

  for (const isReading of [true, false])
    test(`a stream ends after 7200 s, ${isReading ? 'read' : 'not read'}`, async () => {
      const app = await testApp()
      app.members[0]!.sim.next({ manyEvents: { count: 100_000, bytes: 10 }, ...(isReading && { dripMs: 30_000 }) })
      const response = await advanceClockDuring(app, app.ask(NATIVE, { json }), 60_000)
      const text = isReading ? response.text() : null
      await app.clock.advance('121m')
      expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'upstream_timeout', httpStatus: 200 }])
      expect(app.bindings.pool.all()[0]!.health.errors).toBe(0)
      expect((await (text ?? response.text())).match(/"type":"response\.failed"/g)).toHaveLength(1)
      await expectNothingLeft(app)
    })
})

describe('draining', () => {
  const drain = (app: TestApp) => {
    app.bindings.lifecycle.draining = true
    for (const turn of app.bindings.turns) turn.abort(new AppError('draining', { retryAfterSeconds: 5 }))
  }

  test('ends a running stream with one terminal event', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const asked = getAnswer(app, NATIVE, { json })
    await app.clock.advance(0)
    drain(app)
    const { events } = await asked
    expect(events.filter(({ type }) => isTerminal(type))).toMatchObject([
      { type: 'response.failed', response: { error: { code: 'draining' } } },
    ])
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'draining' }])
    expect(app.bindings.pool.all()[0]!.health.errors).toBe(0)
    await expectNothingLeft(app)
  })

  test('answers a request that has not begun, and new ones, with 503', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ delayHeadersMs: 60_000 })
    const asked = getAnswer(app, NATIVE, { json })
    await app.clock.advance(0)
    drain(app)
    for (const answer of [await asked, await getAnswer(app, NATIVE, { json })]) {
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([503, 'draining'])
      expect(answer.headers.get('retry-after')).toBe('5')
    }
    expect(app.bindings.pool.all()[0]!.health.errors).toBe(0)
    await expectNothingLeft(app)
  })

  test('a request that waits for a slot is not a failed selection', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    const first = await holding(app)
    const waiting = getAnswer(app, NATIVE, { json })
    await app.clock.advance(0)
    drain(app)
    expect((await waiting).status).toBe(503)
    expect(await app.failedSelections()).toEqual([])
    await first.end()
    await expectNothingLeft(app)
  })
})

test("over the runtime's outbound cap, a request is rejected and can be retried", async () => {
  const app = await testApp()
  app.bindings.lifecycle.maxTurns = 0
  const refused = await app.ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hello' } })
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await refused.json()).toMatchObject({ error: { code: 'busy' } })
  app.bindings.lifecycle.maxTurns = 1
  const served = await app.ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hello' } })
  expect(served.status).toBe(200)
})
