/** A failing model source: what the client gets, what is charged, and that nothing leaks. */
import { describe, expect, test } from 'bun:test'
import { getSource } from '../../../src/model/sources/source-rows.ts'
import { codexBody, expectNothingLeft, getAnswer, isTerminal, type TestApp, testApp } from '../../support/app.ts'
import { addSource } from '../../support/source/add.ts'
import type { SourceFault } from '../../support/source/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const CHAT = 'POST /v1/chat/completions'
const EMBEDDINGS = 'POST /v1/embeddings'
const MODEL = 'llama-4'
const KEY = 'sk-source-secret-key'

const chat = (more: Record<string, unknown> = {}) => ({
  model: MODEL,
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})

const withFault = async (fault: SourceFault, fields: Parameters<typeof addSource>[1] = {}) => {
  const app = await testApp()
  await addSource(app, { timeoutSeconds: 5, ...fields })
  app.source.fail(fault)
  return app
}

const nothingLeft = async (app: TestApp) => {
  await app.clock.advance(100)
  await expectNothingLeft(app)
}

const limited = async (app: TestApp) => {
  const limit = { limitType: 'total_tokens', limitWindow: 'daily', maxValue: 1_000_000, modelFilter: '' } as const
  return { authorization: `Bearer ${(await app.key({ limits: [limit] })).key}` }
}

const STATUSES: [SourceFault, number, string][] = [
  ['html', 502, 'invalid_upstream_response'],
  ['html_error', 502, 'invalid_upstream_response'],
  ['not_json', 502, 'invalid_upstream_response'],
  ['empty', 502, 'invalid_upstream_response'],
  ['endless', 502, 'invalid_upstream_response'],
  ['hang', 504, 'upstream_timeout'],
  ['redirect', 502, 'model_source_error'],
  ['echo_key', 502, 'model_source_credentials_error'],
  ['forbidden', 502, 'model_source_credentials_error'],
  ['rate_limited', 429, 'rate_limit_exceeded'],
  ['server_error', 500, 'model_source_error'],
  ['unreachable', 502, 'model_source_unreachable'],
]

describe.each([
  ['a document', CHAT, chat()],
  ['a chat stream', CHAT, chat({ stream: true })],
  ['the native stream', NATIVE, codexBody('hello', { model: MODEL })],
  ['embeddings', EMBEDDINGS, { model: MODEL, input: 'a' }],
])('for %s', (_what, route, json) => {
  test.each(STATUSES)('%s is %d %s', async (fault, status, code) => {
    const app = await withFault(fault)
    const answer = await getAnswer(app, route, { json })
    const { error } = JSON.parse(answer.text)
    expect([answer.status, error.code ?? 'model_source_error']).toEqual([status, code])
    expect(answer.text).not.toContain(KEY)
    expect(answer.headers.get('x-sluice-source')).toBe('Local')
    expect(await app.rows()).toMatchObject([{ status: 'error', httpStatus: status, accountId: null }])
    expect(JSON.stringify(await app.rows()) + app.lines.join()).not.toContain(KEY)
    expect(app.bindings.ops.outage.current).toBeNull()
    await nothingLeft(app)
  })
})

