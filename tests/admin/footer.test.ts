/** The footer of every page, and the tab icon that turns red while no request can be served. */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { TestApp } from '../support/app.ts'
import { testApp } from '../support/app.ts'
import { buildDashboard, type House, openPage, PAGE_PATHS, sharedHouse } from '../support/house.ts'
import { people } from '../support/people.ts'

const HTML = { headers: { accept: 'text/html' } }

/** Pages of visitors who have not signed in have neither, and nor has the page of a key for its holder. */
const SIGNED_IN_PATHS = PAGE_PATHS.filter(
  (path) => !/^\/(key|login|totp|setup|invite\/:token|auth\/pending)$/.test(path),
)

const getTab = (html: string) => ({
  title: /<title>(.*?)<\/title>/s.exec(html)?.[1] ?? '',
  isRed: /<link rel="icon" href="[^"]*%23d33a2c/.test(html) && !/<link rel="icon" href="[^"]*%230e7f93/.test(html),
})

const getFoot = (html: string): string => /<footer id="foot".*?<\/footer>/s.exec(html)?.[0] ?? ''

const getText = (html: string): string => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

describe('the footer on every page', () => {
  test.each(SIGNED_IN_PATHS)('%s has the footer, and no red tab icon while requests are served', async (path) => {
    const html = await openPage(await sharedHouse(), path)
    expect(getText(getFoot(html))).toMatch(
      /Sluice \S+ Capacity weighted Usage (not synced yet|synced .*) Health API Docs/,
    )
    for (const href of ['/settings/routing', '/doctor', '/docs/api', '/docs'])
      expect(getFoot(html)).toContain(`href="${href}"`)
    expect([getTab(html).isRed, getTab(html).title.includes('●')]).toEqual([false, false])
  })

  let paused: House
  beforeAll(async () => {
    paused = await buildDashboard()
    await paused.admin.ask(`POST /api/accounts/${paused.ids.account}/pause`)
  })

  test.each(SIGNED_IN_PATHS)('%s has a red tab icon while no account is available', async (path) => {
    const { title, isRed } = getTab(await openPage(paused, path))
    expect([title.startsWith('● Not serving · '), isRed]).toEqual([true, true])
  })
})

describe('the tab icon', () => {
  const open = async (app: TestApp, path = '/keys') =>
    getTab(await (await (await people(app).as('admin')).ask(`GET ${path}`, HTML)).text())

  test('is not red without accounts', async () => {
    expect(await open(await testApp({ accounts: 0 }))).toEqual({ title: 'Keys · Sluice', isRed: false })
  })

  test('says that the request log cannot be written', async () => {
    const app = await testApp()
    Object.defineProperty(app.bindings.ledger, 'healthy', { value: false })
    expect(await open(app)).toEqual({ title: '● The request log cannot be written · Keys · Sluice', isRed: true })
  })

  test('is red on an error page, too', async () => {
    const app = await testApp()
    for (const { id } of app.members) await app.ask(`POST /api/accounts/${id}/pause`)
    expect(await open(app, '/keys/key_nobody')).toEqual({
      title: '● Not serving · Page not found · Sluice',
      isRed: true,
    })
  })
})

test.each(['/nowhere', '/keys/key_nobody', '/accounts/acc_1/nothing'])(
  'the error page at %s has the navigation and the footer',
  async (path) => {
    const html = await (await (await people(await testApp()).as('admin')).ask(`GET ${path}`, HTML)).text()
    expect([html.includes('aria-label="Main"'), html.includes('<footer')]).toEqual([true, true])
  },
)

test('the error page of an unknown address shows neither to a visitor who is not signed in', async () => {
  const { as, browser } = people(await testApp())
  await as('admin') // while there is no user, this machine needs no sign-in
  const html = await (await browser().ask('GET /nowhere', HTML)).text()
  expect(html).toContain('Page not found')
  expect([html.includes('aria-label="Main"'), html.includes('<footer')]).toEqual([false, false])
})

describe('the footer alone', () => {
  test('is a fragment for htmx with the same content as JSON', async () => {
    const app = await testApp()
    const admin = await people(app).as('admin')
    const fragment = await (await admin.ask('GET /footer', { headers: { 'hx-request': 'true' } })).text()
    expect(fragment.startsWith('<footer')).toBe(true)
    expect(fragment.includes('data-alarm')).toBe(false)
    for (const { id } of app.members) await admin.ask(`POST /api/accounts/${id}/pause`)
    expect(await (await admin.ask('GET /footer', { headers: { 'hx-request': 'true' } })).text()).toContain(
      'data-alarm="Not serving"',
    )
    expect(await (await admin.ask('GET /footer')).json()).toMatchObject({ service: { level: 'blocked' } })
  })

  test('is not available to visitors who cannot see the overview', async () => {
    const member = await people(await testApp()).as('member')
    expect((await member.ask('GET /footer')).status).toBe(403)
    const page = await (await member.ask('GET /keys', HTML)).text()
    expect(getText(getFoot(page))).toMatch(/^ ?Sluice \S+ API Docs ?$/)
    expect(page.includes('data-live-src="/footer"')).toBe(false)
  })
})
