/** Images: native requests byte for byte, SDK requests checked and rewritten, and the accounts that can serve them. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/errors.ts'
import { codexBody, expectNothingLeft, getAnswer, getEvents, type TestApp, testApp } from '../../support/app.ts'
import { type Fault, faults } from '../../support/upstream/faults.ts'
import { IMAGE_USAGE, PIXEL, sse } from '../../support/upstream/relay-routes.ts'

const NATIVE = 'POST /backend-api/codex/images'
const PUBLIC = 'POST /v1/images'
const PNG = Buffer.from(PIXEL, 'base64')
const DATA_URL = `data:image/png;base64,${PIXEL}`
const MIB = 1024 * 1024
const ASKED = { prompt: 'A blue square', model: 'gpt-image-1' }

interface Problem {
  error: { code: string; message: string; param: string | null }
}
const problem = async (response: Response) => ((await response.json()) as Problem).error
const always = (app: TestApp, fault: Fault) => {
  for (const { sim } of app.members) sim.always({ on: 'image', ...fault })
}
const getForm = (fields: Record<string, string | Blob | Blob[]>): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields))
    for (const one of [value].flat()) form.append(name, one as Blob, ...(typeof one === 'string' ? [] : ['a.bin']))
  return form
}
/** As a client sends it, with the boundary in the content type. */
const multipart = async (fields: Record<string, string | Blob | Blob[]>) => {
  const sent = new Response(getForm(fields))
  const headers = { 'content-type': sent.headers.get('content-type') ?? '' } // gone once the body is read
  return { headers, body: await sent.arrayBuffer() }
}
const picture = () => new Blob([PNG], { type: 'application/octet-stream' })

describe('native requests', () => {
  test.each(['generations', 'edits'])('%s are sent byte for byte', async (action) => {
    const app = await testApp()
    const body = `{ "prompt":"A\\u0020square", "background":"auto",\n"model":"gpt-image-2","quality":"auto","size":"auto"}`
    const headers = { 'x-codex-image-turn-id': 'it-1', 'x-codex-turn-metadata': '{"a":1}', cookie: 'a=b' }
    const response = await app.ask(`${NATIVE}/${action}`, { body, headers })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ data: [{ b64_json: PIXEL }], usage: IMAGE_USAGE })
    const [sent] = app.upstream.requests
    expect(sent).toMatchObject({ path: `/backend-api/codex/images/${action}`, bodyText: body })
    expect(sent?.headers).toMatchObject({ 'x-codex-image-turn-id': 'it-1', 'x-codex-turn-metadata': '{"a":1}' })
    expect(await app.rows()).toMatchObject([
      { kind: 'image', model: 'gpt-image-2', status: 'ok', inputTokens: 50, outputTokens: 1057, costMicros: 31_960 },
    ])
    await expectNothingLeft(app)
  })

  test('must be a JSON object with one model', async () => {
    const app = await testApp()
    for (const body of ['[]', '{"a":', '{"model":"gpt-image-2","prompt":"x","model":"gpt-image-1"}'])
      expect((await app.ask(`${NATIVE}/generations`, { body })).status).toBe(400)
    expect(app.upstream.requests).toEqual([])
    expect((await app.rows()).map(({ kind }) => kind)).toEqual(['image', 'image', 'image'])
    await expectNothingLeft(app)
  })
})

