/** The job schedule as a whole: new accounts are fetched, catalogs and tokens refreshed, and blocks ended in time. */
import { expect, test } from 'bun:test'
import { scheduleJobs, scheduleUpkeep } from '../../src/jobs/all.ts'
import { fetchCatalogs } from '../../src/jobs/catalog.ts'
import type { JobDeps } from '../../src/jobs/context.ts'
import { pollNewAccounts } from '../../src/jobs/first-poll.ts'
import { pollResetCredits } from '../../src/jobs/reset-credits.ts'
import { renewTokens } from '../../src/jobs/tokens.ts'
import { pollUsage } from '../../src/jobs/usage.ts'
import { Schedule } from '../../src/lib/schedule.ts'
import { getSummedUntil } from '../../src/model/reports/request-spans.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { jobDeps } from './deps.ts'

const never = new AbortController().signal

const scheduled = (app: TestApp, workplace: Parameters<typeof scheduleJobs>[1] = app.bindings) => {
  const errors: unknown[] = []
  const schedule = new Schedule({
    clock: app.clock,
    random: app.bindings.random,
    onError: (_, err) => errors.push(err),
  })
  scheduleJobs(schedule, workplace, { startWindow: async () => {}, ping: async () => {} })
  scheduleUpkeep(schedule, workplace)
  const asked = (start: string) => app.upstream.requests.filter(({ path }) => path.startsWith(start)).length
  return { ...app, schedule, errors, asked }
}

test('every account gets its usage and its models at the start', async () => {
  const { schedule, clock, bindings, members, errors } = scheduled(await testApp({ accounts: 2 }))
  schedule.start()
  await clock.advance('1s')
  for (const { id } of members) {
    expect(bindings.pool.get(id)?.usage).not.toBeNull()
    expect(bindings.pool.get(id)?.models?.has('gpt-5.5')).toBe(true)
  }
  expect(errors).toEqual([])
  await schedule.stop()
})

test('an account added later is fetched immediately, and only once', async () => {
  const { schedule, clock, addAccount, bindings, asked } = scheduled(await testApp({ accounts: 0 }))
  schedule.start()
  await clock.advance('1s')
  expect(asked('/')).toBe(0)
  const { id } = await addAccount()
  await clock.advance('1s')
  expect(bindings.pool.get(id)?.usage).not.toBeNull()
  expect(bindings.catalog.getModels(id)?.has('gpt-5.5')).toBe(true)
  expect(asked('/backend-api/wham/usage')).toBe(1)
  await schedule.stop()
})

test('an account added while others are fetched is fetched with them; one that is not in use is not', async () => {
  const app = await testApp({ accounts: 2 })
  const [kept, lost] = app.members.map(({ id }) => id)
  const at = app.clock.now()
  app.bindings.pool.apply(lost ?? '', { kind: 'auth_failed', at, code: 'invalid_grant', evidence: 'seen' })
  const met = new Set<string>()
  const greeting = pollNewAccounts(jobDeps(app), met, never)
  const { id } = await app.addAccount()
  await greeting
  expect([...met]).toEqual([kept ?? '', id])
  expect(app.bindings.pool.get(id)?.usage).not.toBeNull()
  expect(app.upstream.requests.filter(({ account }) => account === app.members[1]?.sim.chatgptAccountId)).toEqual([])
})

test('a removed database file is logged once', async () => {
  const { schedule, clock, lines, file } = scheduled(await testApp({ accounts: 0 }))
  schedule.start()
  const told = async (isNamed: boolean) => {
    file.isNamed = isNamed
    await clock.advance('2m')
    return lines.filter((line) => line.includes('ERROR')).length
  }
  expect([await told(true), await told(false), await told(false)]).toEqual([0, 1, 1])
  await schedule.stop()
})

test('a block ends at its time, without a usage report', async () => {
  const { schedule, clock, bindings, members } = scheduled(await testApp())
  schedule.start()
  await clock.advance('1s')
  const { id, sim } = members[0]!
  sim.always({ on: 'usage', status: 503 })
  const at = clock.now()
  bindings.pool.apply(id, { kind: 'rate_limited', at, evidence: 'seen', resetAt: at + 30_000, retryAfterMs: null })
  await clock.advance('29s')
  expect(bindings.pool.get(id)?.state.status).toBe('rate_limited')
  await clock.advance('6s')
  expect(bindings.pool.get(id)?.state.status).toBe('active')
  await schedule.stop()
})

test('usage is polled again after a minute', async () => {
  const { schedule, clock, asked } = scheduled(await testApp())
  schedule.start()
  await clock.advance('1s')
  expect(asked('/backend-api/wham/usage')).toBe(1)
  await clock.advance('65s')
  expect(asked('/backend-api/wham/usage')).toBe(2)
  await schedule.stop()
})

