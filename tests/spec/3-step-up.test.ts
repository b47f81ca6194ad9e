/** Spec §3, the states of a confirmation, and §5, how to confirm. */
import { describe, expect, test } from 'bun:test'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, problem, REMOTE, REQUEST_FORMATS, type SignedIn } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const STEP_UP = `POST ${AUTH}/step-up`
const PROXY = {
  CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
  CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
  CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
}

const open = async (environment: Record<string, string> = {}) => {
  const app = await testApp({ accounts: 0, environment })
  const house = people(app)
  const unconfirmed = (input: SignedIn = {}) => house.as('admin', { isConfirmed: false, peer: REMOTE, ...input })
  return { app, ...house, unconfirmed }
}

const sensitive = 'POST /api/firewall/ips'
const entry = (last: number) => ({ json: { ipAddress: `198.51.100.${last}` } })

describe.each(REQUEST_FORMATS)('§3 Step-up confirmation (%s)', (how) => {
  test('row 1: without one in the last five minutes a sensitive change is rejected, and the methods are named', async () => {
    const { unconfirmed } = await open()
    const anna = await unconfirmed()
    const refused = await anna.ask(sensitive, entry(1))
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({
      error: { code: 'step_up_required', details: { methods: ['password'] } },
    })
  })

  test('row 2: confirmed for five minutes, with an audit row', async () => {
    const { app, unconfirmed, audit } = await open()
    const anna = await unconfirmed()
    const old = anna.cookie
    const response = await anna.send(how, STEP_UP, { password: PASSWORD })
    expect(response.status).toBe(how === 'json' ? 200 : 303)
    expect(anna.cookie).not.toBe(old)
    expect((await anna.ask(sensitive, entry(1))).status).toBe(200)
    expect((await audit())[0]).toMatchObject({
      event: 'step_up_verified',
      actor: anna.person.row.id,
      address: REMOTE,
      details: { methods: ['password'] },
    })
    await app.clock.advance(299_999)
    expect((await anna.ask(sensitive, entry(2))).status).toBe(200)
    await app.clock.advance(1)
    expect((await problem(await anna.ask(sensitive, entry(3))))[1]).toBe('step_up_required')
  })

  test('row 3: a sign-in that covered every factor counts as one', async () => {
    const { add, browser } = await open()
    await add({ username: 'anna', role: 'admin' })
    const here = browser(REMOTE)
    await here.send(how, `POST ${AUTH}/password/login`, { username: 'anna', password: PASSWORD })
    expect((await here.session()).stepUp).toMatchObject({ methods: ['password'] })
    expect((await here.ask(sensitive, entry(1))).status).toBe(200)
  })
})

