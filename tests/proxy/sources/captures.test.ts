/** Captures of requests served by a model source: the client's request and the source's response, without its key. */
import { describe, expect, test } from 'bun:test'
import { readRequest } from '../../../src/model/captures/archive.ts'
import { getEvents } from '../../../src/model/captures/captured-events.ts'
import { fetchCatalogs } from '../../spec/catalog.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { addSource } from '../../support/source/add.ts'
import { ANSWER_TEXT } from '../../support/source/answers.ts'
import type { SourceFault } from '../../support/source/app.ts'
import { faults } from '../../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const EMBEDDINGS = 'POST /v1/embeddings'
const AUDIO = 'POST /v1/audio/transcriptions'
const MODEL = 'llama-4'
const KEY = 'sk-source-secret-key'

const chat = (more: Record<string, unknown> = {}) => ({
  model: MODEL,
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})

const startCapture = ({ bindings }: TestApp, scope: { keyId: string } | { accountId: string }) =>
  bindings.captures.start({
    keyId: null,
    accountId: null,
    ...scope,
    minutes: 60,
    maxBytes: 2 ** 26,
    startedBy: { id: 'test', name: null },
  })

/** A source, and a capture of the key that the requests use. */
const prepared = async (fields: Parameters<typeof addSource>[1] = {}) => {
  const app = await testApp()
  const source = await addSource(app, { timeoutSeconds: 5, ...fields })
  const { key, row } = await app.key()
  return { app, source, capture: startCapture(app, { keyId: row.id }), headers: { authorization: `Bearer ${key}` } }
}

type Prepared = Pick<Awaited<ReturnType<typeof prepared>>, 'app' | 'capture'>

const capturedIn = async ({ app, capture }: Prepared) => {
  const { captures, sealer } = app.bindings
  await captures.flush()
  const id = (await app.rows()).at(-1)?.id ?? ''
  if (!captures.holding(id).includes(capture)) return null
  return readRequest({ dir: captures.dir, sealer }, capture.id, { id, maxBytes: 2 ** 26 })
}

const captured = async (house: Prepared) => {
  const found = await capturedIn(house)
  if (!found) throw new Error('The request was not captured.')
  return found
}

type Content = Awaited<ReturnType<typeof captured>>

const answerText = ({ attempts }: Content): string =>
  attempts.map(({ parts }) => parts.map(({ bytes }) => Buffer.from(bytes).toString()).join('')).join('\n')

/** Attempts as the client of the archive sees them. */
const tried = ({ attempts }: Content) =>
  attempts.map(({ accountId, source, status, error }) => [accountId ?? source?.name, status, error?.code ?? null])

/** A running capture has a timer of its own. */
const nothingLeft = async ({ app, capture }: Prepared) => {
  app.bindings.captures.end(capture, 'stopped')
  await app.clock.advance(100)
  await expectNothingLeft(app)
}

describe('the body as sent, and the answer as the source sent it', () => {
  test.each([
    [CHAT, chat(), ANSWER_TEXT],
    [PUBLIC, { model: MODEL, input: 'hello' }, ANSWER_TEXT],
    [EMBEDDINGS, { model: MODEL, input: ['a', 'b'] }, '"embedding"'],
  ])('%s: a document', async (route, json, answer) => {
    const house = await prepared()
    const sent = ` ${JSON.stringify(json)} `
    const { text } = await getAnswer(house.app, route, { body: sent, headers: house.headers })
    const found = await captured(house)
    expect(Buffer.concat(found.body).toString()).toBe(sent)
    expect(found.attempts).toMatchObject([
      { accountId: null, source: { id: house.source.id, name: 'Local' }, status: 200, error: null },
    ])
    expect(answerText(found)).toBe(text)
    expect(text).toContain(answer)
    expect(found.end).toMatchObject({ status: 'ok', httpStatus: 200, droppedBytes: 0 })
    await nothingLeft(house)
  })

  test.each([
    [CHAT, chat({ stream: true }), '[DONE]'],
    [PUBLIC, { model: MODEL, input: 'hello', stream: true }, '"response.completed"'],
    [NATIVE, codexBody('hello', { model: MODEL }), '"response.completed"'],
  ])('%s: every event of a stream', async (route, json, last) => {
    const house = await prepared()
    await getAnswer(house.app, route, { json, headers: house.headers })
    const found = await captured(house)
    expect(tried(found)).toEqual([['Local', 200, null]])
    const events = getEvents(found.attempts[0]?.parts ?? []) ?? []
    expect(events.at(-1)?.data).toContain(last)
    expect(events.length).toBeGreaterThan(3)
    await nothingLeft(house)
  })

  test('a transcription: the form as its bytes', async () => {
    const house = await prepared()
    const form = new FormData()
    form.append('model', MODEL)
    form.append('file', new File(['marked sound'], 'a.wav'))
    const written = new Response(form)
    const type = written.headers.get('content-type') ?? '' // is released once the body is read
    const body = await written.arrayBuffer()
    const { text } = await getAnswer(house.app, AUDIO, { body, headers: { ...house.headers, 'content-type': type } })
    const found = await captured(house)
    expect(Buffer.concat(found.body)).toEqual(Buffer.from(body))
    expect(tried(found)).toEqual([['Local', 200, null]])
    expect(answerText(found)).toBe(text)
  })
})

