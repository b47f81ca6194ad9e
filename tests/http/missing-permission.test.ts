/** A 403 names the missing permission and the roles that have it, for API clients and on the page. */
import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

test.each([
  ['viewer', '/audit', 'You need the permission “Read the audit log” (audit:read).', 'give you the role Admin.'],
  ['operator', '/settings/access', '“Manage users and invites” (users:manage)', 'give you the role Admin.'],
  ['viewer', '/keys', '“See API keys” (api_keys:read)', 'give you the role Admin or Operator.'],
])('a %s at %s', async (role, path, permission, grantedBy) => {
  const house = people(await testApp({ accounts: 0 }))
  const who = await house.as(role)
  const page = await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })
  const html = await page.text()
  expect(page.status).toBe(403)
  for (const text of [permission, grantedBy, '<h1>You don’t have access</h1>']) expect(html).toContain(text)
  const { error } = (await (await who.ask(`GET ${path}`)).json()) as { error: { message: string } } // as: asserted below
  expect(error.message).toContain(permission)
})

test('a guest is asked to sign in', async () => {
  const house = people(await testApp({ accounts: 0 }))
  await house.as('admin')
  const answer = await (await house.guest()).ask('GET /keys', { headers: { accept: 'text/html' } })
  expect(await answer.text()).toContain('Sign in as a user with the role Admin or Operator.')
})