describe('§5 Step-up confirmation 3: methods', () => {
  test('a user with a password enters it, and a code if they have one', async () => {
    const { unconfirmed, code } = await open()
    const anna = await unconfirmed({ hasTotp: true })
    const answer = async (json: object) => problem(await anna.ask(STEP_UP, { json }))
    expect(await answer({ password: PASSWORD })).toEqual([401, 'invalid_credentials'])
    expect(await answer({ code: code() })).toEqual([401, 'invalid_credentials'])
    expect(await answer({ password: 'wrong', code: code() })).toEqual([401, 'invalid_credentials'])
    expect(await answer({ password: PASSWORD, code: '000000' })).toEqual([401, 'invalid_credentials'])
    expect((await anna.ask(STEP_UP, { json: { password: PASSWORD, code: code() } })).status).toBe(200)
    expect((await anna.ask(sensitive, entry(1))).status).toBe(200)
  })

  test('the response does not reveal which factor was wrong', async () => {
    const { unconfirmed, code } = await open()
    const anna = await unconfirmed({ hasTotp: true })
    const bodies = []
    for (const json of [{ password: 'x', code: code() }, { password: PASSWORD, code: '000000' }, {}])
      bodies.push(await (await anna.ask(STEP_UP, { json })).text())
    expect(new Set(bodies).size).toBe(1)
  })

  test('returns when it was and until when it is valid', async () => {
    const { app, unconfirmed } = await open()
    const now = app.clock.now()
    const response = await (await unconfirmed()).ask(STEP_UP, { json: { password: PASSWORD } })
    expect(await response.json()).toEqual({
      verifiedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + 300_000).toISOString(),
    })
  })

  test('a proxy user enters only the code, and keeps the confirmation in a cookie', async () => {
    const { app, add, browser, code } = await open(PROXY)
    const { row } = await add({ username: 'anna', role: 'admin', hasPassword: false, hasTotp: true })
    app.sqlite.run(
      "INSERT INTO identities (id, user_id, provider, subject, created_at) VALUES ('i', ?, 'trusted_header', 'anna', 1)",
      [row.id],
    )
    const here = browser('10.0.0.1')
    const headers = { 'remote-user': 'Anna', 'x-forwarded-for': '192.0.2.7' }
    expect(await problem(await here.ask(sensitive, { ...entry(1), headers }))).toEqual([403, 'step_up_required'])
    const confirmed = await here.ask(STEP_UP, { json: { code: code() }, headers })
    expect([confirmed.status, confirmed.headers.get('set-cookie')]).toEqual([
      200,
      expect.stringContaining(`Max-Age=${300 + 30 * 86_400};`), // the cookie outlives it
    ])
    expect((await here.ask(sensitive, { ...entry(1), headers })).status).toBe(200)
    const withoutHeader = await here.ask('GET /api/settings', { headers: { 'x-forwarded-for': '192.0.2.7' } })
    expect(await problem(withoutHeader)).toEqual([401, 'proxy_auth_required'])
  })

  test('there a second confirmation is valid for five minutes, too', async () => {
    const { app, add, browser, code } = await open(PROXY)
    const { row } = await add({ username: 'anna', role: 'admin', hasPassword: false, hasTotp: true })
    app.sqlite.run(
      "INSERT INTO identities (id, user_id, provider, subject, created_at) VALUES ('i', ?, 'trusted_header', 'anna', 1)",
      [row.id],
    )
    const here = browser('10.0.0.1')
    const headers = { 'remote-user': 'anna', 'x-forwarded-for': '192.0.2.7' }
    const confirm = async () => (await here.ask(STEP_UP, { json: { code: code() }, headers })).status
    expect(await confirm()).toBe(200)
    await app.clock.advance('4m')
    expect(await confirm()).toBe(200)
    await app.clock.advance(299_999)
    expect((await here.ask(sensitive, { ...entry(1), headers })).status).toBe(200)
    await app.clock.advance(1)
    expect(await problem(await here.ask(sensitive, { ...entry(2), headers }))).toEqual([403, 'step_up_required'])
  })

  test('a user without a factor gets an error', async () => {
    const { unconfirmed } = await open()
    const anna = await unconfirmed({ hasPassword: false, method: 'invite' })
    expect(await problem(await anna.ask(STEP_UP, { json: {} }))).toEqual([403, 'step_up_unavailable'])
    expect(await problem(await anna.ask(sensitive, entry(1)))).toEqual([403, 'step_up_unavailable'])
  })

  test('a user with only a passkey is asked for it: no factors confirm nothing', async () => {
    const { app, unconfirmed } = await open()
    const anna = await unconfirmed({ hasPassword: false, method: 'passkey' })
    app.sqlite.run(
      "INSERT INTO passkeys (id, credential_id, user_id, name, public_key, counter, transports, created_at) VALUES ('p', 'c', ?, 'key', 'k', 0, '[]', 1)",
      [anna.person.row.id],
    )
    const refused = await anna.ask(STEP_UP, { json: {} })
    expect([refused.status, (await refused.json()).error]).toMatchObject([
      403,
      { code: 'step_up_required', details: { methods: ['passkey'] } },
    ])
    expect((await anna.session()).stepUp).toBeNull()
  })

  test('a code used fifty times in parallel confirms once', async () => {
    const { app, add, signInAs, code } = await open()
    const person = await add({ role: 'admin', hasTotp: true })
    const browsers = await mapInOrder(Array.from({ length: 50 }).keys(), (i) =>
      signInAs(person, { isConfirmed: false, peer: `192.0.2.${i + 1}` }),
    )
    app.bindings.passwords = { ...app.bindings.passwords, verify: async () => true }
    const json = { password: PASSWORD, code: code() }
    const answers = await Promise.all(browsers.map((one) => one.ask(STEP_UP, { json })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('§5 Step-up confirmation 4: wrong answers', () => {
  test('are invalid_credentials and share the eight sign-in attempts', async () => {
    const { unconfirmed, browser } = await open()
    const anna = await unconfirmed()
    for (let i = 0; i < 8; i++)
      expect(await problem(await anna.ask(STEP_UP, { json: { password: 'wrong' } }))).toEqual([
        401,
        'invalid_credentials',
      ])
    expect(await problem(await anna.ask(STEP_UP, { json: { password: PASSWORD } }))).toEqual([
      429,
      'step_up_rate_limited',
    ])
    const login = await browser(REMOTE).ask(`POST ${AUTH}/password/login`, { json: { password: PASSWORD } })
    expect(await problem(login)).toEqual([429, 'password_rate_limited'])
  })
})

describe('§5 Step-up confirmation 5: not required for', () => {
  test('reads and other changes', async () => {
    const { unconfirmed } = await open()
    const anna = await unconfirmed()
    expect((await anna.ask('GET /api/settings')).status).toBe(200)
    expect((await anna.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 1 } })).status).toBe(200)
  })

  test('the local user of a passwordless install', async () => {
    const { browser } = await open()
    expect((await browser().ask(sensitive, entry(1))).status).toBe(200)
    expect(await problem(await browser().ask(STEP_UP, { json: {} }))).toEqual([401, 'user_account_required'])
  })
})
