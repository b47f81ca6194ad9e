/** Account tokens during requests: refreshed once, stored before use, and the resulting state when that fails. */
import { expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { AppError } from '../../src/errors.ts'
import { importAccount } from '../../src/model/accounts/account-intake.ts'
import { openTokens } from '../../src/model/accounts/account-tokens.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import {
  advanceClockDuring,
  codexBody,
  expectNothingLeft,
  getAnswer,
  type TestApp,
  type TestOptions,
  testApp,
} from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const json = codexBody()

const refreshes = ({ upstream }: TestApp) => upstream.requests.filter(({ path }) => path === '/oauth/token')
const setUp = async (options: TestOptions = {}) => {
  const app = await testApp({ accounts: 2, ...options })
  await app.prefer(app.members[0]!.id)
  return { app, first: app.members[0]!, second: app.members[1] }
}
const servedBy = async (app: TestApp) =>
  (await app.attemptRows()).map(({ accountId }) => app.members.findIndex(({ id }) => id === accountId))

test('a token rejected upstream is refreshed on the account of its request, whichever request comes next', async () => {
  const app = await testApp({ accounts: 2, settings: { routingStrategy: 'round_robin' } })
  for (const { sim } of app.members) sim.expireAccessToken()
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  const [first, second] = await servedBy(app)
  expect(second).toBe(first!)
  await expectNothingLeft(app)
})

test('a token rejected upstream is refreshed once, and the same account serves', async () => {
  const { app, first } = await setUp()
  first.sim.expireAccessToken()
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 0])
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(refreshes(app)).toHaveLength(1)
  await expectNothingLeft(app)
})

test('a token rejected upstream is refreshed when all accounts cool down, and the account used as a last resort serves', async () => {
  const { app } = await setUp()
  for (const { sim } of app.members) sim.expireAccessToken()
  for (const { id } of app.members)
    for (let errors = 0; errors < 3; errors++)
      app.bindings.pool.health(id, { kind: 'error', at: app.clock.now(), evidence: '500' })
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  const [asked, served] = await servedBy(app)
  expect(served).toBe(asked!)
  await expectNothingLeft(app)
})

test('an account that cools down after its new token was rejected is left', async () => {
  const { app, first } = await setUp()
  first.sim.expireAccessToken()
  app.wire.before = async (url) => {
    if (!url.endsWith('/oauth/token')) return
    for (let errors = 0; errors < 2; errors++)
      app.bindings.pool.health(first.id, { kind: 'error', at: app.clock.now(), evidence: '500' })
    for (let asked = 0; asked < 3; asked++) first.sim.next(faults.serverError())
  }
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 0, 1])
  await expectNothingLeft(app)
})

test('twenty parallel requests refresh it once', async () => {
  const { app, first } = await setUp({ accounts: 1, settings: { proxyAccountStreamLimit: 0 } })
  first.sim.expireAccessToken()
  first.sim.next({ on: 'token', delayHeadersMs: 500 })
  const answers = await Promise.all(Array.from({ length: 20 }, () => getAnswer(app, NATIVE, { json })))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(refreshes(app)).toHaveLength(1)
  expect(await app.rows()).toHaveLength(20)
  await expectNothingLeft(app)
})

test('the new token is on disk before the first request with it is sent', async () => {
  const { app, first } = await setUp()
  const before = first.sim.accessToken
  first.sim.expireAccessToken()
  const stored: boolean[] = []
  app.wire.before = async (url, init) => {
    if (!url.endsWith('/codex/responses') || first.sim.accessToken === before) return
    const row = (await app.db.select().from(accounts).where(eq(accounts.id, first.id)).get())!
    const tokens = openTokens(app.bindings.sealer, row)
    const { authorization } = init.headers as Record<string, string> // as: this is how the upstream layer calls
    stored.push(authorization === `Bearer ${tokens.accessToken}` && tokens.refreshToken === first.sim.refreshToken)
  }
  await getAnswer(app, NATIVE, { json })
  expect(stored).toEqual([true])
  await expectNothingLeft(app)
})

