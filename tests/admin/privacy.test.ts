/** Privacy mode masks every email address and name on pages, including titles and tooltips. */
import { describe, expect, test } from 'bun:test'
import { maskPage } from '../../src/admin/privacy.ts'
import { PAGE_PATHS, sharedHouse } from '../support/house.ts'

const NAMES = /ada@example\.test|\bberta\b|\bcarla\b/g

const open = async (path: string, cookies: string) => {
  const { admin, ids } = await sharedHouse()
  const id = { accounts: ids.account, keys: ids.key, logs: ids.request, invite: ids.invite }[path.split('/')[1] ?? '']
  const headers = { accept: 'text/html', cookie: `${admin.cookie}; ${cookies}` }
  const response = await admin.ask(`GET ${path.replace(/:\w+/, id ?? '')}`, { headers })
  return response.text()
}

test.each(PAGE_PATHS)('%s shows no names while it is on', async (path) => {
  const html = await open(path, 'privacy=on')
  expect(html.replace(/ value="[^"]*"/g, '').match(NAMES) ?? []).toEqual([])
})

test.each(['/accounts', '/settings/access', '/audit'])('%s shows names while it is off', async (path) => {
  expect((await open(path, 'privacy=off')).match(NAMES) ?? []).not.toEqual([])
})

test('masks the title of the tab', async () => {
  expect(/<title>(.*?)<\/title>/.exec(await open('/accounts/:id', 'privacy=on'))?.[1]).toBe('a***@*** · Sluice')
})

test('does not affect the API', async () => {
  const { admin } = await sharedHouse()
  const headers = { cookie: `${admin.cookie}; privacy=on` }
  expect(await (await admin.ask('GET /api/accounts', { headers })).text()).toContain('ada@example.test')
})

describe('masking a page', () => {
  const names = ['anna', 'anna-lena', 'R&D <team>', 'a.b']
  test.each([
    ['<p>anna and anna-lena</p>', '<p>a*** and a***</p>'],
    ['<p>hannah, annas, pre-anna</p>', '<p>hannah, annas, pre-anna</p>'],
    ['<p>R&amp;D &lt;team&gt;</p>', '<p>R***</p>'],
    ['<p>a.b but not axb</p>', '<p>a*** but not axb</p>'],
    ['<a title="anna" href="/u/anna">x</a>', '<a title="a***" href="/u/anna">x</a>'],
    ['<p>to x.y+z@sub.example.org, now</p>', '<p>to x***@***, now</p>'],
    ['<code>pkg@1.2.3</code>', '<code>pkg@1.2.3</code>'],
    ['<input type="text" name="n" value="anna"/>', '<input type="password" name="n" value="anna"/>'],
    ['<input type="text" name="n" value="other"/>', '<input type="text" name="n" value="other"/>'],
    ['<textarea>anna</textarea>', '<textarea>anna</textarea>'],
  ])('%s becomes %s', (html, masked) => {
    expect(maskPage(html, names)).toBe(masked)
  })
})