describe('SDK requests', () => {
  test('are sent as JSON with the default model; members unknown to ChatGPT are dropped and named', async () => {
    const app = await testApp()
    const json = { prompt: 'A square', response_format: 'b64_json', user: 'u', style: 'vivid', n: 1, size: null }
    const response = await app.ask(`${PUBLIC}/generations`, { json })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-sluice-dropped-fields')).toBe('response_format, user, style')
    expect(app.upstream.requests[0]?.body).toEqual({ model: 'gpt-image-2', prompt: 'A square', n: 1 })
    await response.text()
    await expectNothingLeft(app)
  })

  test('a multipart edit becomes JSON with data URLs', async () => {
    const app = await testApp()
    const jpeg = new Blob([Buffer.from([0xff, 0xd8, 0xff, 1])])
    const fields = { ...ASKED, 'image[]': [picture(), jpeg], mask: picture(), n: '1', output_compression: '80' }
    const response = await app.ask(`${PUBLIC}/edits`, await multipart({ ...fields, stream: 'false', user: 'u' }))
    expect(response.status).toBe(200)
    expect(response.headers.get('x-sluice-dropped-fields')).toBe('user')
    expect(app.upstream.requests[0]?.body).toEqual({
      ...ASKED,
      n: 1,
      output_compression: 80,
      stream: false,
      images: [
        { image_url: DATA_URL },
        { image_url: `data:image/jpeg;base64,${Buffer.from([0xff, 0xd8, 0xff, 1]).toString('base64')}` },
      ],
      mask: { image_url: DATA_URL },
    })
    await response.text()
    await expectNothingLeft(app)
  })

  test('a JSON edit takes data URLs', async () => {
    const app = await testApp()
    const json = { ...ASKED, images: [{ image_url: DATA_URL }] }
    expect((await app.ask(`${PUBLIC}/edits`, { json })).status).toBe(200)
    expect(app.upstream.requests[0]?.body).toEqual(json)
  })

  const TWO = { ...ASKED, model: 'gpt-image-2' }
  const WRONG: [string, string, Record<string, unknown>][] = [
    ['generations', 'model', { ...ASKED, model: 'dall-e-3' }],
    ['generations', 'prompt', { model: 'gpt-image-1' }],
    ['generations', 'prompt', { ...ASKED, prompt: ' ' }],
    ['generations', 'n', { ...ASKED, n: 2 }],
    ['generations', 'size', { ...ASKED, size: '512x512' }],
    ['generations', 'size', { ...TWO, size: '1000x1000' }],
    ['generations', 'size', { ...TWO, size: '3856x1600' }],
    ['generations', 'size', { ...TWO, size: '3200x1056' }],
    ['generations', 'size', { ...TWO, size: '800x800' }],
    ['generations', 'size', { ...TWO, size: '3840x2176' }],
    ['generations', 'size', { ...TWO, size: '1024 x 1024' }],
    ['generations', 'quality', { ...ASKED, quality: 'hd' }],
    ['generations', 'background', { ...TWO, background: 'transparent' }],
    ['generations', 'background', { ...ASKED, background: 'blue' }],
    ['generations', 'output_format', { ...ASKED, output_format: 'gif' }],
    ['generations', 'output_compression', { ...ASKED, output_compression: 101 }],
    ['generations', 'moderation', { ...ASKED, moderation: 'off' }],
    ['generations', 'partial_images', { ...ASKED, partial_images: 4 }],
    ['generations', 'stream', { ...ASKED, stream: 'yes' }],
    ['generations', 'input_fidelity', { ...ASKED, input_fidelity: 'high' }],
    ['generations', 'response_format', { ...ASKED, response_format: 'url' }],
    ['edits', 'input_fidelity', { ...TWO, images: [{ image_url: DATA_URL }], input_fidelity: 'high' }],
    ['edits', 'images', { ...ASKED }],
    ['edits', 'images', { ...ASKED, images: [] }],
    ['edits', 'images', { ...ASKED, images: Array.from({ length: 17 }, () => ({ image_url: DATA_URL })) }],
    ['edits', 'images[0].image_url', { ...ASKED, images: [{ image_url: 'https://example.test/a.png' }] }],
    [
      'edits',
      'mask.image_url',
      { ...ASKED, images: [{ image_url: DATA_URL }], mask: { image_url: 'data:text/plain,x' } },
    ],
  ]

  test.each(WRONG)('%s: a wrong %s is a 400 that names it: %j', async (action, param, json) => {
    const app = await testApp()
    const response = await app.ask(`${PUBLIC}/${action}`, { json })
    expect([response.status, (await problem(response)).param]).toEqual([400, param])
    expect(app.upstream.requests).toEqual([])
    expect(await app.rows()).toMatchObject([{ kind: 'image', status: 'error', phase: 'request', attempts: 0 }])
    await expectNothingLeft(app)
  })

  test.each([
    ['gpt-image-2', '1024x640'],
    ['gpt-image-2', '3840x2160'],
    ['gpt-image-2', '2160x3840'],
    ['gpt-image-2', '1536x512'],
    ['gpt-image-1.5', '1536x1024'],
    ['gpt-image-1-mini', 'auto'],
  ])('%s accepts %s', async (model, size) => {
    const app = await testApp()
    expect((await app.ask(`${PUBLIC}/generations`, { json: { ...ASKED, model, size } })).status).toBe(200)
  })

  const FORMS: [string, string, Record<string, string | Blob | Blob[]>][] = [
    ['no image', 'image', { ...ASKED }],
    ['an image that is text', 'image', { ...ASKED, image: 'x' }],
    ['an invalid image', 'image', { ...ASKED, image: new Blob(['GIF89a']) }],
    ['an empty image', 'image', { ...ASKED, image: new Blob([]) }],
    ['17 images', 'image', { ...ASKED, image: Array.from({ length: 17 }, picture) }],
    ['two masks', 'mask', { ...ASKED, image: picture(), mask: [picture(), picture()] }],
    ['a prompt that is a file', 'prompt', { model: 'gpt-image-1', image: picture(), prompt: picture() }],
    ['an n that is no number', 'n', { ...ASKED, image: picture(), n: 'one' }],
  ]

  test.each(FORMS)('a form with %s is a 400 about %s', async (_name, param, fields) => {
    const app = await testApp()
    const response = await app.ask(`${PUBLIC}/edits`, await multipart(fields))
    expect([response.status, (await problem(response)).param]).toEqual([400, param])
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  const INHERITED = ['constructor', 'toString', '__proto__', 'hasOwnProperty']

  test.each(INHERITED)('a member or field called %s is dropped like any other unknown one', async (name) => {
    const app = await testApp()
    const form = await multipart({ ...ASKED, image: picture(), [name]: 'x' })
    const json = `{"prompt":"A blue square","${name}":"x"}`
    for (const response of [
      await app.ask(`${PUBLIC}/edits`, form),
      await app.ask(`${PUBLIC}/generations`, { body: json }),
    ]) {
      expect([response.status, response.headers.get('x-sluice-dropped-fields')]).toEqual([200, name])
      await response.text()
    }
    for (const { bodyText } of app.upstream.requests) expect(bodyText).not.toContain(name)
    await expectNothingLeft(app)
  })

  test.each(INHERITED)('a form with %s twice is a 400 that names it', async (name) => {
    const app = await testApp()
    const form = getForm({ ...ASKED, image: picture() })
    form.append(name, 'x')
    form.append(name, 'y')
    const sent = new Response(form)
    const headers = { 'content-type': sent.headers.get('content-type') ?? '' }
    const response = await app.ask(`${PUBLIC}/edits`, { body: await sent.arrayBuffer(), headers })
    expect([response.status, (await problem(response)).param]).toEqual([400, name])
  })

  test('a form that is broken or ends early is a 400', async () => {
    const app = await testApp()
    const whole = await multipart({ ...ASKED, image: picture() })
    const broken = [
      { ...whole, body: whole.body.slice(0, whole.body.byteLength - 60) },
      { ...whole, headers: { 'content-type': 'multipart/form-data' } },
      { ...whole, headers: { 'content-type': 'multipart/form-data; boundary=other' } },
    ]
    for (const ask of broken) expect((await app.ask(`${PUBLIC}/edits`, ask)).status).toBe(400)
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test.each([
    [NATIVE, 400],
    [PUBLIC, 413],
  ])('%s accepts up to 96 MiB', async (route, status) => {
    const app = await testApp()
    const headers = { 'content-length': String(97 * 1024 * 1024) }
    expect((await app.ask(`${route}/edits`, { body: '{}', headers })).status).toBe(status)
    await expectNothingLeft(app)
  })

  test('a form counts in the memory for bodies, with all copies while it becomes JSON', async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 64 } })
    const { bodies } = app.bindings
    const image = new Blob([PNG, new Uint8Array(6 * MIB)])
    const form = await multipart({ ...ASKED, image })
    const others = bodies.open(0)
    bodies.grow(others, 40 * MIB)
    const busy = await app.ask(`${PUBLIC}/edits`, form)
    expect([busy.status, (await problem(busy)).code]).toEqual([503, 'busy'])
    expect(bodies.heldBytes).toBe(40 * MIB)
    expect([await app.rows(), app.upstream.requests]).toEqual([[], []])
    others.release()
    let held = 0
    app.upstream.answerRelay(({ received }) => {
      held = bodies.heldBytes
      expect(held).toBe(received.bodyText.length)
      return Response.json({ created: 1, data: [] })
    })
    expect((await getAnswer(app, `${PUBLIC}/edits`, form)).status).toBe(200)
    expect(held).toBeGreaterThan(8 * MIB)
    expect(held).toBeLessThan(9 * MIB)
    await expectNothingLeft(app)
  })

  test.each([65, 2000])('a form of %d fields is a 400, and is not parsed', async (count) => {
    const app = await testApp()
    const fields = Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 'x']))
    const response = await app.ask(`${PUBLIC}/edits`, await multipart(fields))
    const { message, param } = await problem(response)
    expect([response.status, param, message]).toEqual([400, 'image', 'The form has more than 64 fields.'])
    await expectNothingLeft(app)
  })

  test('images above 64 MiB together are rejected', async () => {
    const app = await testApp({ settings: { inFlightBodyMiB: 512 } })
    const heavy = `data:image/png;base64,${'A'.repeat(45 * 1024 * 1024)}`
    const json = { ...ASKED, images: [{ image_url: heavy }, { image_url: heavy }] }
    const response = await app.ask(`${PUBLIC}/edits`, { json })
    expect([response.status, (await problem(response)).param]).toEqual([400, 'image'])
    await expectNothingLeft(app)
  })

  test('variations are not found', async () => {
    const app = await testApp()
    const response = await app.ask(`${PUBLIC}/variations`, { json: {} })
    expect([response.status, (await problem(response)).code]).toEqual([404, 'not_found'])
  })
})