test('a permanently failed refresh moves the request to another account and requires sign-in', async () => {
  const { app, first } = await setUp()
  first.sim.expireAccessToken()
  first.sim.always({ on: 'token', status: 401, body: { error: { code: 'refresh_token_expired', message: 'Gone.' } } })
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 1])
  const { state } = app.bindings.pool.get(first.id)!
  expect(state).toMatchObject({ status: 'reauth_required', cause: 'refresh_token_expired' })
  expect(state.evidence).toContain('refresh_token_expired')
  expect(state.since).toBeNumber()
  await getAnswer(app, NATIVE, { json })
  expect(refreshes(app)).toHaveLength(1)
  await app.restart()
  expect(app.bindings.pool.get(first.id)!.state).toMatchObject({
    status: 'reauth_required',
    cause: 'refresh_token_expired',
  })
  await expectNothingLeft(app)
})

const drain = async (app: TestApp) => {
  for (const turn of app.bindings.turns) turn.abort(new AppError('draining', { retryAfterSeconds: 5 }))
  await app.clock.advance(0)
}

test.each([
  ['due', ({ clock }: TestApp) => clock.advance('1h')],
  ['refused', async ({ members }: TestApp) => members[0]!.sim.expireAccessToken()],
])('a request that waits for a token that was %s ends at shutdown, and the token is kept', async (_, spoil) => {
  const app = await testApp({ accounts: [{ accessTokenTtlMs: 3_600_000 }] })
  const { id, sim } = app.members[0]!
  await spoil(app)
  sim.next({ on: 'token', delayHeadersMs: 3000 })
  const asked = app.ask(NATIVE, { json })
  await app.clock.advance(100)
  expect(refreshes(app)).toHaveLength(1)
  await drain(app)
  const response = await advanceClockDuring(app, asked, 0, 3)
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: { code: 'draining' } })
  await app.clock.advance('3s')
  expect(app.bindings.proxyDeps.credentials.fresh(id)).toMatchObject({ accessToken: sim.accessToken })
  await expectNothingLeft(app)
})

test('a temporarily failed refresh moves the request and does not affect the account', async () => {
  const { app, first } = await setUp()
  first.sim.expireAccessToken()
  first.sim.next({ ...faults.serverError(), on: 'token' })
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 1])
  expect(app.bindings.pool.get(first.id)!.state.status).toBe('active')
  await app.clock.advance('6s')
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect((await servedBy(app)).slice(2)).toEqual([0, 0])
  await expectNothingLeft(app)
})

test('an account whose rejected token cannot be refreshed for now soon becomes the last choice, and says why', async () => {
  const { app, first } = await setUp()
  first.sim.expireAccessToken()
  first.sim.always({ ...faults.serverError(), on: 'token' })
  for (let turn = 0; turn < 3; turn++) expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 1, 0, 1, 1])
  expect(refreshes(app)).toHaveLength(1)
  const { state, health } = app.bindings.pool.get(first.id)!
  expect(state.status).toBe('active')
  expect(health.lastError?.evidence).toBe(
    'Its token was rejected and could not be refreshed: OpenAI rejected the token refresh with 500 server_error.',
  )
  await expectNothingLeft(app)
})

test('when no account can serve, the client learns that the refresh fails, and when it is retried', async () => {
  const { app, first } = await setUp({ accounts: 1 })
  first.sim.expireAccessToken()
  first.sim.always({ ...faults.serverError(), on: 'token' })
  const answer = await getAnswer(app, NATIVE, { json })
  const message = 'The token of the account was rejected and could not be refreshed yet.'
  expect(JSON.parse(answer.text).error).toMatchObject({ code: 'upstream_auth_failed', message })
  expect(answer.headers.get('retry-after')).toBe('5')
  await expectNothingLeft(app)
})

