/** When an API key is required, and the error without one (spec §5 Proxy routes, §1 Restricted capability routing). */
import { describe, expect, test } from 'bun:test'
import { authenticateClient, type ClientAuthRequest, capability } from '../../src/auth/client-key.ts'
import { AppError } from '../../src/errors.ts'
import { parseCidr } from '../../src/lib/cidr.ts'
import type { KeyPolicy } from '../../src/model/keys/key-ring.ts'

const NOW = 1000
const MISSING = 'Missing API key in Authorization header'
const INVALID = 'Invalid API key'
const EXPIRED = 'API key has expired'
const CLOSED = 'Proxy authentication must be configured before remote access is allowed'

const aPolicy = (over: Partial<KeyPolicy>): KeyPolicy => ({
  id: 'key_1',
  name: 'laptop',
  isActive: true,
  expiresAt: null,
  allowedModels: null,
  applyToCodexModel: false,
  enforcedModel: null,
  efforts: { enforced: null, allowed: null },
  tier: null,
  prohibitFastMode: null,
  claudeModels: null,
  sourceIds: null,
  allowOverflow: false,
  ownerUserId: null,
  trafficClass: 'foreground',
  transport: null,
  scope: null,
  usageSections: new Set(),
  limits: [],
  ...over,
})

const POLICIES: Record<string, KeyPolicy> = {
  good: aPolicy({}),
  revoked: aPolicy({ isActive: false, expiresAt: NOW }),
  expired: aPolicy({ expiresAt: NOW }),
  lasting: aPolicy({ expiresAt: NOW + 1 }),
}

const anAuthRequest = (over: Partial<ClientAuthRequest>): ClientAuthRequest => ({
  authorization: null,
  capability: null,
  isLocal: () => false,
  ip: '203.0.113.9',
  peer: '203.0.113.9',
  keyAuthEnabled: true,
  unauthenticatedCidrs: [],
  keys: { find: (key) => POLICIES[key] ?? null },
  now: NOW,
  need: 'optional',
  ...over,
})

/** The name of the accepted key, `no key`, or the message of the 401. */
const answer = (over: Partial<ClientAuthRequest>): string => {
  try {
    const client = authenticateClient(anAuthRequest(over))
    return client.key ? (Object.keys(POLICIES).find((name) => POLICIES[name] === client.key) ?? '?') : 'no key'
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_api_key') return error.message
    throw error
  }
}

const local = { isLocal: () => true, ip: '127.0.0.1', peer: '127.0.0.1' }
const cidrs = [parseCidr('203.0.113.0/24')!]

describe('key authentication on', () => {
  test.each<[string | null, string]>([
    [null, MISSING],
    ['', MISSING],
    ['Bearer', MISSING],
    ['Bearer ', MISSING],
    ['Basic good', MISSING],
    ['good', MISSING],
    ['Bearer good', 'good'],
    ['bearer good', 'good'],
    ['BEARER   good', 'good'],
    ['Bearer unknown', INVALID],
    ['Bearer good, Bearer good', INVALID],
    ['Bearer revoked', INVALID],
    ['Bearer expired', EXPIRED],
    ['Bearer lasting', 'lasting'],
  ])('%p: %s', (authorization, expected) => {
    expect(answer({ authorization })).toBe(expected)
    expect(answer({ authorization, ...local })).toBe(expected)
  })

  test('an exempt range does not change that', () => {
    expect(answer({ unauthenticatedCidrs: cidrs })).toBe(MISSING)
  })
})

describe('key authentication off', () => {
  const off = { keyAuthEnabled: false }

  test.each<[string | null, string]>([
    [null, 'no key'],
    ['Bearer unknown', 'no key'],
    ['Basic x', 'no key'],
    ['Bearer good', 'good'],
    ['Bearer revoked', INVALID],
    ['Bearer expired', EXPIRED],
  ])('a local client with %p: %s', (authorization, expected) => {
    expect(answer({ ...off, ...local, authorization })).toBe(expected)
  })

  test.each<[string | null, boolean]>([
    [null, false],
    ['', false],
    ['Bearer ', false],
    ['bearer', false],
    ['Bearer unknown', true],
    ['Basic x', true],
    ['anything', true],
    ['Bearer good', false],
  ])('%p is an unrecognized key: %p', (authorization, isUnrecognized) => {
    const client = authenticateClient(anAuthRequest({ ...off, ...local, authorization }))
    expect(client.hasUnrecognizedKey).toBe(isUnrecognized)
  })

  test.each([null, 'Bearer good', 'Bearer unknown'])('a remote client with %p is rejected', (authorization) => {
    expect(answer({ ...off, authorization })).toBe(CLOSED)
    expect(answer({ ...off, authorization, need: 'always' })).toBe(CLOSED)
    expect(answer({ ...off, authorization, capability: 'trusted_cyber' })).toBe(CLOSED)
  })

  test('a peer in an exempt range needs no key; a forwarded address in it does not count', () => {
    expect(answer({ ...off, unauthenticatedCidrs: cidrs })).toBe('no key')
    expect(answer({ ...off, unauthenticatedCidrs: cidrs, peer: '::ffff:203.0.113.9' })).toBe('no key')
    expect(answer({ ...off, unauthenticatedCidrs: cidrs, peer: '198.51.100.1' })).toBe(CLOSED)
    expect(answer({ ...off, unauthenticatedCidrs: cidrs, peer: null })).toBe(CLOSED)
  })

  test.each([
    { need: 'always' as const },
    { capability: 'trusted_cyber' },
    { capability: 'anything' },
    { capability: '' },
  ])('%p requires a valid key from everyone', (demand) => {
    for (const from of [local, { unauthenticatedCidrs: cidrs }]) {
      expect(answer({ ...off, ...from, ...demand })).toBe(MISSING)
      expect(answer({ ...off, ...from, ...demand, authorization: 'Bearer unknown' })).toBe(INVALID)
      expect(answer({ ...off, ...from, ...demand, authorization: 'Bearer expired' })).toBe(EXPIRED)
      expect(answer({ ...off, ...from, ...demand, authorization: 'Bearer good' })).toBe('good')
    }
  })
})

test('the error names the address the client came from', () => {
  expect(authenticateClient(anAuthRequest({ ...local, keyAuthEnabled: false }))).toEqual({
    key: null,
    hasUnrecognizedKey: false,
    ip: '127.0.0.1',
  })
})

describe('the capability header', () => {
  test('is absent or known', () => {
    expect(capability(null)).toBeNull()
    expect(capability('trusted_cyber')).toBe('trusted_cyber')
  })

  test.each(['', 'Trusted_Cyber', 'trusted_cyber, trusted_cyber', 'other'])('%p is rejected', (value) => {
    expect(() => capability(value)).toThrow(expect.objectContaining({ code: 'unsupported_required_capability' }))
  })
})
