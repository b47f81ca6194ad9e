/** The official `openai` SDK through Sluice: it parses every response as one of its own API. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from 'openai'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import { answers, type Turn } from '../support/upstream/script.ts'
import { startWorld, type World } from './support/world.ts'

const MODEL = 'gpt-5.5'
const USAGE = { inputTokens: 11, cachedTokens: 4, outputTokens: 7, reasoningTokens: 3 }
const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const CALL = { name: 'weather', arguments: '{"city":"Ghent"}' }

setDefaultTimeout(120_000)

let world: World
let client: OpenAI

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, {}] })
  client = clientWith(world.key)
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => {
  const seen = [...world.upstream.oddities]
  world.upstream.reset()
  expect(seen).toEqual([])
})

/** Without retries, so that an error is seen unchanged and once. */
const clientWith = (apiKey: string): OpenAI => new OpenAI({ apiKey, baseURL: `${world.url}/v1`, maxRetries: 0 })

const says = (text: string) => world.upstream.script(() => answers.text(text, { usage: USAGE, deltaChars: 5 }))

/** Calls the tool until its output is there, then quotes it. */
const callsTool = () =>
  world.upstream.script((turn: Turn) => {
    const output = turn.input.findLast(({ type }) => type === 'function_call_output')
    return output ? answers.text(`It is ${output.output}.`) : answers.toolCall(CALL, { deltaChars: 4 })
  })

/** The body of the newest model request that reached the upstream. */
const bodySent = () => world.turns().at(-1)?.body