describe('a stream', () => {
  const json = { ...ASKED, stream: true, partial_images: 2 }

  test.each([NATIVE, PUBLIC])('of %s is relayed to its end, and its usage is counted', async (route) => {
    const app = await testApp()
    const response = await app.ask(`${route}/generations`, { json })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect((await getEvents(response)).map(({ type }) => type)).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    expect(await app.rows()).toMatchObject([{ status: 'ok', inputTokens: 50, outputTokens: 1057 }])
    await expectNothingLeft(app)
  })

  const partial = { type: 'image_edit.partial_image', b64_json: PIXEL }

  test('that breaks off ends with one error event', async () => {
    const app = await testApp()
    const text = sse([partial, partial])
    app.upstream.answerRelay(
      () => new Response(text.slice(0, -30), { headers: { 'content-type': 'text/event-stream' } }),
    )
    const events = await getEvents(await app.ask(`${PUBLIC}/generations`, { json }))
    expect(events.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'error'])
    expect(events.at(-1)).toMatchObject({ error: { code: 'stream_incomplete' } })
    expect(await app.rows()).toMatchObject([
      { kind: 'image', status: 'error', errorCode: 'stream_incomplete', httpStatus: 200 },
    ])
    await expectNothingLeft(app)
  })

  test('that reports an error ends with it, and what follows is dropped', async () => {
    const app = await testApp()
    const failed = { type: 'error', error: { code: 'moderation_blocked', message: 'No.' } }
    app.upstream.answerRelay(
      () => new Response(sse([partial, failed, partial]), { headers: { 'content-type': 'text/event-stream' } }),
    )
    const events = await getEvents(await app.ask(`${PUBLIC}/generations`, { json }))
    expect(events.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'error'])
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'moderation_blocked' }])
    expect(app.bindings.pool.all()[0]?.health.errors).toBe(0)
    await expectNothingLeft(app)
  })

  test('that Sluice ends because it restarts says so', async () => {
    const app = await testApp()
    app.upstream.answerRelay(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from(sse([partial]))) }),
          { headers: { 'content-type': 'text/event-stream' } },
        ),
    )
    const response = await app.ask(`${PUBLIC}/generations`, { json })
    const events = getEvents(response)
    for (const turn of app.bindings.turns) turn.abort(new AppError('draining'))
    expect((await events).map(({ type }) => type).at(-1)).toBe('error')
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'draining' }])
    await expectNothingLeft(app)
  })

  test('that never ends is cut off after imageTimeoutSeconds with an error event', async () => {
    const app = await testApp({ settings: { imageTimeoutSeconds: 5 } })
    app.upstream.answerRelay(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from(sse([partial]))) }),
          { headers: { 'content-type': 'text/event-stream' } },
        ),
    )
    const { events } = await getAnswer(app, `${PUBLIC}/generations`, { json })
    expect(events.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'error'])
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'upstream_timeout' }])
    await expectNothingLeft(app)
  })
})

