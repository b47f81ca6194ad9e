/** A pool that needs a user says so immediately, in the way each client stops at; a temporary cause states the time. */
import { describe, expect, test } from 'bun:test'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const COMPACT = 'POST /backend-api/codex/responses/compact'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const HELLO = { model: 'gpt-5.5', input: 'hello', messages: [{ role: 'user', content: 'hello' }] }
const getBody = (route: string) => {
  const { input, messages, model } = HELLO
  if (route === CHAT) return { model, messages }
  return route === PUBLIC ? { model, input } : codexBody()
}

const answered = async (app: TestApp, route: string, json: unknown = getBody(route)) => {
  const { status, headers, text } = await getAnswer(app, route, { json })
  const { code, message } = JSON.parse(text).error
  return { status, code, message, retryAfter: headers.get('retry-after'), shouldRetry: headers.get('x-should-retry') }
}

const apply = (app: TestApp, member: number, kind: 'pause' | 'sign in' | 'deactivate') => {
  const { id } = app.members[member]!
  const at = app.clock.now()
  const code = kind === 'sign in' ? 'refresh_token_reused' : 'account_deactivated'
  app.bindings.pool.apply(id, kind === 'pause' ? { kind, at } : { kind: 'auth_failed', at, code, evidence: 'test' })
}

const WAITING: [string, number, (app: TestApp) => void, string][] = [
  ['no account was added', 0, () => {}, 'No ChatGPT account has been added'],
  ['every account needs sign-in', 2, (app) => [0, 1].map((n) => apply(app, n, 'sign in')), '2 need sign-in'],
  ['every account is paused', 1, (app) => apply(app, 0, 'pause'), '1 paused'],
  [
    'one is paused, one deactivated',
    2,
    (app) => [apply(app, 0, 'pause'), apply(app, 1, 'deactivate')],
    '1 deactivated',
  ],
]

describe.each(WAITING)('%s', (_why, accounts, prepare, words) => {
  test.each([NATIVE, COMPACT])('%s: 400 with the causes, which the native client shows immediately', async (route) => {
    const app = await testApp({ accounts })
    prepare(app)
    const told = await answered(app, route)
    expect(told).toMatchObject({ status: 400, code: 'no_accounts', retryAfter: null, shouldRetry: 'false' })
    expect(told.message).toContain(words)
    expect(await app.rows()).toMatchObject([{ httpStatus: 400, errorCode: 'no_accounts' }])
    await expectNothingLeft(app)
  })

  test.each([PUBLIC, CHAT])('%s: 503 with a header that tells SDKs not to retry', async (route) => {
    const app = await testApp({ accounts })
    prepare(app)
    const told = await answered(app, route)
    expect(told).toMatchObject({ status: 503, code: 'no_accounts', retryAfter: null, shouldRetry: 'false' })
    expect(told.message).toContain(words)
  })
})

test.each([
  ['none', () => [], 'This API key has no accounts.'],
  ['a paused one', (app: TestApp) => [app.members[0]!.id], '1 paused'],
])('a key with these accounts waits for a user action: %s', async (_which, assigned, words) => {
  const app = await testApp({ accounts: 2, settings: { apiKeyAuthEnabled: true } })
  apply(app, 0, 'pause')
  const { key } = await app.key({ assignedAccountIds: assigned(app) })
  const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers: { authorization: `Bearer ${key}` } })
  expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([400, expect.stringContaining(words)])
})

test('a model that only an account of another key offers can be selected by the user at the client', async () => {
  const app = await testApp({ accounts: 2, settings: { apiKeyAuthEnabled: true } })
  for (const [index, { id }] of app.members.entries())
    Object.assign(app.bindings.pool.get(id)!, { models: new Set(index === 0 ? ['gpt-5.5'] : ['another']) })
  const headers = { authorization: `Bearer ${(await app.key({ assignedAccountIds: [app.members[1]!.id] })).key}` }
  const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers })
  expect(answer.status).toBe(400)
  expect(JSON.parse(answer.text).error).toMatchObject({ code: 'no_accounts', param: 'model' })
})

test('an account that turns out to need sign-in in this very request counts as well', async () => {
  const app = await testApp()
  app.members[0]!.sim.revoke()
  expect(await answered(app, NATIVE)).toMatchObject({ status: 400, code: 'no_accounts' })
  expect(await answered(app, PUBLIC)).toMatchObject({ status: 503, shouldRetry: 'false' })
})

test('a temporary cause keeps Retry-After, also beside permanent ones', async () => {
  for (const route of [NATIVE, PUBLIC]) {
    const app = await testApp({ accounts: 2 })
    apply(app, 0, 'pause')
    app.members[1]!.sim.always(faults.rateLimited(20))
    await answered(app, route)
    const told = await answered(app, route)
    expect(told).toMatchObject({ status: 503, code: 'no_accounts', shouldRetry: null })
    expect(Number(told.retryAfter)).toBeWithin(1, 61)
    expect(told.message).toContain('1 rate limited')
    expect(told.message).not.toContain('dashboard')
  }
})

describe('all accounts are rejected for the same reason, not a usage limit', () => {
  const spendCap = () => ({
    ...faults.usageLimit(),
    headers: { 'x-codex-rate-limit-reached-type': 'workspace_member_usage_limit_reached' },
  })
  const cases = [
    ['usage_not_included', faults.usageNotIncluded(), 'usage_not_included', 'Your plan does not include this.'],
    ['insufficient_quota', faults.insufficientQuota(), 'insufficient_quota', 'The quota is used up.'],
    ['workspace_member_usage_limit_reached', spendCap(), 'usage_limit_reached', 'The usage limit has been reached'],
  ] as const

  test.each(cases)('%s: the code and message of ChatGPT', async (code, fault, type, message) => {
    const app = await testApp({ accounts: 2 })
    for (const { sim } of app.members) sim.always(fault)
    for (const route of [NATIVE, PUBLIC, NATIVE]) {
      const { status, text, headers } = await getAnswer(app, route, { json: getBody(route) })
      expect([status, JSON.parse(text).error]).toMatchObject([429, { code, type, message }])
      expect(headers.get('x-codex-rate-limit-reached-type')).toBe(code.startsWith('workspace_') ? code : null)
    }
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))).toHaveLength(2)
    await app.restart()
    const { text } = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(JSON.parse(text).error).toMatchObject({ code, type, message })
  })

  test('accounts with different rejections have only their usage limit in common', async () => {
    const app = await testApp({ accounts: 2 })
    app.members[0]!.sim.always(faults.usageNotIncluded())
    app.members[1]!.sim.always(faults.insufficientQuota())
    expect(await answered(app, NATIVE)).toMatchObject({ status: 429, code: 'usage_limit_reached' })
    const mixed = await testApp({ accounts: 2 })
    mixed.members[0]!.sim.always(faults.usageNotIncluded())
    mixed.members[1]!.sim.always(faults.usageLimit({ resetsAt: mixed.clock.now() + 3_600_000 }))
    expect(await answered(mixed, NATIVE)).toMatchObject({ status: 429, code: 'usage_limit_reached' })
  })
})