const collect = async <T>(stream: AsyncIterable<T>): Promise<T[]> => {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** The rejection of a promise; throws if it resolves. */
const getFailure = async (promise: PromiseLike<unknown>): Promise<unknown> => {
  const outcome = await Promise.resolve(promise).then(
    () => null,
    (error: unknown) => ({ error }),
  )
  if (!outcome) throw new Error('The call succeeded.')
  return outcome.error
}

test('models are listed and can be looked up one by one', async () => {
  const models = await collect(await client.models.list())
  expect(models.map(({ id }) => id)).toEqual(expect.arrayContaining(['gpt-6.1-sol', MODEL]))
  const model = await client.models.retrieve(MODEL)
  expect(model).toEqual(models.find(({ id }) => id === MODEL) ?? model)
  expect(model).toMatchObject({ id: MODEL, object: 'model', owned_by: expect.any(String) })
  expect(await getFailure(client.models.retrieve('no-such'))).toBeInstanceOf(NotFoundError)
})

describe('chat completions', () => {
  const messages = [{ role: 'user' as const, content: 'hello' }]
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: WEATHER_SCHEMA } }]

  test('return a complete response', async () => {
    says('Good morning.')
    const completion = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'system', content: 'Be kind.' }, ...messages],
    })
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model: MODEL,
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Good morning.' } }],
      usage: {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    })
    expect(completion._request_id).toBeString()
    expect(bodySent()).toMatchObject({ instructions: 'Be kind.', stream: true, store: false })
  })

  test('stream, without usage unless requested', async () => {
    says('Good morning.')
    const chunks = await collect(await client.chat.completions.create({ model: MODEL, messages, stream: true }))
    const [first] = chunks
    expect(first).toMatchObject({ object: 'chat.completion.chunk', choices: [{ delta: { role: 'assistant' } }] })
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Good morning.')
    expect(chunks.at(-1)?.choices).toMatchObject([{ delta: {}, finish_reason: 'stop' }])
    expect(chunks.filter(({ choices }) => choices.length !== 1)).toEqual([])
    expect(chunks.filter(({ usage }) => usage)).toEqual([])
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  })

  test('stream with usage in an extra last chunk when requested', async () => {
    says('Good morning.')
    const asked = { model: MODEL, messages, stream: true as const, stream_options: { include_usage: true } }
    const chunks = await collect(await client.chat.completions.create(asked))
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 7 } })
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
  })

  test('call a tool and take its output', async () => {
    callsTool()
    const asked = await client.chat.completions.create({ model: MODEL, messages, tools })
    const [choice] = asked.choices
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ type: 'function', function: CALL }] },
    })
    const [call] = choice?.message.tool_calls ?? []
    const told = await client.chat.completions.create({
      model: MODEL,
      tools,
      messages: [
        ...messages,
        { role: 'assistant', tool_calls: [{ type: 'function', id: call?.id ?? '', function: CALL }] },
        { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny' },
      ],
    })
    expect(told.choices[0]?.message.content).toBe('It is sunny.')
    expect(bodySent()).toMatchObject({ tools: [{ type: 'function', name: 'weather', parameters: WEATHER_SCHEMA }] })
  })

  test('stream a tool call that the helper assembles', async () => {
    callsTool()
    const stream = client.chat.completions.stream({ model: MODEL, messages, tools })
    const completion = await stream.finalChatCompletion()
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ id: expect.any(String), type: 'function', function: CALL }] },
    })
  })

  test('call a function, the predecessor of tools, and take its output', async () => {
    callsTool()
    const functions = [{ name: 'weather', parameters: WEATHER_SCHEMA }]
    const asked = await client.chat.completions.create({ model: MODEL, messages, functions, function_call: 'auto' })
    const { message } = asked.choices[0]!
    expect(asked.choices[0]).toMatchObject({ finish_reason: 'function_call', message: { function_call: CALL } })
    const stream = client.chat.completions.stream({ model: MODEL, messages, functions })
    expect((await stream.finalChatCompletion()).choices[0]).toMatchObject({
      finish_reason: 'function_call',
      message: { function_call: CALL },
    })
    const told = await client.chat.completions.create({
      model: MODEL,
      functions,
      messages: [...messages, message, { role: 'function', name: 'weather', content: 'sunny' }],
    })
    expect(told.choices[0]?.message.content).toBe('It is sunny.')
  })

  test('include the reasoning of the model, streamed or not', async () => {
    const asked = { model: MODEL, messages, reasoning_effort: 'high' as const }
    const { choices } = await client.chat.completions.create(asked)
    expect(choices[0]?.message).toMatchObject({ reasoning_content: '**Thinking** it over' })
    const chunks = await collect(await client.chat.completions.create({ ...asked, stream: true }))
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta as { reasoning_content?: string } | undefined) // as: it is no member of OpenAI's own
    expect(deltas.map((delta) => delta?.reasoning_content ?? '').join('')).toBe('**Thinking** it over')
  })

  describe('with a custom tool', () => {
    const PATCH = { name: 'patch', input: '*** Begin Patch\n"a" 1' }
    const format = { type: 'grammar' as const, grammar: { syntax: 'lark' as const, definition: 'start: /.+/s' } }
    const custom = [{ type: 'custom' as const, custom: { name: 'patch', description: 'Edits files.', format } }]
    const flat = { type: 'custom', name: 'patch', description: 'Edits files.' }
    const flatFormat = { type: 'grammar', ...format.grammar }
    const patches = () =>
      world.upstream.script((turn: Turn) => {
        const output = turn.input.findLast(({ type }) => type === 'custom_tool_call_output')
        return output ? answers.text(`It is ${output.output}.`) : answers.toolCall(PATCH, { deltaChars: 4 })
      })
    const called = {
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ type: 'custom', custom: PATCH }] },
    }

    test('a call, and its output', async () => {
      patches()
      const tool_choice = { type: 'custom' as const, custom: { name: 'patch' } }
      const asked = await client.chat.completions.create({ model: MODEL, messages, tools: custom, tool_choice })
      expect(asked.choices[0]).toMatchObject(called)
      expect(bodySent()).toMatchObject({
        tools: [{ ...flat, format: flatFormat }],
        tool_choice: { type: 'custom', name: 'patch' },
      })
      const { message } = asked.choices[0]!
      const tool_call_id = message.tool_calls?.[0]?.id ?? ''
      const told = await client.chat.completions.create({
        model: MODEL,
        tools: custom,
        messages: [...messages, message, { role: 'tool', tool_call_id, content: 'patched' }],
      })
      expect(told.choices[0]?.message.content).toBe('It is patched.')
    })

    test('a streamed call, assembled by the helper', async () => {
      patches()
      const stream = client.chat.completions.stream({ model: MODEL, messages, tools: custom })
      expect((await stream.finalChatCompletion()).choices[0]).toMatchObject(called)
    })

    test.each([false, true])('a call for a Responses-shaped body, streamed: %p', async (stream) => {
      patches()
      const body = { model: MODEL, input: 'hello', tools: [{ ...flat, format: flatFormat }], stream }
      const asked = body as unknown as OpenAI.ChatCompletionCreateParams // as: what Cursor sends, and the SDK has no type for
      const answer = await client.chat.completions.create(asked)
      const choices = Symbol.asyncIterator in answer ? (await collect(answer)).flatMap((chunk) => chunk.choices) : []
      const calls = choices.flatMap(({ delta }) => delta.tool_calls ?? [])
      const inputs = calls.map((call) => (call as { custom?: { input: string } }).custom?.input) // as: the SDK types no custom deltas
      if (!(Symbol.asyncIterator in answer)) expect(answer.choices[0]).toMatchObject(called)
      else expect([inputs.join(''), choices.at(-1)?.finish_reason]).toEqual([PATCH.input, 'tool_calls'])
    })
  })

  test('pass a schema as the text format', async () => {
    says('{"city":"Ghent"}')
    const json_schema = { name: 'place', schema: WEATHER_SCHEMA, strict: true }
    const completion = await client.chat.completions.create({
      model: MODEL,
      messages,
      response_format: { type: 'json_schema', json_schema },
    })
    expect(JSON.parse(completion.choices[0]?.message.content ?? '')).toEqual({ city: 'Ghent' })
    expect(bodySent()).toMatchObject({ text: { format: { type: 'json_schema', ...json_schema } } })
  })

  describe('with a model that announces its next step', () => {
    const way = { kind: 'text', text: 'Let me see.', phase: 'commentary' } as const
    const whole = async (stream: boolean) => {
      const asked = { model: MODEL, messages, tools }
      const completion = stream
        ? await client.chat.completions.stream(asked).finalChatCompletion()
        : await client.chat.completions.create(asked)
      return completion.choices[0]!.message
    }

    test.each([false, true])('the final answer only, streamed: %p', async (stream) => {
      const answer = { kind: 'text', text: '{"city":"Ghent"}', phase: 'final_answer' } as const
      world.upstream.script(() => answers.items([way, answer], { deltaChars: 4 }))
      expect((await whole(stream)).content).toBe(answer.text)
    })

    test.each([false, true])(
      'text beside its calls, also when replayed in the history, streamed: %p',
      async (stream) => {
        world.upstream.script(() => answers.items([way, { kind: 'functionCall', ...CALL }], { deltaChars: 4 }))
        const message = await whole(stream)
        expect(message).toMatchObject({ content: way.text, tool_calls: [{ function: CALL }] })
        const told = { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: 'sunny' } as const
        await client.chat.completions.create({ model: MODEL, tools, messages: [...messages, message, told] })
        const said = { role: 'assistant', phase: 'commentary', content: [{ type: 'output_text', text: way.text }] }
        expect((bodySent() as { input: unknown[] }).input).toContainEqual(said) // as: the stand-in received a body
      },
    )
  })

  test('name the dropped parameters', async () => {
    const asked = { model: MODEL, messages, temperature: 0.5, max_tokens: 100, seed: 7, user: 'someone' }
    const { response } = await client.chat.completions.create(asked).withResponse()
    const dropped = response.headers.get('x-sluice-dropped-fields')?.split(/, */)
    expect(dropped?.toSorted()).toEqual(['max_tokens', 'seed', 'temperature', 'user'])
  })
})

