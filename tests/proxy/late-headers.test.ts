/** A response that begins late: headers after ten seconds, keepalives, and one terminal event. */
import { describe, expect, test } from 'bun:test'
import {
  advanceClockDuring,
  codexBody,
  expectNothingLeft,
  getAnswer,
  isTerminal,
  parseEvents,
  type TestApp,
  testApp,
} from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const V1 = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const chatBody = { model: 'gpt-5.5', stream: true, messages: [{ role: 'user', content: 'hello' }] }
const getBody = (route: string) => (route === CHAT ? chatBody : codexBody())

/** The first account is silent for `silentMs`, then does what `fault` says. */
const slow = async (silentMs: number, fault = {}, accounts = 2) => {
  const app = await testApp({ accounts })
  await app.prefer(app.members[0]!.id)
  app.members[0]!.sim.next({ delayHeadersMs: silentMs, ...fault })
  return app
}

/** What has arrived so far. */
const reading = (response: Response) => {
  const seen = { text: '', isDone: false }
  const decoder = new TextDecoder()
  void (async () => {
    for await (const chunk of response.body!) seen.text += decoder.decode(chunk)
    seen.isDone = true
  })()
  return seen
}

const begin = async (app: TestApp, route: string) => {
  const state: { response: Response | null } = { response: null }
  void app.ask(route, { json: getBody(route) }).then((response) => {
    state.response = response
  })
  await app.clock.advance('9.9s')
  expect(state.response).toBeNull()
  await app.clock.advance('0.2s')
  expect(state.response?.status).toBe(200)
  expect(state.response!.headers.get('server-timing')).toMatch(/^admit;dur=[\d.]+, select;dur=[\d.]+$/) // no more is known
  return state.response!
}

describe('an upstream that is silent for ten seconds', () => {
  for (const [route, keepalive] of [
    [NATIVE, 'event: codex.keepalive\ndata: {"type":"codex.keepalive"}\n\n'],
    [V1, ': keepalive\n\n'],
    [CHAT, ': keepalive\n\n'],
  ] as const)
    test(`headers are sent with a keepalive, and another follows every eight seconds: ${route}`, async () => {
      const app = await slow(40_000)
      const seen = reading(await begin(app, route))
      await app.clock.advance('7s')
      expect(seen.text).toBe(keepalive)
      await app.clock.advance('18s')
      expect(seen.text).toBe(keepalive.repeat(4))
      await app.clock.advance('10s')
      expect(seen.isDone).toBe(true)
      expect(await app.rows()).toHaveLength(1)
      expect((await app.rows())[0]).toMatchObject({ status: 'ok', httpStatus: 200, attempts: 1 })
      await expectNothingLeft(app)
    })

  test('another account can still serve after the headers', async () => {
    const app = await slow(20_000, faults.usageLimit())
    const answer = await getAnswer(app, NATIVE, { json: codexBody() }, 1000)
    expect(answer.status).toBe(200)
    const types = answer.events.map(({ type }) => type)
    expect(types.filter((type) => type === 'response.created')).toHaveLength(1)
    expect(types.filter(isTerminal)).toEqual(['response.completed'])
    expect((await app.rows())[0]).toMatchObject({ status: 'ok', attempts: 2, accountId: app.members[1]!.id })
    await expectNothingLeft(app)
  })

  for (const [route, types] of [
    [NATIVE, ['response.failed']],
    [V1, ['response.created', 'error', 'response.failed']],
  ] as const)
    test(`a final failure ends with response.failed: ${route}`, async () => {
      const app = await slow(20_000, faults.usageLimit(), 1)
      const answer = await getAnswer(app, route, { json: codexBody() }, 1000)
      expect(answer.status).toBe(200)
      const real = answer.events.filter(({ type }) => type !== 'codex.keepalive')
      expect(real.map(({ type }) => type)).toEqual([...types])
      expect(real.map(({ sequence_number }) => sequence_number)).toEqual(Object.keys(types).map(Number))
      expect(real.at(-1)).toMatchObject({
        response: { status: 'failed', error: { code: 'usage_limit_reached', type: 'usage_limit_reached' } },
      })
      expect(await app.rows()).toHaveLength(1)
      expect((await app.rows())[0]).toMatchObject({
        status: 'error',
        httpStatus: 200,
        errorCode: 'usage_limit_reached',
      })
      await expectNothingLeft(app)
    })

  test('the SDK gets a created response before it fails, because otherwise its helper hides the reason', async () => {
    const app = await slow(20_000, faults.usageLimit(), 1)
    const { events } = await getAnswer(app, V1, { json: codexBody() }, 1000)
    const [created, , failed] = events.map(({ response }) => response as Record<string, unknown>) // as: both have one
    expect(created).toMatchObject({ object: 'response', status: 'in_progress', model: 'gpt-5.5', output: [] })
    expect(created?.id).toStartWith('resp_')
    expect(failed?.id).toBe(created?.id)
  })

  test('chat ends with one error line and no [DONE]', async () => {
    const app = await slow(20_000, faults.forbidden(), 1)
    const answer = await getAnswer(app, CHAT, { json: chatBody }, 1000)
    const lines = answer.text.split('\n').filter((line) => line.startsWith('data: '))
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]!.slice(6))).toMatchObject({ error: { code: 'upstream_error' } })
    expect(answer.text).not.toContain('[DONE]')
    await expectNothingLeft(app)
  })

  for (const [route, json] of [
    [V1, codexBody('hello', { stream: false })],
    [CHAT, { ...chatBody, stream: false }],
  ] as const)
    test(`a JSON response waits for its status: ${route}`, async () => {
      const app = await slow(60_000, faults.usageLimit(), 1)
      const state = { hasHeaders: false }
      const asked = app.ask(route, { json }).then((response) => {
        state.hasHeaders = true
        return response
      })
      await app.clock.advance('59s')
      expect(state.hasHeaders).toBe(false)
      const response = await advanceClockDuring(app, asked, 1000)
      expect(response.status).toBe(429)
      expect((await app.rows())[0]).toMatchObject({ status: 'error', httpStatus: 429 })
      await expectNothingLeft(app)
    })
})

