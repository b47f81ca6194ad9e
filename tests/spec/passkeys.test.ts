/** Passkeys (docs/decisions.md §4): registering, naming, removing, signing in and confirming, with real signatures. */
import { describe, expect, test } from 'bun:test'
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'
import { count, eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { challenges, identities, passkeys, users } from '../../db/schema/people.ts'
import { dropExpiredChallenges } from '../../src/model/users/passkeys.ts'
import { type TestOptions, testApp } from '../support/app.ts'
import { Authenticator, type Quirks } from '../support/authenticator.ts'
import { type Browser, people, problem, REMOTE, type TestUser } from '../support/people.ts'
import { runRetention } from '../support/retention.ts'

const BASE = '/api/dashboard-auth/passkeys'
const INVALID: [number, string] = [400, 'invalid_passkey']

const setUp = async (options: TestOptions = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  const crowd = people(app)
  await crowd.add({ username: 'first', role: 'admin' })
  return { app, crowd, device: new Authenticator() }
}

const getOptions = async <T>(browser: Browser, what: string): Promise<T> => {
  const answer = await browser.ask(`POST ${BASE}/${what}/start`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as T // as: what the browser gets
}
const creation = (browser: Browser) => getOptions<PublicKeyCredentialCreationOptionsJSON>(browser, 'register')
const request = (browser: Browser, what: 'sign-in' | 'step-up') =>
  getOptions<PublicKeyCredentialRequestOptionsJSON>(browser, what)

const register = async (browser: TestUser, device: Authenticator, name = 'Phone', quirks: Quirks = {}) => {
  const response = await device.create(await creation(browser), quirks)
  return browser.ask(`POST ${BASE}/register/finish`, { json: { name, response } })
}

const use = async (browser: Browser, device: Authenticator, what: 'sign-in' | 'step-up', quirks: Quirks = {}) => {
  const response = await device.get(await request(browser, what), quirks)
  return browser.ask(`POST ${BASE}/${what}/finish`, { json: { response } })
}

const registered = async (options: TestOptions = {}, isCounting = true) => {
  const world = await setUp(options)
  const device = new Authenticator({ isCounting })
  const anna = await world.crowd.as('viewer', { username: 'anna' })
  expect((await register(anna, device)).status).toBe(201)
  return { ...world, device, anna }
}

const list = async (browser: Browser) =>
  (await (await browser.ask(`GET ${BASE}`)).json()) as Record<string, unknown> & {
    items: { id: string; name: string }[]
  } // as: its shape

describe('Decisions §4 Passkeys: registering', () => {
  test('requests a discoverable key and user verification, and identifies the user by an opaque handle', async () => {
    const { crowd } = await setUp()
    const anna = await crowd.as('viewer', { username: 'anna', displayName: 'Anna' })
    const options = await creation(anna)
    expect(options).toMatchObject({
      rp: { name: 'Sluice', id: 'localhost' },
      user: { name: 'anna', displayName: 'Anna' },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    })
    expect(Buffer.from(options.user.id, 'base64url').toString()).toBe(anna.person.row.id)
    expect(options.pubKeyCredParams.map(({ alg }) => alg)).toEqual([-8, -7, -257])
  })

  test('a user has several, each with a name, and an authenticator registers only once', async () => {
    const { anna, app } = await registered()
    await app.clock.advance(1) // the list is ordered by time
    expect((await register(anna, new Authenticator(), 'Laptop')).status).toBe(201)
    const { items, ...support } = await list(anna)
    expect(items.map(({ name }) => name)).toEqual(['Phone', 'Laptop'])
    expect(support).toEqual({ isAvailable: true, unavailableReason: null, availableAt: null })
    const { excludeCredentials } = await creation(anna)
    const { allowCredentials } = await request(anna, 'step-up')
    const credentials = await app.db
      .select({ id: passkeys.credentialId })
      .from(passkeys)
      .orderBy(passkeys.createdAt)
      .all()
    for (const named of [excludeCredentials, allowCredentials])
      expect(named).toMatchObject([{ id: credentials[0]?.id }, { id: credentials[1]?.id }])
  })

  test('is recorded without anything secret', async () => {
    const { anna, crowd, app } = await registered()
    const row = (await crowd.audit()).at(-1)
    expect(row).toMatchObject({ event: 'passkey_added', actor: anna.person.row.id, severity: 'warning' })
    const stored = await app.db.select().from(passkeys).get()
    expect(row?.target).toBe(stored?.id ?? 'none')
    expect(JSON.stringify(row)).not.toContain(stored?.publicKey ?? 'none')
  })

  test.each([
    ['another origin', { origin: 'http://localhost:9999' }],
    ['another site', { origin: 'https://evil.example', rpId: 'evil.example' }],
    ['the key of another name', { rpId: 'example.com' }],
    ['a user who was not verified', { isUserVerified: false }],
    ['its own challenge', { challenge: 'bm90IG91cnM' }],
  ] satisfies [string, Quirks][])('rejects %s and stores nothing', async (_name, quirks) => {
    const { crowd, app, device } = await setUp()
    const anna = await crowd.as('viewer')
    expect(await problem(await register(anna, device, 'Phone', quirks))).toEqual(INVALID)
    expect(await app.db.select().from(passkeys).all()).toEqual([])
  })

  test('only one of fifty answers to one challenge succeeds', async () => {
    const { crowd, app } = await setUp()
    const anna = await crowd.as('viewer')
    const options = await creation(anna)
    const made = await Promise.all(Array.from({ length: 50 }, () => new Authenticator().create(options)))
    const answers = await Promise.all(
      made.map((response) => anna.ask(`POST ${BASE}/register/finish`, { json: { name: 'One', response } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(49).fill(400)])
    expect(await app.db.select({ n: count() }).from(passkeys).get()).toEqual({ n: 1 })
  })

  test('a challenge is valid only in the session it was created for', async () => {
    const { crowd, device } = await setUp()
    const anna = await crowd.as('viewer')
    const finish = async (browser: Browser, response: unknown) =>
      problem(await browser.ask(`POST ${BASE}/register/finish`, { json: { name: 'Phone', response } }))
    const theirs = await device.create(await creation(anna))
    const other = await crowd.signInAs(anna.person)
    expect(await finish(other, theirs)).toEqual(INVALID)
    const forSignIn = await request(anna, 'sign-in')
    const misused = await device.create({ ...(await creation(anna)), challenge: forSignIn.challenge })
    expect(await finish(anna, misused)).toEqual(INVALID)
  })

  test('an expired challenge is rejected and deleted', async () => {
    const { crowd, app, device } = await registered()
    const browser = crowd.browser()
    const [late, inTime] = [await request(browser, 'sign-in'), await request(browser, 'sign-in')]
    const finish = async (options: PublicKeyCredentialRequestOptionsJSON) =>
      browser.ask(`POST ${BASE}/sign-in/finish`, { json: { response: await device.get(options) } })
    await app.clock.advance(5 * 60_000 - 1)
    expect((await finish(inTime)).status).toBe(200)
    await app.clock.advance(1)
    expect(await problem(await finish(late))).toEqual(INVALID)
    await commit(app.db, (tx) => dropExpiredChallenges(tx, app.clock.now()))
    expect(await app.db.select().from(challenges).all()).toEqual([])
  })

  test('needs a user and a recent confirmation', async () => {
    const { crowd } = await setUp()
    const start = `POST ${BASE}/register/start`
    expect(await problem(await (await crowd.as('viewer', { isConfirmed: false })).ask(start))).toEqual([
      403,
      'step_up_required',
    ])
    expect(await problem(await (await crowd.as('viewer', { hasPassword: false })).ask(start))).toEqual([
      403,
      'step_up_unavailable',
    ])
    expect(await problem(await crowd.browser(REMOTE).ask(start))).toEqual([401, 'authentication_required'])
    expect(await problem(await (await crowd.guest()).ask(start))).toEqual([401, 'user_account_required'])
    expect(await problem(await (await testApp({ accounts: 0 })).ask(start))).toEqual([401, 'user_account_required'])
  })

  test('a user has twenty at most, listed oldest first, and each belongs to one user', async () => {
    const { anna, app, crowd } = await registered()
    const id = crypto.getRandomValues(new Uint8Array(16))
    for (let n = 2; n <= 20; n++) {
      await app.clock.advance('1m')
      expect(
        (await register(await crowd.signInAs(anna.person), new Authenticator(), `${n}`, n === 20 ? { id } : {})).status,
      ).toBe(201)
    }
    const refused = await register(await crowd.signInAs(anna.person), new Authenticator())
    expect(await refused.json()).toMatchObject({ error: { message: 'You can have at most 20 passkeys.' } })
    expect((await list(anna)).items.map(({ name }) => name).slice(0, 3)).toEqual(['Phone', '2', '3'])
    const known = await register(await crowd.as('viewer'), new Authenticator(), 'Hers', { id })
    expect(known.status).toBe(400)
    expect(await known.json()).toMatchObject({ error: { message: 'This passkey is already registered.' } })
  })

  test('a name is required, and unknown members and non-credentials are rejected', async () => {
    const { crowd, device } = await setUp()
    const anna = await crowd.as('viewer')
    const response = await device.create(await creation(anna))
    for (const json of [
      { response },
      { name: ' ', response },
      { name: 'x', response, more: 1 },
      { name: 'x', response: {} },
      { name: 'x', response: '{' },
    ])
      expect(await problem(await anna.ask(`POST ${BASE}/register/finish`, { json }))).toEqual([422, 'validation_error'])
    expect(
      (await anna.submit(`POST ${BASE}/register/finish`, { name: 'As text', response: JSON.stringify(response) }))
        .status,
    ).toBe(201)
  })
})

describe('Decisions §4 Passkeys: naming and removing', () => {
  test('a passkey is renamed only by its owner', async () => {
    const { anna, app, crowd } = await registered()
    await app.clock.advance(1) // the list is ordered by time
    expect((await register(anna, new Authenticator(), 'Laptop')).status).toBe(201)
    const [phone] = (await list(anna)).items
    const rename = { json: { name: 'Old phone' } }
    expect((await anna.ask(`PATCH ${BASE}/${phone?.id}`, rename)).status).toBe(200)
    expect((await list(anna)).items).toMatchObject([{ name: 'Old phone' }, { name: 'Laptop' }])
    expect(await problem(await (await crowd.as('admin')).ask(`PATCH ${BASE}/${phone?.id}`, rename))).toEqual([
      404,
      'not_found',
    ])
    expect((await crowd.audit()).at(-1)).toMatchObject({
      event: 'passkey_renamed',
      details: { from: 'Phone', to: 'Old phone' },
    })
  })

  test('a removed one cannot sign in', async () => {
    const { anna, crowd, device } = await registered()
    const [phone] = (await list(anna)).items
    const unconfirmed = await crowd.signInAs(anna.person, { isConfirmed: false })
    expect(await problem(await unconfirmed.ask(`DELETE ${BASE}/${phone?.id}`))).toEqual([403, 'step_up_required'])
    expect(await problem(await (await crowd.as('admin')).ask(`DELETE ${BASE}/${phone?.id}`))).toEqual([
      404,
      'not_found',
    ])
    expect((await anna.ask(`DELETE ${BASE}/${phone?.id}`)).status).toBe(204)
    expect((await crowd.audit()).at(-1)).toMatchObject({ event: 'passkey_removed' })
    expect(await problem(await use(crowd.browser(), device, 'sign-in'))).toEqual(INVALID)
  })

  test('the last sign-in method cannot be removed, the last but one can', async () => {
    const { anna, app } = await registered()
    expect((await register(anna, new Authenticator(), 'Laptop')).status).toBe(201)
    await commit(app.db, async (tx) => void (await tx.update(users).set({ passwordHash: null }).run()))
    const [phone, laptop] = (await list(anna)).items
    expect((await anna.ask(`DELETE ${BASE}/${phone?.id}`)).status).toBe(204)
    expect(await problem(await anna.ask(`DELETE ${BASE}/${laptop?.id}`))).toEqual([409, 'credential_required'])
  })

  test.each([
    ['standard', {}, [409, 'credential_required']],
    ['trusted_header', { CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }, [204, null]],
  ] as const)(
    'a proxy identity counts as another way to sign in, if the proxy is trusted: %s',
    async (mode, more, expected) => {
      const { anna, app } = await registered({ environment: { CODEX_LB_DASHBOARD_AUTH_MODE: mode, ...more } })
      const userId = anna.person.row.id
      const identity = { id: 'idn_1', userId, provider: 'trusted_header', subject: 'anna', createdAt: 0 } as const
      await commit(app.db, async (tx) => {
        await tx.update(users).set({ passwordHash: null }).run()
        await tx.insert(identities).values(identity).run()
      })
      const [phone] = (await list(anna)).items
      expect(await problem(await anna.ask(`DELETE ${BASE}/${phone?.id}`))).toEqual([...expected])
    },
  )
})

describe('Decisions §4 Passkeys: signing in', () => {
  test('without a user name, with all factors covered, and confirmed', async () => {
    const { anna, crowd, device } = await registered()
    const browser = crowd.browser(REMOTE)
    const options = await request(browser, 'sign-in')
    expect(options).toMatchObject({ rpId: 'localhost', userVerification: 'required' })
    expect(options.allowCredentials ?? []).toEqual([])
    const answer = await use(browser, device, 'sign-in')
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      authenticated: true,
      authMethod: 'passkey',
      user: { id: anna.person.row.id },
      stepUp: { methods: ['password', 'passkey'] },
    })
    expect(await browser.session()).toMatchObject({ authenticated: true, authMethod: 'passkey' })
    expect((await crowd.audit()).at(-1)).toMatchObject({
      event: 'login_success',
      method: 'passkey',
      details: { method: 'passkey' },
    })
  })

  test('each signs in the user who registered it', async () => {
    const { anna, crowd, device } = await registered()
    const ben = await crowd.as('viewer', { username: 'ben' })
    const other = new Authenticator()
    expect((await register(ben, other)).status).toBe(201)
    for (const [held, { person }] of [
      [other, ben],
      [device, anna],
    ] as const)
      expect(await (await use(crowd.browser(), held, 'sign-in')).json()).toMatchObject({ user: { id: person.row.id } })
  })

  test('needs no authenticator code in addition', async () => {
    const { crowd, device } = await setUp()
    const anna = await crowd.as('viewer', { hasTotp: true })
    expect((await register(anna, device)).status).toBe(201)
    const browser = crowd.browser()
    expect((await use(browser, device, 'sign-in')).status).toBe(200)
    expect((await browser.ask('GET /api/accounts')).status).toBe(200)
  })

  test('does not lift the enrollment gate', async () => {
    const { app, crowd, device } = await registered()
    await app.change({ totpRequiredOnLogin: true })
    const browser = crowd.browser()
    expect((await use(browser, device, 'sign-in')).status).toBe(200)
    expect(await problem(await browser.ask('GET /api/accounts'))).toEqual([403, 'totp_enrollment_required'])
    expect(await problem(await browser.ask(`GET ${BASE}`))).toEqual([403, 'totp_enrollment_required'])
  })

  test.each([
    ['another origin', { origin: 'http://127.0.0.1:2455' }],
    ['the key of another name', { rpId: 'example.com' }],
    ['a user who was not verified', { isUserVerified: false }],
    ['a forged signature', { isForged: true }],
    ['its own challenge', { challenge: 'bm90IG91cnM' }],
    ['the handle of another user', { userHandle: Buffer.from('usr_somebody').toString('base64url') }],
  ] satisfies [string, Quirks][])('rejects %s', async (_name, quirks) => {
    const { crowd, device } = await registered()
    const browser = crowd.browser()
    expect(await problem(await use(browser, device, 'sign-in', quirks))).toEqual(INVALID)
    expect(browser.cookie).toBeNull()
    expect((await crowd.audit()).at(-1)).toMatchObject({ event: 'login_failed', details: { method: 'passkey' } })
  })

  test('an unknown passkey and one of a disabled user get the same answer', async () => {
    const { anna, app, crowd, device } = await registered()
    const stranger = new Authenticator()
    await stranger.create(await creation(anna))
    const unknown = await use(crowd.browser(), stranger, 'sign-in')
    await commit(app.db, async (tx) => void (await tx.update(users).set({ status: 'disabled' }).run()))
    const disabled = await use(crowd.browser(), device, 'sign-in')
    expect([disabled.status, await disabled.text()]).toEqual([unknown.status, await unknown.text()])
    expect(disabled.status).toBe(400)
  })

  test('a user who is disabled while they sign in gets no session', async () => {
    const { app, crowd, device, anna } = await registered()
    const visitor = crowd.browser(REMOTE)
    const response = await device.get(await request(visitor, 'sign-in'))
    const { ownChanges } = app.bindings
    const take = ownChanges.take.bind(ownChanges)
    ownChanges.take = async (...args) => {
      const { id } = anna.person.row
      await commit(app.db, (tx) => tx.update(users).set({ status: 'disabled' }).where(eq(users.id, id)).run())
      return take(...args)
    }
    expect(await problem(await visitor.ask(`POST ${BASE}/sign-in/finish`, { json: { response } }))).toEqual(INVALID)
  })

  test('only one of fifty copies of one answer signs in, with or without a signature counter', async () => {
    for (const isCounting of [true, false]) {
      const { app, crowd, device } = await registered({}, isCounting)
      const response = await device.get(await request(crowd.browser(), 'sign-in'))
      // Each from an address of its own, or the failure budget would do the work.
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          app.ask(`POST ${BASE}/sign-in/finish`, { json: { response }, peer: `192.0.2.${at + 1}` }),
        ),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(49).fill(400)])
    }
  })

  test('a counter that did not increase indicates a copy', async () => {
    const { crowd, device } = await registered()
    expect((await use(crowd.browser(), device, 'sign-in', { counter: 7 })).status).toBe(200)
    expect(await problem(await use(crowd.browser(), device, 'sign-in', { counter: 7 }))).toEqual(INVALID)
    expect((await use(crowd.browser(), device, 'sign-in', { counter: 8 })).status).toBe(200)
  })

  test('only one of an original and its parallel copy signs in', async () => {
    const { crowd, device } = await registered()
    const answer = async () => device.get(await request(crowd.browser(), 'sign-in'), { counter: 7 })
    const both = [await answer(), await answer()]
    const answers = await Promise.all(
      both.map((response) => crowd.browser().ask(`POST ${BASE}/sign-in/finish`, { json: { response } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('shares the budget of wrong attempts', async () => {
    const { crowd, device } = await registered()
    const browser = crowd.browser(REMOTE)
    for (let n = 0; n < 8; n++)
      expect(await problem(await use(browser, device, 'sign-in', { isForged: true }))).toEqual(INVALID)
    const limited = await use(browser, device, 'sign-in')
    expect(limited.headers.get('retry-after')).toBe('60')
    expect(await problem(limited)).toEqual([429, 'password_rate_limited'])
    expect((await use(crowd.browser('192.0.2.8'), device, 'sign-in')).status).toBe(200)
  })

  test("no client can displace another client's challenge", async () => {
    const { app, crowd, device } = await registered()
    const start = (peer: string) => app.ask(`POST ${BASE}/sign-in/start`, { peer })
    for (let n = 0; n < 30; n++) expect((await start(REMOTE)).status).toBe(200)
    expect(await problem(await start(REMOTE))).toEqual([429, 'password_rate_limited'])
    expect((await use(crowd.browser('192.0.2.8'), device, 'sign-in')).status).toBe(200)
    await app.clock.advance('1m')
    expect((await start(REMOTE)).status).toBe(200)
  })

  test.each(['register', 'step-up'])('%s can be started thirty times a minute per user and client', async (what) => {
    const { anna, app, crowd } = await registered()
    const before = (await app.db.select({ n: count() }).from(challenges).get())?.n ?? 0
    await app.clock.advance('1m')
    const start = (browser: Browser) => browser.ask(`POST ${BASE}/${what}/start`)
    for (let n = 0; n < 30; n++) expect((await start(anna)).status).toBe(200)
    expect(await problem(await start(await crowd.signInAs(anna.person)))).toEqual([429, 'own_account_rate_limited'])
    expect((await start(await crowd.signInAs(anna.person, { peer: '192.0.2.8' }))).status).toBe(200) // no copy of a cookie locks her out
    expect(await app.db.select({ n: count() }).from(challenges).get()).toEqual({ n: before + 31 })
    await app.clock.advance('1m')
    expect((await start(anna)).status).toBe(200)
  })

  test('unanswered challenges do not accumulate', async () => {
    const { app } = await setUp()
    for (let n = 0; n < 1010; n++) {
      await app.ask(`POST ${BASE}/sign-in/start`, { peer: `192.0.${n % 100}.7` })
      await app.clock.advance(1)
    }
    expect(await app.db.select({ n: count() }).from(challenges).get()).toEqual({ n: 1000 })
    await app.clock.advance('5m')
    await runRetention(app)
    expect(await app.db.select({ n: count() }).from(challenges).get()).toEqual({ n: 0 })
  })
})

describe('Decisions §4 Passkeys: confirming', () => {
  test('a passkey alone confirms for five minutes, with a new token', async () => {
    const { anna, crowd, device, app } = await registered()
    const browser = await crowd.signInAs(anna.person, { isConfirmed: false })
    const refused = await browser.ask(`POST ${BASE}/register/start`)
    expect(await refused.json()).toMatchObject({ error: { details: { methods: ['password', 'passkey'] } } })
    const before = browser.cookie
    const answer = await use(browser, device, 'step-up')
    expect(await answer.json()).toEqual({
      verifiedAt: '2026-01-01T00:00:00.000Z',
      expiresAt: '2026-01-01T00:05:00.000Z',
    })
    expect(browser.cookie).not.toBe(before)
    expect((await crowd.audit()).at(-1)).toMatchObject({ event: 'step_up_verified', details: { methods: ['passkey'] } })
    expect((await browser.ask(`POST ${BASE}/register/start`)).status).toBe(200)
    await app.clock.advance('5m')
    expect(await problem(await browser.ask(`POST ${BASE}/register/start`))).toEqual([403, 'step_up_required'])
  })

  test("another user's passkey, or an answer for signing in, does not confirm", async () => {
    const { anna, crowd, device } = await registered()
    const bob = await crowd.as('viewer', { isConfirmed: false })
    expect(await problem(await bob.ask(`POST ${BASE}/step-up/start`))).toEqual([403, 'step_up_unavailable'])
    expect((await register(await crowd.signInAs(bob.person), new Authenticator())).status).toBe(201)
    const lent = await device.get({ ...(await request(bob, 'step-up')), allowCredentials: [] })
    expect(await problem(await bob.ask(`POST ${BASE}/step-up/finish`, { json: { response: lent } }))).toEqual(INVALID)
    const stolen = await device.get(await request(anna, 'step-up'))
    expect(await problem(await bob.ask(`POST ${BASE}/step-up/finish`, { json: { response: stolen } }))).toEqual(INVALID)
    const forSignIn = await device.get(await request(anna, 'sign-in'))
    expect(await problem(await anna.ask(`POST ${BASE}/step-up/finish`, { json: { response: forSignIn } }))).toEqual(
      INVALID,
    )
  })

  test('only one of fifty copies of one answer confirms', async () => {
    const { anna, crowd, device, app } = await registered({}, false)
    const browser = await crowd.signInAs(anna.person, { isConfirmed: false })
    const response = await device.get(await request(browser, 'step-up'))
    const headers = { cookie: browser.cookie ?? '' }
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        app.ask(`POST ${BASE}/step-up/finish`, { json: { response }, peer: `192.0.2.${at + 1}`, headers }),
      ),
    )
    // Those that come after the winner find the session under another token.
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('shares the budget of wrong attempts', async () => {
    const { anna, device } = await registered()
    for (let n = 0; n < 8; n++)
      expect(await problem(await use(anna, device, 'step-up', { isForged: true }))).toEqual(INVALID)
    expect(await problem(await use(anna, device, 'step-up'))).toEqual([429, 'step_up_rate_limited'])
  })

  test('a proxy user confirms with a passkey, kept in a session', async () => {
    const trusted = { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }
    const { anna, app, crowd, device } = await registered({ environment: trusted })
    const browser = crowd.browser()
    const as = { 'remote-user': 'anna@example.com', 'x-forwarded-for': REMOTE, 'x-forwarded-proto': 'http' }
    await browser.ask('GET /api/accounts', { headers: as })
    await commit(app.db, async (tx) => void (await tx.update(identities).set({ userId: anna.person.row.id }).run()))
    const ask = (what: string, json?: unknown) => browser.ask(`POST ${BASE}/${what}`, { headers: as, json })
    expect(await problem(await ask('register/start'))).toEqual([403, 'step_up_required'])
    const toSignIn = await device.get(await request(browser, 'sign-in')) // neither challenge belongs to a session
    expect(await problem(await ask('step-up/finish', { response: toSignIn }))).toEqual(INVALID)
    const options = (await (await ask('step-up/start')).json()) as PublicKeyCredentialRequestOptionsJSON // as: its shape
    expect((await ask('step-up/finish', { response: await device.get(options) })).status).toBe(200)
    expect((await ask('register/start')).status).toBe(200)
    await commit(app.db, async (tx) => void (await tx.update(users).set({ passwordHash: null }).run()))
    const [last] = (await list(anna)).items
    expect((await browser.ask(`DELETE ${BASE}/${last?.id}`, { headers: as })).status).toBe(204) // the proxy gives them access
  })
})

describe('Decisions §1 PUBLIC_URL: the name passkeys belong to', () => {
  const support = async (
    headers: Record<string, string>,
    environment: Record<string, string> = {},
    peer = '127.0.0.1',
  ) => {
    const { crowd } = await setUp({ environment })
    const anna = await crowd.as('viewer', { peer })
    if (headers['x-forwarded-proto'] === 'https') anna.cookie = `__Host-${anna.cookie}`
    const listed = (await (await anna.ask(`GET ${BASE}`, { headers })).json()) as Record<string, unknown> // as: its shape
    const started = await anna.ask(`POST ${BASE}/register/start`, { headers })
    const { rp, error } = (await started.json()) as { rp?: { id: string }; error?: { code: string } } // as: one of the two
    expect(error === undefined).toBe(listed.isAvailable === true)
    return { rp: rp?.id ?? null, reason: listed.unavailableReason, link: listed.availableAt }
  }
  const TRUST = { CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }
  const FORWARDED = { 'x-forwarded-host': 'sluice.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': REMOTE }

  test('is configured, whatever the Host header', async () => {
    const environment = { CODEX_LB_PUBLIC_URL: 'https://sluice.example/base' }
    expect(await support({ host: 'evil.example' }, environment)).toEqual({
      rp: 'sluice.example',
      reason: null,
      link: null,
    })
  })

  test('is localhost on this machine', async () => {
    expect(await support({ host: 'localhost:2455' })).toMatchObject({ rp: 'localhost' })
  })

  test('is taken from a trusted proxy', async () => {
    expect(await support(FORWARDED, TRUST)).toMatchObject({ rp: 'sluice.example' })
    expect(await support({ ...FORWARDED, 'x-forwarded-host': 'a.example, b.example' }, TRUST)).toMatchObject({
      rp: null,
    })
    expect(await support(FORWARDED)).toMatchObject({ rp: null, reason: expect.stringContaining('SLUICE_PUBLIC_URL') })
    expect(await support(FORWARDED, TRUST, REMOTE)).toMatchObject({ rp: null })
  })

  test('is never an arbitrary Host', async () => {
    const refused = { rp: null, reason: expect.stringContaining('SLUICE_PUBLIC_URL'), link: null }
    expect(await support({ host: 'evil.example' })).toEqual(refused)
  })

  test('is not an address; a local address that works is named', async () => {
    const refused = { rp: null, reason: expect.stringContaining('IP address'), link: 'http://localhost:2455' }
    expect(await support({ host: '127.0.0.1:2455' })).toEqual(refused)
    expect(await support({ host: '192.168.1.5:2455' })).toEqual(refused)
    expect(await support({ host: '[::1]:2455' })).toEqual(refused)
    expect(await support({}, { CODEX_LB_PUBLIC_URL: 'https://192.168.1.5' })).toMatchObject({ rp: null })
  })

  test('needs https', async () => {
    const environment = { CODEX_LB_PUBLIC_URL: 'http://sluice.example' }
    expect(await support({}, environment)).toMatchObject({ rp: null, reason: expect.stringContaining('https') })
  })

  test('is unused with authentication off', async () => {
    const app = await testApp({ accounts: 0, environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } })
    expect(await problem(await app.ask(`POST ${BASE}/sign-in/start`))).toEqual([400, 'password_management_disabled'])
    expect(await problem(await app.ask(`GET ${BASE}`))).toEqual([401, 'user_account_required'])
  })
})