test('a backoff for a failed refresh ends with a successful one', async () => {
  const { app, first } = await setUp({ accounts: 1 })
  first.sim.always({ ...faults.serverError(), on: 'token' })
  first.sim.expireAccessToken()
  for (let turn = 0; turn < 3; turn++) {
    await getAnswer(app, NATIVE, { json })
    await app.clock.advance('6s')
  }
  const served = () => getAnswer(app, NATIVE, { json }).then(({ status }) => status)
  expect(app.bindings.pool.get(first.id)!.health.backoffUntil).toBeGreaterThan(app.clock.now() + 20_000)
  expect(await served()).toBe(502)
  await app.clock.advance('6s')
  first.sim.always(null)
  const { credentials } = app.bindings.proxyDeps
  const { accessToken } = await credentials.fresh(first.id)
  await credentials.refresh(first.id, accessToken)
  expect(await served()).toBe(200)
  await expectNothingLeft(app)
})

test('a backoff for a failed refresh ends with imported tokens', async () => {
  const { app, first } = await setUp({ accounts: 1 })
  first.sim.always({ ...faults.serverError(), on: 'token' })
  first.sim.expireAccessToken()
  await Promise.all(Array.from({ length: 8 }, () => getAnswer(app, NATIVE, { json })))
  first.sim.always(null)
  await app.clock.advance('6s')
  first.sim.signInAgain()
  const { sealer, random, clock } = app.bindings
  const actor = { id: 'test', method: null, address: null, at: clock.now() }
  const imported = parseAuthJson(first.sim.authJson(), 'auth.json')
  await commit(app.db, (tx) => importAccount(tx, imported, { sealer, random, actor }))
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(refreshes(app)).toHaveLength(1)
  await expectNothingLeft(app)
})

test('while a refreshed token waits to be stored, no other account risks its own', async () => {
  const { app, first } = await setUp()
  for (const { sim } of app.members) sim.expireAccessToken()
  const full =
    "CREATE TRIGGER IF NOT EXISTS full BEFORE INSERT ON account_events BEGIN SELECT RAISE(ABORT, 'disk full'); END"
  app.wire.before = async (url) => {
    if (url.endsWith('/oauth/token')) app.sqlite.run(full)
  }
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(502)
  expect(refreshes(app).map(({ account }) => account)).toEqual([first.sim.chatgptAccountId])
  app.sqlite.run('DROP TRIGGER full')
  app.wire.before = async () => {}
  await app.clock.advance('30s')
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(app.bindings.pool.get(first.id)!.state.status).toBe('active')
  await expectNothingLeft(app)
})

test('a token eight days old is refreshed before it is used', async () => {
  const { app } = await setUp()
  await app.clock.advance('8d')
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(app.upstream.requests.map(({ path, status }) => [path, status])).toEqual([
    ['/oauth/token', 200],
    ['/backend-api/codex/responses', 200],
  ])
  await expectNothingLeft(app)
})

test('an old token that cannot be refreshed for now is used unchanged', async () => {
  const { app, first } = await setUp()
  await app.clock.advance('8d')
  first.sim.always({ ...faults.serverError(), on: 'token' })
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0])
  await expectNothingLeft(app)
})

test('an old token that can never be refreshed moves the request to another account', async () => {
  const { app, first } = await setUp()
  await app.clock.advance('8d')
  first.sim.revoke('refresh_token_reused')
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await servedBy(app)).toEqual([0, 1])
  expect(app.bindings.pool.get(first.id)!.state).toMatchObject({
    status: 'reauth_required',
    cause: 'refresh_token_reused',
  })
  await expectNothingLeft(app)
})

test('with no other account the client learns that it needs sign-in, and gets no 401', async () => {
  const { app, first } = await setUp({ accounts: 1 })
  first.sim.revoke('refresh_token_expired')
  const answer = await getAnswer(app, NATIVE, { json })
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'no_accounts'])
  await expectNothingLeft(app)
})

test('an old token that can never be refreshed needs sign-in when no other account is left', async () => {
  const { app, first } = await setUp({ accounts: 1 })
  await app.clock.advance('8d')
  first.sim.revoke('refresh_token_reused')
  const answer = await getAnswer(app, NATIVE, { json })
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'no_accounts'])
  expect(await app.attemptRows()).toHaveLength(1)
  await expectNothingLeft(app)
})
