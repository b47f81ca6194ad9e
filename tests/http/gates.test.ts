/** Who passes which gate, and that the route table lists exactly what a gate enforces. */
import { expect, test } from 'bun:test'
import { clientKey, type Gate, open, requires, restricted, signedIn, writes } from '../../src/http/gates.ts'
import { parseCidr } from '../../src/lib/cidr.ts'
import { testDb } from '../support/db.ts'
import { getProblem, probe } from './probe.ts'

const noKeys = {
  firewall: { allows: () => true },
  settings: { current: () => ({ apiKeyAuthEnabled: false, guestAccessEnabled: false }) },
  keys: { find: () => null },
  ledger: { reject() {} },
  db: testDb().db,
}
const behind = (gates: Gate[], over: Record<string, unknown> = noKeys) =>
  probe((app) => {
    for (const path of ['/api/thing', '/v1/thing']) app.get(path, ...(gates as [Gate]), (c) => c.json({ ok: true }))
  }, over)
const CAPABILITY = { 'x-codex-lb-required-capability': 'trusted_cyber' }

test.each([
  ['requires', requires('security:write', { stepUp: true })],
  ['writes', writes()],
  ['signedIn', signedIn()],
])('%s allows the local user of a passwordless install and tells others how to get access', async (_name, gate) => {
  const { ask } = behind([gate])
  expect((await ask('GET /api/thing')).status).toBe(200)
  const refused = await ask('GET /api/thing', { peer: '192.0.2.7' })
  expect(refused.status).toBe(401)
  const { code, message } = await getProblem(refused)
  expect(code).toBe('bootstrap_required')
  expect(message).toContain('bootstrap token')
})

test('a local peer with a foreign Host is not local: another site may have pointed its name here', async () => {
  const { ask } = behind([signedIn()])
  expect((await ask('GET /api/thing', { headers: { host: 'evil.example' } })).status).toBe(401)
})

test('open allows everyone', async () => {
  const { ask } = behind([open('a probe')])
  expect((await ask('GET /api/thing', { peer: '192.0.2.7' })).status).toBe(200)
})

test('the firewall is checked before the key', async () => {
  const { ask } = behind([clientKey('always')], { ...noKeys, firewall: { allows: () => false } })
  const refused = await ask('GET /v1/thing')
  expect(refused.status).toBe(403)
  expect((await getProblem(refused)).code).toBe('ip_forbidden')
})

test('without key authentication this machine needs no key, another one is rejected', async () => {
  const { ask } = behind([clientKey('optional')])
  expect((await ask('GET /v1/thing')).status).toBe(200)
  expect((await ask('GET /v1/thing', { peer: '192.0.2.7' })).status).toBe(401)
})

test('an exempt range applies to the socket peer', async () => {
  const { ask } = probe(
    (app) => {
      app.get('/v1/thing', clientKey('optional'), (c) => c.json(c.var.client))
    },
    {
      ...noKeys,
      env: { FIREWALL_TRUST_PROXY_HEADERS: false, PROXY_UNAUTHENTICATED_CLIENT_CIDRS: [parseCidr('192.0.2.0/24')] },
    },
  )
  const response = await ask('GET /v1/thing', { peer: '192.0.2.7' })
  expect(await response.json()).toEqual({ key: null, hasUnrecognizedKey: false, ip: '192.0.2.7' })
})

test('a required capability without a key is rejected for the key, not for the capability', async () => {
  const { ask } = behind([clientKey('optional'), restricted('refuse')])
  expect((await getProblem(await ask('GET /v1/thing', { headers: CAPABILITY }))).code).toBe('invalid_api_key')
})

test.each([
  ['refuse', 400, 'required_capability_transport_unsupported'],
  ['narrow', 200, null],
  ['local', 200, null],
] as const)('with the capability header, %s answers %d', async (restriction, status, code) => {
  const { ask } = behind([restricted(restriction)])
  const response = await ask('GET /v1/thing', { headers: CAPABILITY })
  expect(response.status).toBe(status)
  if (code) expect((await getProblem(response)).code).toBe(code)
  expect((await ask('GET /v1/thing')).status).toBe(200)
})

test.each(['refuse', 'narrow', 'local'] as const)('an unknown capability is rejected by %s', async (restriction) => {
  const { ask } = behind([restricted(restriction)])
  for (const value of ['other', 'trusted_cyber, trusted_cyber', '']) {
    const response = await ask('GET /v1/thing', { headers: { 'x-codex-lb-required-capability': value } })
    expect(response.status).toBe(400)
    expect((await getProblem(response)).code).toBe('unsupported_required_capability')
  }
})

test('a gate carries its rule as data', () => {
  expect(requires('accounts:write', { audit: 'account_paused' }).rule).toEqual({
    access: 'permission',
    permission: 'accounts:write',
    stepUp: false,
    audit: 'account_paused',
  })
  expect(requires('users:manage', { or: 'roles:manage' }).rule).toEqual({
    access: 'permission',
    permission: 'users:manage',
    or: 'roles:manage',
    stepUp: false,
  })
  expect(clientKey('always').rule).toEqual({ access: 'client-key', key: 'always' })
  expect(restricted('narrow').rule).toEqual({ capability: 'narrow' })
})
