/** Testing a key sends an ordinary request with it and reports what happened. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../spec/catalog.ts'
import { expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'
import { answers } from '../support/upstream/script.ts'

const HEAD = { accept: 'application/json' }

const open = (settings = {}) =>
  testApp({ accounts: [{ email: 'ada@example.test' }], settings: { apiKeyAuthEnabled: true, ...settings } })

interface Report {
  isOk: boolean
  error: { status: number; code: string; message: string } | null
  [member: string]: unknown
}

const run = async (app: TestApp, id: string, json: unknown = {}, more = {}): Promise<Report> => {
  const answer = await getAnswer(app, `POST /api/api-keys/${id}/test`, { json, headers: HEAD, ...more })
  expect(answer.status).toBe(200)
  return JSON.parse(answer.text) as Report
}

describe('testing a key that works', () => {
  test('reports account, model, time, tokens and the log entry', async () => {
    const app = await open()
    await fetchCatalogs(app)
    const { row } = await app.key({ allowedModels: ['gpt-5.5'] })
    app.upstream.script(() =>
      answers.text('ok', { usage: { inputTokens: 9, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 } }),
    )
    const report = await run(app, row.id)
    const [logged] = await app.rows()
    expect(report).toMatchObject({
      isOk: true,
      error: null,
      keyId: row.id,
      model: 'gpt-5.5',
      account: 'ada@example.test',
      text: 'ok',
      inputTokens: 9,
      outputTokens: 2,
      attempts: 1,
      logId: logged!.id,
      requestId: logged!.requestId,
      isKeyRequired: true,
    })
    expect(report.firstTokenMs).toBeNumber()
    expect(logged).toMatchObject({ keyId: row.id, route: '/v1/responses', userAgent: 'sluice-key-test', status: 'ok' })
    await expectNothingLeft(app)
  })

  test('sends it as Claude Code does, to /v1/messages, and reports the same', async () => {
    const app = await open()
    await fetchCatalogs(app)
    const { row } = await app.key({ allowedModels: ['gpt-5.5'] })
    app.upstream.script(() => answers.text('ok', { usage: { inputTokens: 9, outputTokens: 2 } }))
    const report = await run(app, row.id, { dialect: 'messages' })
    expect(report).toMatchObject({ isOk: true, error: null, model: 'gpt-5.5', text: 'ok', inputTokens: 9, attempts: 1 })
    expect(report.firstTokenMs).toBeNumber()
    expect((await app.rows())[0]).toMatchObject({ keyId: row.id, route: '/v1/messages', status: 'ok' })
    app.members[0]!.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const failed = await run(app, row.id, { dialect: 'messages' })
    expect(failed).toMatchObject({ isOk: false, error: { status: 429, code: 'usage_limit_reached' } })
    const unknown = await run(app, row.id, { dialect: 'messages', model: 'gemini-9' })
    expect(unknown.error).toMatchObject({ status: 404, code: 'model_not_found' })
    await expectNothingLeft(app)
  })

  test('is counted like any other request, and recorded in the audit log', async () => {
    const app = await open()
    const { row } = await app.key({
      limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 5, modelFilter: '' }],
    })
    await run(app, row.id, { model: 'gpt-5.5' })
    const list = (await (await app.ask('GET /api/api-keys/')).json()) as { limits: { currentValue: number }[] }[]
    expect(list[0]?.limits[0]?.currentValue).toBe(1)
    const audit = await (await app.ask('GET /api/audit-logs')).text()
    expect(audit).toContain('api_key_tested')
    expect(audit).toContain(row.id)
  })

  test('while keys are not required the test still uses the key, and says so', async () => {
    const app = await open({ apiKeyAuthEnabled: false })
    const { row } = await app.key()
    expect(await run(app, row.id, { model: 'gpt-5.5' })).toMatchObject({ isOk: true, isKeyRequired: false })
    expect(await app.rows()).toMatchObject([{ keyId: row.id }])
    expect(app.bindings.settings.current().apiKeyAuthEnabled).toBe(false)
  })

  test('a second attempt on the same account is reported as an attempt', async () => {
    const app = await open()
    const { row } = await app.key()
    app.members[0]!.sim.next({ status: 500 })
    const ask = { json: { model: 'gpt-5.5' }, headers: { accept: 'text/html' } }
    const { text } = await getAnswer(app, `POST /api/api-keys/${row.id}/test`, ask)
    expect(text).toContain(' · 2 attempts')
  })

  test('tests the enforced model', async () => {
    const app = await open()
    const { row } = await app.key({ enforcedModel: 'gpt-6-luna' })
    expect(await run(app, row.id)).toMatchObject({ isOk: true, model: 'gpt-6-luna' })
  })
})

describe('testing a key that does not work', () => {
  test('disabled: rejected immediately, without using an account', async () => {
    const app = await open()
    const { row } = await app.key()
    await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: false } })
    const report = await run(app, row.id, { model: 'gpt-5.5' })
    expect(report).toMatchObject({
      isOk: false,
      logId: null,
      account: null,
      error: { status: 401, code: 'invalid_api_key' },
    })
    expect(app.upstream.requests).toEqual([])
  })

  test('expired, over its limit, or for another model', async () => {
    const app = await open()
    const limits = [{ limitType: 'requests', limitWindow: '5h', maxValue: 1, modelFilter: '' }] as const
    const spent = (await app.key({ limits: [...limits] })).row.id
    await run(app, spent, { model: 'gpt-5.5' })
    const expired = (await app.key({ expiresAt: app.clock.now() + 1 })).row.id
    await app.clock.advance(10)
    const narrow = (await app.key({ allowedModels: ['gpt-6-luna'] })).row.id
    const codes = []
    for (const id of [spent, expired, narrow]) codes.push((await run(app, id, { model: 'gpt-5.5' })).error?.code)
    expect(codes).toEqual(['rate_limit_exceeded', 'invalid_api_key', 'model_not_allowed'])
  })

  test('the upstream fails: the report names the account and the error', async () => {
    const app = await open()
    const { row } = await app.key()
    app.members[0]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const report = await run(app, row.id, { model: 'gpt-5.5' })
    expect(report.isOk).toBe(false)
    expect(report.error?.status).toBeGreaterThanOrEqual(429)
    expect(report.error?.message).not.toBe('')
    await expectNothingLeft(app)
  })

  test('a silent upstream is given up after 45 seconds', async () => {
    const app = await open()
    const { row } = await app.key()
    app.members[0]!.sim.always({ silence: { afterEvents: 1 } })
    const answer = await getAnswer(app, `POST /api/api-keys/${row.id}/test`, { json: { model: 'gpt-5.5' } }, 1000)
    expect(JSON.parse(answer.text)).toMatchObject({ isOk: false, error: { code: 'upstream_timeout' } })
    await expectNothingLeft(app)
  })

  test('no model is known: nothing is sent', async () => {
    const app = await testApp({ accounts: 0 })
    expect(await run(app, (await app.key()).row.id)).toMatchObject({
      isOk: false,
      model: null,
      error: { code: 'no_accounts' },
    })
  })

  test('the firewall treats the browser as a client', async () => {
    const app = await open()
    const { row } = await app.key()
    await app.ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.1' } })
    expect((await run(app, row.id, { model: 'gpt-5.5' })).error).toMatchObject({ status: 403, code: 'ip_forbidden' })
  })
})

test('an unknown key is not found, and a test ticket gives access to nothing else', async () => {
  const app = await open()
  expect((await app.ask('POST /api/api-keys/key_x/test', { json: {} })).status).toBe(404)
  expect((await app.ask('POST /api/api-keys/key_x/test', { json: { colour: 1 } })).status).toBe(422)
  const { row } = await app.key()
  let bearer = ''
  app.wire.before = async (_, init) => {
    bearer = new Headers(init.headers).get('authorization') ?? ''
  }
  await run(app, row.id, { model: 'gpt-5.5' })
  expect(bearer).not.toBe('')
  expect((await app.ask('GET /v1/models', { headers: { authorization: bearer } })).status).toBe(401)
})

test('the result page says what to do', async () => {
  const app = await open()
  const { row } = await app.key()
  await app.ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: false } })
  const headers = { 'hx-request': 'true' }
  const { text } = await getAnswer(app, `POST /api/api-keys/${row.id}/test`, { json: { model: 'gpt-5.5' }, headers })
  expect(text).toContain('The test failed.')
  expect(text).toContain('turned off')
  expect(text).not.toContain('<html')
})
