/** The settings pages by role: visible and editable settings, saved by section, as JSON and as forms. */
import { describe, expect, test } from 'bun:test'
import { dependencies } from '../../package.json'
import { DEFAULTS, SETTING_NAMES } from '../../src/settings/schema.ts'
import { type TestOptions, testApp } from '../support/app.ts'
import { type Browser, type Fields, people, problem } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const SECRET = 'a-secret-of-the-environment'

/** No request is sent upstream here, so all settings have their defaults. */
const open = async ({ settings, ...options }: TestOptions = {}) => {
  const app = await testApp({ ...options, settings: { upstreamStreamTransport: 'auto', ...settings } })
  return { app, ...people(app) }
}

const page = async (who: Browser, path: string) => {
  const response = await who.ask(`GET ${path}`, { headers: HTML })
  return { status: response.status, text: await response.text(), location: response.headers.get('location') }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at the members they name
const value = async (who: Browser, path: string): Promise<any> => (await who.ask(`GET ${path}`)).json()

/** A form of a settings page, as a browser with script sends it. */
const save = (who: Browser, section: string, fields: Fields, path = '/settings/routing') =>
  who.ask(`PATCH /api/settings?section=${section}`, {
    body: new URLSearchParams(Object.entries(fields).map(([name, text]) => [name, String(text)])).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'text/html',
      'sec-fetch-site': 'same-origin',
      referer: `http://localhost:2455${path}`,
    },
  })

const TABS = [
  '/settings',
  '/settings/routing',
  '/settings/sources',
  '/settings/network',
  '/settings/data',
  '/settings/about',
]

describe.each(TABS)('%s', (path) => {
  test.each(['admin', 'operator', 'viewer'])('opens for a user with the role %s', async (role) => {
    const { as } = await open()
    expect((await page(await as(role), path)).status).toBe(200)
  })
})

test('tabs lead only to pages the visitor can open', async () => {
  const { as } = await open()
  const tabs = async (role: string) =>
    (await value(await as(role), '/settings/routing')).frame.tabs.map(({ path }: { path: string }) => path)
  expect(await tabs('admin')).toEqual([
    '/settings',
    '/settings/access',
    '/settings/routing',
    '/settings/sources',
    '/settings/automations',
    '/settings/network',
    '/settings/alerts',
    '/settings/data',
    '/audit',
    '/settings/about',
  ])
  expect(await tabs('viewer')).toEqual([
    '/settings',
    '/settings/routing',
    '/settings/sources',
    '/settings/automations',
    '/settings/network',
    '/settings/data',
    '/settings/about',
  ])
})

test('users who see only their own keys reach their own page, and no settings', async () => {
  const { as } = await open()
  const member = await as('member')
  const { status, text } = await page(member, '/settings')
  expect(status).toBe(200)
  expect(text).toContain('id="access"')
  expect(text).not.toContain('id="clients"')
  expect((await page(member, '/settings/routing')).status).toBe(403)
})

test('every setting is on exactly one tab', async () => {
  const { as } = await open()
  const admin = await as('admin')
  const pages = await Promise.all([...TABS, '/settings/alerts'].map((path) => page(admin, path)))
  const names = pages.flatMap(({ text }) => [...text.matchAll(/id="setting-(\w+)"/g)].map(([, name]) => name))
  expect(names.toSorted()).toEqual(SETTING_NAMES.toSorted())
})

test('a viewer sees values without inputs; an operator sees no inputs for security settings', async () => {
  const { app, as } = await open()
  await app.change({ capacityWaitSeconds: 9 })
  const viewed = await page(await as('viewer'), '/settings/routing')
  expect(viewed.text).toContain('<strong>9 seconds</strong>')
  expect(viewed.text).not.toContain('name="capacityWaitSeconds"')
  expect(viewed.text).not.toContain('form-limits"')
  const operated = await page(await as('operator'), '/settings/data')
  expect(operated.text).toContain('name="requestLogRetentionDays"')
  expect(operated.text).not.toContain('name="auditRetentionDays"')
})

