/** An account with a limit in its usage report is unavailable immediately, with the same words everywhere. */
import { describe, expect, test } from 'bun:test'
import { pollUsage } from '../../src/jobs/usage.ts'
import { jobDeps } from '../jobs/deps.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import type { Usage } from '../support/upstream/accounts.ts'
import { faults } from '../support/upstream/faults.ts'

const POST = 'POST /backend-api/codex/responses'
const HOUR_MS = 3_600_000
const never = new AbortController().signal

const poll = (app: TestApp) => pollUsage(jobDeps(app), never)
const getView = (app: TestApp, n = 0) =>
  app.bindings.pool.describe().find(({ accountId }) => accountId === app.members[n]!.id)

const capped = async (usage: Usage, accounts = 1) => {
  const app = await testApp({ accounts: Array.from({ length: accounts }, () => ({ plan: 'business' as const })) })
  app.members[0]!.sim.setUsage(usage)
  await poll(app)
  return app
}

test('a spend cap in a poll without windows', async () => {
  const app = await testApp({ accounts: [{ plan: 'business' }] })
  const resetAt = app.clock.now() + HOUR_MS
  const body = {
    plan_type: 'business',
    rate_limit: null,
    spend_control: { reached: true, individual_limit: { limit: '5.00', used: '5.00', reset_at: resetAt / 1000 } },
  }
  app.members[0]!.sim.always({ on: 'usage', status: 200, body })
  await poll(app)
  expect(getView(app)).toMatchObject({
    status: 'quota_exceeded',
    cause: 'spend_cap_reached',
    eligible: false,
    skipped: 'spend_cap_reached',
    why: 'Spend cap reached',
    until: resetAt,
  })
  const answer = await getAnswer(app, POST, { json: codexBody() })
  expect(answer.status).toBe(429)
  expect(JSON.parse(answer.text).error).toMatchObject({ type: 'usage_limit_reached', resets_at: resetAt / 1000 })
  await app.clock.advance(HOUR_MS)
  app.bindings.pool.tick()
  expect(getView(app)?.eligible).toBe(true)
})

describe('each limit of a poll has its own message', () => {
  test.each([
    ['spend cap', { spendControl: { reached: true } }, 'Spend cap reached'],
    ['spend cap by its type', { reachedType: 'workspace_member_usage_limit_reached' }, 'Spend cap reached'],
    ['credits', { reachedType: 'workspace_owner_credits_depleted' }, 'Out of workspace credits'],
    ['limit', { limitReached: true }, 'Usage limit reached'],
    ['permission', { allowed: false }, 'Not allowed to send requests, according to its usage report'],
  ])('%s', async (_, usage, why) => {
    const app = await capped(usage)
    expect(getView(app)).toMatchObject({ status: 'quota_exceeded', eligible: false, why })
    app.members[0]!.sim.setUsage({})
    await app.clock.advance('61s')
    await poll(app)
    expect(getView(app)).toMatchObject({ status: 'active', eligible: true, why: null })
  })
})

test('the account page, the overview, the log and the routing simulator use the same words', async () => {
  const app = await capped({ spendControl: { reached: true } }, 2)
  expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
  const [first] = await app.attemptRows()
  const skipped = { id: app.members[0]!.id, skipped: 'spend_cap_reached' }
  expect(first?.considered).toContainEqual(expect.objectContaining(skipped))
  const admin = await people(app).as('admin')
  const page = await (
    await admin.ask(`GET /accounts/${app.members[0]!.id}`, { headers: { accept: 'text/html' } })
  ).text()
  expect(page).toContain('spend cap of its ChatGPT workspace')
  const overview = await (await admin.ask('GET /dashboard', { headers: { accept: 'text/html' } })).text()
  expect(overview).toContain('Spend cap reached')
  const explained = await (await admin.ask('GET /api/explain')).json()
  expect(JSON.stringify(explained)).toContain('spend cap reached')
})

test('a stream event makes the account unavailable before its next request', async () => {
  const app = await testApp({ accounts: 2 })
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  await app.prefer(id)
  sim.setUsage({ limitReached: true })
  sim.next({ rateLimitsEvent: true })
  expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
  expect(getView(app)).toMatchObject({ status: 'quota_exceeded', cause: 'limit_reached' })
  await getAnswer(app, POST, { json: codexBody('another') })
  expect(app.upstream.requests.at(-1)?.account).not.toBe(sim.chatgptAccountId)
})

test('a rejected request whose headers name the spend cap is described as such, with the end of the rejection', async () => {
  const app = await testApp({ accounts: 2 })
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  await app.prefer(id)
  const resetsAt = app.clock.now() + HOUR_MS
  const headers = { 'x-codex-rate-limit-reached-type': 'workspace_member_usage_limit_reached' }
  sim.next(faults.usageLimit({ resetsAt, headers }))
  expect((await getAnswer(app, POST, { json: codexBody() })).status).toBe(200)
  expect(getView(app)).toMatchObject({ cause: 'spend_cap_reached', until: resetsAt })
})

test('a used-up weekly window with paid credits is not a limit, whatever the report omits', async () => {
  const app = await testApp()
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  const now = app.clock.now()
  const secondary = { usedPercent: 100, windowMinutes: 10_080, resetAt: now + HOUR_MS }
  sim.setUsage({ secondary, credits: { hasCredits: true, unlimited: false, balance: '12' } })
  await poll(app)
  expect(getView(app)?.status).toBe('active')
  const windows = {
    fiveHour: null,
    weekly: { usedPercent: 100, windowMinutes: 10_080, resetAt: now + HOUR_MS },
    monthly: null,
  }
  const limit = { kind: 'limit_reached' as const, type: null, resetAt: now + HOUR_MS }
  app.bindings.pool.observe(id, { at: now, windows, credits: null, planType: null, limit })
  expect(getView(app)?.status).toBe('active')
})
