/** Incoming request bodies: the memory they use, timeouts, and cleanup. */
import { describe, expect, test } from 'bun:test'
import { zstdCompressSync } from 'node:zlib'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const MIB = 1024 * 1024

/** A body of which nothing, or some, has come yet. */
const upload = (first?: Uint8Array) => {
  let feed!: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      feed = controller
      if (first) controller.enqueue(first)
    },
  })
  return { body, feed }
}

const settle = async ({ clock }: TestApp) => {
  for (let turn = 0; turn < 20; turn++) await clock.advance(0)
}

describe('a declared body that does not arrive', () => {
  test('reserves nothing, however large it is', async () => {
    const app = await testApp()
    const headers = { 'content-length': String(128 * MIB) }
    const stalled = Array.from({ length: 6 }, () => upload())
    const asked = stalled.map(({ body }) => app.ask(NATIVE, { body, headers }))
    await settle(app)
    expect(app.bindings.bodies.heldBytes).toBe(0)
    expect((await getAnswer(app, NATIVE, { json: codexBody() })).status).toBe(200)
    for (const { feed } of stalled) feed.error(new Error('gone'))
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(6).fill(400))
    await expectNothingLeft(app)
  })

  test('reserves what has arrived of it', async () => {
    const app = await testApp()
    const { body, feed } = upload(new Uint8Array(3 * MIB))
    const asked = app.ask(NATIVE, { body, headers: { 'content-length': String(128 * MIB) } })
    await settle(app)
    expect(app.bindings.bodies.heldBytes).toBe(3 * MIB)
    feed.error(new Error('gone'))
    expect((await asked).status).toBe(400)
    await expectNothingLeft(app)
  })
})

describe('a body with very many values, which would block the server and take gigabytes to parse', () => {
  const crowded = Buffer.from(`{"model":"gpt-5.5","input":[${'0,'.repeat(510_000)}0]}`)
  const ROUTES = [
    NATIVE,
    'POST /v1/responses',
    'POST /v1/chat/completions',
    'POST /v1/responses/compact',
    'POST /backend-api/codex/responses/compact',
  ]

  test.each(ROUTES)('is rejected without being parsed, however small it was on the wire: %s', async (route) => {
    const app = await testApp()
    const body = zstdCompressSync(crowded)
    expect(body.length).toBeLessThan(4096)
    const answer = await getAnswer(app, route, { body, headers: { 'content-encoding': 'zstd' } })
    expect([answer.status, JSON.parse(answer.text).error]).toMatchObject([
      400,
      { code: 'invalid_request_error', message: 'The request body has more than 500000 JSON values.' },
    ])
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test('is accepted if it is only long', async () => {
    const app = await testApp()
    const answer = await getAnswer(app, NATIVE, { json: codexBody('[{,'.repeat(600_000)) })
    expect(answer.status).toBe(200)
    await expectNothingLeft(app)
  })
})

describe('a key that is revoked during the body upload', () => {
  test.each([NATIVE, 'POST /v1/responses', 'POST /v1/chat/completions', 'POST /backend-api/codex/responses/compact'])(
    'serves no request any more: %s',
    async (route) => {
      const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
      const { key } = await app.key({ expiresAt: app.clock.now() + 20_000 })
      const { body, feed } = upload(Buffer.from('{'))
      const asked = app.ask(route, { body, headers: { authorization: `Bearer ${key}` } })
      await settle(app)
      await app.clock.advance(20_000)
      const message = { role: 'user', content: [{ type: 'input_text', text: 'hi' }] }
      const list = route.includes('chat') ? 'messages' : 'input'
      feed.enqueue(
        Buffer.from(JSON.stringify({ model: 'gpt-5.5', instructions: 'Be brief.', [list]: [message] }).slice(1)),
      )
      feed.close()
      const answer = await asked
      expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: 'invalid_api_key' } }])
      expect(app.upstream.requests).toEqual([])
      await expectNothingLeft(app)
    },
  )
})

describe('a body that arrives slowly', () => {
  const DASHBOARD = 'PATCH /api/settings'
  const routes: [route: string, body: unknown, status: number][] = [
    [NATIVE, codexBody('x'.repeat(300)), 200],
    ['POST /v1/responses', { model: 'gpt-5.5', input: 'x'.repeat(300) }, 200],
    ['POST /v1/chat/completions', { model: 'gpt-5.5', messages: [{ role: 'user', content: 'x'.repeat(300) }] }, 200],
    [DASHBOARD, { capacityWaitSeconds: 7 }, 200],
  ]
  const started = async (route: string) => {
    const app = await testApp()
    const { body, feed } = upload()
    return { app, feed, asked: app.ask(route, { body, headers: { 'content-type': 'application/json' } }) }
  }

  test.each(routes)('is served however long it takes: %s', async (route, json, status) => {
    const { app, feed, asked } = await started(route)
    const bytes = Buffer.from(JSON.stringify(json))
    for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 20)) {
      await app.clock.advance('29s')
      feed.enqueue(bytes.subarray(at, at + Math.ceil(bytes.length / 20)))
    }
    feed.close()
    expect((await asked).status).toBe(status)
  })

  test.each(routes)('is rejected with 408 after 30 s without a byte: %s', async (route) => {
    const { app, feed, asked } = await started(route)
    await app.clock.advance('29s')
    feed.enqueue(Buffer.from('{'))
    await app.clock.advance('31s')
    const answer = await asked
    expect([answer.status, await answer.json()]).toMatchObject([408, { error: { code: 'upload_timeout' } }])
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })
})

