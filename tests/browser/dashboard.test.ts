/** The overview as a person sees it: at a desk and on a phone, light and dark, with and without script. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { spawnServer } from '../support/spawn.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { DESKTOP, launchBrowser, overflows, PHONE, screenshot, type TestBrowser, textOf, textsOf } from './browser.ts'
import { startPopulated, takeTurn } from './world.ts'

let browser: TestBrowser
let world: World
const dashboard = () => `${world.url}/dashboard`

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
}, 30_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const LOOKS = [
  { name: 'desk, light', viewport: DESKTOP, colorScheme: 'light' },
  { name: 'desk, dark', viewport: DESKTOP, colorScheme: 'dark' },
  { name: 'phone, light', viewport: PHONE, colorScheme: 'light' },
  { name: 'phone, dark', viewport: PHONE, colorScheme: 'dark' },
] as const

describe.each(LOOKS)('$name', ({ name, ...options }) => {
  const file = name.replace(', ', '-')

  test('the overview fits, and the browser has nothing to complain about', async () => {
    await using visit = await browser.visit(dashboard(), options)
    await visit.page.waitForLoadState('networkidle')
    expect(visit.problems).toEqual([])
    expect(await overflows(visit.page)).toEqual([])
    expect(await brightness(visit.page)).toBe(options.colorScheme)
    await screenshot(visit.page, `overview-${file}`)
  })

  test('an empty install shows three steps', async () => {
    await using server = await spawnServer()
    await using visit = await browser.visit(`${server.url}/dashboard`, options)
    const titles = await textsOf(visit.page.locator('.steps h3'))
    expect(titles.map((title) => title.replace(/^\d\s*/, ''))).toEqual([
      'Add an account',
      'Create a key',
      'Point a client here',
    ])
    expect(await textOf(visit.page.locator('.health'))).toContain('Ready for the first account')
    expect(await visit.page.locator('.accounts, .requests').count()).toBe(0)
    expect(visit.problems).toEqual([])
    expect(await overflows(visit.page)).toEqual([])
    await screenshot(visit.page, `empty-${file}`)
  })
})

test('the commands of the first steps work as they stand', async () => {
  const upstream = createUpstream()
  const service = upstream.listen()
  await using server = await spawnServer({
    env: { CODEX_LB_UPSTREAM_BASE_URL: `${service.url}/backend-api`, CODEX_LB_AUTH_BASE_URL: service.url },
  })
  const home = join(server.dataDir, 'home')
  mkdirSync(join(home, '.codex'), { recursive: true })
  writeFileSync(join(home, '.codex', 'auth.json'), upstream.addAccount({ email: 'ada@example.test' }).authJson())
  await using visit = await browser.visit(`${server.url}/dashboard`)
  const [importing = '', creating = ''] = await textsOf(visit.page.locator('.command code'))
  const run = (command: string) =>
    JSON.parse(Bun.spawnSync(['sh', '-c', `${command} -s`], { env: { ...process.env, HOME: home } }).stdout.toString())
  expect(run(importing)).toMatchObject({ email: 'ada@example.test', status: 'active' })
  expect(run(creating)).toMatchObject({ name: 'my-laptop', key: expect.stringMatching(/^sk-clb-/) })

  await visit.page.reload()
  const steps = await textsOf(visit.page.locator('.steps h3'))
  expect(steps[0]).toContain('done')
  expect(await textOf(visit.page.locator('.health'))).toContain('1 of 1 account eligible')
  await screenshot(visit.page, 'first-account')
  await service.stop()
})

