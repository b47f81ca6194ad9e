/** Requests served by a model source: the forwarded request, the response, and the log. */
import { describe, expect, test } from 'bun:test'
import { codexBody, expectNothingLeft, getAnswer, isTerminal, type TestApp, testApp } from '../../support/app.ts'
import { addSource } from '../../support/source/add.ts'
import { ANSWER_TEXT } from '../../support/source/answers.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const EMBEDDINGS = 'POST /v1/embeddings'
const AUDIO = 'POST /v1/audio/transcriptions'
const MODEL = 'llama-4'
const PRICES = { inputPer1m: 2, cachedInputPer1m: 1, outputPer1m: 10 }

const withSource = async (
  fields: Parameters<typeof addSource>[1] = {},
  options: Parameters<typeof testApp>[0] = {},
) => {
  const app = await testApp(options)
  const source = await addSource(app, { models: [{ model: MODEL, ...PRICES }], ...fields })
  return { app, source }
}

const chat = (more: Record<string, unknown> = {}) => ({
  model: MODEL,
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})

/** Streams are read to their end a moment after their last event, so that the connection can be used again. */
const nothingLeft = async (app: TestApp) => {
  await app.clock.advance(100)
  await expectNothingLeft(app)
}

const sentHeaders = (app: TestApp): string[] =>
  [...(app.source.received.at(-1)?.headers.keys() ?? [])].filter((name) => name !== 'host').toSorted()

const form = async (fields: Record<string, string | File>) => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') body.append(name, value)
    else body.append(name, value, value.name)
  }
  const written = new Response(body)
  const type = written.headers.get('content-type') ?? '' // is released once the body is read
  return { body: await written.arrayBuffer(), headers: { 'content-type': type } }
}

describe('chat', () => {
  test('is sent unchanged with three headers, and the document is returned unchanged', async () => {
    const { app, source } = await withSource()
    const headers = { 'user-agent': 'tool/1', 'x-session-id': 's', authorization: 'Bearer not-a-key' }
    const answer = await getAnswer(app, CHAT, { json: chat({ temperature: 0.3, top_k: 40 }), headers })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ model: MODEL, choices: [{ message: { content: ANSWER_TEXT } }] })
    expect(answer.headers.get('x-sluice-source')).toBe('Local')
    expect(app.source.last('/chat/completions')?.body).toEqual(chat({ temperature: 0.3, top_k: 40 }))
    expect(sentHeaders(app)).toEqual(['accept', 'accept-encoding', 'authorization', 'content-type'])
    expect(app.source.last('/chat/completions')?.headers.get('authorization')).toBe(`Bearer ${app.source.state.key}`)
    expect(await app.rows()).toMatchObject([
      {
        sourceId: source.id,
        accountId: null,
        overflow: false,
        kind: 'normal',
        model: MODEL,
        status: 'ok',
        inputTokens: 12,
        cachedInputTokens: 2,
        outputTokens: 4,
        costMicros: 10 * 2 + 2 * 1 + 4 * 10,
      },
    ])
    expect(app.upstream.requests).toHaveLength(0)
    await nothingLeft(app)
  })

  test('a stream reports its usage to Sluice and not to a client that did not request it', async () => {
    const { app } = await withSource()
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
    expect(app.source.last('/chat/completions')?.body).toMatchObject({ stream_options: { include_usage: true } })
    expect(answer.text).not.toContain('usage')
    expect(answer.text.match(/\[DONE\]/g)).toHaveLength(1)
    expect(answer.text).toEndWith('data: [DONE]\n\n')
    expect(await app.rows()).toMatchObject([{ status: 'ok', inputTokens: 12, outputTokens: 4 }])
    await nothingLeft(app)
  })

  test('a client that requests the usage gets it', async () => {
    const { app } = await withSource()
    const options = { include_usage: true, include_obfuscation: false }
    const answer = await getAnswer(app, CHAT, { json: chat({ stream: true, stream_options: options }) })
    expect(app.source.last('/chat/completions')?.body).toMatchObject({ stream_options: options })
    expect(answer.text).toContain('"prompt_tokens":12')
  })

  test('the policy of the key replaces model, effort and tier', async () => {
    const { app } = await withSource()
    const { key } = await app.key({ enforcedModel: MODEL, enforcedReasoningEffort: 'low' })
    const json = chat({ model: 'gpt-5.5', reasoning_effort: 'high', store: true })
    const answer = await getAnswer(app, CHAT, { json, headers: { authorization: `Bearer ${key}` } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe('store')
    expect(app.source.last('/chat/completions')?.body).toEqual(chat({ reasoning_effort: 'low' }))
  })
})

