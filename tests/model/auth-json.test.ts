/** The native client's `auth.json`: both spellings, and a refusal that names the file and what is wrong with it. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { readAuthFiles } from '../../src/model/account-import.ts'
import { expiryOf, parseAuthJson } from '../../src/model/auth-json.ts'
import { unsignedJwt } from '../support/upstream/tokens.ts'

const AUTH = 'https://api.openai.com/auth'
const ID_TOKEN = unsignedJwt({
  email: 'ada@example.test',
  sub: 'auth0|ada',
  [AUTH]: {
    chatgpt_account_id: 'workspace-1',
    chatgpt_user_id: 'user-1',
    chatgpt_plan_type: 'pro',
    workspace_label: 'Labs',
  },
})
const NATIVE = { id_token: ID_TOKEN, access_token: 'access', refresh_token: 'refresh', account_id: 'fallback' }

const file = (tokens: unknown, more: Record<string, unknown> = {}) => JSON.stringify({ tokens, ...more })

describe('a good file', () => {
  test('in the native spelling gives tokens, identity and the time of the last refresh', () => {
    const imported = parseAuthJson(file(NATIVE, { last_refresh: '2026-11-01T10:00:00Z' }), 'auth.json')
    expect(imported).toEqual({
      identity: {
        email: 'ada@example.test',
        chatgptAccountId: 'workspace-1',
        chatgptUserId: 'user-1',
        planType: 'pro',
        workspaceId: null,
        workspaceLabel: 'Labs',
        seatType: null,
      },
      tokens: { idToken: ID_TOKEN, accessToken: 'access', refreshToken: 'refresh' },
      lastRefreshAt: Date.UTC(2026, 10, 1, 10),
    })
  })

  test.each([undefined, null, '', 'yesterday', '0001-01-01T00:00:00Z'])(
    'whose last refresh is %p is as old as its access token says, or else its ID token, or nobody knows',
    (last_refresh) => {
      const given = (claims: object) => unsignedJwt({ email: 'ada@example.test', ...claims })
      const ageOf = (access_token: string, id_token: string) =>
        parseAuthJson(file({ ...NATIVE, access_token, id_token }, { last_refresh }), 'a').lastRefreshAt
      expect(ageOf(given({ iat: 1_800_000_000 }), given({ iat: 1_700_000_000 }))).toBe(1_800_000_000_000)
      expect(ageOf('opaque', given({ iat: 1_700_000_000 }))).toBe(1_700_000_000_000)
      for (const iat of [undefined, 0, -5, 'x', 1e300]) expect(ageOf('opaque', given({ iat }))).toBeNull()
    },
  )

  test('in camelCase gives the same', () => {
    const camel = { idToken: ID_TOKEN, accessToken: 'access', refreshToken: 'refresh', accountId: 'fallback' }
    const at = '2026-11-01T10:00:00Z'
    expect(parseAuthJson(file(camel, { lastRefresh: at }), 'a')).toEqual(
      parseAuthJson(file(NATIVE, { last_refresh: at }), 'a'),
    )
  })

  test('without the claim takes the account id beside the tokens, and the subject for the seat', () => {
    const idToken = unsignedJwt({ email: 'ada@example.test', sub: 'auth0|ada' })
    const { identity, lastRefreshAt } = parseAuthJson(file({ ...NATIVE, id_token: idToken }), 'a')
    expect(identity).toMatchObject({ chatgptAccountId: 'fallback', chatgptUserId: 'auth0|ada', planType: 'unknown' })
    expect(lastRefreshAt).toBeNull()
  })
})

describe('a bad file', () => {
  test.each([
    ['not JSON', '{"tokens":', 'is not JSON'],
    ['an empty file', '', 'is not JSON'],
    ['an array', '[]', 'is not a native auth.json'],
    ['JSON null', 'null', 'is not'],
    ['a client with an API key', '{"OPENAI_API_KEY":"sk-x","tokens":null}', 'signed in with an API key'],
    [
      'a file of another program',
      '{"openai":{"type":"oauth"}}',
      'holds no tokens; it is no auth.json of the Codex CLI',
    ],
    ['no access token', file({ ...NATIVE, access_token: undefined }), 'has no access_token'],
    ['no refresh token', file({ ...NATIVE, refresh_token: undefined }), 'has no refresh_token'],
    ['no ID token', file({ ...NATIVE, id_token: undefined }), 'has no id_token'],
    ['a blank refresh token', file({ ...NATIVE, refresh_token: '  ' }), 'tokens.refresh_token'],
    ['an ID token that is none', file({ ...NATIVE, id_token: 'opaque' }), 'without an e-mail'],
    ['an ID token without an address', file({ ...NATIVE, id_token: unsignedJwt({ sub: 'x' }) }), 'without an e-mail'],
  ])('%s is refused by name and reason', (_, text, reason) => {
    const refusal = refusalOf(text)
    expect(refusal.code).toBe('invalid_auth_json')
    expect(refusal.message).toStartWith('work.json: ')
    expect(refusal.message).toContain(reason)
    expect(refusal.extra.param).toBe('work.json')
  })

  test('never shows a token', () => {
    const { message } = refusalOf(file({ ...NATIVE, access_token: 7, refresh_token: 'secret-refresh' }))
    expect(message).not.toContain('secret')
  })
})

test('of several files the good ones are kept, and each bad one is named', () => {
  const { accounts, failures } = readAuthFiles([
    { name: 'one.json', text: file(NATIVE) },
    { name: 'two.json', text: 'nonsense' },
    { name: 'three.json', text: file(NATIVE) },
  ])
  expect(accounts).toHaveLength(2)
  expect(failures).toEqual([{ file: 'two.json', message: 'two.json: is not JSON' }])
})

test('a token says when it expires, in ms, or nothing', () => {
  expect(expiryOf(unsignedJwt({ exp: 1_800_000_000 }))).toBe(1_800_000_000_000)
  expect(expiryOf(unsignedJwt({}))).toBeNull()
  expect(expiryOf('opaque')).toBeNull()
  for (const exp of [1.8e15, 1e300, -1e18]) expect([exp, expiryOf(unsignedJwt({ exp }))]).toEqual([exp, null])
})

const refusalOf = (text: string): AppError => {
  try {
    parseAuthJson(text, 'work.json')
  } catch (err) {
    if (err instanceof AppError) return err
  }
  throw new Error('The file was taken.')
}