describe("the server's idle limit", () => {
  /** The limits set on the connection, in order. */
  const watched = async () => {
    const app = await testApp()
    const limits: number[] = []
    const timeout = (_request: Request, seconds: number) => void limits.push(seconds)
    app.bindings.server = { timeout } as unknown as Bun.Server<unknown> // as: nothing else of it is used here
    return { app, limits }
  }

  test('is disabled while a body of unknown size arrives', async () => {
    const { app, limits } = await watched()
    const { body, feed } = upload(Buffer.from('{'))
    const asked = app.ask(NATIVE, { body })
    await settle(app)
    expect(limits).toEqual([0])
    feed.error(new Error('gone'))
    await asked
    expect(limits.at(-1)).toBe(30)
  })

  test('is 30 s and three for each KiB while a small body arrives in one piece', async () => {
    const { app, limits } = await watched()
    const body = Buffer.from(JSON.stringify(codexBody('x'.repeat(10_000))))
    const headers = { 'content-length': String(body.length) }
    expect((await getAnswer(app, NATIVE, { body, headers })).status).toBe(200)
    expect(limits).toEqual([30 + 3 * Math.ceil(body.length / 1024), 0, 255])
  })

  test.each([
    ['a document', 'POST /v1/responses', { model: 'gpt-5.5', input: 'hi' }, 200, 30],
    ['an error', NATIVE, codexBody('hello', { model: '' }), 400, 30],
    ['a stream', NATIVE, codexBody(), 200, 255],
  ])('is disabled for the model and restored before the end of %s', async (_name, route, json, status, limit) => {
    const { app, limits } = await watched()
    expect((await getAnswer(app, route, { json })).status).toBe(status)
    expect(limits).toEqual([0, 0, limit])
    await expectNothingLeft(app)
  })

  test('is long during a stream, which has keepalives', async () => {
    const { app, limits } = await watched()
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const response = await app.ask(NATIVE, { json: codexBody() })
    expect(limits).toEqual([0, 0, 255])
    await response.body!.cancel()
    await expectNothingLeft(app)
  })
})

describe('a compressed body', () => {
  const bomb = (mib: number) => zstdCompressSync(Buffer.from(JSON.stringify(codexBody('x'.repeat(mib * MIB)))))
  const headers = { 'content-encoding': 'zstd' }

  test('is counted while it is decoded, not afterwards', async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 32 } })
    const body = bomb(12)
    let most = 0
    const { bodies } = app.bindings
    const grow = bodies.grow.bind(bodies)
    bodies.grow = (hold, bytes) => {
      grow(hold, bytes)
      most = Math.max(most, bodies.heldBytes)
    }
    const answers = await Promise.all(Array.from({ length: 8 }, () => app.ask(NATIVE, { body, headers })))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(5)
    expect(most).toBeLessThanOrEqual(32 * MIB)
    await Promise.all(answers.map((answer) => answer.text()))
    expect(await (await app.ask(NATIVE, { body, headers })).text()).toContain('response.completed')
    await expectNothingLeft(app)
  })
})

test('a byte order mark is not part of the body', async () => {
  const app = await testApp()
  const text = JSON.stringify(codexBody())
  for (const json of [text, text.replace('"store":false', '"store":true')])
    expect((await getAnswer(app, NATIVE, { body: Buffer.from(`\uFEFF${json}`) })).status).toBe(200)
  expect(app.upstream.requests.map(({ bodyText }) => bodyText)).toEqual([text, text])
  expect(app.upstream.requests.map(({ bodyText }) => bodyText.charCodeAt(0))).toEqual([123, 123])
})

test('a second byte order mark is invalid JSON', async () => {
  const app = await testApp()
  for (const more of [{}, { store: true }]) {
    const answer = await getAnswer(app, NATIVE, {
      body: Buffer.from(`\uFEFF\uFEFF${JSON.stringify(codexBody('hi', more))}`),
    })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'malformed_json'])
  }
  expect(app.upstream.requests).toEqual([])
})
