/** The events of an account. */
import { expect, test } from 'bun:test'
import { accountEvents } from '../../db/schema/history.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const json = codexBody()

const getHistory = async ({ db, bindings, members }: TestApp, n = 0): Promise<string[]> => {
  await bindings.pool.stop() // writes pending records
  return (await db.select().from(accountEvents).all())
    .filter(({ accountId }) => accountId === members[n]!.id)
    .map(({ kind, result }) => `${kind} ${result}`)
}

test('an import, a refresh and a block with its end each leave an event', async () => {
  const app = await testApp()
  const { id, sim } = app.members[0]!
  sim.expireAccessToken()
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  const at = app.clock.now()
  const { pool } = app.bindings
  pool.apply(id, { kind: 'rate_limited', at, evidence: 'seen', resetAt: at + 30_000, retryAfterMs: null })
  pool.apply(id, { kind: 'rate_limited', at, evidence: 'again', resetAt: at + 40_000, retryAfterMs: null })
  await app.clock.advance('41s')
  pool.tick()
  expect(await getHistory(app)).toEqual(['import added', 'token refreshed', 'state rate_limited', 'state active'])
})

test('a permanently failed refresh is recorded with its reason, and so is the resulting state', async () => {
  const app = await testApp({ accounts: 2 })
  const { id, sim } = app.members[0]!
  await app.prefer(id)
  sim.expireAccessToken()
  sim.always({ on: 'token', status: 401, body: { error: { code: 'refresh_token_expired', message: 'Gone.' } } })
  expect((await getAnswer(app, NATIVE, { json })).status).toBe(200)
  expect(await getHistory(app)).toEqual(['import added', 'token refresh_token_expired', 'state reauth_required'])
  expect(await getHistory(app, 1)).toEqual(['import added'])
})

test('manual pauses, probes and plans are recorded, too', async () => {
  const app = await testApp()
  const { id } = app.members[0]!
  await getAnswer(app, `POST /api/accounts/${id}/probe`, { json: {} })
  await app.ask(`POST /api/accounts/${id}/pause`, { json: {} })
  await app.ask(`POST /api/accounts/${id}/reactivate`, { json: {} })
  const snapshot = { at: app.clock.now(), windows: { fiveHour: null, weekly: null, monthly: null }, credits: null }
  app.bindings.pool.observe(id, { ...snapshot, planType: 'enterprise' })
  expect(await getHistory(app)).toEqual([
    'import added',
    'probe served',
    'state paused',
    'state active',
    'plan enterprise',
  ])
})

test('no event contains a token', async () => {
  const app = await testApp()
  const { sim } = app.members[0]!
  sim.expireAccessToken()
  await getAnswer(app, NATIVE, { json })
  await getHistory(app)
  const text = JSON.stringify(await app.db.select().from(accountEvents).all())
  expect(text).not.toContain(sim.accessToken)
  expect(text).not.toContain(sim.refreshToken)
})
