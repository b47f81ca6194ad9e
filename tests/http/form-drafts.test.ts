/** A form rejected without scripts: its page shows the entered values and the errors. */
import { describe, expect, test } from 'bun:test'
import { FormDrafts } from '../../src/http/form-drafts.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { testApp } from '../support/app.ts'
import { ManualClock } from '../support/clock.ts'
import { getFields } from '../support/form.ts'
import { type Browser, people } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const FORM = { ...HTML, 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }

const open = async () => {
  const app = await testApp({ accounts: 1 })
  return { app, ...people(app) }
}

/** Submits the form as a browser without scripts does, and returns the redirect. */
const refuse = async (who: Browser, route: string, from: string, fields: [string, string][]): Promise<string> => {
  const headers = { ...FORM, referer: `http://localhost:2455${from}` }
  const response = await who.ask(route, { body: new URLSearchParams(fields).toString(), headers })
  expect(response.status).toBe(303)
  return response.headers.get('location') ?? ''
}

const page = async (who: Browser, path: string) => (await who.ask(`GET ${path}`, { headers: HTML })).text()

const TYPED: [string, string][] = [
  ['name', 'a "long" name & more'],
  ['expiry', '90'],
  ['limits.0.amount', '0.2'],
  ['limits.0.type', 'requests'],
  ['limits.0.window', 'daily'],
  ['limits.0.model', ''],
  ['applyToCodexModel', 'false'],
  ['applyToCodexModel', 'true'],
]

const STORABLE = TYPED.map(([name, value]): [string, string] => [name, name === 'limits.0.amount' ? '2' : value])

describe('a rejected form', () => {
  test('keeps its values, says what is wrong, and marks the field', async () => {
    const operator = await (await open()).as('operator')
    const place = await refuse(operator, 'POST /api/api-keys/', '/keys/new', TYPED)
    expect(place).toStartWith('/keys/new?problem=validation_error&field=limits.0.maxValue&draft=frm_')
    const html = await page(operator, place)
    const fields = getFields(html, 'form-key')
    for (const pair of TYPED) expect(fields).toContainEqual(pair)
    expect(html).toContain('Limits 1 max value: ')
  })

  test('keeps its values when the database could not be written, with advice for administrators', async () => {
    const { app, as } = await open()
    const [admin, operator] = [await as('admin'), await as('operator')]
    app.sqlite.run('PRAGMA query_only = ON')
    const place = await refuse(admin, 'POST /api/api-keys/', '/keys/new', STORABLE)
    expect(place).toStartWith('/keys/new?problem=database_unavailable&draft=frm_')
    const html = await page(admin, place)
    for (const pair of STORABLE) expect(getFields(html, 'form-key')).toContainEqual(pair)
    expect(html).toContain('that the disk is not mounted read-only')
    const json = { name: 'x' }
    const refused = [
      await admin.ask('POST /api/api-keys/', { json }),
      await operator.ask('POST /api/api-keys/', { json }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([503, 503])
    const [told, untold] = await Promise.all(refused.map((response) => response.text()))
    expect(told).toContain('sluice.db cannot be opened for writing')
    expect(untold).toContain('The database cannot be read or written. The server log says why.')
    app.sqlite.run('PRAGMA query_only = OFF')
    expect((await admin.ask('POST /api/api-keys/', { json })).status).toBe(200)
  })

  test('marks the rejected field', async () => {
    const operator = await (await open()).as('operator')
    const place = await refuse(operator, 'POST /api/api-keys/', '/keys/new', [['name', ' ']])
    expect(await page(operator, place)).toMatch(/<input[^>]* name="name"[^>]* aria-invalid="true"/)
  })

  test('of the user’s own profile does so, too', async () => {
    const { as } = await open()
    await as('viewer', { email: 'taken@example.com' })
    const anna = await as('viewer', { username: 'anna' })
    for (const email of ['anna@host', 'taken@example.com']) {
      const typed: [string, string][] = [
        ['displayName', 'A long new name'],
        ['email', email],
      ]
      const place = await refuse(anna, 'POST /api/dashboard-auth/me', '/me', typed)
      const fields = getFields(await page(anna, place), 'form-profile')
      for (const pair of typed) expect(fields).toContainEqual(pair)
    }
  })

  test('is accepted when resubmitted with valid values', async () => {
    const { as, app } = await open()
    const operator = await as('operator')
    const place = await refuse(operator, 'POST /api/api-keys/', '/keys/new', TYPED)
    const fields = getFields(await page(operator, place), 'form-key').map(([name, value]): [string, string] =>
      name === 'limits.0.amount' ? [name, '2'] : [name, value],
    )
    const body = new URLSearchParams(fields).toString()
    expect((await operator.ask('POST /api/api-keys/', { body, headers: FORM })).status).toBe(200)
    await app.bindings.keys.reload()
    expect(app.sqlite.query('SELECT name FROM api_keys').values()).toEqual([['a "long" name & more']])
  })

  test('is kept for its user only, and deleted after ten minutes', async () => {
    const { app, as } = await open()
    const operator = await as('operator')
    const place = await refuse(operator, 'POST /api/api-keys/', '/keys/new', TYPED)
    expect(await page(await as('admin'), place)).not.toContain('&amp; more')
    await app.clock.advance('10m')
    expect(await page(operator, place)).not.toContain('&amp; more')
  })

  test('does not keep a secret', async () => {
    const fields: [string, string][] = [
      ['currentPassword', 'wrong wrong'],
      ['newPassword', 'short'],
    ]
    const place = await refuse(
      await (await open()).as('operator'),
      'POST /api/dashboard-auth/password/change',
      '/me',
      fields,
    )
    expect(place).toStartWith('/me?problem=')
    expect(place).not.toContain('draft')
    const drafts = new FormDrafts(new ManualClock(), seededRandom(1))
    const about = { owner: 'usr_1', action: '/api/x', refused: [], problem: '' }
    const id = drafts.keep(about, { name: 'x', bootstrapToken: 'y', inner: { password: 'z', note: ['1', '2'] } })
    expect([...(drafts.get(id ?? '', 'usr_1')?.values ?? [])]).toEqual([
      ['name', ['x']],
      ['inner.note', ['1', '2']],
    ])
  })

  test('longer than a form can be is not kept', () => {
    const drafts = new FormDrafts(new ManualClock(), seededRandom(1))
    const about = { owner: 'usr_1', action: '/api/x', refused: [], problem: '' }
    expect(drafts.keep(about, { name: 'x'.repeat(20_000) })).toBeNull()
  })

  test('with a field sent empty very often is not kept, and detecting it is fast', () => {
    const drafts = new FormDrafts(new ManualClock(), seededRandom(1))
    const about = { owner: 'usr_1', action: '/api/x', refused: [], problem: '' }
    const startedAt = performance.now()
    expect(drafts.keep(about, { tags: Array<string>(60_000).fill('') })).toBeNull()
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })
})

test('with scripts names every rejected field beside the button', async () => {
  const operator = await (await open()).as('operator')
  const headers = { ...FORM, 'hx-request': 'true', 'hx-source': 'form#form-key' }
  const body = new URLSearchParams([
    ['name', ''],
    ['limits.0.amount', '0.2'],
    ['limits.0.type', 'requests'],
  ]).toString()
  const html = await (await operator.ask('POST /api/api-keys/', { body, headers })).text()
  expect(html).toContain('Enter a name. Limits 1 max value: ')
})