describe('responses', () => {
  test('of the native client are streamed with one terminal event', async () => {
    const { app, source } = await withSource()
    const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { model: MODEL }) })
    expect(answer.status).toBe(200)
    expect(answer.events.filter(({ type }) => isTerminal(type))).toHaveLength(1)
    expect(answer.events.at(-1)).toMatchObject({ type: 'response.completed' })
    expect(answer.text).toContain(ANSWER_TEXT)
    expect(await app.rows()).toMatchObject([
      { sourceId: source.id, status: 'ok', outputTokens: 4, responseId: 'resp_source' },
    ])
    await nothingLeft(app)
  })

  test('of SDKs return a document or a stream, as requested', async () => {
    const { app } = await withSource()
    const whole = await getAnswer(app, PUBLIC, { json: { model: MODEL, input: 'hello' } })
    expect(JSON.parse(whole.text)).toMatchObject({ id: 'resp_source', status: 'completed' })
    expect(app.source.last('/responses')?.body).toEqual({ model: MODEL, input: 'hello', store: false })
    const streamed = await getAnswer(app, PUBLIC, { json: { model: MODEL, input: 'hello', stream: true } })
    expect(streamed.events.filter(({ type }) => isTerminal(type))).toHaveLength(1)
    await nothingLeft(app)
  })

  test('lose the hosted tools that the model does not declare, and nothing else', async () => {
    const { app } = await withSource({
      models: [{ model: MODEL, rawMetadataJson: JSON.stringify({ experimental_supported_tools: ['file_search'] }) }],
    })
    const tools = [
      { type: 'web_search' },
      { type: 'function', name: 'weather', parameters: {} },
      { type: 'file_search', vector_store_ids: [] },
      { type: 'web_search_preview_2025_03_11' },
    ]
    // the stand-in rejects file_search, so the request is checked and not the response
    const more = {
      tools,
      tool_choice: { type: 'web_search' },
      include: ['web_search_call.action.sources', 'message.output_text.logprobs'],
    }
    const answer = await getAnswer(app, NATIVE, { json: codexBody('hello', { model: MODEL, ...more }) })
    expect(app.source.last('/responses')?.body).toMatchObject({
      tools: [tools[1], tools[2]],
      include: ['message.output_text.logprobs'],
    })
    expect(app.source.last('/responses')?.body).not.toHaveProperty('tool_choice')
    expect(answer.status).toBe(400)
  })

  test('name what was dropped', async () => {
    const { app } = await withSource()
    const more = { tools: [{ type: 'web_search' }, { type: 'mcp', server_label: 'x' }], tool_choice: 'required' }
    const { headers, status } = await getAnswer(app, NATIVE, { json: codexBody('hello', { model: MODEL, ...more }) })
    expect(status).toBe(200)
    expect(headers.get('x-sluice-dropped-fields')).toBe(
      'tools.web_search, tools.mcp, tool_choice, include.reasoning.encrypted_content',
    )
    const body = app.source.last('/responses')?.body
    for (const name of ['tools', 'tool_choice', 'include']) expect(body).not.toHaveProperty(name)
  })

  test.each([
    ['a compaction', { input: [{ type: 'compaction_trigger' }] }, 'invalid_request_error'],
    [
      'an uploaded file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
      'invalid_request_error',
    ],
    ['ciphertext', { input: [{ type: 'reasoning', encrypted_content: 'abc' }] }, 'invalid_request_error'],
    ['an earlier response', { previous_response_id: 'resp_1' }, 'previous_response_not_found'],
    ['a stored item', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'previous_response_not_found'],
    ['background work', { background: true }, 'unsupported_parameter'],
  ])('with %s are rejected with the reason', async (_what, more, code) => {
    const { app } = await withSource()
    const answer = await getAnswer(app, PUBLIC, { json: { model: MODEL, input: 'hello', ...more } })
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text).error).toMatchObject({ code })
    expect(app.source.received).toHaveLength(0)
    await nothingLeft(app)
  })
})

