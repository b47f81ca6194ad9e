/** A kill between the row and the response: no window start, automation or reset credit is repeated afterwards. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runInProcess } from '../support/cli.ts'
import { until } from '../support/until.ts'
import { createUpstream } from '../support/upstream/app.ts'
import type { FaultRoute } from '../support/upstream/faults.ts'

const ROOT = resolve(import.meta.dir, '../..')
const HOUR_MS = 3_600_000
const dirs: string[] = []
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true })
})

type Job = 'usage' | 'window' | 'reset' | 'automation'

/** A data folder with one account, and the stand-in upstream on a port. */
const world = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-once-'))
  dirs.push(dataDir)
  const upstream = createUpstream()
  const { url, stop } = upstream.listen()
  const account = upstream.addAccount()
  const file = join(dataDir, 'auth.json')
  writeFileSync(file, account.authJson(), { mode: 0o600 })
  const sluice = async (...args: string[]) => {
    const { exitCode, stderr } = await runInProcess(args, { dataDir })
    if (exitCode !== 0) throw new Error(stderr)
  }
  await sluice('accounts', 'import', file)
  const start = (job: Job) =>
    Bun.spawn([process.execPath, 'tests/process/once-child.ts', job], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH ?? '',
        CODEX_LB_DATA_DIR: dataDir,
        CODEX_LB_UPSTREAM_BASE_URL: `${url}/backend-api`,
        CODEX_LB_AUTH_BASE_URL: url,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
  const run = async (job: Job) => expect(await start(job).exited).toBe(0)
  const calls = (end: string) => upstream.requests.filter(({ path }) => path.endsWith(end))
  /** Kills the process with -9 once its request has arrived, before the answer. */
  const killDuring = async (job: Job, on: FaultRoute, end: string) => {
    account.next({ on, delayHeadersMs: 600_000 })
    const child = start(job)
    await until(() => calls(end).length > 0 || child.exitCode !== null)
    const ended = child.exitCode
    child.kill('SIGKILL')
    await child.exited
    const arrived = upstream.requests.map(({ path, status }) => `${path} ${status}`)
    if (ended !== null) throw new Error(`The process ended with ${ended} before it sent ${end}: ${arrived.join(', ')}`)
    expect(calls(end)).toHaveLength(1)
  }
  return { account, sluice, run, calls, killDuring, [Symbol.asyncDispose]: stop }
}

/** HH:MM in UTC, now. */
const currentHour = () => new Date().toISOString().slice(11, 16)

test('kill -9 during a window start', async () => {
  await using it = await world()
  const resetAt = Date.now() + 5 * HOUR_MS
  it.account.setUsage({ primary: { usedPercent: 0, windowMinutes: 300, resetAt } })
  await it.run('usage')
  const email = it.account.email
  await it.sluice('accounts', 'edit', email, '--window-start', 'on')
  await it.sluice('settings', 'set', 'windowStart=at_hours', `windowStartHours=${currentHour()}`)
  await it.killDuring('window', 'responses', '/codex/responses')
  await it.run('window')
  await it.run('window')
  expect(it.calls('/codex/responses')).toHaveLength(1)
}, 120_000)

test('a completed window start is not repeated by the next process either', async () => {
  await using it = await world()
  it.account.setUsage({ primary: { usedPercent: 0, windowMinutes: 300, resetAt: Date.now() + 5 * HOUR_MS } })
  await it.run('usage')
  await it.sluice('accounts', 'edit', it.account.email, '--window-start', 'on')
  await it.sluice('settings', 'set', 'windowStart=at_hours', `windowStartHours=${currentHour()}`)
  await it.run('window')
  await it.run('window')
  expect(it.calls('/codex/responses')).toHaveLength(1)
}, 120_000)

test('kill -9 during an automation', async () => {
  await using it = await world()
  await it.killDuring('automation', 'responses', '/codex/responses')
  await it.run('automation')
  await it.run('automation')
  expect(it.calls('/codex/responses')).toHaveLength(1)
}, 120_000)

test('kill -9 during a redemption', async () => {
  await using it = await world()
  const { account } = it
  account.setUsage({ primary: { usedPercent: 100, windowMinutes: 300, resetAt: Date.now() + 4 * HOUR_MS } })
  account.setResetCredits([{ id: 'c1', expiresAt: Date.now() + 48 * HOUR_MS }])
  await it.sluice('accounts', 'edit', account.email, '--reset-policy', 'when_exhausted')
  await it.killDuring('reset', 'redeem', '/consume')
  await it.run('reset')
  await it.run('reset')
  expect(it.calls('/consume')).toHaveLength(1)
}, 120_000)

test('with the rule of the settings and two credits the second is used by its own attempt, the first never again', async () => {
  await using it = await world()
  const { account } = it
  account.setUsage({ primary: { usedPercent: 100, windowMinutes: 300, resetAt: Date.now() + 4 * HOUR_MS } })
  const credits = ['c1', 'c2'].map((id, index) => ({ id, expiresAt: Date.now() + (48 + index) * HOUR_MS }))
  account.setResetCredits(credits)
  await it.sluice('settings', 'set', 'resetPolicy=when_exhausted')
  await it.killDuring('reset', 'redeem', '/consume')
  account.setResetCredits(credits.slice(1)) // ChatGPT used the first, but the answer was lost
  await it.run('reset')
  await it.run('reset')
  expect(it.calls('/consume').map(({ body }) => (body as { credit_id: string }).credit_id)).toEqual(['c1', 'c2'])
}, 120_000)
