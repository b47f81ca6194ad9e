/** `/v1/responses` like OpenAI's: earlier responses and their items can be referenced by the key that created them. */
import { describe, expect, test } from 'bun:test'
import { expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { answers, type Json, type Turn } from '../../support/upstream/script.ts'

const V1 = 'POST /v1/responses'
const MODEL = 'gpt-5.5'
const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: { city: {} } } }]

interface Ask extends Record<string, unknown> {
  key?: string
}

const send = async (app: TestApp, { key, ...json }: Ask) => {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const answer = await getAnswer(app, V1, { json: { model: MODEL, ...json }, headers })
  if (!json.stream) return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.text) }
  return { status: answer.status, headers: answer.headers, body: answer.events.at(-1)?.response as Json } // as: its last event
}

const call = async (app: TestApp, route: string, key?: string) => {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const answer = await getAnswer(app, route, { headers })
  return { status: answer.status, body: JSON.parse(answer.text) }
}

const bodies = (app: TestApp): Json[] => app.upstream.requests.map(({ bodyText }) => JSON.parse(bodyText))
const lastInput = (app: TestApp) => bodies(app).at(-1)?.input as Json[]
/** The input items of the newest upstream request, without reasoning. */
const lastMessages = (app: TestApp) => lastInput(app).filter(({ role }) => role !== undefined)
/** The text of `input` of every request that went upstream, without its closing bracket. */
const inputTexts = (app: TestApp): string[] =>
  app.upstream.requests.map(({ bodyText }) => JSON.stringify(JSON.parse(bodyText).input).slice(0, -1))

const user = (text: string) => ({ role: 'user', content: [{ type: 'input_text', text }] })

/** Thinks, calls the tool, and quotes its output once it is there. */
const thinksAndCalls = (app: TestApp) =>
  app.upstream.script((turn: Turn) => {
    const output = turn.input.findLast(({ type }) => type === 'function_call_output')
    const thought = { kind: 'reasoning', summary: 'Hm.' } as const
    return output
      ? answers.items([thought, { kind: 'text', text: `It is ${output.output}.` }])
      : answers.items([thought, { kind: 'functionCall', name: 'weather', arguments: '{"city":"Ghent"}' }])
  })

