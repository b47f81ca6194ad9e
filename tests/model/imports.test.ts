/** Importing from other programs: the formats, the plan, and what it stores. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppError } from '../../src/errors.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openFernet, readFernetKey } from '../../src/lib/fernet.ts'
import { allTags } from '../../src/model/accounts/account-tags.ts'
import { openTokens } from '../../src/model/accounts/account-tokens.ts'
import { listAccounts } from '../../src/model/accounts/accounts.ts'
import { type Applying, applyPlan, type Choice } from '../../src/model/imports/apply.ts'
import { sealBundle } from '../../src/model/imports/bundle.ts'
import { type ImportPlan, makePlan } from '../../src/model/imports/plan.ts'
import { FORMATS, type Format } from '../../src/model/imports/words.ts'
import { listKeys } from '../../src/model/keys/api-keys.ts'
import { type ImportFile, readImportFiles } from '../../src/ops/import-files.ts'
import { writeSettings } from '../../src/settings/store.ts'
import { codexBody, type TestApp, testApp } from '../support/app.ts'
import {
  type CodexLbStore,
  createCodexLb,
  FERNET_KEY,
  FORMS,
  jsonFile,
  OTHER_FERNET_KEY,
  sealFernet,
  textFile,
  whileReading,
} from '../support/imports.ts'
import { decodeJwt, unsignedJwt } from '../support/upstream/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-imports-'))
afterAll(() => rmSync(folder, { recursive: true }))
let made = 0
const newDir = () => join(folder, String(++made))

const KEY_OF_CLIENT = 'sk-clb-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'

interface Reading {
  passphrase?: string
  format?: Format
}

const read = (app: TestApp, files: readonly ImportFile[], { passphrase, format }: Reading = {}) =>
  readImportFiles(files, {
    dir: app.dir,
    clock: app.clock,
    db: app.db,
    passphrase: passphrase ?? null,
    format: format ?? null,
  })

const plan = async (app: TestApp, files: readonly ImportFile[], reading?: Reading): Promise<ImportPlan> => {
  const { sealer, settings } = app.bindings
  const found = await whileReading(app, read(app, files, reading))
  const planning = { sealer, clock: app.clock, settings: settings.current(), assignsProxies: true }
  return whileReading(app, makePlan(app.db, found, planning))
}

const ALL: Choice = { items: 'all', isPaused: false, replaces: false }

const applying = (app: TestApp): Applying => {
  const { sealer, random, importing } = app.bindings
  const now = app.clock.now()
  return {
    db: app.db,
    sealer,
    random,
    clock: app.clock,
    actor: () => ({ id: 'cli', method: 'cli', address: null, at: now }),
    scope: 'all',
    exchange: importing.exchange,
    maxExchanges: 50,
    storeSettings: async (tx, patch) => void (await writeSettings(tx, patch, { now })),
    getSourceAddress: async (baseUrl) => ({ baseUrl }),
  }
}

const apply = (app: TestApp, made: ImportPlan, choice: Partial<Choice> = {}) =>
  whileReading(app, applyPlan(made, { ...ALL, ...choice }, applying(app)))

const store = (contents: CodexLbStore): ImportFile[] => {
  const path = createCodexLb(newDir(), contents)
  return [{ name: 'store.db', path }, textFile('encryption.key', contents.encryptionKey ?? FERNET_KEY)]
}

const facts = ({ items }: ImportPlan) => items.map(({ kind, label, verdict }) => [kind, label, verdict])
const outcomes = ({ items }: ImportPlan) => items.map(({ label, result }) => [label, result?.outcome ?? null])

const refusal = async (work: Promise<unknown>): Promise<AppError> =>
  (await work.then(
    () => null,
    (err) => err,
  )) as AppError // as: tests look at its code and message

describe('the formats', () => {
  test.each(Object.keys(FORMS))('%s: an account is recognized and keeps its identity and tokens', async (form) => {
    const app = await testApp({ accounts: 0 })
    const sim = app.upstream.addAccount({ email: 'ada@example.test', plan: 'pro' })
    const made = await plan(app, [jsonFile('export.json', FORMS[form]?.(sim))])
    expect(made.sources.map(({ format }) => format)).toEqual([form as Format]) // as: one of the forms
    expect(facts(made)).toEqual([['account', 'ada@example.test', 'new']])
    expect(outcomes(await apply(app, made))).toEqual([['ada@example.test', 'imported']])
    const [row] = await listAccounts(app.db)
    expect(row).toMatchObject({
      email: 'ada@example.test',
      chatgptAccountId: sim.chatgptAccountId,
      chatgptUserId: sim.userId,
      planType: 'pro',
    })
    const tokens = openTokens(app.bindings.sealer, row!)
    expect([tokens.accessToken, tokens.refreshToken]).toEqual([sim.accessToken, sim.refreshToken])
  })

  test('every format has a fixture', () => {
    const elsewhere = ['codex-lb', 'sluice', 'litellm']
    expect(FORMATS.filter((format) => !elsewhere.includes(format)).toSorted()).toEqual(
      Object.keys(FORMS).toSorted() as Format[], // as: their names
    )
  })

  test('tags and names come along', async () => {
    const app = await testApp({ accounts: 0 })
    const [ada, eve] = [app.upstream.addAccount(), app.upstream.addAccount()]
    const files = [jsonFile('a.json', FORMS['codex-manager']?.(ada)), jsonFile('b.json', FORMS.icebear?.(eve))]
    await apply(app, await plan(app, files))
    const rows = await listAccounts(app.db)
    expect([...(await allTags(app.db)).values()]).toEqual([['home', 'spare']])
    expect(rows.map(({ alias }) => alias)).toEqual([null, 'spare'])
  })

  test('refresh tokens alone are exchanged one a second, each checked, and one that fails is left out', async () => {
    const app = await testApp({ accounts: 0 })
    const sims = [app.upstream.addAccount(), app.upstream.addAccount()]
    const old = sims.map(({ refreshToken }) => refreshToken)
    const made = await plan(app, [textFile('tokens.txt', [...old, 'rt_unknown', old[0]].join('\n'))])
    expect(made.items.map(({ verdict }) => verdict)).toEqual(['new', 'new', 'new', 'same'])
    const before = app.clock.now()
    const done = await apply(app, made)
    expect(done.items.map(({ result }) => result?.outcome)).toEqual(['imported', 'imported', 'left_out', 'joined'])
    expect(done.items[2]?.result?.reason).toContain('OpenAI rejected the token refresh')
    expect(app.clock.now() - before).toBeGreaterThanOrEqual(2000)
    expect((await listAccounts(app.db)).map(({ email }) => email)).toEqual(sims.map(({ email }) => email))
    expect(sims.map(({ refreshToken }) => refreshToken)).not.toEqual(old)
  })

  test('what was exchanged is stored also if the database is locked for a moment, and never exchanged again', async () => {
    const app = await testApp({ accounts: 0 })
    const sim = app.upstream.addAccount()
    const made = await plan(app, [textFile('tokens.txt', sim.refreshToken)])
    const trigger = (raised: string) =>
      app.sqlite.run(`CREATE TRIGGER full BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, '${raised}'); END`)
    trigger('full')
    const failed = await apply(app, made).catch((error: unknown) => error)
    expect(String((failed as Error).cause ?? failed)).toContain('full')
    app.sqlite.run('DROP TRIGGER full')
    const count = () => app.upstream.requests.filter(({ path }) => path === '/oauth/token').length
    expect(count()).toBe(1)
    expect(outcomes(await apply(app, made))).toEqual([[expect.any(String), 'imported']])
    expect(count()).toBe(1)
    expect(await listAccounts(app.db)).toHaveLength(1)
  })

  test('an import over HTTP exchanges only so many refresh tokens, and says what to do with the rest', async () => {
    const app = await testApp({ accounts: 0 })
    const sims = [app.upstream.addAccount(), app.upstream.addAccount()]
    const made = await plan(app, [textFile('tokens.txt', sims.map(({ refreshToken }) => refreshToken).join('\n'))])
    const done = await whileReading(app, applyPlan(made, ALL, { ...applying(app), maxExchanges: 1 }))
    expect(done.items.map(({ result }) => result?.outcome)).toEqual(['imported', 'left_out'])
    expect(done.items[1]?.result?.reason).toStartWith('One import exchanges 1 refresh tokens.')
    expect(outcomes(await apply(app, done))[1]?.[1]).toBe('imported')
  })

  test('the keys of CLIProxyAPI go on working, and token files of other providers are named', async () => {
    const app = await testApp({ accounts: 1, settings: { apiKeyAuthEnabled: true } })
    const yaml = 'port: 8317\nauth-dir: ~/.cli-proxy-api\napi-keys:\n  - my-secret-client-key-1\n  - short\n'
    const made = await plan(app, [
      textFile('config.yaml', yaml),
      jsonFile('claude.json', { type: 'claude', access_token: 'x' }),
    ])
    expect(facts(made)).toEqual([
      ['key', 'CLIProxyAPI key 1', 'new'],
      ['key', 'CLIProxyAPI key 2', 'broken'],
      ['account', 'claude.json', 'broken'],
    ])
    expect(made.items[2]?.reason).toContain('for claude')
    await apply(app, made)
    const answer = await app.ask('POST /v1/responses', {
      json: codexBody(),
      headers: { authorization: 'Bearer my-secret-client-key-1' },
    })
    expect(answer.status).toBe(200)
    expect((await listKeys(app.db, 'all'))[0]?.keyPrefix).toBe('my-secr')
  })

  test('servers of LiteLLM become model sources; keys in the environment are not read', async () => {
    const app = await testApp({ accounts: 0 })
    const yaml = `model_list:
  - model_name: local
    litellm_params: { model: hosted_vllm/qwen3, api_base: "http://10.0.0.5:8000/v1", api_key: sk-local }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/HOME }
  - model_name: claude
    litellm_params: { model: anthropic/claude-x, api_key: sk-ant }
`
    const made = await plan(app, [textFile('litellm.yaml', yaml)])
    expect(facts(made)).toEqual([
      ['source', '10.0.0.5:8000', 'new'],
      ['source', 'api.openai.com', 'new'],
      ['source', 'claude', 'broken'],
    ])
    expect(made.items[0]?.reason).toBe('1 model. Clients must request qwen3 instead of local.')
    expect(made.items[1]?.reason).toContain('Its key is in HOME, which Sluice does not read')
    await apply(app, made)
    const rows = app.sqlite
      .query('SELECT name, base_url, is_enabled, api_key_sealed FROM model_sources ORDER BY name')
      .all()
    expect(rows).toMatchObject([
      { name: '10.0.0.5:8000', base_url: 'http://10.0.0.5:8000/v1', is_enabled: 1 },
      { name: 'api.openai.com', base_url: 'https://api.openai.com/v1', is_enabled: 0, api_key_sealed: null },
    ])
  })

  test('proxies of sub2api are imported when they are chosen', async () => {
    const app = await testApp({ accounts: 0 })
    const file = jsonFile('sub2api.json', {
      accounts: [{ name: 'key only', platform: 'anthropic', type: 'apikey', credentials: {} }],
      proxies: [
        { name: 'home', protocol: 'socks5', host: '10.1.1.1', port: 1080, username: 'u', password: 'p' },
        { name: 'odd', protocol: 'ssh', host: '10.1.1.2', port: 22 },
      ],
    })
    const made = await plan(app, [file])
    expect(facts(made)).toEqual([
      ['proxy', 'home', 'new'],
      ['account', 'key only', 'broken'],
      ['proxy', 'odd', 'broken'],
    ])
    expect((await apply(app, made)).items[0]?.result).toMatchObject({ outcome: 'left_out' })
    expect(outcomes(await apply(app, made, { items: ['0'] }))[0]).toEqual(['home', 'imported'])
  })

  test('accounts of sub2api are assigned to their proxies if these are imported, and the plan says so', async () => {
    const app = await testApp({ accounts: 0 })
    const [home, direct, lost, known] = [1, 2, 3, 4].map(() => app.upstream.addAccount())
    const entry = (sim: typeof home) => (FORMS.sub2api!(sim!) as { accounts: object[] }).accounts[0]! // as: its form
    const proxy = (key: string, name: string, port: number) => ({
      proxy_key: key,
      name,
      protocol: 'http',
      host: '10.1.1.1',
      port,
      status: 'active',
    })
    const file = (...accounts: object[]) =>
      jsonFile('sub2api.json', {
        type: 'sub2api-data',
        accounts,
        proxies: [proxy('k1', 'home', 3128), proxy('k2', 'idle', 3129)],
      })
    const first = await plan(app, [file({ ...entry(known), proxy_key: 'k1' })])
    await apply(app, first)
    const files = [
      file(
        { ...entry(home), proxy_key: 'k1' },
        entry(direct),
        { ...entry(lost), proxy_key: 'gone' },
        { ...entry(known), proxy_key: 'k1' },
      ),
    ]
    const made = await plan(app, files)
    expect(made.items.map(({ kind, reason }) => [kind, reason])).toEqual([
      ['account', 'It uses the proxy home. Import that proxy as well, otherwise the account is imported paused.'],
      ['account', null],
      ['account', 'Its proxy cannot be imported, so it is imported paused.'],
      ['account', expect.not.stringContaining('proxy')],
      ['proxy', 'http://10.1.1.1:3128. Imported with a pool, to which its accounts are assigned.'],
      ['proxy', 'http://10.1.1.1:3129. Add it to a pool to use it.'],
    ])
    await apply(app, made, { items: made.items.map(({ id }) => id) })
    const bound = app.sqlite
      .query('SELECT a.email, p.name FROM accounts a JOIN egress_pools p ON p.id = a.egress_pool_id')
      .all()
    expect(bound).toEqual([{ email: home!.email, name: 'home' }])
    expect(app.sqlite.query('SELECT count(*) AS n FROM egress_pools').get()).toEqual({ n: 1 })
  })

  test('an account of sub2api can be imported after its proxy', async () => {
    const app = await testApp({ accounts: 0 })
    const sim = app.upstream.addAccount()
    const { accounts } = FORMS.sub2api!(sim) as { accounts: object[] } // as: its form
    const proxies = [{ proxy_key: 'a|b', name: 'exit', protocol: 'socks5', host: 'exit.test', port: 1080 }]
    const made = await plan(app, [jsonFile('s.json', { accounts: [{ ...accounts[0], proxy_key: 'a|b' }], proxies })])
    const [account, proxy] = made.items
    const half = await apply(app, made, { items: [proxy!.id] })
    await apply(app, half, { items: [account!.id] })
    expect(
      app.sqlite.query('SELECT p.name FROM accounts a JOIN egress_pools p ON p.id = a.egress_pool_id').all(),
    ).toEqual([{ name: 'exit' }])
  })

  describe('an account of sub2api does not connect without the proxy it had', () => {
    const PROXY = { proxy_key: 'k', name: 'exit', protocol: 'socks5', host: 'exit.test', port: 1080, username: 'u' }
    const fileFor = (app: TestApp, proxies: object[]) => {
      const { accounts } = FORMS.sub2api!(app.upstream.addAccount()) as { accounts: object[] } // as: its form
      return jsonFile('s.json', { type: 'sub2api-data', accounts: [{ ...accounts[0], proxy_key: 'k' }], proxies })
    }
    const addEndpoint = (app: TestApp, over: object) => {
      const { host = 'exit.test', port = 1080, name = 'exit' } = over as { host?: string; port?: number; name?: string }
      app.sqlite.run(
        "INSERT INTO egress_endpoints (id, name, scheme, host, port, username, is_active, created_at) VALUES ('egr_1', ?, 'socks5', ?, ?, 'u', 1, 1)",
        [name, host, port],
      )
    }
    const addPool = (app: TestApp, name: string, members: string[]) => {
      app.sqlite.run('INSERT INTO egress_pools (id, name, is_active, created_at) VALUES (?, ?, 1, 1)', [name, name])
      for (const id of members)
        app.sqlite.run('INSERT INTO egress_members (pool_id, endpoint_id, sort_order, is_active) VALUES (?, ?, 0, 1)', [
          name,
          id,
        ])
    }
    const account = (app: TestApp) =>
      app.sqlite
        .query(
          'SELECT a.status, p.name AS pool, a.evidence FROM accounts a LEFT JOIN egress_pools p ON p.id = a.egress_pool_id',
        )
        .get()
    const chooseAll = (made: ImportPlan) => ({ items: made.items.map(({ id }) => id) })
    const WHY = 'Paused because its outbound proxy was not imported.'

    test.each([
      ['the name of its proxy is taken', [PROXY], { host: 'other.test' }],
      ['its proxy is not in the file', [], null],
      ['its proxy cannot be used', [{ ...PROXY, protocol: 'ssh' }], null],
    ])('paused if %s', async (_, proxies, taken) => {
      const app = await testApp({ accounts: 0 })
      if (taken) addEndpoint(app, taken)
      const made = await plan(app, [fileFor(app, proxies)])
      const done = await apply(app, made, chooseAll(made))
      expect(account(app)).toEqual({ status: 'paused', pool: null, evidence: WHY })
      expect(done.items[0]?.result).toMatchObject({ outcome: 'imported', reason: WHY })
    })

    test.each([
      ['disabled', 0],
      ['expired', 0],
      ['active', 1],
      [undefined, 1],
    ])('a proxy with the status %p is imported with is_active = %d', async (status, isActive) => {
      const app = await testApp({ accounts: 0 })
      const made = await plan(app, [fileFor(app, [{ ...PROXY, status }])])
      expect(made.items[1]?.reason?.includes('It was inactive and stays inactive.')).toBe(isActive === 0)
      await apply(app, made, chooseAll(made))
      expect(app.sqlite.query('SELECT is_active FROM egress_endpoints').get()).toEqual({ is_active: isActive })
      expect(account(app)).toMatchObject({ pool: 'exit' })
    })

    test('paused if its proxy is not chosen', async () => {
      const app = await testApp({ accounts: 0 })
      await apply(app, await plan(app, [fileFor(app, [PROXY])]))
      expect(account(app)).toEqual({ status: 'paused', pool: null, evidence: WHY })
    })

    test.each([
      ['the pool that has this proxy alone', [['mine', ['egr_1']]], 'mine'],
      ['a new pool, if there is none', [], 'here'],
      ['a new pool with a free name', [['here', []]], 'here 2'],
    ] as const)('assigned to a proxy that is already here: %s', async (_, pools, expected) => {
      const app = await testApp({ accounts: 0 })
      addEndpoint(app, { name: 'here' })
      for (const [name, members] of pools) addPool(app, name, [...members])
      const made = await plan(app, [fileFor(app, [PROXY])])
      expect(made.items.map(({ reason }) => reason)).toEqual([
        'It is assigned to the proxy here, which is already here.',
        'This proxy is already here as here. Its accounts are assigned to it.',
      ])
      await apply(app, made)
      expect(account(app)).toEqual({ status: 'active', pool: expected, evidence: null })
    })

    test('paused if the actor may not assign it to the proxy that is here', async () => {
      const app = await testApp({ accounts: 0 })
      addEndpoint(app, {})
      const { bindings, db, clock } = app
      const found = await read(app, [fileFor(app, [PROXY])])
      const planning = { sealer: bindings.sealer, clock, settings: bindings.settings.current(), assignsProxies: false }
      const made = await makePlan(db, found, planning)
      expect(made.items.map(({ reason }) => reason)).toEqual([
        'You may not assign it to its proxy, which is already here as exit, so it is imported paused.',
        'This proxy is already here as exit.',
      ])
      await apply(app, made)
      expect(account(app)).toEqual({ status: 'paused', pool: null, evidence: WHY })
    })

    test('paused if the proxy that was here is deleted after the plan', async () => {
      const app = await testApp({ accounts: 0 })
      addEndpoint(app, {})
      const made = await plan(app, [fileFor(app, [PROXY])])
      app.sqlite.run('DELETE FROM egress_endpoints')
      await apply(app, made)
      expect(account(app)).toEqual({ status: 'paused', pool: null, evidence: WHY })
    })
  })

  test.each([
    ['JSON', 'notes.json', '{"shopping": ["milk"], "count": 2}', 'Its fields: shopping, count'],
    [
      'a Gemini credential',
      'oauth.json',
      '{"access_token":"secret","refresh_token":"secret","expiry_date":1}',
      'Gemini CLI',
    ],
    ['text', 'readme.txt', 'hello secret', 'neither JSON nor YAML'],
    ['YAML', 'compose.yaml', 'services: {}', 'neither api-keys nor a model_list'],
    ['an empty file', 'empty.json', '', 'No file can be imported'],
    ['a newer bundle', 'b.json', '{"format": "sluice-accounts", "version": 9}', 'this one does not know'],
  ])('an unknown form is named, and not guessed: %s', async (_, name, content, said) => {
    const app = await testApp({ accounts: 0 })
    const { code, message } = await refusal(read(app, [textFile(name, content)]))
    expect(code).toBe('invalid_import')
    expect(message).toContain(said)
    expect(message).not.toContain('secret')
  })

  test('another format than the expected one is refused', async () => {
    const app = await testApp({ accounts: 0 })
    const file = jsonFile('auth.json', FORMS.opencode?.(app.upstream.addAccount()))
    const { message } = await refusal(read(app, [file], { format: 'sub2api' }))
    expect(message).toBe('auth.json is from OpenCode, not from sub2api.')
  })
})

test('Fernet: the example of its specification', () => {
  const key = readFernetKey('cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=')
  const token = 'gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA=='
  expect(openFernet(key!, token)).toBe('hello')
  expect(openFernet(key!, token.replace('y02', 'y12'))).toBeNull()
  expect(openFernet(readFernetKey(OTHER_FERNET_KEY)!, sealFernet('x'))).toBeNull()
})

describe('codex-lb', () => {
  const limits = [
    {
      limit_type: 'total_tokens',
      limit_window: '7d',
      max_value: 1000,
      current_value: 400,
      reset_at: '2026-01-05 00:00:00',
    },
    {
      limit_type: 'COST_USD',
      limit_window: 'FIVE_HOURS',
      max_value: 5_000_000,
      model_filter: 'gpt-5.5',
      reset_at: '2026-01-01 03:00:00',
    },
  ]

  test('a client goes on with its key, and key, limits and accounts are as they were', async () => {
    const app = await testApp({ accounts: 0, settings: { apiKeyAuthEnabled: true } })
    const [ada, eve, off] = [app.upstream.addAccount(), app.upstream.addAccount(), app.upstream.addAccount()]
    const files = store({
      accounts: [
        { sim: ada!, alias: 'work', routing_policy: 'burn_first', security_work_authorized: 1 },
        { sim: eve!, status: 'PAUSED' },
        { sim: off!, delete_requested_at: '2026-01-01 00:00:00' },
      ],
      keys: [
        {
          key: KEY_OF_CLIENT,
          name: 'laptop',
          allowed_models: '["gpt-5.5"]',
          enforced_reasoning_effort: 'high',
          expires_at: '2027-01-01 00:00:00.123456',
          limits,
          account_assignment_scope_enabled: 1,
          accounts: ['account-1', 'account-3'],
        },
        { key: 'sk-clb-second', name: 'off', is_active: 0 },
      ],
    })
    const made = await plan(app, files)
    expect(facts(made)).toEqual([
      ['account', ada!.email, 'new'],
      ['account', eve!.email, 'new'],
      ['key', 'laptop', 'new'],
      ['key', 'off', 'new'],
    ])
    expect(made.sources[0]?.notes[0]).toStartWith('Stop codex-lb before you use these accounts here.')
    expect(await listAccounts(app.db)).toEqual([])
    const done = await apply(app, made)
    expect(done.items[2]?.result).toEqual({
      outcome: 'imported',
      reason: '1 of its 2 accounts are not imported, so it cannot use them.',
      accountId: null,
    })
    const rows = await listAccounts(app.db)
    expect(rows).toMatchObject([
      { alias: 'work', routingPolicy: 'burn_first', securityWorkAuthorized: true, status: 'active' },
      { status: 'paused' },
    ])
    const [laptop, second] = await listKeys(app.db, 'all')
    expect(laptop).toMatchObject({
      name: 'laptop',
      keyPrefix: KEY_OF_CLIENT.slice(0, 15),
      allowedModels: ['gpt-5.5'],
      enforcedReasoningEffort: 'high',
      expiresAt: Date.parse('2027-01-01T00:00:00Z'),
      assignedAccountIds: [rows[0]!.id],
      isActive: true,
    })
    expect(
      laptop?.limits.map(({ limitType, limitWindow, currentValue, resetAt }) => [
        limitType,
        limitWindow,
        currentValue,
        resetAt,
      ]),
    ).toEqual([
      ['cost_usd', '5h', 0, Date.parse('2026-01-01T03:00:00Z')],
      ['total_tokens', '7d', 400, Date.parse('2026-01-05T00:00:00Z')],
    ])
    expect(second).toMatchObject({ isActive: false })
    const ask = (key: string) =>
      app.ask('POST /v1/responses', { json: codexBody(), headers: { authorization: `Bearer ${key}` } })
    expect((await ask(KEY_OF_CLIENT)).status).toBe(200)
    expect((await ask('sk-clb-second')).status).toBe(401)
  })

  test('a second import changes nothing', async () => {
    const app = await testApp({ accounts: 0 })
    const files = store({ accounts: [{ sim: app.upstream.addAccount() }], keys: [{ key: KEY_OF_CLIENT }] })
    await apply(app, await plan(app, files))
    const again = await plan(app, files)
    expect(again.items.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['same', 'These tokens are already stored.'],
      ['same', 'This key is already here as key-1.'],
    ])
    expect(outcomes(await apply(app, again)).map(([, outcome]) => outcome)).toEqual(['joined', 'left_out'])
    expect((await listAccounts(app.db)).length).toBe(1)
  })

  test('a plan that was overtaken by another import joins what is here now', async () => {
    const app = await testApp({ accounts: 0 })
    const files = store({
      accounts: [{ sim: app.upstream.addAccount() }],
      keys: [{ key: KEY_OF_CLIENT }],
      firewall: ['127.0.0.0/8'],
    })
    const [first, second] = [await plan(app, files), await plan(app, files)]
    const items = first.items.map(({ id }) => id)
    await apply(app, first, { items })
    const done = await apply(app, second, { items })
    expect(done.items.map(({ result }) => [result?.outcome, result?.reason])).toEqual([
      ['joined', expect.stringContaining('keeps its tokens')],
      ['left_out', 'This key is already here.'],
      ['imported', null],
    ])
    expect(app.sqlite.query('SELECT count(*) AS n FROM api_keys').get()).toEqual({ n: 1 })
  })

  test('settings and the firewall list are not part of all', async () => {
    const app = await testApp({ accounts: 0, settings: { proxyAccountStreamLimit: 3 } })
    const files = store({
      accounts: [{ sim: app.upstream.addAccount() }],
      settings: {
        routing_strategy: 'single_account',
        prefer_earlier_reset_accounts: 1,
        single_account_id: 'account-1',
        proxy_account_stream_limit: 12,
        api_key_auth_enabled: 1,
      },
      firewall: ['10.0.0.0/8', 'nonsense'],
    })
    const made = await plan(app, files)
    expect(made.items.slice(1).map(({ label, verdict, reason }) => [label, verdict, reason])).toEqual([
      ['Strategy: single_account', 'new', 'Default: capacity_weighted.'],
      ['Prefer accounts that reset sooner: on', 'same', 'It has this value already.'],
      ['Single account: account-1', 'new', 'Default: none.'],
      ['Parallel streams per account: 12', 'newer', 'Replaces: 3.'],
      ['Require an API key: on', 'new', 'Default: off.'],
      ['10.0.0.0/8', 'new', null],
      ['nonsense', 'broken', 'This is not an IP address or range.'],
    ])
    const first = await apply(app, made)
    expect(first.items.slice(1).every(({ result }) => result?.outcome === 'left_out')).toBe(true)
    expect(app.bindings.settings.current().routingStrategy).toBe('capacity_weighted')
    const chosen = made.items.filter(({ verdict }) => verdict !== 'same' && verdict !== 'broken').map(({ id }) => id)
    await apply(app, first, { items: chosen })
    const [row] = await listAccounts(app.db)
    expect(app.bindings.settings.current()).toMatchObject({
      routingStrategy: 'single_account',
      singleAccountId: row!.id,
      proxyAccountStreamLimit: 12,
      apiKeyAuthEnabled: true,
    })
    expect(app.bindings.firewall.allows('10.1.2.3')).toBe(true)
    expect(app.bindings.firewall.allows('11.1.2.3')).toBe(false)
  })

  test('a limit that Sluice does not know leaves the key out, and one on credits is dropped', async () => {
    const app = await testApp({ accounts: 0 })
    const limit = (type: string) => [
      { limit_type: type, limit_window: 'daily', max_value: 1, reset_at: '2026-01-02 00:00:00' },
    ]
    const files = store({
      keys: [
        { key: 'sk-clb-1', limits: limit('images') },
        { key: 'sk-clb-2', limits: limit('credits') },
        { key: 'sk-clb-3', enforced_service_tier: 'warp' },
      ],
    })
    expect((await plan(app, files)).items.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['broken', 'It has a limit that Sluice does not know (images, daily).'],
      ['new', 'Its credit limit is left out, because codex-lb never enforced it.'],
      ['broken', 'Sluice has no equivalent of its enforcedServiceTier, so the key would have different rights.'],
    ])
  })

  test.each([
    ['an older schema', ['ALTER TABLE api_keys DROP COLUMN is_active'], 'api_keys.is_active is missing'],
    ['an older schema without limits', ['DROP TABLE api_key_limits'], 'api_key_limits.api_key_id is missing'],
    [
      'a newer schema',
      ['ALTER TABLE accounts RENAME COLUMN access_token_encrypted TO secrets'],
      'accounts.access_token_encrypted is missing',
    ],
    ['another program', ['DROP TABLE alembic_version'], 'an SQLite database, but not from codex-lb'],
    ['Sluice', ['CREATE TABLE facts (x)', 'CREATE TABLE request_hours (x)'], 'is a Sluice database'],
  ])('refuses %s, and says what is missing', async (_, changes, said) => {
    const app = await testApp({ accounts: 0 })
    const { code, message } = await refusal(read(app, store({ changes, revision: '20990101_000000_x' })))
    expect(code).toBe('invalid_import')
    expect(message).toContain(said)
  })

  test('a schema with more columns than Sluice knows is read', async () => {
    const app = await testApp({ accounts: 0 })
    const changes = ['ALTER TABLE accounts ADD COLUMN mood TEXT', 'ALTER TABLE api_keys ADD COLUMN mood TEXT']
    const made = await plan(app, store({ accounts: [{ sim: app.upstream.addAccount() }], changes }))
    expect(made.items.map(({ verdict }) => verdict)).toEqual(['new'])
  })

  test('refuses a store.db that is written to: beside it is a write-ahead log, a journal or its shared memory', async () => {
    const app = await testApp({ accounts: 0 })
    for (const suffix of ['-wal', '-shm', '-journal']) {
      const files = store({ accounts: [{ sim: app.upstream.addAccount() }] })
      const path = 'path' in files[0]! ? files[0].path : ''
      writeFileSync(path + suffix, '')
      expect((await refusal(read(app, files))).message).toStartWith('store.db is in use')
    }
    const bytes = readFileSync((store({})[0] as { path: string }).path) // as: given by its path
    const uploaded = [{ name: 'store.db', bytes }, textFile('encryption.key', FERNET_KEY)]
    expect((await refusal(read(app, [...uploaded, textFile('store.db-wal', 'x')]))).message).toStartWith(
      'store.db is in use',
    )
    expect((await read(app, uploaded)).length).toBe(1)
  })

  test('refuses a copy that was cut off', async () => {
    const app = await testApp({ accounts: 0 })
    const files = store({ accounts: Array.from({ length: 30 }, () => ({ sim: app.upstream.addAccount() })) })
    const bytes = readFileSync((files[0] as { path: string }).path) // as: given by its path
    const cut = [{ name: 'store.db', bytes: bytes.subarray(0, bytes.length / 4) }, files[1]!]
    expect((await refusal(read(app, cut))).message).toContain('copied while codex-lb wrote to it')
  })

  test('refuses a missing key and a wrong key, and leaves out the accounts of another key', async () => {
    const app = await testApp({ accounts: 0 })
    const [ada, eve] = [app.upstream.addAccount(), app.upstream.addAccount()]
    const [database, key] = store({
      accounts: [{ sim: ada! }, { sim: eve!, access_token_encrypted: sealFernet('x', OTHER_FERNET_KEY) }],
    })
    expect((await refusal(read(app, [database!]))).message).toContain('Add the file encryption.key')
    const wrong = textFile('encryption.key', OTHER_FERNET_KEY)
    expect((await refusal(whileReading(app, read(app, [database!, wrong])))).message).toContain(
      'belongs to another codex-lb',
    )
    const made = await plan(app, [database!, key!])
    expect(facts(made)).toEqual([
      ['account', ada!.email, 'new'],
      ['account', eve!.email, 'broken'],
    ])
  })
})

describe('accounts', () => {
  test('the same seat under three formats is one account, with the newest tokens and every wish', async () => {
    const app = await testApp({ accounts: 0 })
    const sim = app.upstream.addAccount({ email: 'ada@example.test' })
    const cpa = FORMS.cliproxyapi?.(sim)
    const cockpit = FORMS.cockpit?.(sim)
    await app.clock.advance('1h')
    sim.signInAgain()
    const files = [
      jsonFile('cpa.json', cpa),
      ...store({
        accounts: [{ sim, alias: 'work', last_refresh: '2026-01-01 01:00:00' }],
        keys: [{ key: KEY_OF_CLIENT, account_assignment_scope_enabled: 1, accounts: ['account-1'] }],
      }),
      jsonFile('cockpit.json', cockpit),
    ]
    const made = await plan(app, files)
    expect(made.items.map(({ source, verdict }) => [made.sources[source]?.format, verdict])).toEqual([
      ['cliproxyapi', 'same'],
      ['codex-lb', 'new'],
      ['cockpit', 'same'],
      ['codex-lb', 'new'],
    ])
    const done = await apply(app, made)
    expect(done.items.map(({ result }) => result?.outcome)).toEqual(['joined', 'imported', 'joined', 'imported'])
    const rows = await listAccounts(app.db)
    expect(rows.length).toBe(1)
    expect(rows[0]?.alias).toBe('work')
    expect([...(await allTags(app.db)).values()]).toEqual([['home']])
    expect(openTokens(app.bindings.sealer, rows[0]!).refreshToken).toBe(sim.refreshToken)
    expect((await listKeys(app.db, 'all'))[0]?.assignedAccountIds).toEqual([rows[0]!.id])
  })

  test('a file that does not name the user joins the stored account', async () => {
    const app = await testApp({ accounts: 1 })
    const [ada] = app.members
    await app.clock.advance('1h')
    ada!.sim.signInAgain()
    const claims = decodeJwt(ada!.sim.accessToken)
    const anonymous = {
      type: 'codex',
      access_token: unsignedJwt({ iat: claims.iat }),
      refresh_token: 'rt_new',
      email: ada!.sim.email,
      account_id: ada!.sim.chatgptAccountId,
    }
    const made = await plan(app, [jsonFile('cpa.json', anonymous)])
    expect(made.items[0]).toMatchObject({ verdict: 'newer', reason: `Replaces the tokens of ${ada!.sim.email}.` })
    const done = await apply(app, made)
    expect(done.items[0]?.result).toEqual({
      outcome: 'joined',
      reason: `${ada!.sim.email} has new tokens.`,
      accountId: ada!.id,
    })
    expect((await listAccounts(app.db)).length).toBe(1)
  })

  test('older tokens are kept unless they are to be replaced', async () => {
    const app = await testApp({ accounts: 1 })
    const [ada] = app.members
    const old = JSON.parse(ada!.sim.authJson())
    const file = jsonFile('auth.json', {
      ...old,
      last_refresh: '2025-12-01T00:00:00Z',
      tokens: { ...old.tokens, refresh_token: 'rt_old' },
    })
    const stored = async () => openTokens(app.bindings.sealer, (await listAccounts(app.db))[0]!).refreshToken
    const made = await plan(app, [file])
    expect(made.items[0]).toMatchObject({
      verdict: 'older',
      reason: 'The stored tokens are newer, so these no longer work.',
    })
    expect((await apply(app, made)).items[0]?.result?.outcome).toBe('left_out')
    expect((await apply(app, made, { items: ['0'] })).items[0]?.result?.reason).toContain('keeps its tokens')
    expect(await stored()).toBe(ada!.sim.refreshToken)
    await apply(app, made, { items: ['0'], replaces: true })
    expect(await stored()).toBe('rt_old')
  })

  test('with pause, accounts with imported tokens are paused, and others are not', async () => {
    const app = await testApp({ accounts: 2 })
    const [ada, eve] = app.members
    await app.clock.advance('1h')
    ada!.sim.signInAgain()
    const fresh = app.upstream.addAccount()
    const files = [ada!.sim, eve!.sim, fresh].map((sim, index) => jsonFile(`${index}.json`, FORMS.codex?.(sim)))
    await apply(app, await plan(app, files), { isPaused: true })
    expect((await listAccounts(app.db)).map(({ status }) => status)).toEqual(['paused', 'active', 'paused'])
  })

  test('an item is imported once, and the tokens are dropped then', async () => {
    const app = await testApp({ accounts: 0 })
    const made = await plan(app, [jsonFile('auth.json', FORMS.codex?.(app.upstream.addAccount()))])
    const done = await apply(app, made, { items: ['0'] })
    expect(done.items[0]?.content).toBeNull()
    expect(await apply(app, done, { items: ['0'] })).toEqual(done)
    const audited = app.sqlite.query("SELECT count(*) AS n FROM audit_logs WHERE event = 'account_imported'").get()
    expect(audited).toEqual({ n: 1 })
  })

  test('5,000 accounts are planned and imported without a duplicate', async () => {
    const app = await testApp({ accounts: 0 })
    const accounts = Array.from({ length: 5000 }, () => ({ sim: app.upstream.addAccount() }))
    const clock = systemClock // the manual one would have to be advanced a thousand times
    const found = await readImportFiles(store({ accounts }), {
      dir: app.dir,
      clock,
      db: app.db,
      passphrase: null,
      format: null,
    })
    const { sealer, settings } = app.bindings
    const made = await makePlan(app.db, found, { sealer, clock, settings: settings.current(), assignsProxies: true })
    expect(made.items.filter(({ verdict }) => verdict === 'new').length).toBe(5000)
    await applyPlan(made, ALL, { ...applying(app), clock })
    expect(app.sqlite.query('SELECT count(DISTINCT chatgpt_user_id) AS n FROM accounts').get()).toEqual({ n: 5000 })
  }, 300_000)
})

describe('an encrypted export of Sluice', () => {
  const account = (sim: { accessToken: string; refreshToken: string; idToken: string; email: string }) => ({
    identity: {
      email: sim.email,
      chatgptAccountId: 'acc',
      chatgptUserId: 'user',
      planType: 'pro',
      workspaceId: null,
      workspaceLabel: null,
      seatType: null,
    },
    tokens: { accessToken: sim.accessToken, refreshToken: sim.refreshToken, idToken: sim.idToken },
    lastRefreshAt: 1_767_225_600_000,
    alias: 'work',
    routingPolicy: 'preserve' as const,
    securityWorkAuthorized: false,
    tags: ['home'],
    isPaused: true,
  })

  test('is imported with its passphrase, and refused with a wrong one, without one, and with a changed byte', async () => {
    const app = await testApp({ accounts: 0 })
    const sim = app.upstream.addAccount()
    const text = await sealBundle([account(sim)], 'correct horse battery', app.bindings.random)
    expect(text).not.toContain(sim.email)
    const file = textFile('accounts.sluice.json', text)
    for (const [passphrase, said] of [
      ['wrong horse battery', 'The passphrase is wrong'],
      [undefined, 'Enter the passphrase'],
    ] as const)
      expect((await refusal(read(app, [file], { passphrase }))).message).toContain(said)
    const changed = text.replace(/("data": "..)(.)/, (_, head, char) => head + (char === 'A' ? 'B' : 'A'))
    expect(
      (await refusal(read(app, [textFile('a.json', changed)], { passphrase: 'correct horse battery' }))).message,
    ).toContain('damaged')
    const weaker = text.replace('131072', '1024')
    expect(
      (await refusal(read(app, [textFile('a.json', weaker)], { passphrase: 'correct horse battery' }))).message,
    ).toContain('does not know')
    const made = await plan(app, [file], { passphrase: 'correct horse battery' })
    await apply(app, made)
    expect(await listAccounts(app.db)).toMatchObject([{ alias: 'work', routingPolicy: 'preserve', status: 'paused' }])
    expect([...(await allTags(app.db)).values()]).toEqual([['home']])
  })
})

test('an import that failed half way can be repeated', async () => {
  const app = await testApp({ accounts: 0 })
  const made = await plan(
    app,
    store({ accounts: [{ sim: app.upstream.addAccount() }], keys: [{ key: KEY_OF_CLIENT }] }),
  )
  app.sqlite.run("CREATE TRIGGER t BEFORE INSERT ON api_keys BEGIN SELECT RAISE(ABORT, 'no'); END")
  expect(await refusal(apply(app, made))).not.toBeNull()
  app.sqlite.run('DROP TRIGGER t')
  const done = await apply(app, made)
  expect(done.items.map(({ result }) => result?.outcome)).toEqual(['joined', 'imported'])
})
