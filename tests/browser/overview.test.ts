/** The overview in a browser, and its updates: one stream for all tabs, and polling without one. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { FROM_SOURCE, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { createUpstream } from '../support/upstream/app.ts'
import {
  arrivedAt,
  getText,
  getTexts,
  held,
  launchBrowser,
  loadAndConnect,
  overflowsAt,
  type TestBrowser,
} from './browser.ts'
import { openAs, type ServerWithAdmin, startServerWithAdmin } from './people-world.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let world: World
/** Where users sign in. */
let owned: ServerWithAdmin
const dashboard = () => `${world.url}/dashboard`
/** The requests of the page to update itself. */
const RENEWED = /\/dashboard\?period=/

beforeAll(async () => {
  ;[browser, world, owned] = await Promise.all([launchBrowser(), startPopulated(), startServerWithAdmin()])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
  await owned?.server[Symbol.asyncDispose]()
})

test('an empty install shows only the first steps', async () => {
  await using server = await spawnServer()
  await using visit = await browser.visit(`${server.url}/dashboard`)
  const titles = await getTexts(visit.page.locator('.checklist > ol h3'))
  expect(titles.map((title) => title.replace(/^\d\s*/, ''))).toEqual([
    'Set a password',
    'Add an account',
    'Create a key and test it',
  ])
  expect(await getText(visit.page.locator('.health'))).toContain('No accounts yet')
  expect(await visit.page.locator('.tiles, #strips, .requests').count()).toBe(0)
  expect(await overflowsAt(visit.page)).toEqual([])
  expect(visit.problems).toEqual([])
})

test('the commands of the first steps work unchanged, and the steps update without a reload', async () => {
  const upstream = createUpstream()
  const service = upstream.listen()
  await using server = await spawnServer({
    command: FROM_SOURCE,
    env: { CODEX_LB_UPSTREAM_BASE_URL: `${service.url}/backend-api`, CODEX_LB_AUTH_BASE_URL: service.url },
  })
  const home = join(server.dataDir, 'home')
  mkdirSync(join(home, '.codex'), { recursive: true })
  writeFileSync(join(home, '.codex', 'auth.json'), upstream.addAccount({ email: 'ada@example.test' }).authJson())
  await using visit = await browser.visit(`${server.url}/dashboard`, { untilLive: true })
  await visit.page.locator('.checklist-more summary').click()
  const [importing = '', creating = ''] = await getTexts(visit.page.locator('.command code'))
  // npm would install packages first where some have changed.
  const run = (command: string) => {
    const direct = command.replace('npm run sluice --', FROM_SOURCE.join(' '))
    return Bun.spawnSync(['sh', '-c', direct], { env: { ...process.env, HOME: home } }).stdout.toString()
  }
  expect(importing).toContain('npm run sluice -- accounts import')
  expect(run(importing)).toContain('ada@example.test')
  expect(run(creating)).toMatch(/^sk-clb-/)
  const step = (text: string) => visit.page.locator('.checklist > ol h3', { hasText: text })
  await step('Add an account · done').waitFor()
  expect(await getText(visit.page.locator('.health'))).toContain('1 of 1 account available')
  expect(await visit.page.locator('.checklist-more').getAttribute('open')).toBe('')
  await visit.page.locator('[data-action=put-away]').click()
  await visit.page.reload()
  expect(await visit.page.locator('.checklist').count()).toBe(0)
  await service.stop()
})

describe('the content of the overview', () => {
  test('health in one sentence, and what needs attention with links', async () => {
    await using visit = await browser.visit(dashboard())
    const sentence = await getText(visit.page.locator('.health'))
    expect(sentence).toMatch(/^Serving/)
    expect(sentence).toContain('4 of 7 accounts available')
    const item = visit.page.locator('.attention-item', { hasText: 'barbara@example.test needs sign-in' })
    expect(await item.locator('a').getAttribute('href')).toStartWith('/accounts/new/browser?account=')
  })

  test('each account with its state and, separately, whether it would be selected', async () => {
    await using visit = await browser.visit(dashboard())
    const said = (name: string) => getText(row(visit.page, name).locator('.strip-state'))
    expect(await said('ada')).toMatch(/Active\s+available/)
    expect(await said('linus')).toMatch(/(Rate limited|Quota used up)\s[\s\S]*back in 2 h/)
    expect(await said('barbara')).toMatch(/Needs sign-in\s+not available/)
    expect(await getText(row(visit.page, 'edsger'))).toContain('no usage reported yet')
  })
})