describe('previous_response_id', () => {
  test.each([true, false])('continues the conversation, stream: %s', async (stream) => {
    const app = await testApp()
    thinksAndCalls(app)
    const first = await send(app, { input: 'weather?', tools: TOOLS, stream })
    const [thought, called] = first.body.output
    expect([first.body.store, first.body.previous_response_id]).toEqual([true, null])
    const output = { type: 'function_call_output', call_id: called.call_id, output: 'mild' }
    const second = await send(app, { previous_response_id: first.body.id, input: [output], tools: TOOLS, stream })
    expect(second.body).toMatchObject({ status: 'completed', store: true, previous_response_id: first.body.id })
    expect(lastInput(app)).toMatchObject([user('weather?'), thought, called, output])
    const third = await send(app, { previous_response_id: second.body.id, input: 'thanks', stream })
    expect(third.status).toBe(200)
    expect(lastInput(app)).toMatchObject([
      user('weather?'),
      thought,
      called,
      output,
      ...second.body.output,
      user('thanks'),
    ])
    const [one, two, three] = inputTexts(app)
    expect([two?.startsWith(one ?? '?'), three?.startsWith(two ?? '?')]).toEqual([true, true])
    await expectNothingLeft(app)
  })

  test('does not inherit instructions, but system messages, which are part of the conversation', async () => {
    const app = await testApp()
    const first = await send(app, {
      instructions: 'Be brief.',
      input: [{ role: 'system', content: 'Be kind.' }, user('a')],
    })
    expect(bodies(app)[0]).toMatchObject({ instructions: 'Be brief.\nBe kind.', input: [user('a')] })
    await send(app, { previous_response_id: first.body.id, input: 'b' })
    expect(bodies(app)[1]).toMatchObject({ instructions: 'Be kind.' })
    expect(lastMessages(app)).toMatchObject([user('a'), { role: 'assistant' }, user('b')])
    const late = [{ role: 'system', content: 'Be quick.' }, user('c')]
    const third = await send(app, { previous_response_id: first.body.id, instructions: 'Be brief.', input: late })
    expect(bodies(app)[2]).toMatchObject({ instructions: 'Be brief.\nBe kind.' })
    expect(lastMessages(app).slice(2)).toMatchObject([{ role: 'developer' }, user('c')])
    await send(app, { previous_response_id: third.body.id, input: 'd' })
    expect(lastMessages(app).slice(2, 4)).toMatchObject([{ role: 'developer' }, user('c')])
  })

  test('two responses can continue the same one', async () => {
    const app = await testApp()
    const { body } = await send(app, { input: 'a' })
    for (const input of ['left', 'right']) {
      await send(app, { previous_response_id: body.id, input })
      expect(lastMessages(app)).toMatchObject([user('a'), { role: 'assistant' }, user(input)])
    }
  })

  test('a response outlives its predecessors', async () => {
    const app = await testApp()
    const first = await send(app, { input: 'a' })
    await app.clock.advance(40 * 60_000)
    const second = await send(app, { previous_response_id: first.body.id, input: 'b' })
    await app.clock.advance(30 * 60_000)
    expect((await call(app, `GET /v1/responses/${first.body.id}`)).status).toBe(404)
    const third = await send(app, { previous_response_id: second.body.id, input: 'c' })
    expect(third.status).toBe(200)
    expect(lastMessages(app).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
    expect((await call(app, `DELETE /v1/responses/${second.body.id}`)).body).toEqual({
      id: second.body.id,
      object: 'response',
      deleted: true,
    })
    expect((await send(app, { previous_response_id: third.body.id, input: 'd' })).status).toBe(200)
    expect(lastMessages(app)).toHaveLength(7)
    expect((await send(app, { previous_response_id: second.body.id, input: 'e' })).status).toBe(400)
  })

  test('a reference to an included item adds nothing, even when the response of that item has expired', async () => {
    const app = await testApp()
    const first = await send(app, { input: 'a' })
    await app.clock.advance(40 * 60_000)
    const second = await send(app, { previous_response_id: first.body.id, input: 'b' })
    await app.clock.advance(30 * 60_000)
    const listed = await call(app, `GET /v1/responses/${second.body.id}/input_items`)
    const early = listed.body.data.map(({ id }: Json) => ({ type: 'item_reference', id }))
    expect(early).toHaveLength(4)
    const third = await send(app, { previous_response_id: second.body.id, input: [...early, user('c')] })
    expect(third.status).toBe(200)
    expect(lastMessages(app).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
  })

  test('an incomplete response can be continued, a failed or cancelled one was not stored', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ incomplete: { reason: 'max_output_tokens' } })
    const { body } = await send(app, { input: 'a', stream: true })
    expect((await call(app, `GET /v1/responses/${body.id}`)).body).toMatchObject({ status: 'incomplete', store: true })
    expect((await send(app, { previous_response_id: body.id, input: 'b' })).status).toBe(200)
    app.members[0]!.sim.next({ failAfterCreated: { code: 'server_error', message: 'It broke.', afterEvents: 6 } })
    const failed = await send(app, { input: 'a', stream: true })
    expect(failed.body).toMatchObject({ status: 'failed', store: true })
    expect((await call(app, `GET /v1/responses/${failed.body.id}`)).status).toBe(404)
    expect((await send(app, { previous_response_id: failed.body.id, input: 'b' })).body.error.code).toBe(
      'previous_response_not_found',
    )
  })

  test('the account changes between two steps: only reasoning it cannot read is omitted', async () => {
    const app = await testApp({ accounts: 2 })
    thinksAndCalls(app)
    const first = await send(app, { input: 'weather?', tools: TOOLS })
    const [thought, called] = first.body.output
    const owner = (await app.rows()).at(-1)?.accountId
    const output = { type: 'function_call_output', call_id: called.call_id, output: 'mild' }
    app.members
      .find(({ id }) => id === owner)!
      .sim.next({ status: 429, body: { error: { type: 'usage_limit_reached' } } })
    const second = await send(app, { previous_response_id: first.body.id, input: [output], tools: TOOLS })
    expect(second.body).toMatchObject({ status: 'completed', output: [{}, { content: [{ text: 'It is mild.' }] }] })
    expect((await app.rows()).at(-1)).toMatchObject({ status: 'ok', moved: true })
    expect((await app.rows()).at(-1)?.accountId).not.toBe(owner)
    expect(lastInput(app)).toMatchObject([user('weather?'), called, output])
    await send(app, { previous_response_id: second.body.id, input: 'thanks' })
    expect(lastInput(app)).toMatchObject([user('weather?'), called, output, ...second.body.output, user('thanks')])
    expect(JSON.stringify(lastInput(app))).not.toContain(thought.encrypted_content)
  })
})

