/** Spec §3, ending sessions: effective on the next request of every affected browser, and announced. */
import { describe, expect, test } from 'bun:test'
import { onChange } from '../../db/commit.ts'
import { testApp } from '../support/app.ts'
import {
  type Browser,
  doneStatus,
  type Fields,
  PASSWORD,
  people,
  problem,
  REQUEST_FORMATS,
  TOTP_SECRET,
} from '../support/people.ts'

const SETTINGS = 'GET /api/settings'
const AUTH = '/api/dashboard-auth'
const GONE: [number, string] = [401, 'authentication_required']

const open = async () => {
  const app = await testApp({ accounts: 0 })
  const topics: string[] = []
  onChange(app.db, async (changed) => topics.push(...changed))
  return { app, topics, ...people(app) }
}

const isIn = async (browser: Browser): Promise<boolean> => {
  const answers = [await browser.ask(SETTINGS), await browser.ask('GET /api/accounts')]
  for (const answer of answers.filter(({ status }) => status !== 200)) expect(await problem(answer)).toEqual(GONE)
  return answers.every(({ status }) => status === 200)
}

interface Ending {
  /** Route, with `:id` for the account; fields. */
  asked: [route: string, fields?: Fields]
  status?: number
}

const BY_ADMIN: Record<string, Ending> = {
  disabling: { asked: ['PATCH /api/dashboard-users/:id', { status: 'disabled' }] },
  'another role': { asked: ['PATCH /api/dashboard-users/:id', { role: 'viewer' }] },
  'a role with more rights': { asked: ['PATCH /api/dashboard-users/:id', { role: 'admin' }] },
  deleting: { asked: ['DELETE /api/dashboard-users/:id'], status: 204 },
  'resetting the second factor': { asked: ['POST /api/dashboard-users/:id/reset-totp'] },
  'revoking the sessions': { asked: ['POST /api/dashboard-users/:id/revoke-sessions'] },
}

describe('§3 Dashboard account: an administrator’s changes end the user’s sessions', () => {
  test.each(Object.entries(BY_ADMIN))('%s', async (_, { asked: [route, fields], status = 200 }) => {
    for (const how of REQUEST_FORMATS) {
      const { as, add, signInAs, topics } = await open()
      const person = await add({ role: 'operator', hasTotp: true })
      const browsers = [await signInAs(person), await signInAs(person, { method: 'passkey', peer: '192.0.2.9' })]
      const admin = await as('admin')
      for (const browser of [...browsers, admin]) expect(await isIn(browser)).toBe(true)
      topics.length = 0
      const ended = await admin.send(how, route.replace(':id', person.row.id), fields)
      expect(ended.status).toBe(doneStatus(how, status))
      for (const browser of browsers) expect(await isIn(browser)).toBe(false)
      expect([await isIn(admin), topics.includes('sessions')]).toEqual([true, true])
    }
  })

  test('a sign-in that still waits for its code ends, too', async () => {
    const { as, add, browser, code } = await open()
    const person = await add({ role: 'operator', username: 'berta', hasTotp: true })
    const half = browser()
    const login = { username: 'berta', password: PASSWORD }
    expect((await half.ask(`POST ${AUTH}/password/login`, { json: login })).status).toBe(200)
    await (await as('admin')).ask(`POST /api/dashboard-users/${person.row.id}/revoke-sessions`)
    expect(await problem(await half.ask(`POST ${AUTH}/totp/verify`, { json: { code: code() } }))).toEqual(GONE)
  })
})

const OWN: Record<string, Ending & { staysHere?: true }> = {
  'changing the password': {
    asked: [`POST ${AUTH}/password/change`, { currentPassword: PASSWORD, newPassword: 'another long one' }],
    staysHere: true,
  },
  'signing out everywhere': { asked: [`POST ${AUTH}/logout-all`] },
}

