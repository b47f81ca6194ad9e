/** Exporting credentials needs a permission and a confirmation, and is always recorded. */
import { describe, expect, test } from 'bun:test'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { codexBody, getAnswer, testApp } from '../support/app.ts'
import { people, problem } from '../support/people.ts'

const open = async () => {
  const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
  const [member] = app.members
  if (!member) throw new Error('There is no account.')
  const { audit, ...rest } = people(app)
  const exported = async () => (await audit()).filter(({ event }) => event === 'account_exported')
  const route = `POST /api/accounts/${member.id}/export/auth`
  return { app, ...member, ...rest, exported, route }
}

describe('exporting an account', () => {
  test('requires the export permission, which an operator does not have', async () => {
    const { as, guest, route, exported } = await open()
    for (const visitor of [await as('operator'), await as('viewer'), await guest('192.0.2.9')])
      expect(await problem(await visitor.ask(route, { json: {} }))).toEqual([403, 'permission_required'])
    expect(await exported()).toEqual([])
  })

  test('needs a recent confirmation', async () => {
    const { as, route, exported } = await open()
    const admin = await as('admin', { isConfirmed: false })
    expect(await problem(await admin.ask(route, { json: {} }))).toEqual([403, 'step_up_required'])
    expect(await exported()).toEqual([])
  })

  test('rejects other sites and unknown accounts', async () => {
    const { as, route } = await open()
    const admin = await as('admin')
    const foreign = { json: {}, headers: { 'sec-fetch-site': 'cross-site' } }
    expect(await problem(await admin.ask(route, foreign))).toEqual([403, 'cross_site_request_rejected'])
    const unknown = admin.ask('POST /api/accounts/acc_unknown/export/auth', { json: {} })
    expect(await problem(await unknown)).toEqual([404, 'account_not_found'])
  })

  test('is recorded in the audit log without a token, and is not cacheable', async () => {
    const { as, route, exported, id, sim } = await open()
    const admin = await as('admin')
    const response = await admin.ask(route, { json: {} })
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(await exported()).toMatchObject([{ actor: admin.person.row.id, target: id, severity: 'warning' }])
    expect(JSON.stringify(await exported())).not.toContain(sim.refreshToken)
  })
})

test('an unknown format is rejected', async () => {
  const { as, route, exported } = await open()
  const refused = await (await as('admin')).ask(route, { json: { format: 'raw' } })
  expect(await problem(refused)).toEqual([422, 'validation_error'])
  expect(await exported()).toEqual([])
})

test('the complete export has both formats and the tokens themselves', async () => {
  const { as, route, id, sim } = await open()
  const document = await (await (await as('admin')).ask(route, { json: {} })).json()
  expect(document).toMatchObject({
    filename: 'auth-ada-example.test.json',
    account: { accountId: id, chatgptAccountId: sim.chatgptAccountId, email: 'ada@example.test' },
    tokens: { accessToken: sim.accessToken, refreshToken: sim.refreshToken, idToken: sim.idToken },
    opencodeAuthJson: { openai: { type: 'oauth', refresh: sim.refreshToken, access: sim.accessToken } },
  })
  const { tokens } = document as { tokens: { expiresAtMs: number } }
  expect(tokens.expiresAtMs).toBeGreaterThan(Date.UTC(2026, 0, 1))
})

test('the native format can be imported', async () => {
  const { as, route, sim } = await open()
  const authJson = await (await (await as('admin')).submit(route, { format: 'codex' })).text()
  expect(parseAuthJson(authJson, 'auth.json')).toMatchObject({
    identity: { email: 'ada@example.test', chatgptAccountId: sim.chatgptAccountId },
    tokens: { refreshToken: sim.refreshToken },
  })
  expect(JSON.parse(authJson)).toEqual({ ...JSON.parse(sim.authJson()), last_refresh: expect.any(String) })
})

test('a browser without scripts gets a file; with scripts it gets the text in a dialog', async () => {
  const { as, route, sim } = await open()
  const admin = await as('admin')
  const file = await admin.submit(route, { format: 'opencode' })
  expect(file.headers.get('content-disposition')).toBe('attachment; filename="opencode-auth-ada-example.test.json"')
  expect(await file.json()).toMatchObject({ openai: { refresh: sim.refreshToken } })
  const headers = { 'hx-request': 'true', accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' }
  const shown = await (await admin.ask(route, { body: 'format=codex', headers })).text()
  expect(shown).toContain('auth-ada-example.test.json')
  expect(shown).toContain(sim.refreshToken)
  expect(shown).not.toContain('<html')
})

test('unreadable tokens are not exported, affect only their own account, and are repaired by an import', async () => {
  const { app, as, id, sim, exported, route } = await open()
  const other = await app.addAccount({ email: 'bob@example.test' })
  await app.prefer(id)
  app.sqlite.run("UPDATE accounts SET access_token_sealed = replace(access_token_sealed, '.', '-') WHERE id = ?", [id])
  await app.restart()
  const admin = await as('admin')
  expect(await problem(await admin.ask(route, { json: {} }))).toEqual([409, 'account_state_transition_invalid'])
  expect(await exported()).toEqual([])
  expect((await admin.ask(`GET /accounts/${id}?tab=credentials`)).status).toBe(200)
  expect((await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody() })).status).toBe(200)
  const states = () => app.bindings.pool.all().map((account) => [account.id, account.state.status])
  expect(states()).toEqual([
    [id, 'reauth_required'],
    [other.id, 'active'],
  ])
  const form = new FormData()
  form.append('auth_json', new File([sim.authJson()], 'auth.json'))
  const upload = new Request('http://localhost', { method: 'POST', body: form })
  const headers = { 'content-type': upload.headers.get('content-type') ?? '' }
  const imported = await admin.ask('POST /api/accounts/import', { body: await upload.arrayBuffer(), headers })
  expect(imported.status).toBe(200)
  expect(states()[0]).toEqual([id, 'active'])
})
