/**
 * Bulk changes of accounts: one request, one audit entry per account, and accounts that reject the change stay as they
 * are.
 */
import { describe, expect, test } from 'bun:test'
import { retain } from '../../src/jobs/retention.ts'
import { readAuthFiles } from '../../src/model/accounts/account-import.ts'
import { importBudget, openFile } from '../../src/model/accounts/auth-files.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people, problem, REQUEST_FORMATS, type TestUser } from '../support/people.ts'

const open = async (accounts = 3) => {
  const app = await testApp({ accounts })
  return { app, ids: app.members.map(({ id }) => id), ...people(app) }
}

const statuses = ({ bindings }: TestApp) => bindings.pool.all().map(({ state }) => state.status)
const events = (rows: { event: string }[]) =>
  rows.map(({ event }) => event).filter((event) => event !== 'account_imported')

test('pausing and resuming changes only the selected accounts', async () => {
  const { app, ids, as, audit } = await open()
  const operator = await as('operator')
  const chosen = ids.slice(0, 2)
  const paused = await operator.ask('POST /api/accounts/pause', { json: { accountIds: chosen } })
  expect(await paused.json()).toEqual({ status: 'paused', changed: chosen, refused: [] })
  expect(statuses(app)).toEqual(['paused', 'paused', 'active'])
  expect((await audit()).filter(({ event }) => event === 'account_paused')).toMatchObject([
    { target: ids[0] },
    { target: ids[1] },
  ])
  const resumed = await operator.ask('POST /api/accounts/reactivate', { json: { accountIds: [...chosen, ids[0]] } })
  expect(await resumed.json()).toMatchObject({ status: 'reactivated', changed: chosen })
  expect(statuses(app)).toEqual(['active', 'active', 'active'])
})

test('accounts that reject the change are named and left alone; the others are changed', async () => {
  const { app, ids, as, audit } = await open()
  app.bindings.pool.apply(ids[0] ?? '', {
    kind: 'auth_failed',
    at: app.clock.now(),
    code: 'invalid_grant',
    evidence: 'x',
  })
  await app.clock.advance(0)
  const accountIds = [...ids.slice(0, 2), 'acc_unknown']
  const response = await (await as('operator')).ask('POST /api/accounts/pause', { json: { accountIds } })
  expect(await response.json()).toMatchObject({
    changed: [ids[1]],
    refused: [
      { accountId: ids[0], code: 'account_state_transition_invalid' },
      { accountId: 'acc_unknown', code: 'account_not_found' },
    ],
  })
  expect(statuses(app)).toEqual(['reauth_required', 'paused', 'active'])
  expect(events(await audit())).toEqual(['account_paused'])
})

test('when every account rejects the change, the page says that nothing was done', async () => {
  const { app, ids, as } = await open(2)
  for (const id of ids)
    app.bindings.pool.apply(id, { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'x' })
  await app.clock.advance(0)
  const operator = await as('operator')
  const headers = {
    accept: 'text/html',
    'content-type': 'application/x-www-form-urlencoded',
    referer: 'http://localhost:2455/accounts',
  }
  const body = ids.map((id) => `accountIds=${id}`).join('&')
  const response = await operator.ask('POST /api/accounts/pause', { body, headers })
  const place = response.headers.get('location') ?? ''
  expect(place).toBe('/accounts?done=accounts_paused_none')
  const html = await (await operator.ask(`GET ${place}`, { headers: { accept: 'text/html' } })).text()
  expect(html).toMatch(/role="alert">No account was paused/)
  expect(html).not.toContain('Some of the chosen accounts')
})

test('a single account that rejects the change is an error', async () => {
  const response = await (await (await open()).as('operator')).ask('POST /api/accounts/pause', {
    json: { accountIds: ['acc_unknown'] },
  })
  expect(await problem(response)).toEqual([404, 'account_not_found'])
})

test('deletion keeps the log unless the request says otherwise', async () => {
  const { app, ids, as } = await open(2)
  for (const id of ids)
    app.sqlite.run(
      `INSERT INTO requests (id, request_id, started_at, route, kind, transport, account_id, moved, status, http_status, attempts, total_ms)
       VALUES ('${id}', '${id}', 1, '/v1/responses', 'normal', 'http', '${id}', 0, 'ok', 200, 1, 1)`,
    )
  const operator = await as('operator')
  await operator.ask('POST /api/accounts/delete', { json: { accountIds: [ids[0]] } })
  await operator.ask('POST /api/accounts/delete', { json: { accountIds: [ids[1]], deleteHistory: true } })
  await app.clock.advance(1)
  expect(app.bindings.pool.all()).toEqual([])
  expect(app.sqlite.query('SELECT id FROM requests').values()).toEqual([[ids[0] ?? '']])
})

