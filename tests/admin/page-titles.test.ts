/** The titles of the pages: each says what the page is, in the words of its heading, so that tabs and bookmarks can be told apart. */
import { describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/every-route.ts'
import { codexBody, testApp } from '../support/app.ts'
import { type Browser, people, REMOTE } from '../support/people.ts'
import { behindProxy } from '../support/proxied.ts'

const HTML = { headers: { accept: 'text/html,application/xhtml+xml' } }

/** What answers a browser and is no page: other programs' business, files, streams, and ways to a page. */
const NO_PAGES =
  /^\/(api|v1|backend-api|assets|health)(\/|$)|^\/(metrics|doctor\/(stream|socket)|openapi\.json|logs\/(tail|export|explain)|apis)?$/

const PAGES = everyRoute.filter(({ method, path }) => method === 'GET' && !NO_PAGES.test(path)).map(({ path }) => path)

const buildHouse = async () => {
  const app = testApp({ accounts: [{ email: 'ada@example.test' }] })
  const crowd = people(app)
  const admin = crowd.as('admin', { username: 'anna' })
  const key = app.key({ name: 'laptop' })
  const turn = { json: codexBody(), headers: { authorization: `Bearer ${key.key}` } }
  await (await app.ask('POST /backend-api/codex/responses', turn)).text()
  const invited = await admin.ask('POST /api/dashboard-users', { json: { username: 'berta', role: 'viewer' } })
  const { invite } = (await invited.json()) as { invite: { token: string } } // as: made just now
  const half = crowd.browser(REMOTE)
  crowd.add({ username: 'carla', hasTotp: true })
  await half.submit('POST /api/dashboard-auth/password/login', { username: 'carla', password: 'correct horse battery' })
  return {
    admin,
    half,
    stranger: crowd.browser(REMOTE),
    ids: { account: app.members[0]!.id, key: key.row.id, request: app.rows()[0]!.id, invite: invite.token },
  }
}

const strangerOfTheProxy = async (): Promise<Browser> => {
  const { announced, setProvider } = behindProxy()
  await setProvider({ unknownIdentityRoleId: null })
  return announced('stranger')
}

type House = Awaited<ReturnType<typeof buildHouse>>

interface Page {
  title: string
  /** In the place of the parameter. */
  id?: (ids: House['ids']) => string
  /** Who is shown it; an Admin unless told. */
  visitor?: (house: House) => Browser | Promise<Browser>
  /** The heading, where it is about more than the title. */
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
  '/keys': { title: 'Keys' },
  '/keys/new': { title: 'Create key' },
  '/keys/:id': { title: 'laptop', id: ({ key }) => key },
  '/keys/:id/edit': { title: 'Edit laptop', id: ({ key }) => key },
  '/logs': { title: 'Logs' },
  '/accounts/simulator': { title: 'Routing simulator' },
  '/logs/:id': { title: 'Request', id: ({ request }) => request },
  '/reports': { title: 'Reports' },
  '/settings': { title: 'Settings' },
  '/settings/access': { title: 'Users' },
  '/settings/routing': { title: 'Routing' },
  '/settings/network': { title: 'Network' },
  '/settings/data': { title: 'Data' },
  '/settings/data/sizes': { title: 'What each table takes' },
  '/settings/about': { title: 'About' },
  '/settings/search': { title: 'Search settings' },
  '/audit': { title: 'Audit log' },
  '/doctor': { title: 'Doctor' },
  '/docs': { title: 'Docs' },
  '/docs/api': { title: 'API' },
  '/docs/:guide': { title: 'Security', id: () => 'security' },
  '/me': { title: 'My account', heading: 'anna' },
  '/me/two-factor': { title: 'Set up two-factor authentication' },
  '/confirm': { title: 'Confirm that it is you' },
  '/login': { title: 'Sign in', visitor: ({ stranger }) => stranger },
  '/totp': { title: 'Enter the code', visitor: ({ half }) => half },
  '/setup': { title: 'Choose a password', visitor: () => people(testApp({ accounts: 0 })).browser() },
  '/auth/pending': { title: 'You don’t have access yet', visitor: strangerOfTheProxy },
  '/invite/:token': { title: 'Join Sluice', id: ({ invite }) => invite, visitor: ({ stranger }) => stranger },
}

const textOf = (html: string, tag: string): string | null =>
  new RegExp(`<${tag}\\b[^>]*>(.*?)</${tag}>`, 's').exec(html)?.[1]?.replace(/<[^>]*>/g, '') ?? null

describe('the title of', () => {
  test('every page there is stands below', () => {
    expect(PAGES.toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
  })

  test.each(Object.entries(EXPECTED))('%s', async (path, { title, id, visitor, heading = title }) => {
    const house = await buildHouse()
    const browser = (await visitor?.(house)) ?? house.admin
    const response = await browser.ask(`GET ${path.replace(/:\w+/, () => id?.(house.ids) ?? '')}`, HTML)
    const html = await response.text()
    expect([response.status, textOf(html, 'title')]).toEqual([200, `${title} · Sluice`])
    const h1 = textOf(html, 'h1')
    if (h1 !== null) expect(h1).toBe(heading)
  })

  test('an account is masked for who may not see its name', async () => {
    const app = testApp({ accounts: [{ email: 'ada@example.test' }] })
    const page = await people(app).as('viewer').ask(`GET /accounts/${app.members[0]!.id}`, HTML)
    expect(textOf(await page.text(), 'title')).toBe('a***@example.test · Sluice')
  })

  test('a name is escaped', async () => {
    const app = testApp({ accounts: 0 })
    const key = app.key({ name: '</title><script>' })
    const html = await (await people(app).as('admin').ask(`GET /keys/${key.row.id}`, HTML)).text()
    expect(html).toContain('<title>&lt;/title&gt;&lt;script&gt; · Sluice</title>')
  })

  test.each([
    ['/nowhere', 404, 'Page not found'],
    ['/keys/key_nobody', 404, 'Page not found'],
    ['/logs?limit=x', 422, 'That did not work'],
  ])('what went wrong at %s', async (path, status, title) => {
    const response = await people(testApp({ accounts: 0 }))
      .as('admin')
      .ask(`GET ${path}`, HTML)
    expect([response.status, textOf(await response.text(), 'title')]).toEqual([status, `${title} · Sluice`])
  })
})
