/** The stand-in upstream's sign-ins, as strict as ChatGPT about codes and polling. */
import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../../src/lib/random.ts'
import { authorizationUrl, newBrowserSecret } from '../../../src/upstream/oauth-browser.ts'
import { createUpstream } from './app.ts'
import { CLIENT_ID } from './oauth.ts'
import { Refusal } from './refusal.ts'

const ORIGIN = 'http://upstream.test'
const REDIRECT = 'http://localhost:1455/auth/callback'

const world = () => {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const upstream = createUpstream({ now: () => clock.now })
  const ada = upstream.addAccount({ email: 'ada@example.test' })
  const secret = newBrowserSecret(seededRandom(1))
  const url = authorizationUrl(ORIGIN, secret, REDIRECT)
  const code = () => new URL(upstream.signIns.approve(url, ada)).searchParams.get('code') ?? ''
  const exchange = async (more: Record<string, string> = {}) => {
    const form = {
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT,
      code_verifier: secret.verifier,
      ...more,
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'test/1' }
    const body = new URLSearchParams(form).toString()
    const response = await upstream.fetch(`${ORIGIN}/oauth/token`, { method: 'POST', headers, body })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const post = async (path: string, json: object) => {
    const headers = { 'content-type': 'application/json', 'user-agent': 'test/1' }
    const response = await upstream.fetch(ORIGIN + path, { method: 'POST', headers, body: JSON.stringify(json) })
    return { status: response.status, body: (await response.json()) as Record<string, string> }
  }
  return { clock, upstream, ada, url, code, exchange, post }
}

describe('a code', () => {
  test('returns the tokens of the user who signed in, once', async () => {
    const { code, exchange, ada, upstream } = world()
    const given = code()
    const { status, body } = await exchange({ code: given })
    expect([status, body.access_token, body.refresh_token]).toEqual([200, ada.accessToken, ada.refreshToken])
    expect(upstream.oddities).toEqual([])
    expect(await exchange({ code: given })).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(upstream.oddities).toEqual(['POST /oauth/token: a code came twice'])
  })

  test.each([
    ['another verifier', { code_verifier: 'x'.repeat(43) }],
    ['no verifier', { code_verifier: '' }],
    ['another redirect', { redirect_uri: 'http://localhost:1456/auth/callback' }],
    ['a redirect that differs by a slash', { redirect_uri: `${REDIRECT}/` }],
    ['an unknown code', { code: 'ac_unknown' }],
  ])('with %s is rejected', async (_, more) => {
    const { code, exchange } = world()
    expect(await exchange({ code: code(), ...more })).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('is rejected for another client, and after ten minutes', async () => {
    const { code, exchange, clock } = world()
    expect((await exchange({ code: code(), client_id: 'other' })).status).toBe(401)
    const late = code()
    clock.now += 10 * 60_000
    expect((await exchange({ code: late })).status).toBe(400)
  })
})

test.each([
  ['client_id', 'other'],
  ['response_type', 'token'],
  ['code_challenge_method', 'plain'],
  ['code_challenge', 'short'],
  ['redirect_uri', 'https://evil.example/auth/callback'],
  ['scope', 'openid'],
  ['state', ''],
])('a URL whose %s is %p is rejected', (name, value) => {
  const { upstream, url, ada } = world()
  const changed = new URL(url)
  changed.searchParams.set(name, value)
  expect(() => upstream.signIns.approve(changed.href, ada)).toThrow(Refusal)
})

describe('a device', () => {
  const USER_CODE = '/api/accounts/deviceauth/usercode'
  const TOKEN = '/api/accounts/deviceauth/token'

  test('waits, gets slow_down when it polls too fast, and gets its code', async () => {
    const { upstream, post, clock, ada } = world()
    const { body } = await post(USER_CODE, { client_id: CLIENT_ID })
    const question = { device_auth_id: body.device_auth_id, user_code: body.user_code }
    expect(await post(TOKEN, question)).toMatchObject({ status: 403, body: { error: 'authorization_pending' } })
    expect(await post(TOKEN, question)).toMatchObject({ status: 429, body: { error: 'slow_down' } })
    expect(upstream.oddities).toHaveLength(1)
    upstream.signIns.enterCode(body.user_code ?? '', ada)
    clock.now += 5000
    expect(await post(TOKEN, question)).toMatchObject({
      status: 200,
      body: { authorization_code: expect.stringMatching(/^ac_/), code_verifier: expect.any(String) },
    })
  })

  test('with another code or after its time gets nothing', async () => {
    const { post, clock } = world()
    const { body } = await post(USER_CODE, { client_id: CLIENT_ID })
    const question = { device_auth_id: body.device_auth_id, user_code: body.user_code }
    expect((await post(TOKEN, { ...question, user_code: 'OTHER' })).status).toBe(404)
    clock.now += 900_000
    expect(await post(TOKEN, question)).toMatchObject({ status: 400, body: { error: 'expired_token' } })
  })
})