describe('a number where 0 means unlimited', () => {
  test.each([
    ['/settings/routing', 'proxyAccountStreamLimit', 'unlimited'],
    ['/settings/data', 'requestLogRetentionDays', 'forever'],
    ['/settings/data', 'backupIntervalHours', 'never'],
  ] as const)('on %s: %s has a switch that says %s', async (path, name, word) => {
    const { app, as } = await open()
    await app.change({ [name]: 0 })
    const { text } = await page(await as('admin'), path)
    const row = text.slice(text.indexOf(`id="setting-${name}"`)).split('class="setting"')[0] ?? ''
    expect(row).toMatch(/type="number"[^>]* min="1"[^>]* disabled/)
    expect(row).toMatch(new RegExp(`type="checkbox" name="${name}" value="0" checked[^>]*/>${word}`))
    expect((await page(await as('viewer'), path)).text).toContain(`<strong>${word}</strong>`)
  })

  test('is an amount when it has one', async () => {
    const { app, as } = await open()
    await app.change({ requestLogRetentionDays: 30 })
    const { text } = await page(await as('admin'), '/settings/data')
    expect(text).toMatch(/name="requestLogRetentionDays"[^>]* value="30" required/)
    expect(text).toContain('Default: forever')
  })
})

describe('options of one strategy', () => {
  test.each([
    ['single_account', ['singleAccountId']],
    ['relative_availability', ['relativeAvailabilityPower', 'relativeAvailabilityTopK']],
    ['round_robin', []],
  ] as const)('a viewer of %s reads only %j', async (routingStrategy, names) => {
    const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
    await app.change({
      routingStrategy,
      ...(routingStrategy === 'single_account' && { singleAccountId: app.members[0]!.id }),
    })
    const { text } = await page(await people(app).as('viewer'), '/settings/routing')
    const shown = ['singleAccountId', 'relativeAvailabilityPower', 'relativeAvailabilityTopK'].filter((name) =>
      text.includes(`id="setting-${name}"`),
    )
    expect(shown).toEqual([...names])
  })
})

test('users with the permission can reset a changed setting to its default', async () => {
  const { app, as } = await open()
  await app.change({ capacityWaitSeconds: 9, preferEarlierResetAccounts: false })
  const { text } = await page(await as('admin'), '/settings/routing')
  expect([...text.matchAll(/data-settings="default" data-value="([^"]*)"/g)].map(([, value]) => value)).toEqual([
    'true',
    '5',
  ])
  expect((await page(await as('viewer'), '/settings/routing')).text).not.toContain('data-settings="default"')
})

test('changed settings are marked, counted and found', async () => {
  const { app, as } = await open()
  const admin = await as('admin')
  await app.change({ capacityWaitSeconds: 9, routingStrategy: 'round_robin' })
  const { frame, found } = await value(admin, '/settings/search?changed=1')
  expect(frame.changed).toBe(2)
  expect(found.map(({ href }: { href: string }) => href)).toEqual([
    '/settings/routing#setting-routingStrategy',
    '/settings/routing#setting-capacityWaitSeconds',
  ])
  const { text } = await page(admin, '/settings/routing')
  expect(text.match(/tag-changed/g)).toHaveLength(2)
  expect(text).toContain('Default: 5 seconds · 0 to 60')
})

test.each([
  ['transport', '/settings/routing#setting-upstreamStreamTransport'],
  ['drain reset', '/settings/routing#setting-routingStrategy'],
  ['AUDIT keep', '/settings/data#setting-auditRetentionDays'],
  ['cidr', '/settings/network#firewall'],
  ['licenses', '/settings/about'],
])('a search for “%s” finds %s', async (words, href) => {
  const { as } = await open()
  const { found } = await value(await as('admin'), `/settings/search?q=${encodeURIComponent(words)}`)
  expect(found.map((one: { href: string }) => one.href)).toContain(href)
})