describe('item_reference', () => {
  test.each([true, false])('is replaced by the item, stream: %s', async (stream) => {
    const app = await testApp()
    thinksAndCalls(app)
    const input: Json[] = [user('weather?')]
    const first = await send(app, { input, tools: TOOLS, stream })
    const [thought, called] = first.body.output
    input.push({ type: 'item_reference', id: thought.id }, { id: called.id })
    input.push({ type: 'function_call_output', call_id: called.call_id, output: 'mild' })
    const second = await send(app, { input, tools: TOOLS, stream })
    expect(lastInput(app)).toMatchObject([user('weather?'), thought, called, { output: 'mild' }])
    input.push(...second.body.output.map(({ id }: Json) => ({ type: 'item_reference', id })), user('thanks'))
    await send(app, { input, tools: TOOLS, stream })
    expect(lastInput(app)).toMatchObject([user('weather?'), thought, called, {}, ...second.body.output, user('thanks')])
    const [one, two, three] = inputTexts(app)
    expect([two?.startsWith(one ?? '?'), three?.startsWith(two ?? '?')]).toEqual([true, true])
    await expectNothingLeft(app)
  })

  test('finds an item while the conversation continues', async () => {
    const app = await testApp()
    thinksAndCalls(app)
    const input: Json[] = [user('weather?')]
    const first = await send(app, { input, tools: TOOLS })
    input.push(...first.body.output.map(({ id }: Json) => ({ type: 'item_reference', id })))
    input.push({ type: 'function_call_output', call_id: first.body.output[1].call_id, output: 'mild' })
    for (let hour = 0; hour < 4; hour++) {
      await app.clock.advance(50 * 60_000)
      expect((await send(app, { input, tools: TOOLS })).status).toBe(200)
    }
    await app.clock.advance(60 * 60_000)
    expect((await send(app, { input, tools: TOOLS })).status).toBe(400)
  })

  test('an item that the previous response holds is not sent twice', async () => {
    const app = await testApp()
    const { body } = await send(app, { input: 'a' })
    const reference = { type: 'item_reference', id: body.output.at(-1).id }
    await send(app, { previous_response_id: body.id, input: [reference, user('b')] })
    expect(lastInput(app)).toMatchObject([user('a'), ...body.output, user('b')])
  })

  test('many references to one large item cannot create a request over 128 MiB, or hold more than the budget', async () => {
    const app = await testApp()
    const { body } = await send(app, { input: 'x'.repeat(7 * 1024 * 1024) })
    const sent = app.upstream.requests.length
    const reference = { type: 'item_reference', id: `in_0_${body.id}` }
    const many = Array.from({ length: 20 }, () => reference)
    const large = await send(app, { input: many })
    expect([large.status, large.body.error.code, large.body.error.param]).toEqual([413, 'payload_too_large', 'input'])
    const other = app.bindings.bodies.open(0)
    other.resize(app.bindings.settings.current().inFlightBodyMiB * 1024 * 1024 - 10 * 1024 * 1024)
    expect((await send(app, { input: [reference, reference] })).status).toBe(503)
    other.release()
    expect(app.upstream.requests).toHaveLength(sent)
    await expectNothingLeft(app)
  })

  test('a listed input item without its own id can be referenced', async () => {
    const app = await testApp()
    const { body } = await send(app, { input: 'a' })
    const { data } = (await call(app, `GET /v1/responses/${body.id}/input_items`)).body
    expect(data).toEqual([{ type: 'message', status: 'completed', ...user('a'), id: expect.any(String) }])
    await send(app, { input: [{ type: 'item_reference', id: data[0].id }, user('b')] })
    expect(lastInput(app)).toEqual([user('a'), user('b')])
  })
})

