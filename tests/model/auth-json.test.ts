/** The native client's `auth.json`: both formats, and errors that name the file and the problem. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { readAuthFiles } from '../../src/model/accounts/account-import.ts'
import { getExpiry, parseAuthJson } from '../../src/model/accounts/auth-json.ts'
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

describe('a valid file', () => {
  test('in the native format gives tokens, identity and the time of the last refresh', () => {
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
    'whose last refresh is %p takes its age from its access token, its ID token, or has none',
    (last_refresh) => {
      const given = (claims: object) => unsignedJwt({ email: 'ada@example.test', ...claims })
      const getAge = (access_token: string, id_token: string) =>
        parseAuthJson(file({ ...NATIVE, access_token, id_token }, { last_refresh }), 'a').lastRefreshAt
      expect(getAge(given({ iat: 1_800_000_000 }), given({ iat: 1_700_000_000 }))).toBe(1_800_000_000_000)
      expect(getAge('opaque', given({ iat: 1_700_000_000 }))).toBe(1_700_000_000_000)
      for (const iat of [undefined, 0, -5, 'x', 1e300]) expect(getAge('opaque', given({ iat }))).toBeNull()
    },
  )

  test('in camelCase gives the same', () => {
    const camel = { idToken: ID_TOKEN, accessToken: 'access', refreshToken: 'refresh', accountId: 'fallback' }
    const at = '2026-11-01T10:00:00Z'
    expect(parseAuthJson(file(camel, { lastRefresh: at }), 'a')).toEqual(
      parseAuthJson(file(NATIVE, { last_refresh: at }), 'a'),
    )
  })

  test('without the claim uses the account id beside the tokens, and the subject as the user', () => {
    const idToken = unsignedJwt({ email: 'ada@example.test', sub: 'auth0|ada' })
    const { identity, lastRefreshAt } = parseAuthJson(file({ ...NATIVE, id_token: idToken }), 'a')
    expect(identity).toMatchObject({ chatgptAccountId: 'fallback', chatgptUserId: 'auth0|ada', planType: 'unknown' })
    expect(lastRefreshAt).toBeNull()
  })
})

describe('an invalid file', () => {
  test.each([
    ['not JSON', '{"tokens":', 'is not valid JSON'],
    ['an empty file', '', 'is not valid JSON'],
    ['an array', '[]', 'is not an auth.json of the Codex CLI'],
    ['JSON null', 'null', 'is not'],
    [
      'a JSON file of something else',
      '{"name":"x","version":1}',
      "has no tokens; it isn't an auth.json from the Codex CLI",
    ],
    ['no access token', file({ ...NATIVE, access_token: undefined }), 'has no access_token'],
    ['no refresh token', file({ ...NATIVE, refresh_token: undefined }), 'has no refresh_token'],
    ['no ID token', file({ ...NATIVE, id_token: undefined }), 'has no id_token'],
    ['a blank refresh token', file({ ...NATIVE, refresh_token: '  ' }), 'tokens.refresh_token'],
    ['an invalid ID token', file({ ...NATIVE, id_token: 'opaque' }), 'without an e-mail address'],
    [
      'an ID token without an address',
      file({ ...NATIVE, id_token: unsignedJwt({ sub: 'x' }) }),
      'without an e-mail address',
    ],
  ])('%s is rejected by name and reason', (_, text, reason) => {
    const refusal = getRefusal(text)
    expect(refusal.code).toBe('invalid_auth_json')
    expect(refusal.message).toStartWith('work.json ')
    expect(refusal.message).toContain(reason)
    expect(refusal.extra.param).toBe('work.json')
  })

  test('never shows a token', () => {
    const { message } = getRefusal(file({ ...NATIVE, access_token: 7, refresh_token: 'secret-refresh' }))
    expect(message).not.toContain('secret')
  })
})

describe('a recognized but unusable file is named, with advice and without its secrets', () => {
  const claims = { email: 'ada@example.test' }
  test.each([
    ['an API key', { OPENAI_API_KEY: 'sk-secret', tokens: null }, 'signed in with an API key'],
    ['an API key, by its mode', { auth_mode: 'apikey', OPENAI_API_KEY: 'sk-secret' }, 'signed in with an API key'],
    ['a personal access token', { OPENAI_API_KEY: null, personal_access_token: 'at-secret' }, 'personal access token'],
    ['an agent identity', { auth_mode: 'agentIdentity', agent_identity: unsignedJwt(claims) }, 'agent identity'],
    ['an agent identity without a mode', { agent_identity: { token: 'secret' }, tokens: null }, 'agent identity'],
    ['a signed-out client', { OPENAI_API_KEY: null, tokens: null, last_refresh: null }, 'signed out'],
    ['a signed-out client, by its mode', { auth_mode: 'chatgpt', OPENAI_API_KEY: null }, 'signed out'],
    ['emptied tokens', { OPENAI_API_KEY: null, tokens: {} }, 'signed out'],
    [
      'tokens another app refreshes',
      { auth_mode: 'chatgptAuthTokens', tokens: { ...NATIVE, refresh_token: '' } },
      'work.json has tokens that another app manages and renews. ',
    ],
    ['Claude Code', { claudeAiOauth: { accessToken: 'secret', refreshToken: 'secret', expiresAt: 1 } }, 'Claude Code'],
    ['OpenCode', { openai: { type: 'oauth', access: 'secret', refresh: 'secret', expires: 1 } }, 'OpenCode'],
    ['OpenCode with API keys', { anthropic: { type: 'api', key: 'secret' } }, 'OpenCode'],
    [
      'the Gemini CLI',
      { access_token: 'secret', refresh_token: 'secret', scope: 'x', token_type: 'Bearer', expiry_date: 1 },
      'Gemini CLI',
    ],
    ['CLIProxyAPI', { type: 'codex', access_token: 'secret', refresh_token: 'secret', email: 'a@b.c' }, 'CLIProxyAPI'],
    ['GitHub Copilot', { 'github.com': { user: 'ada', oauth_token: 'secret' } }, 'GitHub Copilot'],
  ])('%s', (_, content, name) => {
    const { code, message } = getRefusal(JSON.stringify(content))
    expect(code).toBe('invalid_auth_json')
    expect(message).toContain(name)
    expect(message).toContain('codex login')
    expect(message).not.toContain('secret')
    expect(message).not.toContain('eyJ')
  })

  test('a personal access token beside valid tokens does not matter', () => {
    expect(parseAuthJson(file(NATIVE, { personal_access_token: 'at-x' }), 'a').tokens.accessToken).toBe('access')
  })
})

test.each([
  ['access_token', 'is too long (at most 16384 characters)', { ...NATIVE, access_token: 'x'.repeat(20_000) }],
  ['refresh_token', 'has characters that cannot be sent in a header', { ...NATIVE, refresh_token: 'a\tb' }],
  ['email', 'is too long (at most 320 characters)', { ...NATIVE, id_token: unsignedJwt({ email: 'a'.repeat(400) }) }],
  ['email', 'has control characters', { ...NATIVE, id_token: unsignedJwt({ email: 'a\u0007b@example.test' }) }],
])('the message begins with the file and the field: %s %s', (field, problem, tokens) => {
  expect(getRefusal(file(tokens)).message).toBe(`work.json is not usable: ${field} ${problem}.`)
})

describe('a field that could not be sent or shown is rejected by its name', () => {
  const idToken = (auth: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    unsignedJwt({ email: 'ada@example.test', sub: 'ada', [AUTH]: auth, ...more })
  const withEmail = (email: string) => ({ ...NATIVE, id_token: unsignedJwt({ email, sub: 'ada' }) })

  test.each([
    ['an access token with a control byte', { ...NATIVE, access_token: 'acc\u0000ess' }, 'access_token'],
    ['an access token with a line break inside', { ...NATIVE, access_token: 'acc\r\nx: y' }, 'access_token'],
    ['an access token with non-ASCII characters', { ...NATIVE, access_token: 'accéss' }, 'access_token'],
    ['a refresh token with a tab inside', { ...NATIVE, refresh_token: 're\tfresh' }, 'refresh_token'],
    ['a refresh token of 30 KB', { ...NATIVE, refresh_token: 'r'.repeat(30_000) }, 'refresh_token'],
    ['an ID token with a control byte', { ...NATIVE, id_token: `${ID_TOKEN}\u0007x` }, 'id_token'],
    ['an account id with CR LF', { ...NATIVE, id_token: idToken({}), account_id: 'ws\r\nx-evil: 1' }, 'account_id'],
    ['an account id that ends with CR LF', { ...NATIVE, id_token: idToken({}), account_id: 'ws-1\r\n' }, 'account_id'],
    [
      'an account id of the claims with CR LF',
      { ...NATIVE, id_token: idToken({ chatgpt_account_id: 'a\r\nb' }) },
      'account_id',
    ],
    ['an account id of 1 KB', { ...NATIVE, id_token: idToken({ chatgpt_account_id: 'a'.repeat(1024) }) }, 'account_id'],
    [
      'an account id with non-ASCII characters',
      { ...NATIVE, id_token: idToken({ chatgpt_account_id: 'wörk' }) },
      'account_id',
    ],
    ['an email of 30 KB', withEmail(`${'a'.repeat(30_000)}@example.test`), 'email'],
    ['an email with a control byte', withEmail('ada\u001b[31m@example.test'), 'email'],
    ['an email with a bidirectional control', withEmail('ada\u202e@example.test'), 'email'],
    ['an email with half a surrogate pair', withEmail('ada\ud800@example.test'), 'email'],
    ['a user id of 30 KB', { ...NATIVE, id_token: idToken({ chatgpt_user_id: 'u'.repeat(30_000) }) }, 'user_id'],
    ['a plan with a line break', { ...NATIVE, id_token: idToken({ chatgpt_plan_type: 'pro\nx' }) }, 'plan_type'],
    ['a label of 30 KB', { ...NATIVE, id_token: idToken({ workspace_label: 'l'.repeat(30_000) }) }, 'workspace_label'],
    ['a seat type with a control byte', { ...NATIVE, id_token: idToken({ seat_type: 's\u0000' }) }, 'seat_type'],
  ])('%s', (_, tokens, field) => {
    const { code, message } = getRefusal(file(tokens))
    expect(code).toBe('invalid_auth_json')
    expect(message).toStartWith('work.json ')
    expect(message).toContain(field)
    expect(message.length).toBeLessThan(200)
  })

  test('long but usable fields are accepted', () => {
    const id_token = idToken({ workspace_label: 'Königlich Bayerische Entwicklungsabteilung 部門' })
    const tokens = { ...NATIVE, id_token, access_token: 'a'.repeat(8_000) }
    expect(parseAuthJson(file(tokens), 'a').identity.workspaceLabel).toContain('部門')
  })
})

test('of several files the valid ones are kept, and each invalid one is named', () => {
  const { accounts, failures } = readAuthFiles([
    { name: 'one.json', text: file(NATIVE) },
    { name: 'two.json', text: 'nonsense' },
    { name: 'three.json', text: file(NATIVE) },
  ])
  expect(accounts).toHaveLength(2)
  expect(failures).toEqual([{ file: 'two.json', message: 'two.json is not valid JSON.' }])
})

test('a token states when it expires, in ms, or nothing', () => {
  expect(getExpiry(unsignedJwt({ exp: 1_800_000_000 }))).toBe(1_800_000_000_000)
  expect(getExpiry(unsignedJwt({}))).toBeNull()
  expect(getExpiry('opaque')).toBeNull()
  for (const exp of [1.8e15, 1e300, -1e18]) expect([exp, getExpiry(unsignedJwt({ exp }))]).toEqual([exp, null])
})

const getRefusal = (text: string): AppError => {
  try {
    parseAuthJson(text, 'work.json')
  } catch (err) {
    if (err instanceof AppError) return err
  }
  throw new Error('The file was taken.')
}