describe('what it says', () => {
  test('health in one sentence', async () => {
    await using visit = await browser.visit(dashboard())
    const sentence = await textOf(visit.page.locator('.health'))
    expect(sentence).toMatch(/^Serving/)
    expect(sentence).toContain('4 of 7 accounts eligible')
    expect(sentence).toContain('1 needs your attention')
  })

  test('each account with its state and, apart from it, whether it would be chosen', async () => {
    await using visit = await browser.visit(dashboard())
    const said = (name: string) => textOf(account(visit.page, name).locator('.account-state'))
    expect(await said('ada')).toMatch(/Active\s+Eligible now/)
    expect(await said('alan')).toMatch(/Active\s+Eligible, asked last/)
    expect(await said('linus')).toMatch(/Rate limited\s+Usage limit reached · back in 2 h/)
    expect(await said('linus')).toContain('429')
    expect(await said('barbara')).toMatch(/Needs sign-in\s+Not asked until its new auth\.json is imported/)
    expect(await said('tony')).toMatch(/Paused\s+Not asked until it is resumed/)
  })

  test('nothing known about an account is not drawn as zero', async () => {
    await using visit = await browser.visit(dashboard())
    const row = account(visit.page, 'edsger')
    expect(await row.locator('.meter').count()).toBe(0)
    expect(await textOf(row)).toContain('No usage reported yet')
    const { first, cost } = await cellsOfFailedTurn(visit.page)
    expect({ first, cost }).toEqual({ first: '–', cost: '–' })
  })
})

describe('while it is open', () => {
  test('a turn shows up with the next poll, and what has the focus keeps it', async () => {
    await using visit = await browser.visit(dashboard(), { isClockHeld: true })
    const { page } = visit
    const before = await page.locator('.requests tbody tr').count()
    await page.keyboard.press('Tab')
    await takeTurn(world)
    const polled = page.waitForResponse((response) => response.url() === dashboard())
    await page.clock.fastForward(11_000)
    expect((await polled).headers()['content-type']).toContain('text/html')
    await page.waitForFunction((count) => document.querySelectorAll('.requests tbody tr').length > count, before)
    expect(await textOf(page.locator('.requests tbody tr').first())).toContain('Done')
    expect(await page.evaluate(() => document.activeElement?.className)).toBe('skip')
    expect(visit.problems).toEqual([])
  })

  test('it says so when the service does not answer, and takes it back', async () => {
    await using visit = await browser.visit(dashboard(), { isClockHeld: true })
    const { page } = visit
    const notice = page.locator('.offline')
    expect(await notice.isVisible()).toBe(false)
    await page.context().setOffline(true)
    await page.clock.fastForward(11_000)
    await notice.waitFor({ state: 'visible' })
    await page.context().setOffline(false)
    await page.clock.fastForward(11_000)
    await notice.waitFor({ state: 'hidden' })
  })

  test('the theme switch is remembered by the server', async () => {
    await using visit = await browser.visit(dashboard(), { colorScheme: 'light' })
    const { page, problems } = visit
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

describe('for everybody', () => {
  test('without script the page says the same', async () => {
    await using scripted = await browser.visit(dashboard())
    await using plain = await browser.visit(dashboard(), { javaScriptEnabled: false })
    const names = (page: Page) => textsOf(page.locator('.account-title'))
    expect(await names(plain.page)).toEqual(await names(scripted.page))
    expect(await textOf(plain.page.locator('.health'))).toMatch(/^Serving/)
    expect(await plain.page.locator('.requests tbody tr').count()).toBeGreaterThan(3)
    expect(await plain.page.locator('[data-action]:visible').count()).toBe(0)
    expect(plain.problems).toEqual([])
  })

  test('everything that takes the focus shows it', async () => {
    await using visit = await browser.visit(dashboard())
    const seen: string[] = []
    for (let stop = 0; stop < 20; stop += 1) {
      await visit.page.keyboard.press('Tab')
      const focused = await focusedElement(visit.page)
      if (focused === null) break
      expect(focused.ring).not.toBe('')
      seen.push(focused.name)
    }
    expect(seen).toEqual([
      'Skip to content',
      'Sluice',
      'Overview',
      'Settings',
      'Switch light and dark',
      'Set a password',
    ])
  })
})

const account = (page: Page, name: string) => page.locator('.account', { hasText: `${name}` }).first()

const cellsOfFailedTurn = async (page: Page) => {
  const row = page.locator('.requests tbody tr', { hasText: 'Failed' }).first()
  return { first: await textOf(row.locator('.cell-first')), cost: await textOf(row.locator('.cell-cost')) }
}

/** What the page looks like, by the lightness of its background. */
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
    return { name: (el.textContent ?? '').trim(), ring: hasRing ? `${outlineWidth} ${outlineStyle}` : '' }
  })
