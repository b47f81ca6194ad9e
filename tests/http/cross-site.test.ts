/** Spec §5, cross-site request protection, rule by rule. */
import { expect, test } from 'bun:test'
import { open } from '../../src/http/gates.ts'
import { parseCidr } from '../../src/lib/cidr.ts'
import { getProblem, probe } from './probe.ts'

const mount = (over: Record<string, unknown> = {}) =>
  probe((app) => {
    for (const path of ['/api/x', '/api/fleet/x', '/api/codex/x', '/v1/x', '/other'])
      app.all(path, open('test'), (c) => c.text('reached'))
  }, over)
const { ask } = mount()
const status = async (route: string, headers: Record<string, string> = {}) => (await ask(route, { headers })).status

const OWN = 'http://localhost:2455'
const FOREIGN = 'https://evil.example'

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
  '%s from another site is rejected with the headers that arrived',
  async (method) => {
    const response = await ask(`${method} /api/x`, { headers: { 'sec-fetch-site': 'cross-site', origin: FOREIGN } })
    expect(response.status).toBe(403)
    const { code, details } = await getProblem(response)
    expect(code).toBe('cross_site_request_rejected')
    expect(details).toMatchObject({ host: 'localhost:2455', origin: FOREIGN, secFetchSite: 'cross-site' })
  },
)

test.each([
  ['a sub-domain is another site', { 'sec-fetch-site': 'same-site' }, 403],
  ['the same origin', { 'sec-fetch-site': 'same-origin', origin: OWN }, 200],
  ['typed into the address bar', { 'sec-fetch-site': 'none' }, 200],
  ['an unknown Sec-Fetch-Site', { 'sec-fetch-site': 'whatever' }, 403],
  ['no browser at all', {}, 200],
  ['own origin without Sec-Fetch-Site', { origin: OWN }, 200],
  ['another origin', { origin: FOREIGN }, 403],
  ['another port', { origin: 'http://localhost:2456' }, 403],
  ['another scheme', { origin: 'https://localhost:2455' }, 403],
  ['an opaque origin', { origin: 'null' }, 403],
  ['two origins', { origin: `${OWN}, ${OWN}` }, 403],
  ['another origin behind an acceptable Sec-Fetch-Site', { 'sec-fetch-site': 'same-origin', origin: FOREIGN }, 403],
  ['another origin, navigated to by the user', { 'sec-fetch-site': 'none', origin: FOREIGN }, 403],
  ['own origin behind an unacceptable Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site', origin: OWN }, 403],
  [
    'two origins behind an acceptable Sec-Fetch-Site',
    { 'sec-fetch-site': 'same-origin', origin: `${OWN}, ${FOREIGN}` },
    403,
  ],
  ['a bearer client', { origin: FOREIGN, authorization: 'Bearer x' }, 200],
  ['an empty bearer', { origin: FOREIGN, authorization: 'Bearer ' }, 403],
  ['basic credentials, which a browser sends automatically', { origin: FOREIGN, authorization: 'Basic eA==' }, 403],
] as [string, Record<string, string>, number][])('%s', async (_name, headers, expected) => {
  expect(await status('POST /api/x', headers)).toBe(expected)
})

test('a form is covered like JSON', async () => {
  const body = new URLSearchParams({ a: 'b' })
  expect((await ask('POST /api/x', { body, headers: { origin: FOREIGN } })).status).toBe(403)
})

test('reads, bearer routes and everything outside /api/ are not checked', async () => {
  const foreign = { 'sec-fetch-site': 'cross-site', origin: FOREIGN }
  expect(await status('GET /api/x', foreign)).toBe(200)
  for (const path of ['/api/fleet/x', '/api/codex/x', '/v1/x', '/other'])
    expect(await status(`POST ${path}`, foreign)).toBe(200)
  expect(await status('POST /api/x/api/fleet/x', foreign)).toBe(403)
})

test('the public address of Sluice counts as its own origin', async () => {
  const env = { PUBLIC_URL: 'https://sluice.example/base', FIREWALL_TRUST_PROXY_HEADERS: false }
  const response = await mount({ env }).ask('POST /api/x', { headers: { origin: 'https://sluice.example' } })
  expect(response.status).toBe(200)
})

test('an origin served through a trusted proxy counts as its own, and through no other', async () => {
  const env = { FIREWALL_TRUST_PROXY_HEADERS: true, FIREWALL_TRUSTED_PROXY_CIDRS: [parseCidr('127.0.0.1/32')!] }
  const trusting = mount({ env })
  const origin = 'https://sluice.example'
  const behind = async (headers: Record<string, string>, peer = '127.0.0.1') =>
    (await trusting.ask('POST /api/x', { headers: { origin, ...headers }, peer })).status
  const told = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'sluice.example' }
  expect(await behind(told)).toBe(200)
  expect(await behind({ 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'Sluice.Example' })).toBe(200)
  expect(await behind({ 'x-forwarded-proto': 'https', origin: 'https://localhost:2455' })).toBe(200)
  expect(await behind({ ...told, 'x-forwarded-proto': 'http' })).toBe(403)
  expect(await behind({ ...told, 'x-forwarded-host': 'evil.example' })).toBe(403)
  expect(await behind({ ...told, 'x-forwarded-host': 'evil.example, sluice.example' })).toBe(403)
  expect(await behind({ ...told, 'x-forwarded-proto': 'javascript' })).toBe(403)
  expect(await behind(told, '192.0.2.7')).toBe(403)
  expect(await status('POST /api/x', { origin, ...told })).toBe(403)
})