describe('responses', () => {
  const tools = [{ type: 'function' as const, name: 'weather', parameters: WEATHER_SCHEMA, strict: true }]

  test('return a complete response, with the text the SDK computes', async () => {
    says('Good morning.')
    const response = await client.responses.create({ model: MODEL, input: 'hello', instructions: 'Be kind.' })
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: MODEL, error: null })
    expect(response.output_text).toBe('Good morning.')
    expect(response.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 })
    expect(response._request_id).toBeString()
    expect(bodySent()).toMatchObject({ instructions: 'Be kind.', stream: true, store: false })
  })

  test('stream numbered events from created to completed', async () => {
    says('Good morning.')
    const events = await collect(await client.responses.create({ model: MODEL, input: 'hello', stream: true }))
    expect(events[0]?.type).toBe('response.created')
    expect(events.at(-1)?.type).toBe('response.completed')
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? event.delta : []))
    expect(deltas.join('')).toBe('Good morning.')
  })

  test('stream through the helper', async () => {
    says('Good morning.')
    const stream = client.responses.stream({ model: MODEL, input: [{ role: 'user', content: 'hello' }] })
    const response = await stream.finalResponse()
    expect(response).toMatchObject({ status: 'completed', output_text: 'Good morning.' })
  })

  test('call a tool and take its output', async () => {
    callsTool()
    const asked = await client.responses.create({ model: MODEL, input: 'hello', tools })
    const [call] = asked.output.filter((item) => item.type === 'function_call')
    expect(call).toMatchObject({ ...CALL, status: 'completed' })
    const told = await client.responses.create({
      model: MODEL,
      tools,
      input: [
        { role: 'user', content: 'hello' },
        ...(call ? [call] : []),
        { type: 'function_call_output', call_id: call?.call_id ?? '', output: 'sunny' },
      ],
    })
    expect(told.output_text).toBe('It is sunny.')
  })

  test('name the dropped parameters', async () => {
    const asked = { model: MODEL, input: 'hello', temperature: 0.5, max_output_tokens: 100, metadata: { a: 'b' } }
    const { response } = await client.responses.create(asked).withResponse()
    const dropped = response.headers.get('x-sluice-dropped-fields')?.split(/, */)
    expect(dropped?.toSorted()).toEqual(['max_output_tokens', 'metadata', 'temperature'])
  })
})