test('a search offers no page the visitor cannot open', async () => {
  const { as } = await open()
  const { found } = await value(await as('viewer'), '/settings/search')
  const places = found.filter((one: { field: unknown }) => one.field === null)
  expect(places.map((one: { href: string }) => one.href)).toEqual([
    '/settings/network#firewall',
    '/settings/sources',
    '/settings/about',
  ])
})

describe('saving a section', () => {
  test('changes its own settings, leaves the others unchanged, and returns to itself', async () => {
    const { app, as } = await open({ settings: { connectTimeoutSeconds: 4 } })
    const admin = await as('admin')
    const sent = { expectedVersion: 2, proxyAccountStreamLimit: 3, capacityWaitSeconds: 7 }
    const response = await save(admin, 'limits', sent)
    expect([response.status, response.headers.get('location')]).toEqual([
      303,
      '/settings/routing?done=settings_updated&section=limits#limits',
    ])
    expect(app.bindings.settings.current()).toEqual({
      ...DEFAULTS,
      connectTimeoutSeconds: 4,
      proxyAccountStreamLimit: 3,
      capacityWaitSeconds: 7,
    })
    expect((await page(admin, '/settings/routing?done=settings_updated&section=limits')).text).toContain('Saved.')
  })

  test('submits an unchecked box', async () => {
    const { app, as } = await open({ settings: { preferEarlierResetAccounts: true } })
    await save(await as('admin'), 'routing', { preferEarlierResetAccounts: 'false' })
    expect(app.bindings.settings.current().preferEarlierResetAccounts).toBe(false)
  })

  test('is no conflict with another user’s change in another section, which is kept', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    await app.change({ capacityWaitSeconds: 9 })
    const other = await save(admin, 'timeouts', { expectedVersion: 1, connectTimeoutSeconds: 3 })
    expect(other.headers.get('location')).toContain('done=settings_updated')
    expect(app.bindings.settings.current()).toMatchObject({ capacityWaitSeconds: 9, connectTimeoutSeconds: 3 })
    const late = await save(admin, 'timeouts', { expectedVersion: 1, connectTimeoutSeconds: 4 })
    expect(late.headers.get('location')).toContain('problem=settings_conflict')
  })

  test('does not overwrite another user’s change, and says so', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    await app.change({ capacityWaitSeconds: 9 })
    const response = await save(admin, 'limits', { expectedVersion: 1, capacityWaitSeconds: 2 })
    const location = response.headers.get('location') ?? ''
    expect(location).toBe('/settings/routing?problem=settings_conflict')
    expect((await page(admin, location)).text).toContain('The settings were changed while you were editing')
    expect(app.bindings.settings.current().capacityWaitSeconds).toBe(9)
    const json = await admin.ask('PATCH /api/settings', { json: { expectedVersion: 1, capacityWaitSeconds: 2 } })
    expect(json.status).toBe(409)
  })

  test('requires a confirmation only when a security setting changes', async () => {
    const { app, as } = await open()
    const admin = await as('admin', { isConfirmed: false })
    const keys = { apiKeyAuthEnabled: true, hideUpstreamQuotaFromApiKeys: false }
    const refused = await save(admin, 'clients', keys, '/settings')
    expect(refused.headers.get('location')).toMatch(/^\/confirm\?return=%2Fsettings&problem=step_up_required$/)
    expect(app.bindings.settings.current().apiKeyAuthEnabled).toBe(false)
    const same = await save(admin, 'clients', { ...keys, apiKeyAuthEnabled: false }, '/settings')
    expect(same.headers.get('location')).toStartWith('/settings?done=')
  })

  test('of an unknown section redirects nowhere else', async () => {
    const { as } = await open()
    const response = await save(await as('admin'), '%2F%2Felsewhere', { capacityWaitSeconds: 2 })
    expect(response.headers.get('location')).toBe('/settings/routing?done=settings_updated')
  })
})