test.each([
  ['html', 200, 'invalid_upstream_response'],
  ['not_json', 200, 'invalid_upstream_response'],
  ['hang', null, 'upstream_timeout'],
  ['unreachable', null, 'model_source_unreachable'],
  ['echo_key', 401, 'model_source_credentials_error'],
  ['forbidden', 403, 'model_source_credentials_error'],
  ['server_error', 500, 'model_source_error'],
  ['rate_limited', 429, 'rate_limit_exceeded'],
] satisfies [SourceFault, number | null, string][])(
  'a source that fails with %s: its status, and the error',
  async (fault, status, code) => {
    for (const [route, json] of [
      [CHAT, chat()],
      [NATIVE, codexBody('hello', { model: MODEL })],
    ] as const) {
      const house = await prepared()
      house.app.source.fail(fault)
      await getAnswer(house.app, route, { json, headers: house.headers })
      const found = await captured(house)
      expect(tried(found)).toEqual([['Local', status, code]])
      expect(found.end).toMatchObject({ status: 'error', errorCode: code })
      expect(JSON.stringify(found.attempts) + answerText(found)).not.toContain(KEY)
      await nothingLeft(house)
    }
  },
)

test('what a source answered when it rejected the request', async () => {
  const house = await prepared()
  house.app.source.fail('server_error')
  await getAnswer(house.app, CHAT, { json: chat(), headers: house.headers })
  expect(JSON.parse(answerText(await captured(house)))).toMatchObject({ error: { message: 'The model crashed.' } })
})

test('an interrupted stream: what had arrived until then', async () => {
  const house = await prepared()
  house.app.source.fail('cut')
  await getAnswer(house.app, CHAT, { json: chat({ stream: true }), headers: house.headers })
  const found = await captured(house)
  expect(found.end).toMatchObject({ status: 'error', errorCode: 'stream_incomplete' })
  expect(getEvents(found.attempts[0]?.parts ?? [])?.length).toBeGreaterThan(0)
  expect(answerText(found)).not.toContain('[DONE]')
})

test('a source that repeats its key in headers and in the response: the key is not stored', async () => {
  const house = await prepared()
  const { source } = house.app
  const serve = source.fetch
  source.fetch = async (url, init) => {
    const response = await serve(url, init)
    const headers = new Headers(response.headers)
    headers.set('x-served-for', `${KEY}/1`)
    headers.set('x-region', 'here')
    return new Response((await response.text()).replace(ANSWER_TEXT, `key ${KEY}`), { headers })
  }
  for (const json of [chat(), chat({ stream: true })]) {
    await getAnswer(house.app, CHAT, { json, headers: house.headers })
    const found = await captured(house)
    expect(found.attempts[0]?.headers).toContainEqual(['x-region', 'here'])
    expect(JSON.stringify(found.attempts) + answerText(found)).not.toContain(KEY)
  }
})

describe('overflow', () => {
  const usedUp = async () => {
    const app = await testApp({ accounts: 1 })
    await fetchCatalogs(app)
    const { id } = await addSource(app, { models: ['gpt-5.5'] })
    app.source.state.models.push('gpt-5.5')
    await app.change({ overflowSourceId: id })
    const [member] = app.members
    member?.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const { key, row } = await app.key()
    return { app, keyId: row.id, accountId: member?.id ?? '', headers: { authorization: `Bearer ${key}` } }
  }

  test('a capture of the key has the attempt of the account and that of the source', async () => {
    const { app, keyId, accountId, headers } = await usedUp()
    const house = { app, capture: startCapture(app, { keyId }) }
    await getAnswer(app, NATIVE, { json: codexBody(), headers })
    const found = await captured(house)
    expect(tried(found)).toEqual([
      [accountId, 429, null],
      ['Local', 200, null],
    ])
    expect(getEvents(found.attempts[1]?.parts ?? [])?.at(-1)?.type).toBe('response.completed')
  })

  test('a capture of the account has only what the account answered', async () => {
    const { app, accountId, headers } = await usedUp()
    const house = { app, capture: startCapture(app, { accountId }) }
    await getAnswer(app, NATIVE, { json: codexBody('first'), headers })
    const found = await captured(house)
    expect(tried(found)).toEqual([[accountId, 429, null]])
    expect(answerText(found)).not.toContain(ANSWER_TEXT)
    await getAnswer(app, NATIVE, { json: codexBody('second'), headers })
    expect((await app.rows()).at(-1)).toMatchObject({ overflow: true, attempts: 0 })
    expect(await capturedIn(house)).toBeNull()
  })
})