test('many accounts are changed ten at a time, so that streams make progress in between', async () => {
  const { app, ids, as } = await open(25)
  const pausing = (await as('operator')).ask('POST /api/accounts/pause', { json: { accountIds: ids } })
  await app.clock.advance(0)
  const paused = () => statuses(app).filter((status) => status === 'paused').length
  expect(paused()).toBe(10)
  await app.clock.advance('1s')
  expect(paused()).toBe(25)
  expect(await (await pausing).json()).toMatchObject({ changed: ids, refused: [] })
})

test('rows of a deleted account are removed after the response, fifty at a time', async () => {
  const { app, ids, as } = await open(2)
  app.sqlite.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
    INSERT INTO affinity (kind, key_hash, account_id, mixed, used_at) SELECT 'conversation', i, '${ids[0]}', 0, i FROM n`)
  const owned = () => app.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM affinity').get()?.n
  const answer = await (await as('operator')).ask('POST /api/accounts/delete', { json: { accountIds: [ids[0]] } })
  expect([answer.status, owned(), statuses(app).length]).toEqual([200, 250, 1])
  await app.clock.advance(0)
  expect(owned()).toBe(200)
  await app.restart()
  expect(app.bindings.affinity.counts().conversation).toBe(0)
  await app.clock.advance('1s')
  expect(owned()).toBe(0)
})

describe('deletion with its history', () => {
  const log = (app: TestApp, accountId: string, rows: number) =>
    app.sqlite.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, account_id, moved, status, http_status, attempts, total_ms)
      SELECT hex(randomblob(8)), 'x', 1, '/v1/responses', 'normal', 'http', '${accountId}', 0, 'ok', 200, 1, 1 FROM n`)
  const deleted = async (app: TestApp, id: string) => {
    const operator = await people(app).as('operator')
    const answer = await operator.ask('POST /api/accounts/delete', { json: { accountIds: [id], deleteHistory: true } })
    expect(answer.status).toBe(200)
  }
  const upkeep = async ({ db, clock, bindings }: TestApp) => {
    const running = retain({ db, clock, settings: bindings.settings }, new AbortController().signal)
    await clock.advance('1s')
    await running
  }

  test('is finished by the upkeep job if the process ended in between', async () => {
    const { app, ids } = await open(1)
    log(app, ids[0]!, 450)
    await deleted(app, ids[0]!)
    await app.clock.advance(0)
    expect(await app.rows()).toHaveLength(400)
    await upkeep(app)
    expect(await app.rows()).toEqual([])
  })

  test('disappears from the overview, which keeps totals of past half hours', async () => {
    const { app, ids } = await open(1)
    app.members[0]!.sim.next({ status: 400, body: { error: { code: 'invalid_value', message: 'No.' } } })
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
    await app.bindings.ledger.flush()
    await app.clock.advance('2h')
    const shown = async () => {
      const { tiles, present } = await app.bindings.figures.now()
      return [tiles.requests.value, present.errors.length]
    }
    expect(await shown()).toEqual([1, 1])
    await deleted(app, ids[0]!)
    await app.clock.advance('1h')
    expect(await shown()).toEqual([0, 0])
  })

  test('also deletes requests that have ended and are not written yet', async () => {
    const { app, ids } = await open(1)
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })
    await deleted(app, ids[0]!)
    await app.clock.advance(0)
    expect(await app.rows()).toEqual([])
  })

  test('also deletes a request that ends after the deletion, and is complete after a day', async () => {
    const { app, ids } = await open(1)
    await deleted(app, ids[0]!)
    await app.clock.advance('23h')
    log(app, ids[0]!, 1)
    await upkeep(app)
    expect(await app.rows()).toEqual([])
    await app.clock.advance('2h')
    await upkeep(app)
    log(app, ids[0]!, 1)
    await upkeep(app)
    expect(await app.rows()).toHaveLength(1)
  })
})

describe.each(['pause', 'reactivate', 'delete'])('%s', (verb) => {
  const route = `POST /api/accounts/${verb}`

  test.each(REQUEST_FORMATS)('requires the permission to change accounts (%s)', async (how) => {
    const { app, ids, as, guest } = await open(1)
    for (const visitor of [await as('viewer'), await guest('192.0.2.9')])
      expect(await problem(await visitor.send(how, route, { accountIds: ids[0] ?? '' }))).toEqual([
        403,
        'permission_required',
      ])
    expect(statuses(app)).toEqual(['active'])
  })

  test('rejects a request from another site', async () => {
    const { ids, as } = await open(1)
    const ask = { json: { accountIds: ids }, headers: { 'sec-fetch-site': 'cross-site' } }
    expect(await problem(await (await as('operator')).ask(route, ask))).toEqual([403, 'cross_site_request_rejected'])
  })

  test.each([{}, { accountIds: [] }, { accountIds: 'all' }, { accountIds: ['a'], force: true }])(
    'rejects %j',
    async (json) => {
      expect(await problem(await (await (await open(1)).as('operator')).ask(route, { json }))).toEqual([
        422,
        'validation_error',
      ])
    },
  )

  test('a form redirects to the list with its filters and says what was done', async () => {
    const { ids, as } = await open(1)
    const headers = { referer: 'http://localhost:2455/accounts?state=active&done=account_paused' }
    const body = new URLSearchParams([['accountIds', ids[0] ?? '']]).toString()
    const response = await (await as('operator')).ask(route, {
      body,
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
    })
    expect(response.status).toBe(303)
    const done = { pause: 'accounts_paused', reactivate: 'accounts_reactivated', delete: 'accounts_deleted' }[verb]
    expect(response.headers.get('location')).toBe(`/accounts?state=active&done=${done}`)
  })
})

