/** A page names unknown parameters and values of its URL, so that a typo does not look like a filter. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { buildDashboard, openPage, PAGE_PATHS } from '../support/house.ts'

const NOTICE = /Not applied, because this page has no such parameter or value: (.*?)\.<\/p>/
/** Names and values in the notice of a page; null: there is no notice. */
const noticeIn = (html: string): string[] | null => {
  const found = NOTICE.exec(html)?.[1]
  return found === undefined ? null : found.split(', ').map((item) => item.replace(/<\/?code>/g, ''))
}

/** Pages for people who are not signed in; an admin is redirected, or they take only `return`. */
const ENTRANCE = ['/key', '/login', '/totp', '/setup', '/auth/pending', '/invite/:token']

let house: Awaited<ReturnType<typeof buildDashboard>>
beforeAll(async () => {
  house = await buildDashboard()
})

const getNotice = async (path: string) => noticeIn(await openPage(house, path))

test.each(PAGE_PATHS.filter((path) => !ENTRANCE.includes(path)))('%s names an unknown parameter', async (path) => {
  expect(await getNotice(`${path}?colour=1&period2=zz`)).toEqual(['colour', 'period2'])
  expect(await getNotice(path)).toBeNull()
})

test.each([
  ['/reports?period=zz&colour=1', ['period', 'colour']],
  ['/keys?sort=colour&dir=up&page=2', ['sort=colour', 'dir=up']],
  ['/accounts?state=asleep&view=table&per=26', ['state=asleep', 'per=26']],
  ['/accounts/:id?tab=colours&before=x', ['tab=colours', 'before=x']],
  ['/accounts/simulator?modle=gpt-5.5', ['modle']],
  ['/audit?actoin=login', ['actoin']],
  ['/settings/search?query=key', ['query']],
  ['/dashboard?perod=7d', ['perod']],
  ['/logs?constructor=1', ['constructor']],
])('%s names %p', async (path, expected) => {
  expect(await getNotice(path)).toEqual(expected)
})

describe('no parameter is reported as unknown by', () => {
  test.each([
    '/accounts?state=&eligible=&q=&plan=&tag=',
    '/keys?q=laptop&sort=cost&dir=desc&page=1',
    '/settings/routing?done=settings_updated&section=routing',
    '/keys/new?problem=validation_error&field=name&wait=3&draft=x',
    '/confirm?return=%2Fkeys',
    '/accounts/:id?tab=events&before=1',
    '/audit?verify=1&since=&limit=10',
  ])('%s', async (path) => {
    expect(await getNotice(path)).toBeNull()
  })

  test('any link of any page', async () => {
    const links = new Set<string>()
    for (const path of PAGE_PATHS)
      for (const [, href = ''] of (await openPage(house, path)).matchAll(/href="(\/[^"#]*\?[^"#]*)/g))
        links.add(href.replaceAll('&amp;', '&'))
    expect(links.size).toBeGreaterThan(20)
    for (const link of links) expect([link, await getNotice(link)]).toEqual([link, null])
  })
})

test('many are shortened and counted, and markup is escaped', async () => {
  const query = Array.from({ length: 9 }, (_, n) => `<b>${n}${'x'.repeat(60)}=1`).join('&')
  const found = await getNotice(`/keys?${query}`)
  expect(found).toHaveLength(5)
  expect(found?.[0]).toBe(`&lt;b&gt;0${'x'.repeat(36)}`)
})