describe('unavailable responses', () => {
  const KEYS = { settings: { apiKeyAuthEnabled: true } }

  test.each<[string, Json, string]>([
    ['an unknown response', { previous_response_id: 'resp_1', input: 'b' }, 'previous_response_id'],
    ['an empty id', { previous_response_id: '', input: 'b' }, 'previous_response_id'],
    ['an unknown item', { input: [user('b'), { type: 'item_reference', id: 'rs_1' }] }, 'input[1]'],
    ['an item without a type', { input: [{ id: 'rs_1' }] }, 'input[0]'],
    ['a reference without an id', { input: [{ type: 'item_reference' }] }, 'input[0]'],
  ])('%s: nothing is charged or sent', async (_, json, param) => {
    const app = await testApp(KEYS)
    const { key, row } = await app.key()
    const answer = await send(app, { ...json, key })
    expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([
      400,
      'previous_response_not_found',
      param,
    ])
    expect(app.upstream.requests).toEqual([])
    expect(await app.rows()).toMatchObject([{ keyId: row.id, phase: 'request', costMicros: null, inputTokens: null }])
    await expectNothingLeft(app)
  })

  test.each<[Json, string]>([
    [{ previous_response_id: 7 }, 'previous_response_id'],
    [{ store: 'yes' }, 'store'],
  ])('%j is the wrong type', async (json, param) => {
    const app = await testApp()
    const { status, body } = await send(app, { input: 'a', ...json })
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_request_error', param])
    expect(app.upstream.requests).toEqual([])
  })

  test('created by another key', async () => {
    const app = await testApp(KEYS)
    const [mine, other] = [await app.key(), await app.key()]
    const { body } = await send(app, { input: 'a', key: mine.key })
    const sent = app.upstream.requests.length
    const reference = { type: 'item_reference', id: body.output.at(-1).id }
    expect((await send(app, { previous_response_id: body.id, input: 'b', key: other.key })).status).toBe(400)
    expect((await send(app, { input: [reference], key: other.key })).body.error.param).toBe('input[0]')
    for (const route of [`GET /v1/responses/${body.id}`, `GET /v1/responses/${body.id}/input_items`]) {
      expect((await call(app, route, other.key)).status).toBe(404)
      expect((await call(app, route, mine.key)).status).toBe(200)
    }
    const { status, body: error } = await call(app, `DELETE /v1/responses/${body.id}`, other.key)
    expect([status, error.error]).toEqual([
      404,
      {
        message: `Response with id '${body.id}' not found.`,
        type: expect.any(String),
        code: 'not_found',
        param: 'response_id',
      },
    ])
    expect((await call(app, `DELETE /v1/responses/${body.id}`, mine.key)).status).toBe(200)
    expect((await call(app, `DELETE /v1/responses/${body.id}`, mine.key)).status).toBe(404)
    expect(app.upstream.requests).toHaveLength(sent)
  })

  test('created by a deleted key: its memory is released immediately, including that of running requests', async () => {
    const app = await testApp()
    const { responses } = app.bindings
    const [gone, kept] = [await app.key({ name: 'gone' }), await app.key({ name: 'kept' })]
    const first = await send(app, { input: 'a', key: kept.key })
    const keyless = await send(app, { input: 'a' })
    const before = { size: responses.size, bytes: responses.bytes }
    const mine = await send(app, { input: 'x'.repeat(100_000), key: gone.key })
    await send(app, { input: 'y', previous_response_id: mine.body.id, key: gone.key })
    await getAnswer(app, 'POST /v1/chat/completions', {
      json: { model: MODEL, messages: [{ role: 'user', content: 'hi' }] },
      headers: { authorization: `Bearer ${gone.key}` },
    })
    app.members[0]!.sim.next({ delayHeadersMs: 1000 })
    const running = app.ask(V1, {
      json: { model: MODEL, input: 'z', previous_response_id: mine.body.id },
      headers: { authorization: `Bearer ${gone.key}` },
    })
    await app.clock.advance(100)
    expect(responses.bytes).toBeGreaterThan(before.bytes + 100_000)
    expect((await app.ask(`DELETE /api/api-keys/${gone.row.id}`)).status).toBe(204)
    expect(responses.size).toBe(before.size)
    await app.clock.advance(1000)
    const answer = await running
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    await app.clock.advance(1000)
    expect({ size: responses.size, bytes: responses.bytes }).toEqual(before)
    expect((await call(app, `GET /v1/responses/${first.body.id}`, kept.key)).status).toBe(200)
    expect((await call(app, `GET /v1/responses/${keyless.body.id}`)).status).toBe(200)
    expect((await send(app, { input: 'b', previous_response_id: first.body.id, key: kept.key })).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('a key that is disabled or gets a new secret keeps its responses', async () => {
    const app = await testApp(KEYS)
    const { key, row } = await app.key()
    const { body } = await send(app, { input: 'a', key })
    await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: false } })
    await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: true } })
    await app.key({ name: 'new' })
    expect((await call(app, `GET /v1/responses/${body.id}`, key)).status).toBe(200)
    const again = (await (await app.ask(`POST /api/api-keys/${row.id}/regenerate`)).json()) as { key: string }
    expect((await call(app, `GET /v1/responses/${body.id}`, again.key)).status).toBe(200)
  })

  test('clients without a key share a scope that no key sees', async () => {
    const app = await testApp()
    const { key } = await app.key()
    const { body } = await send(app, { input: 'a' })
    expect((await send(app, { previous_response_id: body.id, input: 'b', key: 'any text' })).status).toBe(200)
    expect((await send(app, { previous_response_id: body.id, input: 'b', key })).status).toBe(400)
    const keyed = await send(app, { input: 'a', key })
    expect((await call(app, `GET /v1/responses/${keyed.body.id}`)).status).toBe(404)
  })

  test('not stored at the client’s request', async () => {
    const app = await testApp()
    for (const stream of [true, false]) {
      const { body } = await send(app, { input: 'a', store: false, stream })
      expect(body.store).toBe(false)
      expect((await call(app, `GET /v1/responses/${body.id}`)).status).toBe(404)
      expect(
        (await send(app, { input: [{ type: 'item_reference', id: (body.output as Json[]).at(-1)?.id }] })).status,
      ).toBe(400)
    }
    expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
  })

  test('stored longer ago than the setting allows, or before storing was disabled', async () => {
    const app = await testApp({ settings: { responseStoreMinutes: 5 } })
    const { body } = await send(app, { input: 'a', store: true })
    await app.clock.advance(5 * 60_000 - 1)
    expect((await call(app, `GET /v1/responses/${body.id}`)).status).toBe(200)
    await app.clock.advance(1)
    expect((await call(app, `GET /v1/responses/${body.id}`)).status).toBe(404)
    await send(app, { input: 'a' })
    expect(app.bindings.responses.size).toBe(1)
    await app.change({ responseStoreMinutes: 0 })
    expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
    const off = await send(app, { input: 'a', store: true })
    expect([off.body.store, off.headers.get('x-sluice-dropped-fields')]).toEqual([false, 'store'])
    expect((await send(app, { previous_response_id: off.body.id, input: 'b' })).body.error.message).toContain(
      'Responses are not stored here. Send the full conversation.',
    )
  })

  test('an answer whose id is that of its predecessor', async () => {
    const app = await testApp()
    const said = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }
    const response = { id: 'resp_1', object: 'response', status: 'completed', output: [said], store: false }
    const event = { type: 'response.completed', response }
    const answer = {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: `data: ${JSON.stringify(event)}\n\n`,
    }
    app.members[0]!.sim.next(answer, answer, answer)
    await send(app, { input: 'a' })
    expect((await send(app, { previous_response_id: 'resp_1', input: 'b' })).body.id).toBe('resp_1')
    await send(app, { previous_response_id: 'resp_1', input: 'c' })
    expect(lastInput(app).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
  })
})

