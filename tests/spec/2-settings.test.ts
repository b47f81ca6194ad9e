/** Spec §2, settings fields named in the interface. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { PASSWORD, people } from '../support/people.ts'

const open = async () => {
  const app = await testApp({ accounts: 0 })
  const house = people(app)
  const settings = async () => {
    const response = await (await house.as('admin', { hasPassword: false, method: 'passkey' })).ask('GET /api/settings')
    return (await response.json()) as Record<string, unknown>
  }
  return { app, ...house, settings }
}

test.each(['admin', 'operator'])(
  'PUT accepts what GET returned to the role %s, without a confirmation',
  async (role) => {
    const { as } = await open()
    const who = await as(role, { isConfirmed: false })
    const read = await (await who.ask('GET /api/settings')).json()
    expect((await who.ask('PUT /api/settings', { json: read as object })).status).toBe(200)
  },
)

describe('§2 Settings fields named in the interface', () => {
  test('row 1: totpRequiredForAdminRole is off by default', async () => {
    const { app, settings } = await open()
    expect((await settings()).totpRequiredForAdminRole).toBe(false)
    await app.change({ totpRequiredForAdminRole: true })
    expect((await settings()).totpRequiredForAdminRole).toBe(true)
  })

  test('row 2: usersWithoutTotpCount counts active users with a password and no second factor', async () => {
    const { add, settings } = await open()
    expect((await settings()).usersWithoutTotpCount).toBe(0)
    await add({ role: 'viewer' })
    await add({ role: 'admin' })
    await add({ role: 'admin', hasTotp: true })
    await add({ role: 'admin', status: 'disabled' })
    await add({ role: 'admin', hasPassword: false })
    expect(await settings()).toMatchObject({ usersWithoutTotpCount: 2, adminsWithoutTotpCount: 1 })
  })

  test('row 3: adminsWithoutTotpCount counts those of them whom totpRequiredForAdminRole would affect', async () => {
    const { add, addRole, settings } = await open()
    await addRole('auditor', { 'audit:read': 'all' })
    await addRole('helper', { 'dashboard:read': 'all' })
    await add({ role: 'auditor' })
    await add({ role: 'helper' })
    await add({ role: 'operator' })
    expect(await settings()).toMatchObject({ usersWithoutTotpCount: 3, adminsWithoutTotpCount: 1 })
  })

  test('whether guests have a password is visible, the password never', async () => {
    const { as, settings } = await open()
    expect((await settings()).guestPasswordConfigured).toBe(false)
    await (await as('admin')).ask('POST /api/dashboard-auth/guest/password', { json: { password: PASSWORD } })
    const after = await settings()
    expect(after.guestPasswordConfigured).toBe(true)
    expect(JSON.stringify(after)).not.toContain('argon2')
  })
})