test.each([
  ['its own route', false],
  ['a response with a trigger, without the dedicated route', true],
])('a conversation is compacted by %s', async (_how, isRetired) => {
  world.upstream.compactRetired = isRetired
  const compacted = await client.responses.compact({ model: MODEL, input: 'hello' })
  expect(compacted.object).toBe('response.compaction')
  const [message, item] = compacted.output
  expect(message).toMatchObject({ type: 'message', role: 'user' })
  expect(JSON.stringify(message)).toContain('hello')
  expect(item).toMatchObject({ type: 'compaction', encrypted_content: expect.any(String) })
})

test('a stream that the client aborts is cancelled upstream', async () => {
  for (const account of world.upstream.accounts) account.next({ silence: { afterEvents: 6 } })
  says('Good morning.')
  const stream = await client.responses.create({ model: MODEL, input: 'hello', stream: true })
  for await (const event of stream) if (event.type === 'response.output_text.delta') break
  await until(() => world.upstream.openStreams === 0, world.output)
  expect(world.turns()).toMatchObject([{ eventsSent: 6, aborted: true, finished: false }])
})

describe('an upstream stream that ends in the middle', () => {
  const breakOff = () => {
    says('Good morning.')
    for (const account of world.upstream.accounts) account.always({ dropAfter: { events: 6, how: 'fin' } })
  }

  test('makes a responses stream throw an APIError', async () => {
    breakOff()
    const stream = await client.responses.create({ model: MODEL, input: 'hello', stream: true })
    const error = await getFailure(collect(stream))
    expect(error).toBeInstanceOf(APIError)
    expect(error).toMatchObject({ code: 'stream_incomplete' })
    expect(world.turns()).toHaveLength(1)
  })

  test('makes a chat stream throw an APIError', async () => {
    breakOff()
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const stream = await client.chat.completions.create({ model: MODEL, messages, stream: true })
    const error = await getFailure(collect(stream))
    expect(error).toBeInstanceOf(APIError)
    expect(error).toMatchObject({ code: 'stream_incomplete' })
    expect(world.turns()).toHaveLength(1)
  })

  test('makes a non-streamed response an InternalServerError', async () => {
    breakOff()
    const error = await getFailure(client.responses.create({ model: MODEL, input: 'hello' }))
    expect(error).toBeInstanceOf(InternalServerError)
    expect(error).toMatchObject({ status: 502, code: 'stream_incomplete' })
  })
})