test('keepalives continue when the response has begun and pauses', async () => {
  const app = await testApp()
  app.members[0]!.sim.next({ dripMs: 9000 })
  const answer = await getAnswer(app, NATIVE, { json: codexBody() }, 1000)
  const types = parseEvents(answer.text).map(({ type }) => type)
  expect(types.at(-1)).toBe('response.completed')
  expect(types.filter((type) => type === 'codex.keepalive').length).toBeGreaterThan(3)
  await expectNothingLeft(app)
})

test('upstream comments are no keepalive for the native client, which ignores them', async () => {
  const app = await testApp()
  const pings = 20
  const lines = [{ type: 'response.output_item.added' }, ...Array(pings), { type: 'response.completed', response: {} }]
  app.bindings.proxyDeps.upstream.dial.fetch = async () => new Response(dripped(app, lines), SSE)
  const { text } = await getAnswer(app, NATIVE, { json: codexBody() }, 1000)
  const keepalives = parseEvents(text).filter(({ type }) => type === 'codex.keepalive')
  expect(text.split(': ping').length - 1).toBe(pings)
  expect(keepalives.length).toBeGreaterThan(8) // in 105 s
})

const SSE = { headers: { 'content-type': 'text/event-stream' } }

/** One event of each, or a comment if there is none, five seconds apart. */
const dripped = ({ clock }: TestApp, events: readonly (object | undefined)[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    async start(controller) {
      for (const event of events) {
        controller.enqueue(Buffer.from(event ? `data: ${JSON.stringify(event)}\n\n` : ': ping\n\n'))
        await clock.sleep(5000)
      }
      controller.close()
    },
  })

test('a failure after the commit in a JSON response keeps its own status', async () => {
  const app = await testApp()
  app.members[0]!.sim.next({ failAfterCreated: { code: 'rate_limit_exceeded', message: 'Slow down.', afterEvents: 6 } })
  const answer = await getAnswer(app, V1, { json: codexBody('hello', { stream: false }) })
  expect(answer.status).toBe(429)
  expect(JSON.parse(answer.text).error.code).toBe('rate_limit_exceeded')
  expect((await app.rows())[0]).toMatchObject({ status: 'error', httpStatus: 429, errorCode: 'rate_limit_exceeded' })
  await expectNothingLeft(app)
})

describe('a connection check without a connection', () => {
  const checked = async (silentMs: number) => {
    const app = await slow(silentMs, { dripMs: 500 }, 1)
    app.wire.canConnect = async () => {
      await app.clock.sleep(3000)
      return false
    }
    return app
  }

  test('ends an attempt that still waits for its headers', async () => {
    const app = await checked(12_000)
    await getAnswer(app, NATIVE, { json: codexBody() })
    expect((await app.attemptRows())[0]).toMatchObject({ code: 'upstream_unreachable' })
  })

  test('does not end a stream whose headers arrived during the check', async () => {
    const app = await checked(9000)
    const { events } = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(events.at(-1)?.type).toBe('response.completed')
    expect(await app.attemptRows()).toHaveLength(1)
    await expectNothingLeft(app)
  })
})
