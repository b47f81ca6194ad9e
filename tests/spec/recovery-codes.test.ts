/** Recovery codes: ten, shown once, single use, and accepted wherever an authenticator code is. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { getPerson } from '../../src/model/users/people.ts'
import { takeTotp } from '../../src/model/users/recovery.ts'
import { testApp } from '../support/app.ts'
import { codeAt, PASSWORD, people, problem, REMOTE, type TestUser } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const LOGIN = `POST ${AUTH}/password/login`
const VERIFY = `POST ${AUTH}/totp/verify`
const RENEW = `POST ${AUTH}/totp/recovery-codes`

const open = async () => {
  const app = await testApp({ accounts: 0 })
  return { app, ...people(app) }
}
type House = Awaited<ReturnType<typeof open>>

/** Sets up two-factor and returns the recovery codes of the answer. */
const enroll = async ({ app }: House, who: TestUser): Promise<string[]> => {
  const offer = (await (await who.ask(`POST ${AUTH}/totp/setup/start`)).json()) as { secret: string } // as: asserted below
  const json = { secret: offer.secret, code: codeAt(app.clock.now(), offer.secret) }
  const done = (await (await who.ask(`POST ${AUTH}/totp/setup/confirm`, { json })).json()) as {
    recoveryCodes: string[]
  } // as: asserted below
  return done.recoveryCodes
}

const anna = async (house: House) => {
  const who = await house.as('admin', { username: 'anna' })
  return { who, codes: await enroll(house, who) }
}

/** Signs `anna` in up to the password. */
const half = async ({ browser }: House, peer = REMOTE) => {
  const here = browser(peer)
  await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
  return here
}

const left = async (who: TestUser): Promise<unknown> =>
  ((await (await who.ask(`GET ${AUTH}/me`)).json()) as { recoveryCodesLeft: unknown }).recoveryCodesLeft // as: asserted by the tests