describe('§3 Dashboard account: a user’s changes to their own account', () => {
  test.each(Object.entries(OWN))('%s', async (_, { asked: [route, fields], staysHere = false }) => {
    for (const how of REQUEST_FORMATS) {
      const { as, add, signInAs, topics } = await open()
      const person = await add({ role: 'operator' })
      const [here, there] = [await signInAs(person), await signInAs(person, { peer: '192.0.2.9' })]
      const other = await as('operator')
      topics.length = 0
      const ended = await here.send(how, route, fields)
      expect(ended.status).toBe(doneStatus(how, 200))
      expect([await isIn(here), await isIn(there), await isIn(other)]).toEqual([staysHere, false, true])
      expect(topics).toContain('sessions')
    }
  })

  test('a copied cookie from before the end is invalid', async () => {
    const { as, browser } = await open()
    const mine = await as('operator')
    const thief = browser('192.0.2.66')
    thief.cookie = mine.cookie
    expect(await isIn(thief)).toBe(true)
    await mine.ask(`POST ${AUTH}/logout`)
    expect([mine.cookie, await isIn(thief)]).toEqual([null, false])
  })

  test('a confirmation invalidates the cookie from before it', async () => {
    const { as, browser } = await open()
    const mine = await as('operator', { isConfirmed: false })
    const thief = browser('192.0.2.66')
    thief.cookie = mine.cookie
    expect((await mine.ask(`POST ${AUTH}/step-up`, { json: { password: PASSWORD } })).status).toBe(200)
    expect([await isIn(mine), await isIn(thief)]).toEqual([true, false])
  })

  test.each([
    [
      'changing the password',
      'POST',
      'password/change',
      { currentPassword: PASSWORD, newPassword: 'another long one' },
    ],
    ['setting up a second factor', 'POST', 'totp/setup/confirm', { secret: TOTP_SECRET, code: 'now' }],
    ['signing every other browser out', 'DELETE', 'sessions', {}],
  ])('%s signs out a copied cookie of this browser, too', async (_, method, path, fields) => {
    const { as, browser, code } = await open()
    const mine = await as('operator')
    const thief = browser('192.0.2.66')
    thief.cookie = mine.cookie
    const json = 'code' in fields ? { ...fields, code: code() } : fields
    expect((await mine.ask(`${method} ${AUTH}/${path}`, { json })).status).toBe(200)
    expect([await isIn(mine), await isIn(thief)]).toEqual([true, false])
  })
})

describe('§4 guest/logout-all: every guest has to enter again', () => {
  test.each([
    ['POST', 'guest/logout-all', {}],
    ['POST', 'guest/password', { password: 'another for guests' }],
  ])('%s %s', async (method, path, fields) => {
    for (const how of REQUEST_FORMATS) {
      const { app, as, browser, topics } = await open()
      const admin = await as('admin')
      await app.change({ guestAccessEnabled: true })
      await admin.ask(`POST ${AUTH}/guest/password`, { json: { password: 'for all guests' } })
      const guest = browser()
      await guest.ask(`POST ${AUTH}/guest/login`, { json: { password: 'for all guests' } })
      expect(await isIn(guest)).toBe(true)
      topics.length = 0
      expect((await admin.send(how, `${method} ${AUTH}/${path}`, fields)).status).toBe(doneStatus(how, 200))
      expect([await isIn(guest), await isIn(admin), topics.includes('sessions')]).toEqual([false, true, true])
    }
  })
})

describe('§3 Dashboard account: a session that ends while its request is still being sent', () => {
  const slowly = () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const finish = (text: string) => {
      void writer.write(new TextEncoder().encode(text))
      void writer.close()
    }
    return { body: readable as unknown as string, finish } // as: a request takes both
  }

  test.each([
    ['with step-up', 'POST /api/dashboard-auth/guest/password', '{"password":"for all guests"}'],
    ['with the write check', 'PATCH /api/settings', '{"capacityWaitSeconds":9}'],
    ['of keys', 'POST /api/api-keys', '{"name":"mine"}'],
    ['of people', 'POST /api/dashboard-users', '{"username":"x","role":"viewer"}'],
  ])('finishes no change %s', async (_, route, text) => {
    const { app, as, audit } = await open()
    const [anna, berta] = [await as('admin', { username: 'anna' }), await as('admin')]
    const { body, finish } = slowly()
    const slow = anna.ask(route, { body, headers: { 'content-type': 'application/json' } })
    await app.clock.advance(0)
    const off = await berta.ask(`PATCH /api/dashboard-users/${anna.person.row.id}`, { json: { status: 'disabled' } })
    expect(off.status).toBe(200)
    const rows = (await audit()).length
    finish(text)
    expect(await problem(await slow)).toEqual([401, 'authentication_required'])
    expect((await audit()).length).toBe(rows)
  })

  test('nor an upload of accounts', async () => {
    const { app, as } = await open()
    const [anna, berta] = [await as('operator'), await as('admin')]
    const { body, finish } = slowly()
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const slow = anna.ask('POST /api/accounts/import', { body, headers })
    await app.clock.advance(0)
    await berta.ask(`PATCH /api/dashboard-users/${anna.person.row.id}`, { json: { role: 'viewer' } })
    finish('--x\r\ncontent-disposition: form-data; name="auth_json"; filename="a"\r\n\r\n{}\r\n--x--\r\n')
    expect(await problem(await slow)).toEqual([401, 'authentication_required'])
  })
})
