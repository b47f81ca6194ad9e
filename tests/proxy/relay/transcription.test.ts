/** Transcription: accepted forms, the upstream request, and the response. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../../spec/catalog.ts'
import { type Ask, expectNothingLeft, getAnswer, parseEvents, type TestApp, testApp } from '../../support/app.ts'
import { faults } from '../../support/upstream/faults.ts'
import { getTranscript } from '../../support/upstream/transcribe.ts'

const NATIVE = 'POST /backend-api/transcribe'
const PUBLIC = 'POST /v1/audio/transcriptions'
const AUDIO = 'RIFF some audio'
const MODEL = 'gpt-4o-transcribe'
const MIB = 1024 * 1024

type Fields = Record<string, string | File | null>
const audio = (content: BlobPart = AUDIO, name = 'secret talk.mp3') => new File([content], name, { type: 'audio/mpeg' })

/** A form; null leaves a default field out. */
const form = async (fields: Fields = {}, headers: Record<string, string> = {}): Promise<Ask> => {
  const body = new FormData()
  for (const [name, value] of Object.entries({ file: audio(), ...fields })) {
    if (typeof value === 'string') body.append(name, value)
    else if (value) body.append(name, value, value.name)
  }
  const written = new Response(body)
  const type = written.headers.get('content-type') ?? ''
  return { body: await written.arrayBuffer(), headers: { ...headers, 'content-type': type } }
}
const publicForm = (fields: Fields = {}, headers: Record<string, string> = {}) =>
  form({ model: MODEL, ...fields }, headers)

/** As a client that writes the form itself. */
const raw = (body: string, type = 'multipart/form-data; boundary=x'): Ask => ({
  body,
  headers: { 'content-type': type },
})
const part = (head: string, content: string) => `--x\r\ncontent-disposition: form-data; ${head}\r\n\r\n${content}\r\n`

const getFailure = (text: string) =>
  (JSON.parse(text) as { error: { code: string; param: string | null; message: string } }).error
const sent = (app: TestApp) => app.upstream.requests.filter(({ path }) => path.endsWith('/transcribe'))
const formSent = (app: TestApp, index = 0): Promise<FormData> => {
  const { bytes, headers } = sent(app)[index]!
  const type = { 'content-type': headers['content-type'] ?? '' }
  return new Response(new Uint8Array(bytes), { headers: type }).formData() as Promise<FormData>
}
const limit = (limitType: 'requests' | 'cost_usd', maxValue: number) => ({
  limitType,
  limitWindow: 'daily' as const,
  maxValue,
  modelFilter: '',
})

