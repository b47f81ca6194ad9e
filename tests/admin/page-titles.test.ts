/** Each page has a title like its heading, so that tabs and bookmarks can be distinguished. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { type House, PAGE_PATHS, sharedHouse } from '../support/house.ts'
import { type Browser, people } from '../support/people.ts'
import { behindProxy } from '../support/proxied.ts'

const HTML = { headers: { accept: 'text/html,application/xhtml+xml' } }

const strangerOfTheProxy = async (): Promise<Browser> => {
  const { announced, setProvider } = await behindProxy()
  await setProvider({ unknownIdentityRoleId: null })
  return announced('stranger')
}

interface Page {
  title: string
  /** In the place of the parameter. */
  id?: (ids: House['ids']) => string
  /** The viewer; an Admin by default. */
  visitor?: (house: House) => Browser | Promise<Browser>
  /** The heading, if it is about more than the title. */
  heading?: string
}

const EXPECTED: Record<string, Page> = {
  '/dashboard': { title: 'Overview' },
  '/accounts': { title: 'Accounts' },
  '/accounts/:id': { title: 'ada@example.test', id: ({ account }) => account },
  '/accounts/new': { title: 'Add account' },
  '/accounts/new/browser': { title: 'Add account: browser', heading: 'Add account' },
  '/accounts/new/device': { title: 'Add account: code', heading: 'Add account' },
  '/accounts/new/import': { title: 'Add account: file', heading: 'Add account' },
  '/key': { title: 'Your key', visitor: strangerWithKeyPage },
  '/keys': { title: 'Keys' },
  '/keys/new': { title: 'Create key' },
  '/keys/:id': { title: 'laptop', id: ({ key }) => key },
  '/keys/:id/edit': { title: 'Edit laptop', id: ({ key }) => key },
  '/logs': { title: 'Logs' },
  '/logs/conversations': { title: 'Conversations' },
  '/logs/conversations/:hash': { title: 'Conversation', id: ({ conversation }) => conversation },
  '/accounts/simulator': { title: 'Routing simulator' },
  '/accounts/import': { title: 'Import from another tool' },
  '/logs/captures': { title: 'Captures' },
  '/logs/captures/:id': { title: 'Capture: Key laptop', heading: 'Key laptop', id: ({ capture }) => capture },
  '/logs/:id/captured': { title: 'Captured request', id: ({ request }) => request },
  '/logs/:id': { title: 'Request', id: ({ request }) => request },
  '/reports': { title: 'Reports' },
  '/reports/strategies': { title: 'Compare strategies' },
  '/settings': { title: 'Access &amp; keys' },
  '/settings/access': { title: 'Users' },
  '/settings/routing': { title: 'Routing' },
  '/settings/routing/sessions': { title: 'Sticky sessions' },
  '/settings/automations': { title: 'Automations' },
  '/settings/automations/new': { title: 'Create automation' },
  '/settings/automations/:id': { title: 'Mornings', id: ({ automation }) => automation },
  '/settings/automations/runs/:id': { title: 'Run of Mornings', id: ({ run }) => run },
  '/settings/alerts': { title: 'Alerts' },
  '/settings/alerts/new': { title: 'Add channel' },
  '/settings/alerts/:id': { title: 'Pager', id: ({ channel }) => channel },
  '/settings/sources': { title: 'Model sources' },
  '/settings/sources/new': { title: 'Add source' },
  '/settings/sources/:id': { title: 'Rack', id: ({ source }) => source },
  '/settings/network': { title: 'Network' },
  '/settings/data': { title: 'Data' },
  '/settings/data/sizes': { title: 'Table sizes' },
  '/settings/about': { title: 'About' },
  '/settings/search': { title: 'Search settings' },
  '/search': { title: 'Search' },
  '/audit': { title: 'Audit log' },
  '/doctor': { title: 'Health check' },
  '/docs': { title: 'Docs' },
  '/docs/api': { title: 'API' },
  '/docs/:guide': { title: 'Security', id: () => 'security' },
  '/me': { title: 'My account', heading: 'anna' },
  '/me/two-factor': { title: 'Set up two-factor authentication' },
  '/confirm': { title: 'Confirm it’s you' },
  '/login': { title: 'Sign in', visitor: ({ stranger }) => stranger },
  '/totp': { title: 'Enter the code', visitor: ({ half }) => half },
  '/setup': { title: 'Choose a password', visitor: async () => people(await testApp({ accounts: 0 })).browser() },
  '/auth/pending': { title: 'You don’t have access yet', visitor: strangerOfTheProxy },
  '/invite/:token': { title: 'Join Sluice', id: ({ invite }) => invite, visitor: ({ stranger }) => stranger },
}

async function strangerWithKeyPage() {
  const app = await testApp({ accounts: 0, settings: { keyHolderPage: true } })
  return people(app).browser()
}

const getText = (html: string, tag: string): string | null =>
  new RegExp(`<${tag}\\b[^>]*>(.*?)</${tag}>`, 's').exec(html)?.[1]?.replace(/<[^>]*>/g, '') ?? null

describe('the page title', () => {
  test('of every page is listed here', () => {
    expect(PAGE_PATHS.toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
  })

  test.each(Object.entries(EXPECTED))('%s', async (path, { title, id, visitor, heading = title }) => {
    const house = await sharedHouse()
    const browser = (await visitor?.(house)) ?? house.admin
    const response = await browser.ask(`GET ${path.replace(/:\w+/, () => id?.(house.ids) ?? '')}`, HTML)
    const html = await response.text()
    expect([response.status, getText(html, 'title')]).toEqual([200, `${title} · Sluice`])
    const h1 = getText(html, 'h1')
    if (h1 !== null) expect(h1).toBe(heading)
  })

  test('masks an account for users who cannot see its name', async () => {
    const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
    const page = await (await people(app).as('viewer')).ask(`GET /accounts/${app.members[0]!.id}`, HTML)
    expect(getText(await page.text(), 'title')).toBe('a***@example.test · Sluice')
  })

  test('escapes a name', async () => {
    const app = await testApp({ accounts: 0 })
    const key = await app.key({ name: '</title><script>' })
    const html = await (await (await people(app).as('admin')).ask(`GET /keys/${key.row.id}`, HTML)).text()
    expect(html).toContain('<title>&lt;/title&gt;&lt;script&gt; · Sluice</title>')
  })

  test.each([
    ['/nowhere', 404, 'Page not found'],
    ['/keys/key_nobody', 404, 'Page not found'],
    ['/logs?limit=x', 422, 'Something is wrong with this request'],
  ])('of the error page at %s', async (path, status, title) => {
    const response = await (await people(await testApp({ accounts: 0 })).as('admin')).ask(`GET ${path}`, HTML)
    expect([response.status, getText(await response.text(), 'title')]).toEqual([status, `${title} · Sluice`])
  })
})
