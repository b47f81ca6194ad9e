/** While keys are optional, the key pages say so and can turn the requirement on. */
import { describe, expect, test } from 'bun:test'
import type { ApiKey } from '../../src/model/keys/api-key-view.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { type Browser, people, problem } from '../support/people.ts'
import { behindProxy } from '../support/proxied.ts'

const HTML = { accept: 'text/html' }
const KEYS = 'POST /api/api-keys/'

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

const page = async (who: Pick<Browser, 'ask'> | TestApp, path: string) =>
  (await who.ask(`GET ${path}`, { headers: HTML })).text()

const isRequired = ({ bindings }: TestApp) => bindings.settings.current().apiKeyAuthEnabled

/** The notice of a page as text; null if there is none. */
const getBar = (html: string): string | null =>
  /<section class="keys-optional.*?<\/section>/s
    .exec(html)?.[0]
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/\s+/g, ' ') ?? null

const REQUIRE_FORM = 'form-require-keys'

describe('the optional-key notice', () => {
  test('on the list and on each key, says what is not enforced while keys are optional, with the switch', async () => {
    const { app, as } = await open()
    const { row } = await app.key({ name: 'laptop' })
    const admin = await as('admin')
    for (const path of ['/keys', `/keys/${row.id}`]) {
      const html = await page(admin, path)
      expect(getBar(html)).toContain('Clients on this machine can connect without a key or with an unrecognized one')
      expect(getFields(html, REQUIRE_FORM)).toEqual([['apiKeyAuthEnabled', 'true']])
    }
    const json = Object.fromEntries(getFields(await page(admin, '/keys'), REQUIRE_FORM))
    expect(
      (await admin.ask('PATCH /api/settings', { json: { apiKeyAuthEnabled: json.apiKeyAuthEnabled === 'true' } }))
        .status,
    ).toBe(200)
    for (const path of ['/keys', `/keys/${row.id}`]) expect(getBar(await page(admin, path))).toBeNull()
  })

  test('is shown before the first key, too, and without a password', async () => {
    const { app } = await open()
    const html = await page(app, '/keys')
    expect(getBar(html)).toContain('Keys are optional')
    expect(html).toContain(REQUIRE_FORM)
  })

  test('names the ranges that need no key', async () => {
    const { app } = await open({ environment: { CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '10.0.0.0/8' } })
    expect(getBar(await page(app, '/keys'))).toContain('SLUICE_PROXY_UNAUTHENTICATED_CLIENT_CIDRS')
    expect(getBar(await page((await open()).app, '/keys'))).not.toContain('CIDRS')
  })

  test.each(['operator', 'auditor'])('has no switch for the role %s, and says which role has it', async (role) => {
    const { app, as, addRole } = await open()
    await addRole('auditor', { 'dashboard:read': 'all', 'api_keys:read': 'all' })
    const { row } = await app.key()
    for (const path of ['/keys', `/keys/${row.id}`]) {
      const html = await page(await as(role, { username: `${role}-${path.length}` }), path)
      expect(getBar(html)).toContain('An admin can require keys.')
      expect(html).not.toContain(REQUIRE_FORM)
    }
  })

  test('sends an admin without a way to confirm to two-factor authentication', async () => {
    const { announced } = await behindProxy()
    const html = await page(announced('anna'), '/keys')
    expect(html).not.toContain(REQUIRE_FORM)
    expect(html).toContain('href="/me/two-factor?return=%2Fkeys')
  })
})

describe('creating the first key', () => {
  const getForm = async (who: Pick<Browser, 'ask'>) => getFields(await page(who, '/keys/new'), 'form-key')
  const asFields = (fields: [string, string][], name: string) =>
    Object.fromEntries([...fields.filter(([field]) => field !== 'name' && !field.startsWith('limits')), ['name', name]])

  test('offers to require keys from now on, checked, and does so with the key', async () => {
    const { app, as, audit } = await open()
    const admin = await as('admin')
    const fields = await getForm(admin)
    expect(fields.filter(([name]) => name === 'requireKeys').map(([, value]) => value)).toEqual(['false', 'true'])
    expect((await admin.send('form', KEYS, asFields(fields, 'laptop'))).status).toBe(200)
    expect(isRequired(app)).toBe(true)
    expect((await audit()).map(({ event }) => event)).toEqual(['api_key_created', 'settings_updated'])
    expect((await getForm(admin)).some(([name]) => name === 'requireKeys')).toBe(false)
  })

  test('leaves keys optional when it is unchecked', async () => {
    const { app, as } = await open()
    const admin = await as('admin', { isConfirmed: false })
    const fields = { ...asFields(await getForm(admin), 'laptop'), requireKeys: 'false' }
    expect((await admin.send('form', KEYS, fields)).status).toBe(200)
    expect(isRequired(app)).toBe(false)
  })

  test('requires a confirmation first, and creates nothing until then', async () => {
    const { app, as } = await open()
    const admin = await as('admin', { isConfirmed: false })
    const json = { name: 'laptop', requireKeys: true }
    expect(await problem(await admin.ask(KEYS, { json }))).toEqual([403, 'step_up_required'])
    expect((await (await admin.ask('GET /api/api-keys/')).json()) as ApiKey[]).toEqual([])
    expect(isRequired(app)).toBe(false)
  })

  test('is not offered to an operator, who cannot change the setting but can create the key', async () => {
    const { app, as } = await open()
    const operator = await as('operator')
    const html = await page(operator, '/keys/new')
    expect(html).not.toContain('name="requireKeys"')
    expect(html).toContain('An admin can require keys')
    const json = { name: 'laptop', requireKeys: true }
    expect(await problem(await operator.ask(KEYS, { json }))).toEqual([403, 'permission_required'])
    expect((await operator.ask(KEYS, { json: { name: 'laptop' } })).status).toBe(200)
    expect(isRequired(app)).toBe(false)
  })

  test('is not offered if there are keys already, or keys are required', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    await app.key()
    expect(await page(admin, '/keys/new')).not.toContain('requireKeys')
    const strict = await open({ settings: { apiKeyAuthEnabled: true } })
    expect(await page(await strict.as('admin'), '/keys/new')).not.toContain('requireKeys')
  })

  test('by JSON requires keys only when requested, and changes nothing if they already are', async () => {
    const { app, as, audit } = await open({ settings: { apiKeyAuthEnabled: true } })
    const json = { name: 'laptop', requireKeys: true }
    expect((await (await as('operator')).ask(KEYS, { json })).status).toBe(200)
    expect((await audit()).map(({ event }) => event)).toEqual(['api_key_created'])
    const optional = await open()
    await (await optional.as('admin')).ask(KEYS, { json: { name: 'laptop' } })
    expect([isRequired(app), isRequired(optional.app)]).toEqual([true, false])
  })
})