describe.each([
  ['native', NATIVE, form],
  ['public', PUBLIC, publicForm],
] as const)('the %s route', (_name, route, formFor) => {
  test('sends only file and prompt, with the smallest set of headers', async () => {
    const app = await testApp()
    const headers = {
      'user-agent': 'tool/1',
      originator: 'x',
      'session-id': 's',
      'x-codex-turn-metadata': '{}',
      cookie: 'a=b',
    }
    const ask = await formFor({ prompt: 'Names: Ada, Grace\r\n€', language: 'en', temperature: '0' }, headers)
    const answer = await getAnswer(app, route, ask)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      200,
      { text: getTranscript(AUDIO, 'Names: Ada, Grace\r\n€') },
    ])
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe('language, temperature')
    const received = await formSent(app)
    expect([...received.keys()]).toEqual(['file', 'prompt'])
    const file = received.get('file') as File
    expect([file.name, file.type, await file.text()]).toEqual(['secret talk.mp3', 'audio/mpeg', AUDIO])
    expect(Object.keys(sent(app)[0]?.headers ?? {}).toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'authorization',
      'chatgpt-account-id',
      'content-type',
      'user-agent',
    ])
    expect(await app.rows()).toMatchObject([
      { kind: 'audio', model: MODEL, status: 'ok', httpStatus: 200, inputTokens: null, costMicros: null, attempts: 1 },
    ])
    expect(JSON.stringify(await app.rows()) + app.lines.join('')).not.toContain('secret talk')
    await expectNothingLeft(app)
  })

  const FORMS: [string, string, () => Ask | Promise<Ask>][] = [
    ['file', 'no file', () => formFor({ file: null })],
    ['file', 'an empty file', () => formFor({ file: audio('') })],
    ['file', 'text in place of the file', () => formFor({ file: 'RIFF' })],
    ['file', 'JSON', () => ({ json: { file: 'x', model: MODEL } })],
    ['file', 'a type without a boundary', () => raw(part('name="model"', MODEL), 'multipart/form-data')],
    [
      'file',
      'another boundary',
      () => raw(`${part('name="model"', MODEL)}--x--\r\n`, 'multipart/form-data; boundary=y'),
    ],
    ['file', 'no form at all', () => raw('hello')],
    ['file', 'an empty body', () => raw('')],
    [
      'file',
      'a file that ends early',
      () =>
        raw(
          `${part('name="model"', MODEL)}--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nRIF`,
        ),
    ],
    [
      'file',
      'two files',
      () =>
        raw(
          `${part('name="model"', MODEL)}${part('name="file"; filename="a"', 'A')}${part('name="file"; filename="b"', 'B')}--x--\r\n`,
        ),
    ],
    ['prompt', 'a file in place of the prompt', () => formFor({ prompt: audio() })],
    ['prompt', 'a very long prompt', () => formFor({ prompt: 'p'.repeat(256 * 1024 + 1) })],
    [
      'file',
      'very many fields',
      () => formFor(Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`f${at}`, 'x']))),
    ],
  ]
  test.each(FORMS)('names %s for %s, charges nothing and sends nothing', async (param, _what, make) => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const authorization = `Bearer ${(await app.key({ limits: [limit('requests', 1)] })).key}`
    const ask = await make()
    const answer = await getAnswer(app, route, { ...ask, headers: { ...ask.headers, authorization } })
    expect([answer.status, getFailure(answer.text)]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_request_error', param }),
    ])
    expect(app.upstream.requests).toEqual([])
    expect(await app.rows()).toMatchObject([{ kind: 'audio', status: 'error', httpStatus: 400, phase: 'request' }])
    expect((await getAnswer(app, route, await formFor({}, { authorization }))).status).toBe(200)
    await expectNothingLeft(app)
  })

  test('a truncated body is a truncated file', async () => {
    const app = await testApp()
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(part('name="model"', MODEL)))
        controller.error(new Error('reset'))
      },
    })
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const answer = await getAnswer(app, route, { body: broken, headers })
    expect([answer.status, getFailure(answer.text).param]).toEqual([400, 'file'])
    await expectNothingLeft(app)
  })

  test('accepts a file of 25 MiB and no larger one, and counts it in the memory for bodies', async () => {
    const app = await testApp()
    const largest = new Uint8Array(25 * MIB).fill(65)
    let held = 0
    app.upstream.answerRelay(() => {
      held = app.bindings.bodies.heldBytes
      return Response.json({ text: 'long' })
    })
    expect((await getAnswer(app, route, await formFor({ file: audio(largest) }))).status).toBe(200)
    expect(held).toBeGreaterThan(25 * MIB)
    expect(held).toBeLessThan(26 * MIB)
    const status = route === NATIVE ? 400 : 413
    const tooLarge = await getAnswer(app, route, await formFor({ file: audio(new Uint8Array(25 * MIB + 1)) }))
    expect([tooLarge.status, getFailure(tooLarge.text)]).toEqual([
      status,
      expect.objectContaining({ code: 'payload_too_large', param: 'file' }),
    ])
    const headers = { 'content-type': 'multipart/form-data; boundary=x', 'content-length': String(26 * MIB) }
    expect((await app.ask(route, { body: 'x', headers })).status).toBe(status)
    const rows = (await app.rows()).length
    const others = app.bindings.bodies.open(0)
    for (const mib of [512, 500]) {
      app.bindings.bodies.grow(others, mib * MIB) // no room for the body, then none for the copies of its form
      expect((await getAnswer(app, route, await formFor({ file: audio(new Uint8Array(5 * MIB)) }))).status).toBe(503)
      expect(app.bindings.bodies.heldBytes).toBe(mib * MIB)
    }
    expect(sent(app)).toHaveLength(1)
    expect(await app.rows()).toHaveLength(rows)
  })

  test('needs a key where keys are required, and is checked and counted as gpt-4o-transcribe', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    expect((await app.ask(route, await formFor())).status).toBe(401)
    const bearer = async (input: Parameters<TestApp['key']>[0]) => ({
      authorization: `Bearer ${(await app.key(input)).key}`,
    })
    const other = await getAnswer(
      app,
      route,
      await formFor({}, await bearer({ allowedModels: ['gpt-5.5', 'whisper-1'] })),
    )
    expect([other.status, getFailure(other.text)]).toEqual([
      route === NATIVE ? 404 : 403,
      expect.objectContaining({ code: route === NATIVE ? 'model_not_found' : 'model_not_allowed', param: 'model' }),
    ])
    const limits = [{ ...limit('requests', 1), modelFilter: MODEL }]
    const headers = await bearer({ name: 'two', allowedModels: [MODEL], limits })
    expect((await getAnswer(app, route, await formFor({}, headers))).status).toBe(200)
    expect((await getAnswer(app, route, await formFor({}, headers))).status).toBe(429)
    expect(
      (await getAnswer(app, route, await formFor({}, await bearer({ name: 'three', enforcedModel: 'gpt-5.5' }))))
        .status,
    ).toBe(200)
    expect(sent(app)).toHaveLength(2)
    await expectNothingLeft(app)
  })

  test('rejects the capability header, an address outside the firewall, and requests while draining', async () => {
    const app = await testApp()
    const capability = {
      authorization: `Bearer ${(await app.key()).key}`,
      'x-codex-lb-required-capability': 'trusted_cyber',
    }
    expect((await app.ask(route, await formFor({}, capability))).status).toBe(400)
    app.bindings.lifecycle.draining = true
    expect((await app.ask(route, await formFor())).status).toBe(503)
    app.bindings.lifecycle.draining = false
    await app.ask('POST /api/firewall/ips', { json: { ipAddress: '203.0.113.9' } })
    expect((await app.ask(route, { ...(await formFor()), peer: '198.51.100.7' })).status).toBe(403)
    expect(app.upstream.requests).toEqual([])
  })

  test('refreshes a rejected token once and sends the request again', async () => {
    const app = await testApp()
    app.members[0]!.sim.expireAccessToken()
    expect((await getAnswer(app, route, await formFor())).status).toBe(200)
    expect(sent(app).map(({ status }) => status)).toEqual([401, 200])
    expect(sent(app)[0]?.bodyText).toBe(sent(app)[1]?.bodyText ?? '')
    await expectNothingLeft(app)
  })

  test('after a page with 403 one other account is tried', async () => {
    const app = await testApp({ accounts: 3 })
    await app.prefer(app.members[0]!.id)
    app.members[0]!.sim.next({ on: 'transcribe', ...faults.forbiddenHtml() })
    expect((await getAnswer(app, route, await formFor())).status).toBe(200)
    expect(sent(app).map(({ status }) => status)).toEqual([403, 200])
    for (const { sim } of app.members) sim.always({ on: 'transcribe', ...faults.forbiddenHtml() })
    const answer = await getAnswer(app, route, await formFor())
    expect([answer.status, getFailure(answer.text).code]).toEqual([502, 'upstream_blocked'])
    expect(answer.text).not.toContain('html')
    expect(sent(app)).toHaveLength(4)
    for (const { health, state } of app.bindings.pool.all())
      expect([health.errors, state.status]).toEqual([0, 'active'])
    expect((await app.rows()).at(-1)).toMatchObject({
      status: 'error',
      httpStatus: 502,
      errorCode: 'upstream_blocked',
      attempts: 2,
    })
    await expectNothingLeft(app)
  })

  test.each([
    ['a usage limit', faults.usageLimit({ resetsAt: 4_000_000_000_000 })],
    ['a rate limit', faults.rateLimited(20)],
  ])('moves to another account after %s, which is remembered', async (_what, fault) => {
    const app = await testApp({ accounts: 2 })
    await app.prefer(app.members[0]!.id)
    app.members[0]!.sim.next({ on: 'transcribe', ...fault })
    expect((await getAnswer(app, route, await formFor())).status).toBe(200)
    const blocked = app.bindings.pool.all().find(({ id }) => id === app.members[0]!.id)
    expect(blocked?.state.status).toBe('rate_limited')
  })

  test('times out after 120 s', async () => {
    const app = await testApp()
    app.members[0]!.sim.always({ on: 'transcribe', delayHeadersMs: 3_600_000 })
    const began = app.clock.now()
    const answer = await getAnswer(app, route, await formFor(), 5000)
    expect([answer.status, app.clock.now() - began]).toEqual([504, 120_000])
    await expectNothingLeft(app)
  })

  test.each([
    [{ text: 'a', duration: 90 }, 9000],
    [{ text: 'a', usage: { type: 'duration', seconds: 1 } }, 100],
    [{ text: 'a', duration: '90' }, null],
    [{ text: 'a', duration: -1 }, null],
  ])('costs per minute if ChatGPT states the duration: %p', async (document, costMicros) => {
    const app = await testApp()
    const key = await app.key({ limits: [limit('cost_usd', 1_000_000)] })
    app.upstream.answerRelay(() => Response.json(document))
    const ask = await formFor({}, { authorization: `Bearer ${key.key}` })
    expect((await getAnswer(app, route, ask)).status).toBe(200)
    expect(await app.rows()).toMatchObject([{ status: 'ok', costMicros, inputTokens: null }])
    expect(app.sqlite.query('SELECT current_value AS used FROM api_key_limits').get()).toEqual({
      used: costMicros ?? 0,
    })
    expect(app.sqlite.query('SELECT sum(unpriced) AS unpriced FROM request_hours').get()).toEqual({
      unpriced: costMicros === null ? 1 : 0,
    })
  })
})

