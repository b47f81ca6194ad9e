/** Transcription with the official `openai` SDK through Sluice: JSON, text and stream. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI, { BadRequestError, InternalServerError, toFile } from 'openai'
import { faults } from '../support/upstream/faults.ts'
import { getTranscript } from '../support/upstream/transcribe.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World
let client: OpenAI

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, {}] })
  client = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 })
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => {
  const seen = [...world.upstream.oddities]
  world.upstream.reset()
  expect(seen).toEqual([])
})

const speech = (text = 'hello') => toFile(Buffer.from(text), 'speech.mp3', { type: 'audio/mpeg' })
const getFailure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error) => error,
  )

test('audio.transcriptions.create as JSON', async () => {
  const transcript = await client.audio.transcriptions.create({
    file: await speech(),
    model: 'gpt-4o-transcribe',
    prompt: 'a greeting',
    language: 'en',
    temperature: 0,
  })
  expect(transcript).toEqual({ text: getTranscript('hello', 'a greeting') } as typeof transcript)
})

test('audio.transcriptions.create with the model name that apps hardcode', async () => {
  const { data, response } = await client.audio.transcriptions
    .create({ file: await speech(), model: 'whisper-1' })
    .withResponse()
  expect(data.text).toBe(getTranscript('hello', ''))
  expect(response.headers.get('x-sluice-model')).toBe('gpt-4o-transcribe')
})

test('audio.transcriptions.create as text', async () => {
  const text: unknown = await client.audio.transcriptions.create({
    file: await speech(),
    model: 'gpt-4o-mini-transcribe',
    response_format: 'text',
  })
  expect(text).toBe(getTranscript('hello', ''))
})

test('audio.transcriptions.create as a stream', async () => {
  const events = []
  const stream = await client.audio.transcriptions.create({
    file: await speech(),
    model: 'gpt-4o-transcribe',
    stream: true,
  })
  for await (const event of stream) events.push(event)
  const text = getTranscript('hello', '')
  expect(events).toEqual([
    { type: 'transcript.text.delta', delta: text },
    { type: 'transcript.text.done', text },
  ])
})

test('audio.transcriptions.create with a file of 20 MiB', async () => {
  world.upstream.answerRelay(({ received }) => Response.json({ text: `${received.bytes.length > 20 * 1024 * 1024}` }))
  const file = await toFile(Buffer.alloc(20 * 1024 * 1024, 7), 'long.wav')
  expect((await client.audio.transcriptions.create({ file, model: 'whisper-1' })).text).toBe('true')
})

test('errors are those of the SDK', async () => {
  const wrong = await getFailure(
    speech().then((file) => client.audio.transcriptions.create({ file, model: 'whisper-1', response_format: 'srt' })),
  )
  expect(wrong).toBeInstanceOf(BadRequestError)
  expect(wrong).toMatchObject({ param: 'response_format' })
  for (const account of world.upstream.accounts) account.always({ on: 'transcribe', ...faults.forbiddenHtml() })
  const blocked = await getFailure(
    speech().then((file) => client.audio.transcriptions.create({ file, model: 'whisper-1' })),
  )
  expect(blocked).toBeInstanceOf(InternalServerError)
  expect(blocked).toMatchObject({ status: 502, code: 'upstream_blocked' })
})