describe('the account', () => {
  test('is never one on a free plan', async () => {
    const app = await testApp({ accounts: [{ plan: 'free' }, { plan: 'plus' }, { plan: 'free' }] })
    for (let time = 0; time < 4; time++)
      expect((await getAnswer(app, `${PUBLIC}/generations`, { json: ASKED })).status).toBe(200)
    expect(new Set((await app.rows()).map(({ accountId }) => accountId))).toEqual(new Set([app.members[1]!.id]))
  })

  test.each([[`${NATIVE}/generations`], [`${PUBLIC}/generations`]])(
    '%s is 503 no_plan_support_for_model when there are only free plans',
    async (route) => {
      const app = await testApp({ accounts: [{ plan: 'free' }, { plan: 'free' }] })
      const response = await app.ask(route, { json: ASKED })
      expect([response.status, (await problem(response)).code]).toEqual([503, 'no_plan_support_for_model'])
      expect(response.headers.get('x-should-retry')).toBe('false')
      expect(app.upstream.requests).toEqual([])
      const { considered } = (await app.failedSelections())[0] ?? {}
      expect(considered).toMatchObject([{ skipped: 'plan_excluded' }, { skipped: 'plan_excluded' }])
    },
  )

  test.each([404, 405])('without the route (%p) is skipped, and remembered for an hour', async (status) => {
    const app = await testApp({ accounts: 2 })
    await app.prefer(app.members[0]!.id)
    app.members[0]?.sim.always({ on: 'image', status, body: { detail: 'Not Found' } })
    let seen = 0
    const served = async () => {
      expect((await app.ask(`${PUBLIC}/generations`, { json: ASKED })).status).toBe(200)
      const sent = app.upstream.requests.slice(seen)
      seen += sent.length
      return sent.map(({ account }) => account)
    }
    const ids = app.members.map(({ sim }) => sim.chatgptAccountId)
    expect(await served()).toEqual(ids)
    expect(await served()).toEqual([ids[1]!])
    await app.clock.advance('61m')
    expect(await served()).toEqual(ids)
    const turn = await app.ask('POST /backend-api/codex/responses', { json: codexBody() })
    await turn.text()
    expect((await app.rows()).at(-1)?.accountId).toBe(app.members[0]!.id)
  })

  test('when none has the route is 503 no_plan_support_for_model', async () => {
    const app = await testApp({ accounts: 3 })
    always(app, { status: 404, body: '<html>not here</html>' })
    const response = await app.ask(`${PUBLIC}/generations`, { json: ASKED })
    expect([response.status, (await problem(response)).code]).toEqual([503, 'no_plan_support_for_model'])
    expect(app.upstream.requests).toHaveLength(3)
    await expectNothingLeft(app)
  })

  test.each<[string, Fault]>([
    ['usage limit', faults.usageLimit({ resetsAt: Date.UTC(2027, 0, 1) })],
    ['rate limit', faults.rateLimited(3)],
    ['rejected token', faults.unauthorized('account_deactivated')],
  ])('with a %s is replaced by the next one', async (_name, fault) => {
    const app = await testApp({ accounts: 2 })
    await app.prefer(app.members[0]!.id)
    app.members[0]?.sim.next({ on: 'image', ...fault })
    expect((await getAnswer(app, `${PUBLIC}/generations`, { json: ASKED })).status).toBe(200)
    expect(await app.rows()).toMatchObject([{ accountId: app.members[1]!.id, attempts: 2 }])
    expect(app.bindings.pool.all()[0]?.state.status).not.toBe('active')
  })

  test.each(['content_policy_violation', 'moderation_blocked'])('is not charged for %s', async (code) => {
    const app = await testApp({ accounts: 2 })
    always(app, {
      status: 400,
      body: { error: { message: 'Your request was rejected.', type: 'image_generation_user_error', code } },
    })
    const response = await app.ask(`${PUBLIC}/generations`, { json: ASKED })
    const error = await problem(response)
    expect([response.status, error.code, error.message]).toEqual([400, code, 'Your request was rejected.'])
    expect(app.upstream.requests).toHaveLength(1)
    expect(app.bindings.pool.all().every(({ state, health }) => state.status === 'active' && health.errors === 0)).toBe(
      true,
    )
    await expectNothingLeft(app)
  })

  test('that may have created the image is not tried again', async () => {
    const app = await testApp({ accounts: 2 })
    for (const { sim } of app.members) sim.next({ on: 'image', ...faults.serverError() })
    expect((await app.ask(`${PUBLIC}/generations`, { json: ASKED })).status).toBe(500)
    expect(app.upstream.requests).toHaveLength(1)
  })

  test('is that of the conversation if possible', async () => {
    const app = await testApp({ accounts: 5 })
    const headers = { 'session-id': 's-1' }
    await (await app.ask('POST /backend-api/codex/responses', { json: codexBody(), headers })).text()
    for (let time = 0; time < 4; time++) await getAnswer(app, `${NATIVE}/generations`, { json: ASKED, headers })
    expect(new Set((await app.rows()).map(({ accountId }) => accountId)).size).toBe(1)
  })

  test('a catalog that does not list the image model excludes no account', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    expect((await app.ask(`${PUBLIC}/generations`, { json: ASKED })).status).toBe(200)
  })
})