describe('GET /v1/responses/:id', () => {
  test('is the response as its client got it', async () => {
    const app = await testApp()
    thinksAndCalls(app)
    const tools = [{ ...TOOLS[0], parameters: { type: 'object', properties: { store: { const: false } } } }]
    for (const stream of [true, false]) {
      const { body } = await send(app, { input: 'a', instructions: 'Be brief.', tools, stream })
      expect((await call(app, `GET /v1/responses/${body.id}`)).body).toEqual(body)
      expect(body.tools).toMatchObject(tools)
    }
  })

  test('cannot be streamed', async () => {
    const app = await testApp()
    const { body } = await send(app, { input: 'a' })
    const answer = await call(app, `GET /v1/responses/${body.id}?stream=true`)
    expect([answer.status, answer.body.error.param]).toEqual([400, 'stream'])
  })
})

describe('GET /v1/responses/:id/input_items', () => {
  const chain = async (app: TestApp) => {
    const first = await send(app, { input: [{ role: 'system', content: 'Be kind.' }, user('a'), user('b')] })
    return (await send(app, { previous_response_id: first.body.id, input: 'c' })).body.id as string
  }
  const getTexts = (list: Json[]) => list.map(({ content }) => (content as Json[] | undefined)?.[0]?.text)

  test('lists everything the response was created from, newest first', async () => {
    const app = await testApp()
    const id = await chain(app)
    const { body } = await call(app, `GET /v1/responses/${id}/input_items`)
    expect(getTexts(body.data.filter(({ role }: Json) => role !== undefined && role !== 'assistant'))).toEqual([
      'c',
      'b',
      'a',
      'Be kind.',
    ])
    expect(body).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: body.data[0].id,
      last_id: body.data.at(-1).id,
    })
    expect(new Set(body.data.map((item: Json) => item.id)).size).toBe(body.data.length)
  })

  test('in pages, in both orders', async () => {
    const app = await testApp()
    const id = await chain(app)
    for (const order of ['asc', 'desc']) {
      const whole = (await call(app, `GET /v1/responses/${id}/input_items?order=${order}`)).body.data
      const seen: Json[] = []
      for (let after = ''; ; ) {
        const { body } = await call(app, `GET /v1/responses/${id}/input_items?order=${order}&limit=2${after}`)
        seen.push(...body.data)
        if (!body.has_more) break
        after = `&after=${body.last_id}`
      }
      expect(seen).toEqual(whole)
    }
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['order=up', 'order'],
    ['after=msg_1', 'after'],
  ])('%s is rejected', async (query, param) => {
    const app = await testApp()
    const id = await chain(app)
    const { status, body } = await call(app, `GET /v1/responses/${id}/input_items?${query}`)
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_request_error', param])
  })
})