describe('embeddings', () => {
  test('are relayed, and their usage counts', async () => {
    const { app, source } = await withSource()
    const json = { model: MODEL, input: ['a', 'b'], encoding_format: 'float' }
    const answer = await getAnswer(app, EMBEDDINGS, { json })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text).data).toHaveLength(2)
    expect(app.source.last('/embeddings')?.body).toEqual(json)
    expect(await app.rows()).toMatchObject([
      { kind: 'embedding', sourceId: source.id, inputTokens: 6, outputTokens: 0, costMicros: 12, model: MODEL },
    ])
    await nothingLeft(app)
  })

  test.each([
    ['no source has the model', { model: 'other' }, {}],
    ['the source has no embeddings', { model: MODEL }, { supportsEmbeddings: false }],
    ['the model is missing', {}, {}],
  ])('are 404 model_not_found when %s', async (_why, json, fields) => {
    const { app } = await withSource(fields)
    const answer = await getAnswer(app, EMBEDDINGS, { json: { input: 'a', ...json } })
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text).error).toMatchObject({ code: 'model_not_found', param: 'model' })
    await nothingLeft(app)
  })

  test('are checked against the allowlist, exactly, but not an enforced text model', async () => {
    const { app } = await withSource()
    const ask = (key: string) =>
      getAnswer(app, EMBEDDINGS, { json: { model: MODEL, input: 'a' }, headers: { authorization: `Bearer ${key}` } })
    const listed = await ask((await app.key({ allowedModels: ['Llama-4'] })).key)
    expect([listed.status, JSON.parse(listed.text).error.code]).toEqual([403, 'model_not_allowed'])
    expect((await ask((await app.key({ enforcedModel: 'gpt-5.5' })).key)).status).toBe(200)
  })
})

describe('transcription', () => {
  test('is sent unchanged, whatever its fields, and priced by the minute', async () => {
    const { app, source } = await withSource({ models: [{ model: 'whisper-local', audioPerMinute: 0.006 }] })
    app.source.state.models.push('whisper-local')
    const file = new File(['RIFF'], 'talk.wav', { type: 'audio/wav' })
    const ask = await form({ model: 'whisper-local', file, language: 'de', response_format: 'verbose_json' })
    const answer = await getAnswer(app, AUDIO, ask)
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ text: ANSWER_TEXT })
    expect(app.source.last('/audio/transcriptions')?.body).toMatchObject({ language: 'de', model: 'whisper-local' })
    expect(await app.rows()).toMatchObject([
      { kind: 'audio', sourceId: source.id, costMicros: 3000, inputTokens: null },
    ])
    await nothingLeft(app)
  })

  test('that fails in its stream is logged with the error of the source', async () => {
    const { app } = await withSource({ models: ['whisper-local'] })
    const events = [
      { type: 'transcript.text.delta', delta: 'Hi' },
      { type: 'error', error: { message: 'Out of memory.', code: null } },
    ]
    const stream = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    app.source.fetch = () => Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }))
    const file = new File(['RIFF'], 'talk.wav', { type: 'audio/wav' })
    const answer = await getAnswer(app, AUDIO, await form({ model: 'whisper-local', file, stream: 'true' }))
    expect(answer.events.at(-1)).toMatchObject({ type: 'error' })
    expect(await app.rows()).toMatchObject([{ status: 'error', errorMessage: 'Out of memory.' }])
    await nothingLeft(app)
  })

  test('of a model of no source is served by the pool', async () => {
    const { app } = await withSource()
    const file = new File(['RIFF'], 'talk.wav', { type: 'audio/wav' })
    const answer = await getAnswer(app, AUDIO, await form({ model: 'whisper-1', file }))
    expect(answer.status).toBe(200)
    expect(app.source.received).toHaveLength(0)
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/transcribe'))).toHaveLength(1)
  })
})

test('requests of a key count against its limits, with the prices of the source', async () => {
  const { app } = await withSource()
  const limit = (limitType: 'requests' | 'cost_usd', maxValue: number) =>
    ({ limitType, limitWindow: 'daily', maxValue, modelFilter: '' }) as const
  const { key, row } = await app.key({ limits: [limit('requests', 2), limit('cost_usd', 1_000_000)] })
  const ask = () => getAnswer(app, CHAT, { json: chat(), headers: { authorization: `Bearer ${key}` } })
  expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([200, 200, 429])
  const limits = app.bindings.keys.byHash(row.keyHash)?.limits ?? []
  expect(limits.map(({ type, settled, reserved }) => [type, settled, reserved])).toEqual([
    ['cost_usd', 2 * 62, 0],
    ['requests', 2, 0],
  ])
})

test('a source without reported usage serves unlimited keys; only the request counts', async () => {
  const { app } = await withSource()
  app.source.fail('no_usage')
  const answer = await getAnswer(app, CHAT, { json: chat({ stream: true }) })
  expect(answer.text).toEndWith('data: [DONE]\n\n')
  expect(await app.rows()).toMatchObject([{ status: 'ok', inputTokens: null, costMicros: null }])
})
