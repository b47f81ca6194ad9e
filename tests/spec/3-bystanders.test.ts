/** Spec §3, dashboard account: a change of one user affects no other. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { passkeys } from '../../db/schema/people.ts'
import { testApp } from '../support/app.ts'
import { type Browser, PASSWORD, people, REMOTE, type TestUser } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'

/** Anna and Berta have all that an account can have, and the same of it. */
const open = async () => {
  const app = await testApp({ accounts: 0 })
  const { as, browser, code } = people(app)
  const furnished = async (username: string): Promise<TestUser> => {
    const operator = await as('operator', { username, hasTotp: true })
    const { id } = operator.person.row
    const [on, off] = [(await app.key()).row, (await app.key()).row]
    app.sqlite.run('UPDATE api_keys SET owner_user_id = ? WHERE id IN (?, ?)', [id, on.id, off.id])
    app.sqlite.run("UPDATE api_keys SET is_active = 0, deactivated_reason = 'owner_disabled' WHERE id = ?", [off.id])
    const passkey = { id: `pky_${username}`, userId: id, name: 'Key', credentialId: username, publicKey: 'AA' }
    const more = { counter: 0, transports: [], createdAt: 1 }
    await commit(
      app.db,
      async (tx) =>
        void (await tx
          .insert(passkeys)
          .values({ ...passkey, ...more })
          .run()),
    )
    return operator
  }
  const [anna, berta, admin] = [await furnished('anna'), await furnished('berta'), await as('admin')]
  const { id } = berta.person.row
  const getRows = (table: string, column: string) =>
    app.sqlite.query(`SELECT * FROM ${table} WHERE ${column} = ? ORDER BY id`).all(id)
  const bystander = () => ({
    user: getRows('users', 'id'),
    sessions: getRows('sessions', 'user_id'),
    keys: getRows('api_keys', 'owner_user_id'),
    passkeys: getRows('passkeys', 'user_id'),
  })
  return { anna, admin, code, newcomer: browser(REMOTE), bystander }
}

type Deed = (world: { anna: TestUser; admin: Browser; code: () => string; newcomer: Browser }) => Promise<Response>

const byAdmin =
  (method: string, path = '', json?: object): Deed =>
  ({ anna, admin }) =>
    admin.ask(`${method} /api/dashboard-users/${anna.person.row.id}${path}`, { json })

const DEEDS: Record<string, Deed> = {
  'getting another name': byAdmin('PATCH', '', { username: 'anne', displayName: 'Anne', email: 'anne@example.com' }),
  'getting another role': byAdmin('PATCH', '', { role: 'viewer' }),
  'being disabled': byAdmin('PATCH', '', { status: 'disabled' }),
  'being deleted': byAdmin('DELETE'),
  'getting the keys back': byAdmin('POST', '/reactivate-keys'),
  'losing the second factor': byAdmin('POST', '/reset-totp'),
  'losing the sessions': byAdmin('POST', '/revoke-sessions'),
  'editing the profile': ({ anna }) => anna.ask(`PATCH ${AUTH}/me`, { json: { displayName: 'Anne' } }),
  'changing the password': ({ anna }) =>
    anna.ask(`POST ${AUTH}/password/change`, { json: { currentPassword: PASSWORD, newPassword: 'another long one' } }),
  confirming: ({ anna, code }) => anna.ask(`POST ${AUTH}/step-up`, { json: { password: PASSWORD, code: code() } }),
  'doing without the second factor': ({ anna, code }) =>
    anna.ask(`POST ${AUTH}/totp/disable`, { json: { code: code() } }),
  'naming a passkey': ({ anna }) => anna.ask(`PATCH ${AUTH}/passkeys/pky_anna`, { json: { name: 'Phone' } }),
  'removing a passkey': ({ anna }) => anna.ask(`DELETE ${AUTH}/passkeys/pky_anna`),
  'signing out everywhere': ({ anna }) => anna.ask(`POST ${AUTH}/logout-all`),
  'signing in': async ({ newcomer, code }) => {
    await newcomer.ask(`POST ${AUTH}/password/login`, { json: { username: 'anna', password: PASSWORD } })
    return newcomer.ask(`POST ${AUTH}/totp/verify`, { json: { code: code() } })
  },
}

describe('§3 Dashboard account: other users are not affected by', () => {
  test.each(Object.entries(DEEDS))('%s', async (_, deed) => {
    const { bystander, ...world } = await open()
    const before = bystander()
    expect(Object.values(before).map((rows) => rows.length)).toEqual([1, 1, 2, 1])
    expect((await deed(world)).ok).toBe(true)
    expect(bystander()).toEqual(before)
  })
})
