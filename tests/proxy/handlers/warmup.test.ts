/** `POST /v1/warmup`: which accounts get a request, its content, and that it is in no total. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../../../src/jobs/catalog.ts'
import { jobDeps } from '../../jobs/deps.ts'
import { expectNothingLeft, type TestApp, type TestOptions, testApp } from '../../support/app.ts'
import { faults } from '../../support/upstream/faults.ts'

const HOUR_MS = 3_600_000

interface Report {
  mode: string
  total_accounts: number
  submitted: { account_id: string; request_id: string; model: string }[]
  skipped: { account_id: string; reason: string }[]
  failed: { account_id: string; error_code: string; error_message: string }[]
}

/** Reports the use of each account's five-hour window; null: it has none. */
const observe = (app: TestApp, used: (number | null)[], windowMinutes = 300) => {
  const at = app.clock.now()
  for (const [index, usedPercent] of used.entries()) {
    const fiveHour = usedPercent === null ? null : { usedPercent, windowMinutes, resetAt: at + HOUR_MS }
    const windows = { fiveHour, weekly: null, monthly: null }
    app.bindings.pool.observe(app.members[index]!.id, { at, windows, credits: null, planType: null })
  }
}
const setup = async (used: (number | null)[], options: TestOptions = {}) => {
  const app = await testApp({ accounts: used.length, ...options })
  observe(app, used)
  return app
}
const warm = async (app: TestApp, route: string, more: Parameters<TestApp['ask']>[1] = {}) => {
  const response = await app.ask(`POST /v1/warmup${route}`, more)
  return { status: response.status, report: (await response.json()) as Report }
}
const problem = async (app: TestApp, route: string, more: Parameters<TestApp['ask']>[1] = {}) => {
  const response = await app.ask(`POST /v1/warmup${route}`, more)
  const { error } = (await response.json()) as { error: { code: string; param: string | null; message: string } }
  return { status: response.status, ...error }
}
const calls = (app: TestApp) => app.upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))
const getIds = (app: TestApp) => app.members.map(({ id }) => id)

describe('the mode', () => {
  test('normal skips accounts whose window has started or is unknown', async () => {
    const app = await setup([0, 12, null])
    const [a, b, c] = getIds(app)
    const { status, report } = await warm(app, '', { json: { mode: 'normal' } })
    expect(status).toBe(200)
    const reason = 'ineligible_primary_usage'
    expect(report).toMatchObject({
      mode: 'normal',
      total_accounts: 3,
      submitted: [{ account_id: a, model: 'gpt-5.5' }],
      skipped: [
        { account_id: b, reason },
        { account_id: c, reason },
      ],
      failed: [],
    })
    expect(calls(app).map(({ account }) => account)).toEqual([app.members[0]!.sim.chatgptAccountId])
    await expectNothingLeft(app)
  })

  test('a window that has reset counts as not started, and one of another length as none', async () => {
    const app = await setup([80])
    await app.clock.advance(2 * HOUR_MS)
    expect((await warm(app, '/normal')).report).toMatchObject({ failed: [], submitted: [{}] })
    const other = await setup([])
    const id = (await other.addAccount()).id
    await other.bindings.pool.reload()
    const windows = { fiveHour: { usedPercent: 0, windowMinutes: 360, resetAt: null }, weekly: null, monthly: null }
    other.bindings.pool.observe(id, { at: other.clock.now(), windows, credits: null, planType: null })
    expect((await warm(other, '/normal')).report.skipped).toHaveLength(1)
  })

  test('strict sends nothing if one account is unavailable', async () => {
    const app = await setup([0, 12])
    expect(await problem(app, '/strict')).toMatchObject({ status: 400, code: 'warmup_ineligible', param: 'mode' })
    expect(calls(app)).toEqual([])
    observe(app, [0, 0])
    expect((await warm(app, '/strict')).report.submitted).toHaveLength(2)
  })

  test('force uses every account that is in use and in the key’s scope', async () => {
    const app = await setup([40, 12, 0, 0])
    const [a, b, c, d] = getIds(app)
    await app.ask(`POST /api/accounts/${d}/pause`)
    const key = await app.key({ assignedAccountIds: [a!, b!, d!] })
    const { report } = await warm(app, '/force', { headers: { authorization: `Bearer ${key.key}` } })
    expect(report.total_accounts).toBe(2)
    expect(report.submitted.map(({ account_id }) => account_id).toSorted()).toEqual([a!, b!].toSorted())
    expect(JSON.stringify(report)).not.toContain(c!)
  })

  test.each([
    ['', { json: { mode: 'fast' } }, 'mode'],
    ['', { json: { mode: 'normal', extra: 1 } }, 'extra'],
    ['', { json: {} }, 'mode'],
    ['', { json: { mode: ['normal'] } }, 'mode'],
    ['/Force', {}, 'mode'],
    ['/constructor', {}, 'mode'],
  ])('POST /v1/warmup%s with %p is 400 and names %s', async (route, more, param) => {
    const app = await setup([0])
    expect(await problem(app, route, more)).toMatchObject({ status: 400, code: 'invalid_request_error', param })
    expect(calls(app)).toEqual([])
  })
})

