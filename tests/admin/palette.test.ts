/** The command palette finds exactly what its visitor can open. */
import { expect, test } from 'bun:test'
import type { Palette } from '../../views/palette.tsx'
import { sharedHouse } from '../support/house.ts'
import type { Browser } from '../support/people.ts'

const search = async (who: Browser, q: string): Promise<Palette['found']> => {
  const response = await who.ask(`GET /search?q=${encodeURIComponent(q)}`)
  expect(response.status).toBe(200)
  return ((await response.json()) as Palette).found // as: the shape of the answer
}

const hrefs = async (who: Browser, q: string) => (await search(who, q)).map(({ href }) => href)

test('an administrator finds each kind of thing', async () => {
  const { admin, ids } = await sharedHouse()
  expect(await hrefs(admin, 'ada@')).toContain(`/accounts/${ids.account}`)
  expect(await hrefs(admin, 'LAP top'.replace(' ', ''))).toContain(`/keys/${ids.key}`)
  expect((await search(admin, 'carla')).map(({ kind, label }) => [kind, label])).toEqual([['User', 'carla']])
  expect(await hrefs(admin, 'two-factor setting')).toContain('/settings#setting-totpRequiredOnLogin')
  expect(await hrefs(admin, 'create key')).toContain('/keys/new')
  expect(await hrefs(admin, 'import files')).toContain('/accounts/new/import')
  expect(await hrefs(admin, 'time zone')).toContain('/me#clock')
  expect(await hrefs(admin, 'api reference')).toEqual(['/docs/api'])
  expect(await hrefs(admin, 'req_0123456789abcdef')).toEqual(['/logs?search=req_0123456789abcdef'])
})

test('without a search text it offers pages and actions', async () => {
  const { admin } = await sharedHouse()
  expect((await search(admin, '  ')).slice(0, 2).map(({ label }) => label)).toEqual(['Overview', 'Accounts'])
})

test.each([
  ['viewer', ['carla', 'create key', 'add account', 'back up now', 'audit log page', 'ada@example.test']],
  ['member', ['carla', 'ada', 'laptop', 'accounts', 'parallel streams', 'add account']],
])('a %s finds nothing that they cannot open', async (role, words) => {
  const { as } = await sharedHouse()
  const who = await as(role)
  for (const q of words) expect([q, await hrefs(who, q)]).toEqual([q, []])
})

test('a visitor who is not signed in is rejected', async () => {
  const { stranger } = await sharedHouse()
  expect((await stranger.ask('GET /search?q=ada')).status).toBe(401)
})

test('the words of a query are text on the page', async () => {
  const { admin } = await sharedHouse()
  const response = await admin.ask(`GET /search?q=${encodeURIComponent('"><script>')}`, {
    headers: { accept: 'text/html' },
  })
  expect((await response.text()).includes('"><script>')).toBe(false)
})