test('tasks that may have waited for the start run immediately, the rest within the hour', async () => {
  const app = await testApp({ settings: { requestLogRetentionDays: 1 } })
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  await app.clock.advance('9d')
  app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
  const { accessToken } = sim
  app.sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5001)
    INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
    SELECT 'r' || n, 'r', ${app.clock.now()}, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n UNION ALL
    SELECT 'old', 'old', 1, '/', 'normal', 'http', 'ok', 200, 1, 1`)
  const done: string[] = []
  const figures = { now: async () => void done.push('overview') }
  const backup = { name: 'sluice-1.db', bytes: 1, at: app.clock.now(), kind: 'scheduled' } as const
  const backups = {
    newestAt: null,
    failure: null,
    list: async () => (done.includes('backup') ? [backup] : []),
    make: async () => {
      done.push('backup')
      return backup
    },
    keepNewest: async () => [],
  }
  const { schedule } = scheduled(app, { ...app.bindings, figures, ops: { ...app.bindings.ops, backups } })
  const look = async () => ({
    isTokenNew: sim.accessToken !== accessToken,
    isAddedUp: (await getSummedUntil(app.db)) > 0,
    overviews: done.filter((what) => what === 'overview').length,
    backups: done.filter((what) => what === 'backup').length,
    isOldTurnThere: app.sqlite.query("SELECT 1 FROM requests WHERE id = 'old'").get() !== null,
  })
  schedule.start()
  await app.clock.advance('1s')
  expect(await look()).toEqual({ isTokenNew: true, isAddedUp: true, overviews: 1, backups: 0, isOldTurnThere: true })
  await app.clock.advance('67m')
  expect(await look()).toMatchObject({ overviews: 14, backups: 1, isOldTurnThere: false })
  await schedule.stop()
})

test('usage samples are kept for trends, and models are fetched again', async () => {
  const { schedule, clock, sqlite, asked } = scheduled(await testApp())
  schedule.start()
  await clock.advance('1s')
  const look = () => [asked('/backend-api/codex/models'), sqlite.query('SELECT 1 FROM usage_samples').all().length]
  expect(look()).toEqual([1, 0])
  await clock.advance('6m')
  expect(look()).toEqual([2, 1])
  await schedule.stop()
})

test('reset credits reach the client within the first minute', async () => {
  const { schedule, clock, members, key, ask } = scheduled(await testApp())
  const { id, sim } = members[0]!
  const expiresAt = clock.now() + 86_400_000
  sim.setResetCredits([{ id: 'c1', expiresAt }])
  schedule.start()
  await clock.advance('60s')
  const response = await ask('GET /v1/reset-credit', { headers: { authorization: `Bearer ${(await key()).key}` } })
  expect(await response.json()).toEqual([
    { account_id: id, email: sim.email, redeem_id: 'c1', expiredAt: new Date(expiresAt).toISOString() },
  ])
  await schedule.stop()
})

test('catalogs are fetched for every client version that was seen, and dropped with it', async () => {
  const app = await testApp()
  const { catalog } = app.bindings
  catalog.noteClientVersion('0.140.0')
  await fetchCatalogs(jobDeps(app), never)
  const versions = () => app.sqlite.query('SELECT client_version v FROM account_catalogs ORDER BY 1').values().flat()
  expect(versions()).toEqual(['0.140.0', '0.169.0'])
  for (let minor = 1; minor <= 8; minor++) catalog.noteClientVersion(`0.17${minor}.0`)
  await fetchCatalogs(jobDeps(app), never)
  expect(versions()).toHaveLength(9)
  expect(versions()).not.toContain('0.140.0')
})

test('models of a paused account are not fetched', async () => {
  const app = await testApp()
  app.bindings.pool.apply(app.members[0]?.id ?? '', { kind: 'pause', at: app.clock.now() })
  await fetchCatalogs(jobDeps(app), never)
  expect(app.upstream.requests).toEqual([])
})

test('a failed refresh does not prevent others', async () => {
  const app = await testApp({ accounts: 2 })
  const before = app.members.map(({ sim }) => sim.accessToken)
  await app.clock.advance('20d')
  app.members[0]!.sim.next({ on: 'token', status: 401, body: { error: 'invalid_grant' } })
  await renewTokens(jobDeps(app), never)
  expect(app.members.filter(({ sim }, n) => sim.accessToken !== before[n])).toHaveLength(1)
})

test('tokens of idle accounts are refreshed when due, except permanently failed ones', async () => {
  const app = await testApp({ accounts: 2 })
  const [kept, lost] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  const before = kept.sim.accessToken
  await renewTokens(jobDeps(app), never)
  expect(kept.sim.accessToken).toBe(before)

  await app.clock.advance('9d')
  const at = app.clock.now()
  app.bindings.pool.apply(lost.id, { kind: 'auth_failed', at, code: 'token_invalidated', evidence: 'seen' })
  await renewTokens(jobDeps(app), never)
  expect(kept.sim.accessToken).not.toBe(before)
  expect(app.upstream.requests.map(({ account }) => account)).toEqual([kept.sim.chatgptAccountId])
})

test('tokens of a paused account are refreshed like any other, until that fails permanently', async () => {
  const app = await testApp()
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
  sim.revoke('refresh_token_expired')
  for (let day = 0; day < 3; day++) {
    await app.clock.advance('9d')
    await renewTokens(jobDeps(app), never)
  }
  expect(app.upstream.requests).toHaveLength(1)
  expect(app.bindings.pool.get(id)?.state).toMatchObject({ status: 'paused', cause: 'refresh_token_expired' })
})

test.each([
  ['usage', pollUsage],
  [
    'reset credits',
    (deps: JobDeps, signal: AbortSignal, { bindings }: TestApp) =>
      pollResetCredits({ ...deps, ...bindings }, new Map(), signal),
  ],
  ['tokens', renewTokens],
])('a stopped schedule starts nothing: %s', async (_, work) => {
  const app = await testApp()
  await app.clock.advance('9d')
  const run = work(jobDeps(app), AbortSignal.abort(new Error('stopped')), app)
  await expect(run).rejects.toThrow('stopped')
  expect(app.upstream.requests).toEqual([])
})
