/** Chat completions: the reasoning of a response is sent upstream in front of the calls it led to. */
import { expect, test } from 'bun:test'
import { expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { type AnswerItem, answers, type Json, type Turn } from '../../support/upstream/script.ts'

const CHAT = 'POST /v1/chat/completions'
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
const MODEL = 'gpt-5.5'

const thought: AnswerItem = { kind: 'reasoning', summary: 'Hm.' }
const look = (at: string): AnswerItem => ({ kind: 'functionCall', name: 'look', arguments: JSON.stringify({ at }) })

/** Answers the first request with these items, every later one with a thought and a text. */
const answering = (app: TestApp, items: AnswerItem[]) =>
  app.upstream.script(({ input }: Turn) =>
    answers.items(
      input.some(({ type }) => String(type).endsWith('_output')) ? [thought, { kind: 'text', text: 'Done.' }] : items,
    ),
  )

interface Ask {
  stream?: boolean
  key?: string
  store?: boolean
}

/** The assistant message, as SDKs put it together. */
const send = async (app: TestApp, messages: Json[], { key, ...more }: Ask = {}): Promise<Json> => {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const answer = await getAnswer(app, CHAT, { json: { model: MODEL, messages, tools: TOOLS, ...more }, headers })
  expect(answer.status).toBe(200)
  if (!more.stream) return JSON.parse(answer.text).choices[0].message
  const deltas = answer.events.map((chunk) => (chunk.choices as { delta: Json }[])[0]?.delta ?? {})
  const calls: Json[] = []
  for (const { index, ...call } of deltas.flatMap(
    ({ tool_calls }) => (tool_calls as (Json & { index: number })[]) ?? [],
  )) {
    const { name, arguments: part = '' } = call.function as Json
    const before = calls[index] ?? { ...call, function: { name, arguments: '' } }
    const { function: known } = before as { function: Json }
    calls[index] = { ...before, function: { ...known, arguments: `${known.arguments}${part}` } }
  }
  const content = deltas.map((delta) => delta.content ?? '').join('')
  return { role: 'assistant', content: content || null, tool_calls: calls }
}

const results = ({ tool_calls }: Json): Json[] =>
  (tool_calls as Json[]).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'seen' }))

const lastBody = (app: TestApp): Json => JSON.parse(app.upstream.requests.at(-1)!.bodyText)
const kindsSent = (app: TestApp) => (lastBody(app).input as Json[]).map(({ type, role }) => type ?? role)
const asked = { role: 'user', content: 'look around' }

test.each([true, false])('reasoning is restored before the call, stream: %s', async (stream) => {
  const app = await testApp()
  answering(app, [
    thought,
    { kind: 'text', text: 'I look.', phase: 'commentary' },
    look('a'),
    thought,
    look('b'),
    look('c'),
  ])
  const message = await send(app, [asked], { stream })
  await send(app, [asked, message, ...results(message)], { stream })
  expect(kindsSent(app)).toEqual([
    ...['user', 'reasoning', 'assistant', 'function_call', 'reasoning', 'function_call', 'function_call'],
    ...['function_call_output', 'function_call_output', 'function_call_output'],
  ])
  expect(lastBody(app).include).toEqual(['reasoning.encrypted_content'])
  await expectNothingLeft(app)
})

test('a conversation keeps its reasoning while it continues, in the same bytes', async () => {
  const app = await testApp()
  answering(app, [thought, look('a')])
  const message = await send(app, [asked])
  const history = [asked, message, ...results(message)]
  const inputs: string[] = []
  for (let hour = 0; hour < 3; hour++) {
    await app.clock.advance(50 * 60_000)
    const { content } = await send(app, history)
    inputs.push(JSON.stringify(lastBody(app).input).slice(0, -1))
    history.push({ role: 'assistant', content }, { role: 'user', content: 'more' })
  }
  expect(inputs.map((text) => text.includes('"encrypted_content"'))).toEqual([true, true, true])
  expect(inputs.every((text, index) => text.startsWith(inputs[index - 1] ?? ''))).toBe(true)
  await app.clock.advance(60 * 60_000)
  await send(app, history)
  expect(kindsSent(app)).not.toContain('reasoning')
})

test('another key gets none of it', async () => {
  const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
  answering(app, [thought, look('a')])
  const [mine, other] = [(await app.key()).key, (await app.key()).key]
  const message = await send(app, [asked], { key: mine })
  const next = [asked, message, ...results(message)]
  await send(app, next, { key: other })
  expect(kindsSent(app)).toEqual(['user', 'function_call', 'function_call_output'])
  await send(app, next, { key: mine })
  expect(kindsSent(app)).toContain('reasoning')
})

test.each([
  ['store: false', {}, { store: false }],
  ['the setting', { responseStoreMinutes: 0 }, {}],
])('%s stores nothing and requests no ciphertext', async (_, settings, more) => {
  const app = await testApp({ settings })
  answering(app, [thought, look('a')])
  const message = await send(app, [asked], more)
  expect(lastBody(app).include).toBeUndefined()
  await send(app, [asked, message, ...results(message)], more)
  expect(kindsSent(app)).toEqual(['user', 'function_call', 'function_call_output'])
  expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
})

test('a response without calls leaves nothing in memory', async () => {
  const app = await testApp()
  answering(app, [thought, { kind: 'text', text: 'Hi.' }])
  await send(app, [asked])
  expect(app.bindings.responses).toMatchObject({ size: 0, bytes: 0 })
})

test('the account changes: reasoning the new one cannot read is omitted', async () => {
  const app = await testApp({ accounts: 2 })
  answering(app, [thought, look('a')])
  const message = await send(app, [asked])
  const owner = (await app.rows()).at(-1)?.accountId
  app.members
    .find(({ id }) => id === owner)!
    .sim.next({ status: 429, body: { error: { type: 'usage_limit_reached' } } })
  await send(app, [asked, message, ...results(message)])
  expect((await app.rows()).at(-1)).toMatchObject({ status: 'ok', moved: true })
  expect(kindsSent(app)).toEqual(['user', 'function_call', 'function_call_output'])
})

test('the conversation has one cache key upstream', async () => {
  const app = await testApp()
  answering(app, [thought, look('a')])
  const message = await send(app, [asked])
  const history = [asked, message, ...results(message)]
  await send(app, history)
  const name = app.upstream.requests.at(-1)!.headers['session-id']
  await send(app, [...history, { role: 'assistant', content: 'Done.' }, { role: 'user', content: 'more' }])
  expect([name, app.upstream.requests.at(-1)!.headers['session-id']]).toEqual([expect.any(String), name])
})