describe('recovery codes', () => {
  test('setting up two-factor shows ten different codes once and stores only hashes', async () => {
    const house = await open()
    const { who, codes } = await anna(house)
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
    expect(await left(who)).toBe(10)
    const rows = JSON.stringify(house.app.sqlite.query('SELECT * FROM recovery_codes').all())
    const page = await (await who.ask('GET /me', { headers: { accept: 'text/html' } })).text()
    expect(page).toContain('10 recovery codes left')
    for (const code of codes)
      for (const text of [rows, page, house.app.lines.join('\n')]) {
        expect(text).not.toContain(code)
        expect(text).not.toContain(code.replaceAll('-', ''))
      }
  })

  test.each([
    ['as shown', (code: string) => code],
    ['in capitals with spaces', (code: string) => code.toUpperCase().replaceAll('-', ' ')],
    ['without separators', (code: string) => code.replaceAll('-', '')],
  ])('a code typed %s completes a sign-in, once', async (_, typed) => {
    const house = await open()
    const { codes } = await anna(house)
    const here = await half(house)
    expect((await here.ask(VERIFY, { json: { code: typed(codes[3]!) } })).status).toBe(200)
    expect(await here.session()).toMatchObject({ authenticated: true, authMethod: 'totp' })
    expect((await house.audit()).slice(-2)).toMatchObject([
      { event: 'recovery_code_used', actorName: 'anna', details: { left: 9 } },
      { event: 'login_success', details: { method: 'recovery_code' } },
    ])
    const again = await half(house, '192.0.2.8')
    expect(await problem(await again.ask(VERIFY, { json: { code: typed(codes[3]!) } }))).toEqual([
      400,
      'invalid_totp_code',
    ])
    expect((await house.audit()).at(-1)).toMatchObject({ event: 'login_failed', details: { method: 'totp' } })
  })

  test('sent by twenty browsers at once, a code signs one in', async () => {
    const house = await open()
    const { who, codes } = await anna(house)
    const browsers = await Promise.all(Array.from({ length: 20 }, (_, i) => half(house, `192.0.2.${i + 20}`)))
    const answers = await Promise.all(browsers.map((one) => one.ask(VERIFY, { json: { code: codes[0] } })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await left(who)).toBe(9)
  })

  test('wrong recovery codes use up the budget of wrong codes', async () => {
    const house = await open()
    const { codes } = await anna(house)
    const here = await half(house)
    const wrong = ['aaaa-bbbb-cccc-dddd', '000000']
    for (let i = 0; i < 8; i++) expect((await here.ask(VERIFY, { json: { code: wrong[i % 2] } })).status).toBe(400)
    expect(await problem(await here.ask(VERIFY, { json: { code: codes[0] } }))).toEqual([429, 'totp_rate_limited'])
  })

  test('a code of another user is wrong', async () => {
    const house = await open()
    await anna(house)
    const codes = await enroll(house, await house.as('admin', { username: 'ben' }))
    const here = await half(house)
    expect(await problem(await here.ask(VERIFY, { json: { code: codes[0] } }))).toEqual([400, 'invalid_totp_code'])
  })

  test('a code confirms a sensitive change, once, and only with the password', async () => {
    const house = await open()
    const { who, codes } = await anna(house)
    const stepUp = (password: string) => who.ask(`POST ${AUTH}/step-up`, { json: { password, code: codes[0] } })
    expect(await problem(await stepUp('not the password'))).toEqual([401, 'invalid_credentials'])
    expect(await left(who)).toBe(10)
    expect((await stepUp(PASSWORD)).status).toBe(200)
    expect(await problem(await stepUp(PASSWORD))).toEqual([401, 'invalid_credentials'])
    expect((await house.audit()).map(({ event }) => event)).toContain('recovery_code_used')
  })

  test('a code turns two-factor off, which deletes the other codes', async () => {
    const house = await open()
    const { who, codes } = await anna(house)
    expect((await who.ask(`POST ${AUTH}/totp/disable`, { json: { code: codes[9] } })).status).toBe(200)
    expect(await left(who)).toBe(0)
    expect(house.app.sqlite.query('SELECT * FROM recovery_codes').all()).toEqual([])
  })

  test('new codes replace the old ones and need a confirmation', async () => {
    const house = await open()
    const { who, codes } = await anna(house)
    const unconfirmed = await house.signInAs(who.person, { isConfirmed: false })
    expect(await problem(await unconfirmed.ask(RENEW))).toEqual([403, 'step_up_required'])
    const answer = (await (await who.ask(RENEW)).json()) as { recoveryCodes: string[] } // as: asserted below
    expect(answer.recoveryCodes).toHaveLength(10)
    expect((await house.audit()).at(-1)).toMatchObject({ event: 'recovery_codes_created', actorName: 'anna' })
    const here = await half(house)
    expect((await here.ask(VERIFY, { json: { code: codes[0] } })).status).toBe(400)
    expect((await here.ask(VERIFY, { json: { code: answer.recoveryCodes[0] } })).status).toBe(200)
  })

  test('without an authenticator there are none to create', async () => {
    const house = await open()
    const who = await house.as('admin')
    expect(await problem(await who.ask(RENEW))).toEqual([400, 'invalid_totp_config'])
  })

  test('as a form, the codes are a page of their own', async () => {
    const house = await open()
    const { who } = await anna(house)
    const answer = await who.submit(RENEW)
    expect(answer.status).toBe(200)
    const html = await answer.text()
    expect(html.match(/[a-z2-7]{4}(-[a-z2-7]{4}){3}/g)).toHaveLength(10)
    expect(html).toContain('<title>Recovery codes · Sluice</title>')
  })

  test.each(['administrator', 'command line'])('a reset by the %s deletes the codes', async (by) => {
    const house = await open()
    const { who } = await anna(house)
    if (by === 'administrator') {
      const boss = await house.as('admin')
      const reset = await boss.ask(`POST /api/dashboard-users/${who.person.row.id}/reset-totp`)
      expect(reset.status).toBe(200)
    } else {
      const actor = { id: 'cli', method: 'cli', address: null, at: house.app.clock.now() }
      await commit(house.app.db, async (tx) => takeTotp(tx, await getPerson(tx, who.person.row.id), actor))
    }
    expect(house.app.sqlite.query('SELECT * FROM recovery_codes').all()).toEqual([])
  })

  test('a disabled user’s code is wrong', async () => {
    const house = await open()
    const { codes } = await anna(house)
    const here = await half(house)
    house.app.sqlite.run("UPDATE users SET status = 'disabled' WHERE username = 'anna'")
    expect((await here.ask(VERIFY, { json: { code: codes[0] } })).status).not.toBe(200)
    expect(house.app.sqlite.query('SELECT count(*) AS n FROM recovery_codes').get()).toEqual({ n: 10 })
  })
})