describe('errors have the types of the SDK', () => {
  const ask = (one = client, model = MODEL) => one.responses.create({ model, input: 'hello' })

  test('a wrong key: AuthenticationError', async () => {
    const error = await getFailure(ask(clientWith('sk-clb-wrong')))
    expect(error).toBeInstanceOf(AuthenticationError)
    expect(error).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
      message: '401 Invalid API key',
      requestID: expect.any(String),
    })
    expect(world.turns()).toEqual([])
  })

  test('a model outside the list of the key: PermissionDeniedError', async () => {
    const { key } = await world.api<{ key: string }>('POST', '/api/api-keys/', {
      name: 'one model',
      allowedModels: ['gpt-6.1-sol'],
    })
    const error = await getFailure(ask(clientWith(key)))
    expect(error).toBeInstanceOf(PermissionDeniedError)
    expect(error).toMatchObject({ status: 403, code: 'model_not_allowed', type: 'permission_error' })
    expect((await ask(clientWith(key), 'gpt-6.1-sol')).status).toBe('completed')
    expect((await collect(await clientWith(key).models.list())).map(({ id }) => id)).toEqual(['gpt-6.1-sol'])
  })

  test('a key whose limit is used up: RateLimitError', async () => {
    const limits = [{ limitType: 'requests', limitWindow: 'daily', maxValue: 1 }]
    const { key } = await world.api<{ key: string }>('POST', '/api/api-keys/', { name: 'one request', limits })
    const limited = clientWith(key)
    expect((await ask(limited)).status).toBe('completed')
    const error = await getFailure(ask(limited))
    expect(error).toBeInstanceOf(RateLimitError)
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    expect(world.turns()).toHaveLength(1)
  })

  test('a request that cannot be served: BadRequestError that names the parameter', async () => {
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const error = await getFailure(client.chat.completions.create({ model: MODEL, messages, n: 2 }))
    expect(error).toBeInstanceOf(BadRequestError)
    expect(error).toMatchObject({ status: 400, param: 'n', code: 'unsupported_parameter' })
    const chained = await getFailure(
      client.responses.create({ model: MODEL, input: 'hello', previous_response_id: 'resp_1' }),
    )
    expect(chained).toBeInstanceOf(BadRequestError)
    expect(chained).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
    expect(world.turns()).toEqual([])
  })

  test('a response by its id: NotFoundError', async () => {
    expect(await getFailure(client.responses.retrieve('resp_1'))).toBeInstanceOf(NotFoundError)
  })

  test('a failure after the headers and before any event: raised by the stream helper', async () => {
    for (const account of world.upstream.accounts) account.always({ delayHeadersMs: 5200, ...faults.forbidden() })
    const error = await getFailure(client.responses.stream({ model: MODEL, input: 'hello' }).finalResponse())
    expect(error).toBeInstanceOf(APIError)
    expect(error).toMatchObject({ code: 'upstream_error' })
    expect(world.turns()).toHaveLength(2)
  })

  test('an upstream that fails on every account: InternalServerError, also for a stream', async () => {
    for (const account of world.upstream.accounts) account.always(faults.serverError())
    const error = await getFailure(ask())
    expect(error).toBeInstanceOf(InternalServerError)
    expect(error).toMatchObject({ status: expect.any(Number), requestID: expect.any(String) })
    const streamed = await getFailure(client.responses.create({ model: MODEL, input: 'hello', stream: true }))
    expect(streamed).toBeInstanceOf(InternalServerError)
  })
})