describe('the chart', () => {
  test('shows the values of the bar under the pointer, and links to its requests', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    const chart = page.locator('#requests .chart')
    const box = await chart.boundingBox()
    if (!box) throw new Error('The chart is not shown.')
    const cells = Number(await page.locator('#requests figure').getAttribute('data-chart'))
    const firstBar = { x: (box.width / cells) * 0.5, y: 60 }
    await chart.hover({ position: firstBar })
    expect(await getText(page.locator('#requests .chart-values'))).toMatch(/^\d\d:\d\d · .*Errors \d+$/)
    await page.mouse.move(0, 0)
    expect(await getText(page.locator('#requests .chart-values'))).toBe('')
    await chart.click({ position: firstBar })
    await page.waitForURL(/\/logs\?since=.*&until=/)
    expect(visit.problems).toEqual([])
  })

  test('has its values in the table without scripts', async () => {
    await using visit = await browser.visit(dashboard(), { javaScriptEnabled: false })
    await visit.page.locator('#requests summary').click()
    const rows = visit.page.locator('#requests tbody tr')
    expect(await rows.first().isVisible()).toBe(true)
    expect(await rows.first().locator('a').getAttribute('href')).toMatch(/^\/logs\?since=/)
  })

  test('uses the period in the URL', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    await visit.page.locator('.periods a', { hasText: '1 h' }).click()
    await visit.page.waitForURL(/period=1h/)
    expect(await getText(visit.page.locator('#requests .count'))).toBe('last hour')
  })
})

/** Runs in the page: as if the user had switched to another tab, or back. */
const setHidden = (isHidden: boolean): void => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden })
  document.dispatchEvent(new Event('visibilitychange'))
}