test('status and body of an error are returned unchanged, with the retry time', async () => {
  const app = await withFault('rate_limited')
  const answer = await getAnswer(app, CHAT, { json: chat() })
  expect(JSON.parse(answer.text)).toEqual({
    error: { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  })
  expect(answer.headers.get('retry-after')).toBe('7')
})

describe('a stream that', () => {
  test.each(['cut', 'broken'] as const)('is %s ends with one error and no [DONE]', async (fault) => {
    const app = await withFault(fault)
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(answer.status).toBe(200)
    expect(answer.text).not.toContain('[DONE]')
    expect(answer.events.filter((event) => 'error' in event)).toMatchObject([{ error: { code: 'stream_incomplete' } }])
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'stream_incomplete' }])
    await nothingLeft(app)
  })

  test.each(['cut', 'broken', 'stall'] as const)(
    'is %s has one terminal event for the native client',
    async (fault) => {
      const app = await withFault(fault)
      const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { model: MODEL }) })
      if (fault === 'stall')
        expect(answer.status).toBe(504) // only events without content had come
      else expect(answer.events.filter(({ type }) => isTerminal(type))).toMatchObject([{ type: 'response.failed' }])
      await nothingLeft(app)
    },
  )

  test('stalls ends after the timeout of the source', async () => {
    const app = await withFault('stall')
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(answer.events.at(-1)).toMatchObject({ error: { code: 'upstream_timeout' } })
    await nothingLeft(app)
  })

  test('is closed without [DONE] after its last chunk is complete', async () => {
    const app = await testApp()
    await addSource(app)
    const chunk = {
      id: 'c',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    }
    answerWith(app, new Response(`data: ${JSON.stringify(chunk)}\n\n`, EVENT_STREAM))
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(answer.text).toBe(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
    await nothingLeft(app)
  })

  test('continues after [DONE] is cut off there', async () => {
    const app = await testApp()
    await addSource(app)
    answerWith(app, new Response('data: {"choices":[]}\n\ndata: [DONE]\n\ndata: [DONE]\n\ndata: {}\n\n', EVENT_STREAM))
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(answer.text).toBe('data: {"choices":[]}\n\ndata: [DONE]\n\n')
    await nothingLeft(app)
  })

  test('begins with an error is an error', async () => {
    const app = await testApp()
    await addSource(app)
    answerWith(app, new Response('data: {"error":{"message":"No slot","code":"overloaded"}}\n\n', EVENT_STREAM))
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect([answer.status, JSON.parse(answer.text).error]).toMatchObject([
      502,
      { code: 'overloaded', message: 'No slot' },
    ])
    await nothingLeft(app)
  })

  test('splits the key over two chunks does not reveal it', async () => {
    const app = await testApp()
    await addSource(app)
    const reply = `data: {"choices":[{"delta":{"content":"${KEY} and ${KEY}"}}]}\n\ndata: [DONE]\n\n`
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const letter of reply) controller.enqueue(Buffer.from(letter))
        controller.close()
      },
    })
    answerWith(app, new Response(body, EVENT_STREAM))
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(answer.text).toMatch(/"content":"\S+ and \S+"/)
    expect(answer.text).not.toContain(KEY)
    await nothingLeft(app)
  })
})

const EVENT_STREAM = { headers: { 'content-type': 'text/event-stream' } }

const answerWith = (app: TestApp, response: Response) => {
  app.source.fetch = async () => response
}

describe('a key with a token limit, without reported usage,', () => {
  test('gets 502 for a document, and is charged the estimate', async () => {
    const app = await testApp()
    await addSource(app)
    const reply = { id: 'c', object: 'chat.completion', choices: [] }
    answerWith(app, Response.json(reply))
    const answer = await getAnswer(app, CHAT, { json: chat(), headers: await limited(app) })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([502, 'usage_unavailable'])
    const [row] = await app.rows()
    expect(row).toMatchObject({ status: 'error', httpStatus: 502, errorCode: 'usage_unavailable', outputTokens: 2048 })
    expect(row?.inputTokens).toBeGreaterThan(20)
    await nothingLeft(app)
  })

  test.each([
    ['chat', CHAT, chat({ stream: true })],
    ['native', NATIVE, codexBody('hello', { model: MODEL })],
  ])('gets an error instead of the end of a %s stream', async (_dialect, route, json) => {
    const app = await withFault('no_usage')
    const answer = await getAnswer(app, route, { json, headers: await limited(app) })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('usage_unavailable')
    expect(answer.text).not.toContain('[DONE]')
    expect(answer.text).not.toContain('response.completed')
    const [row] = await app.rows()
    expect(row).toMatchObject({ status: 'error', errorCode: 'usage_unavailable' })
    expect(row?.outputTokens).toBeGreaterThan(0)
    await nothingLeft(app)
  })
})

test('a client that disconnects cancels the upstream request', async () => {
  const app = await withFault('hang')
  const gone = new AbortController()
  const asked = app.ask(CHAT, { json: chat(), signal: gone.signal })
  await app.clock.advance(1000)
  gone.abort()
  await asked
  expect(await app.rows()).toMatchObject([{ status: 'cancelled', httpStatus: 499 }])
  await nothingLeft(app)
})

