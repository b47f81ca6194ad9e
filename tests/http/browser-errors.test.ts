/** Errors in a browser: a redirect if there is a next step, a message in the form it came from, or else a page. */
import { expect, test } from 'bun:test'
import { AppError, type Code, type ErrorExtra } from '../../src/errors.ts'
import { open } from '../../src/http/gates.ts'
import { createHandlers } from '../../src/http/handlers.ts'
import { probe } from './probe.ts'

const HTML = { accept: 'text/html' }
const HTMX = { ...HTML, 'hx-request': 'true' }
const at = (path: string) => `http://localhost:2455${path}`

const refusing = (code: Code, extra?: ErrorExtra) =>
  probe((app) => {
    const refuse = createHandlers(open('test'), () => {
      throw new AppError(code, extra)
    })
    app.get('/reports', ...refuse)
    app.post('/api/change', ...refuse)
  })

test.each([
  ['authentication_required', '/login?return=%2Freports%3Fday%3D1'],
  ['bootstrap_required', '/setup?return=%2Freports%3Fday%3D1'],
  ['totp_required', '/totp?return=%2Freports%3Fday%3D1'],
  ['totp_enrollment_required', '/me/two-factor?return=%2Freports%3Fday%3D1'],
  ['identity_not_provisioned', '/auth/pending?return=%2Freports%3Fday%3D1'],
  ['account_disabled', '/auth/pending?return=%2Freports%3Fday%3D1'],
] as const)('%s leads a page to the next step and back', async (code, place) => {
  const { ask } = refusing(code)
  const page = await ask('GET /reports?day=1', { headers: HTML })
  expect([page.status, page.headers.get('location')]).toEqual([303, place])
  const fragment = await ask('GET /reports', { headers: { ...HTMX, 'hx-current-url': at('/reports?day=1') } })
  expect([fragment.headers.get('hx-redirect'), await fragment.text()]).toEqual([place, ''])
})

test('a proxy without identity gets an explanation, and a sign-in if there is a password', async () => {
  const closed = await refusing('proxy_auth_required').ask('GET /reports', { headers: HTML })
  expect(closed.status).toBe(401)
  expect(await closed.text()).toContain('Open Sluice through your reverse proxy')
  const open = await refusing('proxy_auth_required', { details: { fallback: true } }).ask('GET /reports', {
    headers: HTML,
  })
  expect(open.headers.get('location')).toBe('/login?return=%2Freports')
})

test.each([
  ['import_not_found', '/accounts/new/import'],
  ['oauth_flow_not_found', '/accounts/new'],
  ['account_not_found', '/dashboard'],
] as const)('%s leads from its page to the start', async (code, way) => {
  const html = await (await refusing(code).ask('GET /reports', { headers: HTML })).text()
  expect(/<section class="problem">.*?href="([^"]+)"/s.exec(html)?.[1]).toBe(way)
})

test('a form without scripts returns to its page, with only the name of the problem', async () => {
  const { ask } = refusing('password_rate_limited', { retryAfterSeconds: 41.2, message: 'never in a URL', param: 'x' })
  const headers = { ...HTML, referer: at('/me?done=profile_updated') }
  const response = await ask('POST /api/change', { headers })
  expect(response.status).toBe(303)
  expect(response.headers.get('location')).toBe('/me?problem=password_rate_limited&field=x&wait=42')
})

test('an htmx form gets the error beside its button; any other request gets it above the page', async () => {
  const { ask } = refusing('username_taken')
  const source = (name: string) => ask('POST /api/change', { headers: { ...HTMX, 'hx-source': name } })
  const inForm = await source('form#form-edit-usr_1')
  expect([inForm.status, inForm.headers.get('hx-retarget')]).toEqual([409, '#form-edit-usr_1-problem'])
  expect(await inForm.text()).toContain('This user name is already taken. Choose another one.')
  for (const name of ['button#save', 'form#form-x" onload="', 'form#other', 'form'])
    expect((await source(name)).headers.get('hx-retarget')).toBe('#flash')
})

test.each([
  ['authentication_required', {}],
  ['proxy_auth_required', { details: { fallback: true } }],
] as const)('%s: an htmx form stays unchanged, with a sign-in link beside its button', async (code, extra) => {
  const { ask } = refusing(code, extra)
  const from = (source: string, page: string) =>
    ask('POST /api/change', { headers: { ...HTMX, 'hx-source': source, 'hx-current-url': at(page) } })
  const inForm = await from('form#form-key', '/keys/new')
  expect([inForm.status, inForm.headers.get('hx-redirect')]).toEqual([401, null])
  expect([inForm.headers.get('hx-retarget'), inForm.headers.get('hx-reswap')]).toEqual([
    '#form-key-problem',
    'innerHTML',
  ])
  expect(await inForm.text()).toMatch(
    /You are signed out\. <a href="\/login" target="_blank" rel="noopener">Sign in in another tab<\/a>, then submit this again\./,
  )
  expect((await from('button#pause', '/keys/new')).headers.get('hx-redirect')).toBe('/login?return=%2Fkeys%2Fnew')
  expect((await from('form#form-totp', '/totp?return=%2Fkeys%2Fnew')).headers.get('hx-redirect')).toBe(
    '/login?return=%2Fkeys%2Fnew',
  )
})

test('a confirmation opens over the form, or is a page that returns', async () => {
  const { ask } = refusing('step_up_required', { details: { methods: ['password', 'totp'] } })
  const dialog = await ask('POST /api/change', { headers: { ...HTMX, 'hx-current-url': at('/settings/access') } })
  expect([dialog.status, dialog.headers.get('hx-retarget')]).toEqual([403, '#dialog'])
  const html = await dialog.text()
  expect(html).toContain('name="password"')
  expect(html).toContain('name="code"')
  expect(html).not.toContain('confirm-passkey')
  const page = await ask('POST /api/change', { headers: { ...HTML, referer: at('/settings/access') } })
  expect(page.headers.get('location')).toBe('/confirm?return=%2Fsettings%2Faccess&problem=step_up_required')
})

test('a request from another site is explained and not redirected', async () => {
  const headers = { ...HTML, origin: 'https://sluice.example', referer: 'https://sluice.example/me' }
  const response = await refusing('busy').ask('POST /api/change', { headers })
  expect(response.status).toBe(403)
  const html = await response.text()
  expect(html).toContain('https://sluice.example')
  expect(html).toContain('proxy_set_header Host $http_host;')
})