describe('the native route', () => {
  test('returns the response unchanged', async () => {
    const app = await testApp()
    app.upstream.answerRelay(
      () =>
        new Response('{ "text" : "hi",\n"x":1 }', {
          headers: { 'content-type': 'application/json; v=1', etag: '"1"' },
        }),
    )
    const answer = await getAnswer(app, NATIVE, await form({ response_format: 'srt' }))
    expect([answer.text, answer.headers.get('content-type'), answer.headers.get('etag')]).toEqual([
      '{ "text" : "hi",\n"x":1 }',
      'application/json; v=1',
      '"1"',
    ])
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe('response_format')
  })
})

describe('the public route', () => {
  test.each(['gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'whisper-1'])(
    'accepts %s, and reports the usage',
    async (model) => {
      const app = await testApp()
      const answer = await getAnswer(app, PUBLIC, await publicForm({ model }))
      expect([answer.status, answer.headers.get('x-sluice-model')]).toEqual([200, MODEL])
      expect(await app.rows()).toMatchObject([{ model: MODEL }])
    },
  )

  test.each([
    ['model', { model: null }],
    ['model', { model: 'gpt-5.5' }],
    ['model', { model: 'WHISPER-1' }],
    ['model', { model: '' }],
    ['model', { model: audio() }],
    ['response_format', { response_format: 'srt' }],
    ['response_format', { response_format: 'verbose_json' }],
    ['response_format', { response_format: '' }],
    ['stream', { stream: 'yes' }],
    ['stream', { stream: '1' }],
  ] as [string, Fields][])('names %s for %p', async (param, fields) => {
    const app = await testApp()
    const answer = await getAnswer(app, PUBLIC, await publicForm(fields))
    expect([answer.status, getFailure(answer.text)]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_request_error', param }),
    ])
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test('answers as text', async () => {
    const app = await testApp()
    const answer = await getAnswer(app, PUBLIC, await publicForm({ response_format: 'text' }))
    expect([answer.text, answer.headers.get('content-type')]).toEqual([
      getTranscript(AUDIO, ''),
      'text/plain; charset=utf-8',
    ])
  })

  test('answers as JSON with only the text', async () => {
    const app = await testApp()
    app.upstream.answerRelay(() => Response.json({ text: 'hi', duration: 3, secret: 1 }))
    const answer = await getAnswer(app, PUBLIC, await publicForm({ response_format: 'json', stream: 'false' }))
    expect([JSON.parse(answer.text), answer.headers.get('content-type')]).toEqual([{ text: 'hi' }, 'application/json'])
  })

  test.each<Fields>([{ stream: 'true' }, { stream: 'true', response_format: 'text' }])(
    'streams the text in one piece: %p',
    async (fields) => {
      const app = await testApp()
      const answer = await getAnswer(app, PUBLIC, await publicForm(fields))
      const text = getTranscript(AUDIO, '')
      expect(parseEvents(answer.text)).toEqual([
        { type: 'transcript.text.delta', delta: text },
        { type: 'transcript.text.done', text },
      ])
      expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
      await expectNothingLeft(app)
    },
  )

  test.each(['{}', '{"text":1}', 'hello'])('a response without a text is an error: %s', async (body) => {
    const app = await testApp()
    app.upstream.answerRelay(() => new Response(body, { headers: { 'content-type': 'application/json' } }))
    const answer = await getAnswer(app, PUBLIC, await publicForm())
    expect([answer.status, getFailure(answer.text).code]).toEqual([502, 'upstream_error'])
    expect(await app.rows()).toMatchObject([{ status: 'error', httpStatus: 502 }])
    await expectNothingLeft(app)
  })
})

test('the routing simulator knows the model although it is in no catalog', async () => {
  const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
  await fetchCatalogs(app)
  const response = await app.ask(`GET /api/explain?model=${MODEL}`)
  expect(await response.json()).toMatchObject({
    model: MODEL,
    outcome: 'chosen',
    sentence: 'The request would use this account.',
  })
})