test.each([
  ['a document', chat()],
  ['a stream', chat({ stream: true })],
])('a key is charged for %s cancelled by its client while the source worked on it', async (_what, json) => {
  const app = await withFault('hang')
  const limits = (['requests', 'total_tokens'] as const).map((limitType) => ({
    limitType,
    limitWindow: 'daily' as const,
    maxValue: 1_000_000,
    modelFilter: '',
  }))
  const { key, row } = await app.key({ limits })
  const gone = new AbortController()
  const asked = app.ask(CHAT, { json, headers: { authorization: `Bearer ${key}` }, signal: gone.signal })
  await app.clock.advance(1000)
  expect(app.source.received).toHaveLength(1)
  gone.abort()
  await asked
  await app.clock.advance(1000)
  const held = app.bindings.keys.byHash(row.keyHash)?.limits ?? []
  const settled = Object.fromEntries(held.map((limit) => [limit.type, limit.settled]))
  expect(settled.requests).toBe(1)
  expect(settled.total_tokens).toBeGreaterThan(20)
  expect(held.map(({ reserved }) => reserved)).toEqual([0, 0])
  await nothingLeft(app)
})

test('a JSON document is JSON for browsers too, whatever its content type at the source', async () => {
  const app = await testApp()
  await addSource(app)
  const reply = JSON.stringify({ id: 'c', choices: [{ message: { content: '<script>alert(1)</script>' } }] })
  answerWith(app, new Response(reply, { headers: { 'content-type': 'text/html; charset=utf-8' } }))
  const answer = await getAnswer(app, CHAT, { json: chat() })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
})

test.each([
  ['a document', chat()],
  ['a stream', chat({ stream: true })],
])('the content type of %s does not reveal the key', async (_what, json) => {
  const app = await testApp()
  await addSource(app)
  answerWith(app, new Response('hello', { headers: { 'content-type': `text/x-${KEY}` } }))
  const answer = await getAnswer(app, CHAT, { json })
  expect(answer.status).toBe(502)
  expect(answer.text).toContain('***')
  expect(answer.text + JSON.stringify(await app.rows()) + app.lines.join()).not.toContain(KEY)
})

test('only a total of tokens counts as input', async () => {
  const app = await testApp()
  await addSource(app)
  answerWith(app, Response.json({ id: 'c', choices: [], usage: { total_tokens: 70 } }))
  await getAnswer(app, CHAT, { json: chat(), headers: await limited(app) })
  answerWith(app, Response.json({ id: 'c', choices: [], usage: { total_tokens: 70, completion_tokens: 30 } }))
  await getAnswer(app, CHAT, { json: chat(), headers: await limited(app) })
  expect((await app.rows()).map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])).toEqual([
    [70, 0],
    [40, 30],
  ])
})

test('a source in use at shutdown ends with an error', async () => {
  const app = await withFault('hang')
  app.bindings.lifecycle.draining = true
  const answer = await getAnswer(app, CHAT, { json: chat() })
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([503, 'draining'])
  expect(app.source.received).toHaveLength(0)
  await nothingLeft(app)
})

test('the health of a source follows its requests, but not client errors', async () => {
  const app = await testApp()
  const { id } = await addSource(app)
  const health = async () => {
    const { health, healthCode } = await getSource(app.db, id)
    return [health, healthCode]
  }
  expect(await health()).toEqual(['unknown', null])
  await getAnswer(app, CHAT, { json: chat() })
  expect(await health()).toEqual(['ok', null])
  await getAnswer(app, CHAT, { json: chat({ messages: [] }) })
  expect(await health()).toEqual(['ok', null])
  app.source.fail('unreachable')
  await getAnswer(app, CHAT, { json: chat() })
  expect(await health()).toEqual(['failing', 'model_source_unreachable'])
  app.source.heal()
  await getAnswer(app, CHAT, { json: chat() })
  expect(await health()).toEqual(['ok', null])
})