test('a stored conversation can be compacted', async () => {
  const app = await testApp()
  const { body } = await send(app, { input: 'a' })
  const json = { model: MODEL, previous_response_id: body.id, input: [user('b')] }
  const answer = await getAnswer(app, 'POST /v1/responses/compact', { json })
  expect(answer.status).toBe(200)
  expect(lastInput(app)).toMatchObject([user('a'), ...body.output, user('b')])
  await expectNothingLeft(app)
})

test('native routes store nothing', async () => {
  const app = await testApp()
  const body = { model: MODEL, stream: true, store: false, instructions: 'Be brief.', input: [user('a')] }
  await getAnswer(app, 'POST /backend-api/codex/responses', { json: body })
  expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
  const again = await getAnswer(app, 'POST /backend-api/codex/responses', {
    json: { ...body, previous_response_id: 'resp_1' },
  })
  expect([again.status, JSON.parse(again.text).error.code]).toEqual([400, 'previous_response_not_found'])
})

test('a client that disconnects stores nothing, and leaves nothing in memory', async () => {
  const app = await testApp()
  app.members[0]!.sim.next({ silence: { afterEvents: 6 } })
  const leave = new AbortController()
  const asked = app
    .ask(V1, { json: { model: MODEL, input: 'a', stream: true }, signal: leave.signal })
    .catch(() => null)
  await app.clock.advance(100)
  expect(app.bindings.responses.bytes).toBeGreaterThan(0)
  leave.abort()
  await app.clock.advance(100)
  await asked
  expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
})