test('accounts are selected by name; their addresses are masked for viewers', async () => {
  const { as } = await open({ accounts: [{ email: 'ada@example.test' }] })
  const choices = async (role: string) => {
    const { settings } = await value(await as(role), '/settings/routing')
    return settings.fields.find(({ name }: { name: string }) => name === 'singleAccountId').control.choices
  }
  expect((await choices('admin'))[0].label).toBe('ada@example.test')
  expect((await choices('viewer'))[0].label).not.toContain('ada@')
})

test('accounts of one user are distinguished wherever an account is selected by name', async () => {
  const email = 'ada@example.test'
  const { app, as } = await open({ accounts: [{ email }, { email, plan: 'team' }, { email: 'bob@example.test' }] })
  const [first, second] = app.members.map(({ id }) => id.slice(0, 8))
  const admin = await as('admin')
  for (const path of ['/settings/routing', '/keys/new', '/logs', '/accounts/simulator?model=gpt-5.5']) {
    const { text } = await page(admin, path)
    for (const name of [`${email} (plus, ${first})`, `${email} (team, ${second})`, 'bob@example.test<'])
      expect([path, name, text.includes(`>${name}`)]).toEqual([path, name, true])
  }
})

describe('network', () => {
  test('an address is added and removed from the page', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const added = await admin.submit('POST /api/firewall/ips', { ipAddress: '10.1.2.3/8' })
    expect([added.status, added.headers.get('location')]).toEqual([303, '/settings/network?done=firewall_entry_added'])
    expect((await page(admin, '/settings/network')).text).toContain('<code>10.0.0.0/8</code>')
    const removed = await admin.ask('DELETE /api/firewall/ips/10.0.0.0%2F8', { headers: HTML })
    expect(removed.headers.get('location')).toBe('/settings/network?done=firewall_entry_removed')
    expect((await value(admin, '/settings/network')).firewall).toEqual({ mode: 'allow_all', entries: [] })
  })

  test('the first entry needs a confirmation, which lists recent clients that would be blocked', async () => {
    const { app, as } = await open()
    const call = (startedAt: number, address: string) =>
      app.sqlite.run(
        `INSERT INTO requests (id, request_id, started_at, route, kind, transport, moved, status, http_status, attempts, total_ms, client_ip)
         VALUES (hex(randomblob(8)), 'x', ?, '/v1/responses', 'normal', 'http', 0, 'ok', 200, 1, 1, ?)`,
        [startedAt, address],
      )
    const now = app.clock.now()
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.2']) call(now - 1000, address)
    call(now - 25 * 3_600_000, '192.0.2.3')
    const admin = await as('admin')
    expect((await value(admin, '/settings/network')).callers).toEqual(['192.0.2.2', '192.0.2.1'])
    const { text } = await page(admin, '/settings/network')
    expect(text).toContain(
      'Clients connected from these addresses in the last 24 hours: 192.0.2.2, 192.0.2.1. Any that the entry doesn’t cover are rejected immediately.',
    )
    expect((await value(await as('operator'), '/settings/network')).callers).toEqual([])
    await admin.submit('POST /api/firewall/ips', { ipAddress: '192.0.2.2' })
    expect((await page(admin, '/settings/network')).text).not.toContain('This is the first entry')
  })

  test('addresses are hidden from viewers, and changes from operators', async () => {
    const { as } = await open()
    await (await as('admin')).ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.1' } })
    const viewed = await value(await as('viewer'), '/settings/network')
    expect([viewed.firewall, viewed.seen, viewed.proxies, viewed.egress]).toEqual([
      { mode: 'allowlist_active', entries: [] },
      null,
      null,
      null,
    ])
    const operated = await page(await as('operator'), '/settings/network')
    expect(operated.text).toContain('192.0.2.1')
    expect(operated.text).not.toContain('form-firewall')
  })

  test('outgoing proxies are shown from the environment, without their passwords', async () => {
    const { as } = await open({
      environment: {
        HTTPS_PROXY: 'http://me:pass@proxy.test:3128',
        CODEX_LB_UPSTREAM_BASE_URL: 'https://up.test',
        no_proxy: 'localhost',
      },
    })
    const { egress } = await value(await as('admin'), '/settings/network')
    expect(egress.targets[0]).toEqual({ origin: 'https://up.test', variable: 'HTTPS_PROXY', why: null })
    expect(egress.variables).toContainEqual({
      name: 'HTTPS_PROXY',
      value: 'http://***@proxy.test:3128',
      isSet: true,
      isSecret: false,
    })
    expect(JSON.stringify(egress)).not.toContain('pass')
  })
})