test('a routing policy is set for all selected accounts, each with its audit row', async () => {
  const { app, ids, as, audit } = await open()
  const body = { accountIds: [ids[0], ids[2], 'acc_unknown'], routingPolicy: 'preserve' }
  expect(await problem(await (await as('viewer')).ask('POST /api/accounts/routing-policy', { json: body }))).toEqual([
    403,
    'permission_required',
  ])
  const answer = await (await as('operator')).ask('POST /api/accounts/routing-policy', { json: body })
  expect(await answer.json()).toMatchObject({
    status: 'updated',
    changed: [ids[0], ids[2]],
    refused: [{ accountId: 'acc_unknown', code: 'account_not_found' }],
  })
  expect(app.bindings.pool.all().map(({ routingPolicy }) => routingPolicy)).toEqual(['preserve', 'normal', 'preserve'])
  expect((await audit()).filter(({ event }) => event === 'account_updated')).toMatchObject([
    { target: ids[0] },
    { target: ids[2] },
  ])
})

describe('probing several accounts', () => {
  test('reports the result of each', async () => {
    const { app, ids, as } = await open()
    app.members[1]?.sim.next({ status: 429 })
    app.bindings.pool.apply(ids[2] ?? '', { kind: 'pause', at: app.clock.now() })
    const answer = await (await as('operator')).ask('POST /api/accounts/probe', {
      json: { accountIds: [...ids, ids[0]] },
    })
    const { probed, refused } = (await answer.json()) as { probed: { accountId: string }[]; refused: unknown[] }
    expect(probed.toSorted((a, b) => ids.indexOf(a.accountId) - ids.indexOf(b.accountId))).toMatchObject([
      { accountId: ids[0], served: true, probeStatusCode: 200 },
      { accountId: ids[1], served: false, probeStatusCode: 429 },
    ])
    expect(refused).toMatchObject([{ accountId: ids[2], code: 'account_not_probable' }])
    expect(app.upstream.oddities).toEqual([])
  })

  test.each([
    [0, 'accounts_probed'],
    [1, 'accounts_probed_partly'],
    [3, 'accounts_probed_none'],
  ])('with %d failures redirects to the list, which reports them', async (failing, done) => {
    const { app, ids, as } = await open()
    for (const { sim } of app.members.slice(0, failing)) sim.next({ status: 500 })
    const body = new URLSearchParams(ids.map((id) => ['accountIds', id])).toString()
    const headers = {
      accept: 'text/html',
      'content-type': 'application/x-www-form-urlencoded',
      referer: 'http://localhost:2455/accounts?plan=plus',
    }
    const answer = await (await as('operator')).ask('POST /api/accounts/probe', { body, headers })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/accounts?plan=plus&done=${done}`])
    const page = await (await as('operator')).ask(`GET /accounts?done=${done}`, { headers: { accept: 'text/html' } })
    expect(await page.text()).toMatch(/ChatGPT served all probes|Some probes failed|All probes failed/)
  })
})

describe('exporting several accounts', () => {
  test('gives a ZIP archive that can be imported again, with an audit row for each', async () => {
    const { ids, as, audit } = await open()
    const answer = await (await as('admin')).ask('POST /api/accounts/export', { json: { accountIds: ids.slice(0, 2) } })
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="accounts.zip"')
    const { files, failures } = await openFile('accounts.zip', await answer.bytes(), importBudget())
    expect(failures).toEqual([])
    expect(readAuthFiles(files).accounts.map(({ identity }) => identity.email)).toEqual([
      'account-1@example.test',
      'account-2@example.test',
    ])
    expect((await audit()).filter(({ event }) => event === 'account_exported')).toMatchObject([
      { target: ids[0] },
      { target: ids[1] },
    ])
  })

  test('needs the permission and a recent confirmation, and exports nothing for an unknown account', async () => {
    const { ids, as, audit } = await open()
    const ask = (who: TestUser, accountIds: (string | undefined)[]) =>
      who.ask('POST /api/accounts/export', { json: { accountIds } })
    expect(await problem(await ask(await as('operator'), ids))).toEqual([403, 'permission_required'])
    expect(await problem(await ask(await as('admin', { isConfirmed: false }), ids))).toEqual([403, 'step_up_required'])
    expect(await problem(await ask(await as('admin', { username: 'eva' }), [ids[0], 'acc_unknown']))).toEqual([
      404,
      'account_not_found',
    ])
    expect((await audit()).filter(({ event }) => event === 'account_exported')).toEqual([])
  })
})