describe('the key', () => {
  const asked = (app: TestApp, key: string, route = `${PUBLIC}/generations`) =>
    app.ask(route, { json: ASKED, headers: { authorization: `Bearer ${key}` } })

  test('is checked against the image model, and an enforced text model is not applied', async () => {
    const app = await testApp()
    const text = await app.key({ allowedModels: ['gpt-5.5'] })
    const refused = await asked(app, text.key)
    expect([refused.status, (await problem(refused)).code]).toEqual([403, 'model_not_allowed'])
    const native = await asked(app, text.key, `${NATIVE}/generations`)
    expect([native.status, (await problem(native)).code]).toEqual([404, 'model_not_found'])
    const enforcing = await app.key({ enforcedModel: 'gpt-5.5' })
    expect((await asked(app, enforcing.key)).status).toBe(200)
    expect(app.upstream.requests[0]?.body).toMatchObject({ model: 'gpt-image-1' })
  })

  test('is charged the tokens and the cost that ChatGPT reports', async () => {
    const app = await testApp()
    const limits = [
      { limitType: 'total_tokens' as const, limitWindow: 'daily' as const, maxValue: 1000, modelFilter: '' },
    ]
    const { key, row } = await app.key({ limits })
    await (await asked(app, key)).text()
    const second = await asked(app, key)
    expect(second.status).toBe(429)
    expect((await app.rows())[0]).toMatchObject({
      keyId: row.id,
      inputTokens: 50,
      outputTokens: 1057,
      costMicros: 31_960,
    })
  })

  test('an answer without usage counts as a request without a price', async () => {
    const app = await testApp()
    app.upstream.answerRelay(() => Response.json({ created: 1, data: [{ b64_json: PIXEL }] }))
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const { key } = await app.key({ limits })
    await (await asked(app, key)).text()
    expect((await asked(app, key)).status).toBe(429)
    expect((await app.rows())[0]).toMatchObject({ status: 'ok', inputTokens: null, costMicros: null })
    const hours = app.sqlite.query('SELECT requests, unpriced FROM request_hours WHERE model = ?').all('gpt-image-1')
    expect(hours).toContainEqual({ requests: 1, unpriced: 1 })
  })

  test('requests are rejected without a required key, with the capability header, and while draining', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    for (const route of [`${NATIVE}/generations`, `${NATIVE}/edits`, `${PUBLIC}/generations`, `${PUBLIC}/edits`]) {
      expect((await app.ask(route, { json: ASKED })).status).toBe(401)
      const headers = { authorization: `Bearer ${(await app.key()).key}` }
      const capability = { ...headers, 'x-codex-lb-required-capability': 'trusted_cyber' }
      expect((await app.ask(route, { json: ASKED, headers: capability })).status).toBe(400)
      app.bindings.lifecycle.draining = true
      expect((await app.ask(route, { json: ASKED, headers })).status).toBe(503)
      app.bindings.lifecycle.draining = false
    }
    expect(app.upstream.requests).toEqual([])
  })
})

test('the routing simulator knows that images need a paid plan', async () => {
  const app = await testApp({ accounts: [{ plan: 'free' }] })
  const response = await app.ask('GET /api/explain?model=gpt-image-2')
  expect(JSON.stringify(await response.json())).toContain('plan_excluded')
})
