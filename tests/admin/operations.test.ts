/** `/metrics`, `/api/backups` and `/doctor`: permissions, and that every series changes. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditLogs } from '../../db/schema/system.ts'
import { Backups } from '../../src/ops/backups.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people, problem, REMOTE } from '../support/people.ts'

type Series = Map<string, number>

const scrape = async (app: TestApp): Promise<Series> => {
  await app.bindings.ledger.flush()
  const response = await app.ask('GET /metrics')
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

/** The names of families in a scrape, without labels and suffixes of histograms. */
const getNames = (series: Series): Set<string> =>
  new Set([...series.keys()].map((name) => name.replace(/\{.*$/, '').replace(/_(bucket|sum|count)$/, '')))

describe('metrics', () => {
  test('are available to local clients, and to others with the token', async () => {
    const app = await testApp({ environment: { CODEX_LB_METRICS_TOKEN: 'a secret of many' } })
    const ask = (peer: string, authorization?: string) =>
      app.ask('GET /metrics', { peer, headers: authorization ? { authorization } : {} }).then(({ status }) => status)
    expect(await ask('127.0.0.1')).toBe(200)
    expect(await ask('192.0.2.7')).toBe(401)
    expect(await ask('192.0.2.7', 'Bearer wrong')).toBe(401)
    expect(await ask('192.0.2.7', 'Bearer a secret of many')).toBe(401) // a token has no blank
    const plain = await testApp()
    const refused = await plain.ask('GET /metrics', {
      peer: '192.0.2.7',
      headers: { authorization: 'Bearer undefined' },
    })
    expect(refused.status).toBe(401)
    const headers = { authorization: 'Bearer sixteen-letters!' }
    const tokened = await testApp({ environment: { CODEX_LB_METRICS_TOKEN: 'sixteen-letters!' } })
    for (let n = 0; n < 20; n++)
      expect((await tokened.ask('GET /metrics', { peer: '192.0.2.7', headers })).status).toBe(200)
  })

  test('eight guesses at the token per minute and client are checked', async () => {
    const app = await testApp({ environment: { CODEX_LB_METRICS_TOKEN: 'sixteen-letters!' } })
    const ask = (token: string, peer = '192.0.2.7') =>
      app.ask('GET /metrics', { peer, headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status)
    for (let n = 0; n < 8; n++) expect(await ask(`guess ${n}`.replace(' ', '-'))).toBe(401)
    expect(await ask('sixteen-letters!')).toBe(429)
    expect(await ask('sixteen-letters!', '192.0.2.8')).toBe(200)
    await app.clock.advance('1m')
    expect(await ask('sixteen-letters!')).toBe(200)
  })

  test('a proxy on this machine does not make its clients local', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.7' }
    expect((await (await testApp()).ask('GET /metrics', { headers })).status).toBe(401)
  })

  test('every series moves', async () => {
    const app = await testApp({ accounts: 1 })
    const { id: account } = app.members[0]!
    const { key } = await app.key()
    const before = await scrape(app)
    const moved = new Set<string>()
    const note = async () => {
      const after = await scrape(app)
      for (const [name, value] of after)
        if (before.get(name) !== value) moved.add(name.replace(/\{.*$/, '').replace(/_(bucket|sum|count)$/, ''))
      return after
    }
    const turn = (model = 'gpt-5.5') =>
      getAnswer(app, 'POST /backend-api/codex/responses', {
        json: codexBody('hello', { model }),
        headers: { authorization: `Bearer ${key}` },
      })
    expect((await turn()).status).toBe(200)
    const at = app.clock.now()
    app.bindings.pool.observe(account, {
      at,
      windows: { fiveHour: { usedPercent: 37, windowMinutes: 300, resetAt: at + 9e6 }, weekly: null, monthly: null },
      credits: null,
      planType: null,
    })
    const served = await note()
    expect(served.get(`sluice_account_requests_total{account="${account}",status="ok"}`)).toBe(1)
    expect(served.get(`sluice_account_used_percent{account="${account}",window="5h"}`)).toBe(37)
    expect(served.get('sluice_first_event_seconds_count')).toBe(1)

    const stored = { json: { model: 'gpt-5.5', input: 'hello' }, headers: { authorization: `Bearer ${key}` } }
    expect((await getAnswer(app, 'POST /v1/responses', stored)).status).toBe(200)
    await note()

    app.bindings.pool.apply(account, { kind: 'pause', at })
    expect((await turn()).status).toBe(400)
    const failed = await note()
    expect(failed.get(`sluice_account_state{account="${account}",state="paused"}`)).toBe(1)
    expect([...failed].filter(([name]) => name.startsWith('sluice_errors_total')).map(([, value]) => value)).toEqual([
      1,
    ])

    await app.ask('GET /v1/models', { peer: '192.0.2.7' }) // a client without access
    app.bindings.pool.get(account)!.inFlight = 1
    app.bindings.turns.add(new AbortController())
    const held = app.bindings.bodies.open(0)
    held.resize(1000)
    app.bindings.ledger.usage(account, app.bindings.pool.get(account)!.usage!)
    await turn() // usage not yet on disk is not a request
    const unflushed = (await (await app.ask('GET /metrics')).text()).split('\n')
    expect(unflushed).toContain('sluice_ledger_pending 1')
    moved.add('sluice_ledger_pending')
    app.sqlite.run('ALTER TABLE account_usage RENAME TO away')
    app.bindings.ops.loopLag.start()
    await app.clock.advance('1s')
    app.bindings.ops.loopLag.stop()
    await note()
    app.sqlite.run('ALTER TABLE away RENAME TO account_usage')

    const still = [...getNames(served)].filter((name) => !moved.has(name))
    // The build and the start time never change; three series need real sockets (tests/process/operations.test.ts, tests/sockets/{kept,live}.test.ts).
    const SOCKETS = ['sluice_client_sockets', 'sluice_kept_upstream_sockets', 'sluice_live_calls']
    const CONSTANT = ['sluice_build_info', 'process_start_time_seconds', ...SOCKETS]
    const PROCESS = ['process_resident_memory_bytes', 'process_cpu_seconds_total']
    expect(still.filter((name) => !CONSTANT.includes(name) && !PROCESS.includes(name))).toEqual([])
    for (const name of PROCESS) expect(served.get(name)).toBeGreaterThan(0)
  })

  test('unknown models are one series, however many', async () => {
    const app = await testApp()
    for (let i = 0; i < 3; i++)
      await getAnswer(app, 'POST /v1/responses', { json: { model: `made-up-${i}`, input: 'x' } })
    const models = [...(await scrape(app)).keys()].filter((name) => name.startsWith('sluice_model_cost_usd_total'))
    expect(models).toEqual(['sluice_model_cost_usd_total{model="other"}'])
  })
})

describe('backups', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-backups-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  const withFolder = async (
    write = async (target: string): Promise<string | null> => {
      writeFileSync(target, 'abc')
      return null
    },
    accounts = 0,
  ) => {
    const app = await testApp({ accounts })
    app.bindings.ops.backups = new Backups({ dir, clock: app.clock, write })
    return app
  }
  /** As the form of the page sends it. */
  const HTMX = {
    'hx-request': 'true',
    'hx-source': 'form#form-backup',
    'hx-current-url': 'http://localhost:2455/settings/data',
    'content-type': 'application/x-www-form-urlencoded',
  }
  const events = async (app: TestApp) =>
    (await app.db.select().from(auditLogs).all()).map(({ event, target }) => `${event} ${target}`)

  test('from the future do not hide that there is no current backup', async () => {
    const app = await withFolder(undefined, 1)
    const missing = async () => (await (await app.ask('GET /dashboard')).text()).includes('No backup yet')
    await app.clock.advance(15 * 60_000)
    const at = (year: number) => writeFileSync(join(dir, `backups/sluice-${year}0101-000000.db`), 'abc')
    mkdirSync(join(dir, 'backups'))
    at(2099)
    expect(await missing()).toBe(true)
    at(2026)
    expect(await missing()).toBe(false)
  })

  test('are reported missing from a quarter of an hour after the start if none are scheduled immediately', async () => {
    const app = await withFolder(undefined, 1)
    const missing = async () => (await (await app.ask('GET /dashboard')).text()).includes('No backup yet')
    expect(await missing()).toBe(false)
    await app.clock.advance(15 * 60_000 - 1)
    expect(await missing()).toBe(false)
    await app.clock.advance(1)
    expect(await missing()).toBe(true)
    const unscheduled = await withFolder(undefined, 1)
    await unscheduled.ask('PUT /api/settings', { json: { backupIntervalHours: 0 } })
    expect(await (await unscheduled.ask('GET /dashboard')).text()).toContain('No backup yet')
  })

  test('are created, listed and downloaded, each with an audit entry', async () => {
    const app = await withFolder()
    const made = await app.ask('POST /api/backups', { json: {} })
    const name = 'sluice-20260101-000000-manual.db'
    expect([made.status, await made.json()]).toEqual([201, { name, bytes: 3, createdAt: '2026-01-01T00:00:00.000Z' }])
    const listed = await (await app.ask('GET /api/backups')).json()
    expect(listed).toMatchObject({ backups: [{ name, bytes: 3 }], backupIntervalHours: 24, backupKeep: 7 })
    const taken = await app.ask(`GET /api/backups/${name}`)
    expect(await taken.text()).toBe('abc')
    expect(taken.headers.get('content-disposition')).toBe(`attachment; filename="${name}"`)
    expect(await events(app)).toEqual([`backup_created ${name}`, `backup_downloaded ${name}`])
    expect((await app.ask('GET /api/backups/..%2Fsluice.db')).status).toBe(404)
  })

  test('are created from the page, which says so, with and without scripts', async () => {
    const app = await withFolder()
    const admin = await people(app).as('admin')
    const sent = await admin.submit('POST /api/backups')
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/settings/data?done=backup_created'])
    const page = await admin.ask('GET /settings/data?done=backup_created', { headers: { accept: 'text/html' } })
    expect(await page.text()).toContain('Backup created.')
    await app.clock.advance('1m')
    const scripted = await admin.ask('POST /api/backups', { body: '', headers: HTMX })
    expect([scripted.status, JSON.parse(scripted.headers.get('hx-location') ?? '{}')]).toEqual([
      200,
      { path: '/settings/data?done=backup_created', target: '#main', swap: 'innerMorph', push: 'false' },
    ])
    expect((await events(app)).map((line) => line.split(' ')[0])).toEqual(['backup_created', 'backup_created'])
  })

  test('can be downloaded only by full administrators, because they contain everything', async () => {
    const app = await withFolder()
    const { as, addRole } = people(app)
    const { name } = await (await app.ask('POST /api/backups', { json: {} })).json()
    await addRole('guard', { 'dashboard:read': 'all', 'security:write': 'all', 'ops:write': 'all' })
    const guard = await as('guard')
    expect(await problem(await guard.ask(`GET /api/backups/${name}`))).toEqual([403, 'permission_required'])
    const page = await (await guard.ask('GET /settings/data', { headers: { accept: 'text/html' } })).text()
    expect(page).toContain(name)
    expect(page).not.toContain(`/api/backups/${name}`)
    expect((await (await as('admin')).ask(`GET /api/backups/${name}`)).status).toBe(200)
  })

  test('failures on the page are explained in a sentence, beside the button or on a page', async () => {
    const app = await withFolder(async () => 'sluice: the disk is full')
    const admin = await people(app).as('admin')
    const [page, line] = [
      await admin.submit('POST /api/backups'),
      await admin.ask('POST /api/backups', { headers: HTMX }),
    ]
    for (const answer of [page, line]) {
      expect(answer.status).toBe(500)
      expect(await answer.text()).toMatch(/The backup failed: the disk is full\. Request id: req_\w+</)
    }
    expect(line.headers.get('hx-retarget')).toBe('#form-backup-problem')
  })

  test('a failed backup gives the reason and is not in the audit log', async () => {
    const app = await withFolder(async () => 'sluice: the disk is full')
    const { status, error } = await app
      .ask('POST /api/backups', { json: {} })
      .then(async (response) => ({ status: response.status, ...(await response.json()) }))
    expect(status).toBe(500)
    expect(error.message).toStartWith('The backup failed: the disk is full. Request id: req_')
    expect(await events(app)).toEqual([])
  })
})

describe('the doctor', () => {
  test('shows everything to users who can act on it, as JSON and as a page', async () => {
    const app = await testApp()
    const report = await (await app.ask('GET /api/doctor')).json()
    expect(report.findings.map(({ id }: { id: string }) => id)).toEqual([
      'data_folder',
      'disk_space',
      'database',
      'key_file',
      'backup',
      'upstream_http',
      'upstream_websocket',
      'sign_in_service',
      'clock',
      'trusted_proxies',
      'host_header',
    ])
    const page = await (await app.ask('GET /doctor', { headers: { accept: 'text/html' } })).text()
    expect(page).toContain('Checked from this browser')
    expect(page).not.toContain('style=')
  })

  test('shows a summary without paths or addresses to users with read-only access', async () => {
    const app = await testApp({ accounts: 0 })
    const { as } = people(app)
    const viewer = await as('viewer', { peer: REMOTE })
    const response = await viewer.ask('GET /api/doctor')
    const report = await response.json()
    expect([response.status, report.findings]).toEqual([200, null])
    expect(Object.values<number>(report.counts).reduce((a, b) => a + b)).toBe(11)
    expect((await viewer.ask('GET /api/backups')).status).toBe(403)
    const operator = await as('operator', { peer: REMOTE })
    expect((await operator.ask('GET /api/backups')).status).toBe(200)
    expect((await operator.ask('GET /api/backups/x')).status).toBe(403)
    const admin = await as('admin', { peer: REMOTE, isConfirmed: false })
    const unconfirmed = await (await admin.ask('GET /api/backups/x')).json()
    expect(unconfirmed.error.code).toBe('step_up_required')
  })
})