describe('while the overview is open', () => {
  test('a paused account shows in both tabs without a reload', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const other = await visit.page.context().newPage()
    await loadAndConnect(other, () => other.goto(dashboard()))
    const pages = [visit.page, other]
    for (const page of pages) await page.evaluate(() => document.body.setAttribute('data-same', ''))
    await pausing('grace', 'pause')
    for (const page of pages) {
      await row(page, 'grace').locator('.badge', { hasText: 'Paused' }).waitFor()
      expect(await page.locator('body[data-same]').count()).toBe(1)
    }
    await pausing('grace', 'reactivate')
    expect(visit.problems).toEqual([])
  })

  test('a hidden tab has no stream, and catches up when it is shown', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    const streams: string[] = []
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/api/events') streams.push(request.url())
    })
    await page.evaluate(setHidden, true)
    await page.waitForTimeout(1500)
    expect(streams).toEqual([])
    await pausing('grace', 'pause')
    expect(await getText(row(page, 'grace').locator('.badge'))).toBe('Active')
    await loadAndConnect(page, () => page.evaluate(setHidden, false))
    await row(page, 'grace').locator('.badge', { hasText: 'Paused' }).waitFor()
    expect(streams).toHaveLength(1)
    await pausing('grace', 'reactivate')
    await row(page, 'grace').locator('.badge', { hasText: 'Active' }).waitFor()
    expect(visit.problems).toEqual([])
  })

  test('what changes before a page listens shows on it', async () => {
    await using visit = await browser.visit(dashboard())
    const leader = visit.page
    const badge = (page: Page) => row(page, 'grace').locator('.badge')
    const streams = await held(leader, '**/api/events*')
    await leader.goto(dashboard())
    await streams.asked
    await pausing('grace', 'pause')
    streams.letGo()
    await badge(leader).getByText('Paused').waitFor()

    const follower = await leader.context().newPage()
    const scripts = await held(follower, '**/assets/*.js')
    const loading = follower.goto(dashboard())
    await scripts.asked
    await badge(follower).getByText('Paused').waitFor()
    await pausing('grace', 'reactivate')
    await badge(leader).getByText('Active').waitFor()
    scripts.letGo()
    await loading
    await badge(follower).getByText('Active').waitFor()
    expect(visit.problems).toEqual([])
  })

  test('a part with a field in use is not replaced until it is left', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    await page.evaluate(() => {
      const form = document.createElement('form')
      form.id = 'typed'
      form.innerHTML = '<input name="note"><button type="reset">Undo</button>'
      document.querySelector('#overview-pool')?.prepend(form)
      form.querySelector('input')?.focus() // what holds the focus is not replaced
    })
    await page.locator('#typed input').pressSequentially('half a sen')
    await page.locator('h1').evaluate((heading) => {
      heading.tabIndex = -1
      heading.focus()
    })
    const told = page.evaluate(
      () => new Promise<void>((resolve) => document.body.addEventListener('live:accounts', () => resolve())),
    )
    await pausing('ada', 'pause')
    await told
    expect(await page.locator('#typed input').inputValue()).toBe('half a sen')
    expect(await getText(row(page, 'ada').locator('.badge'))).toBe('Active')
    await page.locator('#typed button').click()
    await row(page, 'ada').locator('.badge', { hasText: 'Paused' }).waitFor()
    expect(await page.locator('#typed').count()).toBe(0)
    await pausing('ada', 'reactivate')
  })

  test('a part is not replaced if typing begins during the request for it', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    const asked = Promise.withResolvers<void>()
    const typed = Promise.withResolvers<void>()
    await page.route(RENEWED, async (route) => {
      asked.resolve()
      await typed.promise
      await route.continue()
    })
    await pausing('ada', 'pause')
    await asked.promise
    await page.evaluate(() => {
      const form = document.createElement('form')
      form.id = 'typed'
      form.innerHTML = '<input name="note"><button type="reset">Undo</button>'
      document.querySelector('#overview-pool')?.prepend(form)
    })
    await page.locator('#typed input').pressSequentially('half a sen')
    const answer = page.waitForResponse(RENEWED)
    typed.resolve()
    await (await answer).finished()
    await page.waitForFunction(() => !document.querySelector('.htmx-request'))
    expect(await page.locator('#typed').count()).toBe(1)
    expect(await page.locator('#typed input').inputValue()).toBe('half a sen')
    await page.locator('#typed button').click()
    await row(page, 'ada').locator('.badge', { hasText: 'Paused' }).waitFor()
    expect(await page.locator('#typed').count()).toBe(0)
    await pausing('ada', 'reactivate')
  })

  test('without a stream the page says so and polls every 30 seconds', async () => {
    await using visit = await browser.visit(`${world.url}/health`, { isClockHeld: true })
    const { page } = visit
    await page.route('**/api/events*', () => {}) // held forever, as by a proxy that buffers
    await page.goto(dashboard())
    const asked: string[] = []
    page.on('request', (request) => RENEWED.test(request.url()) && asked.push(new URL(request.url()).search))
    await page.clock.runFor(4000)
    expect(await page.locator('.unlive').isVisible()).toBe(false)
    await page.clock.runFor(4000)
    expect(await getText(page.locator('.unlive'))).toContain('Refreshing every 30 seconds')
    await page.clock.runFor(31_000)
    await until(async () => asked.length > 0, world.output)
    expect(asked).toEqual(['?period=24h'])
  })

  test('the page says when Sluice does not answer', async () => {
    await using server = await spawnServer()
    await using visit = await browser.visit(`${server.url}/dashboard`, { untilLive: true })
    expect(await visit.page.locator('.offline').isVisible()).toBe(false)
    await server.kill()
    await visit.page.locator('.offline').waitFor({ state: 'visible' })
  })

  test('an error page of a reverse proxy removes nothing from the page', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    const title = await page.title()
    const away = { status: 502, contentType: 'text/html', body: '<title>502 Bad Gateway</title><h1>Bad Gateway</h1>' }
    await page.route(RENEWED, (route) => route.fulfill(away))
    await pausing('grace', 'pause')
    await page.locator('.offline').waitFor({ state: 'visible' })
    expect(await getText(row(page, 'grace').locator('.badge'))).toBe('Active')
    expect(await page.title()).toBe(title)
    await page.unroute(RENEWED)
    await pausing('grace', 'reactivate')
    await pausing('grace', 'pause')
    await row(page, 'grace').locator('.badge', { hasText: 'Paused' }).waitFor()
    await page.locator('.offline').waitFor({ state: 'hidden' })
    await pausing('grace', 'reactivate')
  })

  test.each(['/dashboard', '/accounts', '/keys'])(
    'signing out elsewhere redirects from %s to the sign-in page',
    async (path) => {
      await using visit = await openAs(browser, owned, path, { untilLive: true })
      await visit.page.evaluate(signOutEverywhere)
      await arrivedAt(visit.page, '/login')
    },
  )

  test('signing out elsewhere leads every tab to the sign-in', async () => {
    await using visit = await openAs(browser, owned, '/dashboard', { untilLive: true })
    const tabs = [visit.page]
    for (const path of ['/accounts', '/logs']) {
      const tab = await visit.page.context().newPage()
      await loadAndConnect(tab, () => tab.goto(owned.url + path))
      tabs.push(tab)
    }
    await visit.page.evaluate(signOutEverywhere)
    for (const tab of tabs) await arrivedAt(tab, '/login')
  })

  test('an error in a part disappears with the next successful response of that part', async () => {
    await using visit = await browser.visit(dashboard(), { untilLive: true })
    const { page } = visit
    await page.route(RENEWED, (route) =>
      route.fulfill({
        status: 503,
        contentType: 'text/html',
        headers: { 'hx-retarget': '#flash', 'hx-reswap': 'innerHTML' },
        body: '<p class="alert">Too busy.</p>',
      }),
    )
    await pausing('ada', 'pause')
    await page.locator('#flash .alert').waitFor()
    await page.unroute(RENEWED)
    await pausing('ada', 'reactivate')
    await page.locator('#flash .alert').waitFor({ state: 'detached' })
  })

  test('the theme switch is stored on the server', async () => {
    await using visit = await browser.visit(dashboard(), { colorScheme: 'light' })
    const { page, problems } = visit
    expect(await brightness(page)).toBe('light')
    await page.locator('[data-action=theme]').click()
    expect(await brightness(page)).toBe('dark')
    const again = await page.reload()
    expect(await again?.text()).toContain('data-theme="dark"')
    expect(await brightness(page)).toBe('dark')
    await page.locator('[data-action=theme]').click()
    expect(await brightness(page)).toBe('light')
    expect(problems).toEqual([])
  })
})

