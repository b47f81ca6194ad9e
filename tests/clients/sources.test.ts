/** The Codex CLI and the `openai` SDK served by a model source, by overflow, and by the pool again, without a restart. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import { ANSWER_TEXT } from '../support/source/answers.ts'
import { createSource, type StandInSource } from '../support/source/app.ts'
import { faults } from '../support/upstream/faults.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World } from './support/world.ts'

const MODEL = 'llama-4'
const POOLED = 'gpt-5.5'

setDefaultTimeout(120_000)

let world: World
let source: StandInSource
let server: ReturnType<StandInSource['listen']>
let client: OpenAI

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, {}] })
  source = createSource({ key: null, models: [MODEL, POOLED, 'whisper-local'] })
  server = source.listen()
  const models = [MODEL, POOLED, 'whisper-local'].map((model) => ({ model, supportsTools: true }))
  const made = await world.api<{ id: string }>('POST', '/api/model-sources/', {
    name: 'Local',
    baseUrl: `${server.url.origin}/v1`,
    supportsResponses: true,
    supportsAudioTranscriptions: true,
    supportsEmbeddings: true,
    models,
  })
  await world.api('PATCH', '/api/settings', { overflowSourceId: made.id })
  client = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 })
  await client.models.list() // the pool's catalog is known afterwards
})

afterAll(async () => {
  await server.stop(true)
  await world[Symbol.asyncDispose]()
})

afterEach(() => {
  source.received.length = 0
  world.upstream.reset()
})

const codexWith = (options: Partial<Parameters<typeof installCodex>[0]> = {}) =>
  installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key: world.key }, ...options })

const usedUp = () => {
  const limit = faults.usageLimit({ resetsAt: Date.now() + 3_600_000 })
  for (const account of world.upstream.accounts) account.always(limit)
}

test('the SDK chats, streams, embeds and transcribes with a source', async () => {
  const messages = [{ role: 'user' as const, content: 'hello' }]
  const chat = await client.chat.completions.create({ model: MODEL, messages })
  expect(chat.choices[0]?.message.content).toBe(ANSWER_TEXT)
  let streamed = ''
  for await (const chunk of await client.chat.completions.create({ model: MODEL, messages, stream: true }))
    streamed += chunk.choices[0]?.delta.content ?? ''
  expect(streamed).toBe(ANSWER_TEXT)
  const { data, usage } = await client.embeddings.create({ model: MODEL, input: ['a', 'b'], encoding_format: 'float' })
  expect([data.length, usage.prompt_tokens]).toEqual([2, 6])
  const file = await toFile(Buffer.from('RIFF'), 'talk.wav')
  expect((await client.audio.transcriptions.create({ model: 'whisper-local', file })).text).toBe(ANSWER_TEXT)
  expect((await client.responses.create({ model: MODEL, input: 'hello' })).output_text).toBe(ANSWER_TEXT)
  expect(world.turns()).toEqual([])
})

test('the Codex CLI lists the models of a source and works with one', async () => {
  await using codex = codexWith({ model: MODEL, listsModels: true })
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: ANSWER_TEXT })
  expect(source.last('/responses')?.body).toMatchObject({ model: MODEL, stream: true, store: false })
  expect(world.turns()).toEqual([])
})

test('the Codex CLI with sockets falls back to HTTP without a warning', async () => {
  await using codex = codexWith({ model: MODEL, sockets: true })
  const run = await codex.exec('hello')
  expect(run).toMatchObject({ exitCode: 0, text: ANSWER_TEXT })
  expect(run.complaints).toEqual([])
})

test('both are served by overflow while the pool is used up, and by the pool afterwards', async () => {
  usedUp()
  await using codex = codexWith({ model: POOLED })
  expect(await codex.exec('hello')).toMatchObject({ exitCode: 0, complaints: [], text: ANSWER_TEXT })
  const { data, response } = await client.responses.create({ model: POOLED, input: 'hello' }).withResponse()
  expect([data.output_text, response.headers.get('x-sluice-source')]).toEqual([ANSWER_TEXT, 'Local'])
  world.upstream.reset()
  for (const account of world.upstream.accounts) account.always(null)
  const { accounts } = await world.api<{ accounts: { accountId: string }[] }>('GET', '/api/accounts')
  for (const { accountId } of accounts) await world.api('POST', `/api/accounts/${accountId}/probe`)
  const back = await codex.exec('hello')
  expect(back).toMatchObject({ exitCode: 0, complaints: [] })
  expect(back.text).toStartWith('Hello from account-')
  const again = await client.responses.create({ model: POOLED, input: 'hello' }).withResponse()
  expect(again.response.headers.get('x-sluice-source')).toBeNull()
})