describe('data', () => {
  test('table contents are hidden from users with read-only access', async () => {
    const { as, guest } = await open()
    for (const who of [await as('viewer'), await guest('192.0.2.9')]) {
      expect(await problem(await who.ask('GET /settings/data/sizes'))).toEqual([403, 'permission_required'])
      expect((await page(who, '/settings/data')).text).not.toContain('/settings/data/sizes')
    }
    expect((await page(await as('operator'), '/settings/data')).text).toContain('/settings/data/sizes')
  })

  test('every table has its size, and the size page is a fragment for scripts', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const { tables } = await value(admin, '/settings/data/sizes')
    expect(tables.find(({ name }: { name: string }) => name === 'users')).toMatchObject({ rows: 1 })
    expect(tables.every(({ bytes }: { bytes: number }) => bytes >= 1024)).toBe(true)
    const fragment = await admin.ask('GET /settings/data/sizes', { headers: { 'hx-request': 'true' } })
    expect(await fragment.text()).toStartWith('<table')
    expect((await value(admin, '/settings/data')).file.bytes).toBeGreaterThan(4096)
  })

  test('backups are for administrators; a download needs a confirmation', async () => {
    const { as } = await open()
    expect((await value(await as('viewer'), '/settings/data')).backups).toBeNull()
    expect(await value(await as('operator'), '/settings/data')).toMatchObject({ backups: [], download: null })
    expect((await value(await as('admin'), '/settings/data')).download).toBe('ready')
    expect((await value(await as('admin', { isConfirmed: false }), '/settings/data')).download).toBe('confirm')
  })
})

describe('about', () => {
  const environment = {
    CODEX_LB_METRICS_TOKEN: SECRET,
    CODEX_LB_PUBLIC_URL: 'https://sluice.example.test',
    CODEX_LB_DESSERT: 'yes',
    CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
  }

  test('names the variables that are set and the unknown ones, and hides secrets', async () => {
    const { as } = await open({ environment })
    const admin = await as('admin')
    const about = await value(admin, '/settings/about')
    expect(about.environment.unknown).toEqual(['CODEX_LB_DESSERT'])
    expect(about.environment.variables).toEqual(
      expect.arrayContaining([
        { name: 'SLUICE_METRICS_TOKEN', value: '', isSet: true, isSecret: true },
        { name: 'SLUICE_PUBLIC_URL', value: 'https://sluice.example.test', isSet: true, isSecret: false },
        { name: 'SLUICE_FIREWALL_TRUSTED_PROXY_CIDRS', value: '10.0.0.0/8', isSet: true, isSecret: false },
        { name: 'PORT', value: '2455', isSet: false, isSecret: false },
      ]),
    )
    const { text } = await page(admin, '/settings/about')
    expect(text).not.toContain(SECRET)
    expect(text).toContain('CODEX_LB_DESSERT')
    expect((await value(await as('viewer'), '/settings/about')).environment).toBeNull()
  })

  test('names every dependency with its license', async () => {
    const { as } = await open()
    const { components } = await value(await as('viewer'), '/settings/about')
    expect(components.map(({ name }: { name: string }) => name)).toEqual(['Bun', ...Object.keys(dependencies)])
    for (const { name, version, licence } of components.slice(1)) {
      const file = Bun.file(`${import.meta.dir}/../../node_modules/${name}/package.json`)
      expect(licence).not.toBeEmpty()
      if (await file.exists()) expect(await file.json()).toMatchObject({ version, license: SPDX[licence] ?? licence })
    }
  })
})

/** Published under a name that SPDX does not have. */
const SPDX: Record<string, string> = { '0BSD': 'BSD-0-Clause' }