describe('for everyone', () => {
  test('on paper the dark theme is light, too, and controls are hidden', async () => {
    await using visit = await browser.visit(dashboard(), { colorScheme: 'dark' })
    const { page } = visit
    const pressable = page.locator('.nav a:visible, button:visible')
    expect(await brightness(page)).toBe('dark')
    expect(await pressable.count()).toBeGreaterThan(0)
    await page.emulateMedia({ media: 'print' })
    expect(await brightness(page)).toBe('light')
    expect(await pressable.count()).toBe(0)
    expect(await getText(page.locator('.health'))).toMatch(/^Serving/)
  })

  test('without scripts the page has the same content', async () => {
    await using scripted = await browser.visit(dashboard())
    await using plain = await browser.visit(dashboard(), { javaScriptEnabled: false })
    const names = (page: Page) => getTexts(page.locator('.strip-name'))
    expect(await names(plain.page)).toEqual(await names(scripted.page))
    expect(await getText(plain.page.locator('.health'))).toMatch(/^Serving/)
    expect(await plain.page.locator('[data-action]:visible').count()).toBe(0)
    expect(plain.problems).toEqual([])
  })

  test('letters open pages, a question mark shows the list, and Escape closes it', async () => {
    await using visit = await browser.visit(dashboard())
    const { page } = visit
    await page.keyboard.press('?')
    await page.locator('#shortcuts').waitFor({ state: 'visible' })
    await page.keyboard.press('Escape')
    await page.locator('#shortcuts').waitFor({ state: 'hidden' })
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.waitForURL('**/settings')
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await page.waitForURL('**/dashboard')
  })

  test('everything that can have the focus shows it', async () => {
    await using visit = await browser.visit(dashboard())
    const seen: string[] = []
    for (let stop = 0; stop < 13; stop += 1) {
      await visit.page.keyboard.press('Tab')
      const focused = await focusedElement(visit.page)
      if (focused === null) break
      expect(focused.ring).not.toBe('')
      seen.push(/^\d+$|^No alerts$/.test(focused.name) ? 'the bell' : focused.name)
    }
    expect(seen).toEqual([
      'Skip to content',
      'Sluice',
      'Overview',
      'Accounts',
      'Keys',
      'Logs',
      'Reports',
      'Settings',
      'Search',
      'the bell',
      'Hide names and e-mails',
      'Switch light and dark',
      'Set a password',
    ])
  })
})

const row = (page: Page, name: string) => page.locator('.strip-row', { hasText: name }).first()

/** Runs in the page. */
const signOutEverywhere = async (): Promise<void> => {
  const { ok } = await fetch('/api/dashboard-auth/logout-all', { method: 'POST' })
  if (!ok) throw new Error('The sign-out failed.')
}

const pausing = async (name: string, verb: 'pause' | 'reactivate'): Promise<void> => {
  const { accounts } = await world.api<{ accounts: { accountId: string; email: string }[] }>('GET', '/api/accounts')
  const account = accounts.find(({ email }) => email.startsWith(name))
  await world.api('POST', `/api/accounts/${account?.accountId}/${verb}`)
}

/** The appearance of the page, by the lightness of its background. */
const brightness = (page: Page): Promise<'light' | 'dark'> =>
  page.evaluate(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d')!
    canvas.fillStyle = getComputedStyle(document.body).backgroundColor
    canvas.fillRect(0, 0, 1, 1)
    const [red = 0, green = 0, blue = 0] = canvas.getImageData(0, 0, 1, 1).data
    return red + green + blue > 384 ? 'light' : 'dark'
  })

/** Null when the focus has left the page. `ring` is empty where nothing marks the element. */
const focusedElement = (page: Page): Promise<{ name: string; ring: string } | null> =>
  page.evaluate(() => {
    const el = document.activeElement
    if (!(el instanceof HTMLElement) || el === document.body) return null
    const { outlineStyle, outlineWidth } = getComputedStyle(el)
    const hasRing = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2
    return { name: (el.textContent ?? '').trim() || el.title, ring: hasRing ? `${outlineWidth} ${outlineStyle}` : '' }
  })
