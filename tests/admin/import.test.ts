/** `/api/import` and its page: who may import what, the confirmation, the firewall, and plans of other users. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlanView } from '../../views/accounts/import.tsx'
import { codexBody, testApp } from '../support/app.ts'
import { type CodexLbStore, createCodexLb, FERNET_KEY, FORMS, whileReading } from '../support/imports.ts'
import { people, problem, type TestUser } from '../support/people.ts'

const KEY = 'sk-clb-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'

type Files = Record<string, string | Uint8Array<ArrayBuffer>>

/** `store.db` and its key as they are uploaded. */
const store = (contents: CodexLbStore): Files => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-upload-'))
  try {
    return { 'store.db': new Uint8Array(readFileSync(createCodexLb(dir, contents))), 'encryption.key': FERNET_KEY }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const open = async (options: Parameters<typeof testApp>[0] = { accounts: 0 }) => {
  const app = await testApp(options)
  const crowd = people(app)
  const admin = await crowd.as('admin')
  const post = async (files: Files, who: TestUser = admin, headers: Record<string, string> = {}) => {
    const form = new FormData()
    for (const [name, data] of Object.entries(files)) form.append('files', new File([data], name))
    const request = new Request('http://localhost', { method: 'POST', body: form })
    const type = { 'content-type': request.headers.get('content-type') ?? '' }
    const body = await request.arrayBuffer()
    return whileReading(app, who.ask('POST /api/import/preflight', { body, headers: { ...type, ...headers } }))
  }
  return {
    ...crowd,
    app,
    admin,
    post,
    plan: async (files: Files, who?: TestUser) => (await (await post(files, who)).json()) as PlanView, // as: its value
    run: (id: string, json: object, who: TestUser = admin) =>
      whileReading(app, who.ask(`POST /api/import/${id}`, { json })),
    count: (table: string) => app.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n,
    page: async (path: string, who: TestUser = admin) =>
      (await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text(),
  }
}

const ids = ({ items }: PlanView, ...kinds: string[]) =>
  items.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id)

describe('the API', () => {
  test('plans without writing, imports what is chosen once, and the client of codex-lb goes on with its key', async () => {
    const { app, plan, run, count } = await open({ accounts: 0, settings: { apiKeyAuthEnabled: true } })
    const sim = app.upstream.addAccount({ email: 'ada@example.test' })
    const made = await plan(store({ accounts: [{ sim }], keys: [{ key: KEY, name: 'laptop' }] }))
    expect(made).toMatchObject({
      sources: [{ kind: 'codex-lb', name: 'store.db' }],
      items: [
        { kind: 'account', label: 'ada@example.test', verdict: 'new', isSelected: true },
        { kind: 'key', label: 'laptop', verdict: 'new', isSelected: true },
      ],
    })
    expect([count('accounts'), count('api_keys')]).toEqual([0, 0])
    const text = JSON.stringify(made)
    for (const secret of [sim.accessToken, sim.refreshToken, KEY, FERNET_KEY]) expect(text).not.toContain(secret)
    const done = (await (await run(made.id, { items: 'all' })).json()) as PlanView // as: its value
    expect(done.items.map(({ result }) => result?.outcome)).toEqual(['imported', 'imported'])
    expect(await (await run(made.id, { items: 'all' })).json()).toMatchObject({ items: done.items })
    expect([count('accounts'), count('api_keys')]).toEqual([1, 1])
    const headers = { authorization: `Bearer ${KEY}` }
    expect((await app.ask('POST /v1/responses', { json: codexBody(), headers })).status).toBe(200)
  })

  test('a part can be imported first and the rest later, with keys still assigned to their accounts', async () => {
    const { app, plan, run } = await open()
    const accounts = [{ sim: app.upstream.addAccount() }]
    const keys = [{ key: KEY, account_assignment_scope_enabled: 1, accounts: ['account-1'] }]
    const made = await plan(store({ accounts, keys }))
    await run(made.id, { items: ids(made, 'account'), paused: true })
    await run(made.id, { items: ids(made, 'key') })
    const [account] = app.bindings.pool.all()
    expect(account?.row.status).toBe('paused')
    const assigned = app.sqlite.query<{ a: string }, []>('SELECT assigned_account_ids AS a FROM api_keys').get()
    expect(JSON.parse(assigned?.a ?? '')).toEqual([account?.id])
  })

  test('a plan belongs to its user, and ends after 24 hours', async () => {
    const { app, as, plan, run } = await open()
    const made = await plan({ 'auth.json': JSON.stringify(FORMS.codex?.(app.upstream.addAccount())) })
    const other = await as('admin', { username: 'other' })
    expect((await run(made.id, { items: 'all' }, other)).status).toBe(404)
    await app.clock.advance('23h')
    expect((await run(made.id, { items: [] })).status).toBe(200)
    await app.clock.advance('1h')
    expect(await problem(await run(made.id, { items: 'all' }))).toEqual([404, 'import_not_found'])
  })

  test('an item that the plan does not have is refused', async () => {
    const { app, plan, run } = await open()
    const made = await plan({ 'auth.json': JSON.stringify(FORMS.codex?.(app.upstream.addAccount())) })
    expect((await run(made.id, { items: ['7'] })).status).toBe(422)
    expect((await run(made.id, { items: 'some' })).status).toBe(422)
  })
})

describe('rights', () => {
  const everything = { routing_strategy: 'round_robin', api_key_auth_enabled: 1 }

  test('a viewer cannot plan', async () => {
    const { as, post } = await open()
    expect((await post({ 'a.json': '{}' }, await as('viewer'))).status).toBe(403)
  })

  test('with accounts:write alone, only accounts can be planned and imported', async () => {
    const { app, addRole, as, plan, run, count } = await open()
    await addRole('keeper', { 'accounts:write': 'all', 'dashboard:read': 'all' })
    const keeper = await as('keeper')
    const sim = app.upstream.addAccount()
    const made = await plan(
      store({ accounts: [{ sim }], keys: [{ key: KEY }], settings: everything, firewall: ['10.0.0.0/8'] }),
      keeper,
    )
    expect(made.items.map(({ kind, verdict }) => [kind, verdict])).toEqual([
      ['account', 'new'],
      ['key', 'broken'],
      ['setting', 'broken'],
      ['firewall', 'broken'],
    ])
    expect((await run(made.id, { items: 'all' }, keeper)).status).toBe(200)
    expect([count('accounts'), count('api_keys')]).toEqual([1, 0])
  })

  test('settings, firewall and proxies need security:write and a confirmation, and nothing is imported without', async () => {
    const { app, as, plan, run, count } = await open()
    const contents = store({
      accounts: [{ sim: app.upstream.addAccount() }],
      settings: everything,
      firewall: ['127.0.0.0/8'],
    })
    const operator = await as('operator')
    const made = await plan(contents, operator)
    for (const kind of ['setting', 'firewall'])
      expect((await run(made.id, { items: [...ids(made, 'account'), ...ids(made, kind)] }, operator)).status).toBe(403)
    const unconfirmed = await as('admin', { username: 'late', isConfirmed: false })
    const theirs = await plan(contents, unconfirmed)
    const refused = await run(theirs.id, { items: theirs.items.map(({ id }) => id) }, unconfirmed)
    expect((await problem(refused))[1]).toBe('step_up_required')
    expect(count('accounts')).toBe(0)
    expect((await run(theirs.id, { items: 'all' }, unconfirmed)).status).toBe(200)
    expect(count('accounts')).toBe(1)
  })

  test('an administrator who confirmed imports settings and firewall, each with its audit row', async () => {
    const { app, audit, plan, run } = await open()
    const made = await plan(store({ settings: everything, firewall: ['127.0.0.0/8'] }))
    expect((await run(made.id, { items: ids(made, 'setting', 'firewall') })).status).toBe(200)
    expect(app.bindings.settings.current()).toMatchObject({ routingStrategy: 'round_robin', apiKeyAuthEnabled: true })
    const events = (await audit()).map(({ event }) => event)
    expect(events).toContain('settings_updated')
    expect(events).toContain('firewall_entry_added')
  })

  test('a firewall list without the own address is refused, and one with it is not', async () => {
    const { app, plan, run, count } = await open()
    const made = await plan(
      store({ accounts: [{ sim: app.upstream.addAccount() }], firewall: ['192.168.1.0/24', '127.0.0.0/8'] }),
    )
    const [lan, own] = ids(made, 'firewall')
    expect(await problem(await run(made.id, { items: [...ids(made, 'account'), lan] }))).toEqual([
      409,
      'would_lock_out',
    ])
    expect([count('accounts'), count('firewall_entries')]).toEqual([0, 0])
    expect((await run(made.id, { items: [lan, own] })).status).toBe(200)
    expect(count('firewall_entries')).toBe(2)
  })
})

describe('the page', () => {
  test('without scripts: files, plan, result', async () => {
    const { app, post, page, admin } = await open()
    const sim = app.upstream.addAccount({ email: 'ada@example.test' })
    expect(await page('/accounts/import')).toContain('Preview import')
    const answer = await post({ 'auth.json': JSON.stringify(FORMS.codex?.(sim)) }, admin, { accept: 'text/html' })
    expect(answer.status).toBe(303)
    const at = answer.headers.get('location') ?? ''
    expect(at).toStartWith('/accounts/import?plan=imp_')
    const plan = await page(at)
    expect(plan).toContain('Ready to import: 1 account.')
    expect(plan).toContain('Stop Codex CLI before you use these accounts here.')
    const id = at.replace(/.*plan=/, '')
    expect((await admin.submit(`POST /api/import/${id}`, { items: '0', page: 1 })).headers.get('location')).toBe(at)
    expect(await page(at)).toContain('1 imported, 0 joined')
  })

  test('of a long plan it shows pages of 200, and can import the rest in one go', async () => {
    const { app, plan, page, admin, count } = await open()
    const accounts = Array.from({ length: 230 }, () => ({ sim: app.upstream.addAccount() }))
    const { id } = await plan(store({ accounts, keys: [{ key: KEY }] }))
    const first = await page(`/accounts/import?plan=${id}`)
    expect(first.match(/name="items"/g)?.length).toBe(200)
    expect(first).toContain('Also import 30 accounts listed on other pages.')
    expect(first).toContain('Also import 1 API key listed on other pages.')
    expect(first).toContain('Page 1 of 2')
    const shown = [...first.matchAll(/name="items" value="(\d+)"/g)].map(([, item]) => item!)
    const without = new URLSearchParams([
      ...shown.slice(1).map((item) => ['items', item]),
      ['rest', 'account'],
      ['page', '1'],
    ])
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await whileReading(app, admin.ask(`POST /api/import/${id}`, { body: without.toString(), headers }))
    expect([count('accounts'), count('api_keys')]).toEqual([229, 0])
  })

  test('asks for the key of a model source that is in an environment variable', async () => {
    const { app, plan, page, admin } = await open()
    const yaml = `model_list:
  - { model_name: big, litellm_params: { model: openai/big, api_base: "http://source.test/v1", api_key: os.environ/BIG } }
  - { model_name: wide, litellm_params: { model: openai/wide, api_base: "http://source.test/w", api_key: os.environ/WIDE } }
`
    const { id, items } = await plan({ 'litellm.yaml': yaml })
    expect(items.map(({ keyVariable }) => keyVariable)).toEqual(['BIG', 'WIDE'])
    expect(await page(`/accounts/import?plan=${id}`)).toContain('name="keys.0"')
    await whileReading(app, admin.submit(`POST /api/import/${id}`, { items: '0', 'keys.0': 'sk-entered' }))
    await whileReading(app, admin.submit(`POST /api/import/${id}`, { items: '1', 'keys.1': '' }))
    const rows = app.sqlite
      .query('SELECT is_enabled, api_key_sealed FROM model_sources ORDER BY created_at, base_url')
      .all()
    expect(rows).toMatchObject([
      { is_enabled: 1, api_key_sealed: expect.stringMatching(/^v1\./) },
      { is_enabled: 0, api_key_sealed: null },
    ])
    expect(await page(`/accounts/import?plan=${id}`)).not.toContain('sk-entered')
  })

  test('a file that cannot be imported is named', async () => {
    const { post } = await open()
    const answer = await post({ 'shopping.json': '{"milk": 2}' })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('shopping.json is not in a format that Sluice can import')
  })
})