describe('the request', () => {
  test('is small, without a limit on the output, on the cheapest visible model at its lowest effort', async () => {
    const app = await setup([0])
    await fetchCatalogs(jobDeps(app), new AbortController().signal)
    const headers = { 'x-codex-turn-metadata': '{}', 'session-id': 's', 'user-agent': 'cron/1' }
    const { report } = await warm(app, '/normal', { headers })
    expect(report.submitted).toMatchObject([{ model: 'gpt-6-luna' }])
    const [sent] = calls(app)
    expect(sent?.body).toEqual({
      model: 'gpt-6-luna',
      instructions: 'Answer with one word.',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'warmup' }] }],
      reasoning: { effort: 'low' },
      stream: true,
      store: false,
    })
    expect(sent?.headers).toMatchObject({ 'user-agent': 'cron/1' })
    expect(Object.keys(sent?.headers ?? {}).filter((name) => /codex|session/.test(name))).toEqual([])
  })

  test('follows the policy of the key: its enforced model and effort, or the cheapest it allows', async () => {
    const app = await setup([0])
    await fetchCatalogs(jobDeps(app), new AbortController().signal)
    const getBody = async (input: Parameters<TestApp['key']>[0]) => {
      await warm(app, '/force', { headers: { authorization: `Bearer ${(await app.key(input)).key}` } })
      const { model, reasoning } = (calls(app).at(-1)?.body ?? {}) as { model: string; reasoning: { effort: string } }
      return [model, reasoning.effort]
    }
    expect(await getBody({ enforcedModel: 'gpt-6.1-sol' })).toEqual(['gpt-6.1-sol', 'low'])
    expect(await getBody({ allowedModels: ['gpt-6.1-sol', 'gpt-5.5'] })).toEqual(['gpt-5.5', 'low']) // the other has no known price
    expect(await getBody({ enforcedReasoningEffort: 'high' })).toEqual(['gpt-6-luna', 'high'])
    expect(await getBody({ allowedReasoningEfforts: ['high', 'medium'] })).toEqual(['gpt-6-luna', 'medium'])
  })

  test('uses no other account, refreshes a rejected token once, and reports failures', async () => {
    const app = await setup([0, 0, 0])
    const [a, b, c] = app.members
    a!.sim.expireAccessToken()
    b!.sim.always({ on: 'responses', ...faults.usageLimit() })
    c!.sim.always({ on: 'responses', ...faults.serverError() })
    const { status, report } = await warm(app, '/normal')
    expect(status).toBe(200)
    expect(report.submitted.map(({ account_id }) => account_id)).toEqual([a!.id])
    expect(report.failed.map(({ account_id, error_code }) => [account_id, error_code]).toSorted()).toEqual(
      [
        [b!.id, 'usage_limit_reached'],
        [c!.id, 'server_error'],
      ].toSorted(),
    )
    const by = (sim: { chatgptAccountId: string }) =>
      calls(app).filter(({ account }) => account === sim.chatgptAccountId).length
    expect([by(a!.sim), by(b!.sim), by(c!.sim)]).toEqual([2, 1, 1])
    expect(app.bindings.pool.get(b!.id)?.state.status).not.toBe('active')
    await expectNothingLeft(app)
  })

  test('for ten accounts runs five at a time', async () => {
    const app = await setup(Array.from({ length: 10 }, () => 0))
    let most = 0
    app.wire.before = async () => {
      most = Math.max(most, app.bindings.turns.size)
    }
    expect((await warm(app, '/normal')).report.submitted).toHaveLength(10)
    expect(most).toBe(5)
  })
})

describe('the log', () => {
  test('has a row of the kind warmup for each, which is in no limit, total or report', async () => {
    const app = await setup([0, 0])
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const key = await app.key({ limits })
    const headers = { authorization: `Bearer ${key.key}` }
    const { report } = await warm(app, '/normal', { headers })
    await warm(app, '/force', { headers })
    const rows = await app.rows()
    expect(rows.map(({ kind, route, status, keyId }) => [kind, route, status, keyId])).toEqual(
      Array.from({ length: 4 }, () => ['warmup', '/v1/warmup', 'ok', key.row.id]),
    )
    expect(rows.map(({ requestId }) => requestId)).toEqual(
      expect.arrayContaining(report.submitted.map(({ request_id }) => request_id)),
    )
    const usage = (await (await app.ask('GET /v1/usage', { headers })).json()) as Record<string, unknown>
    expect(usage).toMatchObject({ request_count: 0, total_tokens: 0 })
  })
})

test('keys, the capability, draining and the firewall are checked as on turn routes', async () => {
  const app = await setup([0], { settings: { apiKeyAuthEnabled: true } })
  expect((await problem(app, '/normal')).status).toBe(401)
  const headers = { authorization: `Bearer ${(await app.key()).key}` }
  const capability = { ...headers, 'x-codex-lb-required-capability': 'trusted_cyber' }
  expect((await problem(app, '/normal', { headers: capability })).code).toBe(
    'required_capability_transport_unsupported',
  )
  app.bindings.lifecycle.draining = true
  expect((await problem(app, '/normal', { headers })).status).toBe(503)
  expect(calls(app)).toEqual([])
})
