/** Pausing, resuming and switching off show immediately, and are undone if they fail. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { getText, held, launchBrowser, type TestBrowser } from './browser.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let world: World
let paths: { account: string; key: string }

beforeAll(async () => {
  browser = await launchBrowser()
  world = await startPopulated()
  const { accounts } = await world.api<{ accounts: { accountId: string; email: string }[] }>('GET', '/api/accounts')
  const keys = await world.api<{ id: string }[]>('GET', '/api/api-keys/')
  const ada = accounts.find(({ email }) => email.startsWith('ada'))
  paths = { account: `/accounts/${ada?.accountId}`, key: `/keys/${keys[0]?.id}` }
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const getBadge = (page: Page, name: string) => getText(page.locator(`${name} .badge`).first())

/** The text of the badge while the request is held, and after `answer`. */
const press = async (
  page: Page,
  { url, button, badge }: Record<'url' | 'button' | 'badge', string>,
  answer: Answer,
) => {
  const held = Promise.withResolvers<Route>()
  await page.route(url, (route) => held.resolve(route))
  await page.click(button)
  const route = await held.promise
  const meanwhile = await getBadge(page, badge)
  await answer(route)
  await page.unroute(url)
  return meanwhile
}

type Answer = (route: Route) => Promise<void>

const PAUSE = { url: '**/pause', button: '#form-pause [type=submit]', badge: '#account-head' }
const RESUME = { url: '**/reactivate', button: '#form-resume [type=submit]', badge: '#account-head' }
const SWITCH = { url: '**/api/api-keys/*', button: '#form-switch [type=submit]', badge: '.key-head' }

test('an account is paused and resumed immediately', async () => {
  await using visit = await browser.visit(world.url + paths.account)
  const { page } = visit
  expect(await press(page, PAUSE, (route) => route.continue())).toBe('Paused')
  await page.waitForSelector(RESUME.button)
  expect(await press(page, RESUME, (route) => route.continue())).toBe('Active')
  await page.waitForSelector(PAUSE.button)
  expect(await getBadge(page, PAUSE.badge)).toBe('Active')
})

test('a live update waits while a badge shows a change that is not stored yet', async () => {
  await using visit = await browser.visit(world.url + paths.account, { untilLive: true })
  const { page } = visit
  const answer: Answer = async (route) => {
    const head = await page.evaluateHandle(watchHead)
    await world.api('PUT', `/api/accounts/${paths.account.split('/').at(-1)}/alias`, { alias: 'Renamed' })
    expect(await head.evaluate(({ whenNotified }) => whenNotified)).toBe(0)
    await route.continue()
    await page.waitForFunction(({ refreshes }) => refreshes > 0, head)
  }
  expect(await press(page, PAUSE, answer)).toBe('Paused')
  await page.locator('#account-head', { hasText: 'Renamed' }).waitFor()
  await page.click(RESUME.button)
  await page.waitForSelector(PAUSE.button)
})

/** Counts the live updates of the account's head. `whenNotified`: how many the next message about accounts caused. */
const watchHead = () => {
  const { promise: whenNotified, resolve } = Promise.withResolvers<number>()
  const head = { refreshes: 0, whenNotified }
  document.addEventListener('htmx:before:request', (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { sourceElement: Element } }>).detail
    if (ctx.sourceElement.id === 'account-head') head.refreshes += 1
  })
  document.body.addEventListener('live:accounts', () => setTimeout(() => resolve(head.refreshes), 100), { once: true })
  return head
}

test.each([
  ['no answer', (route: Route) => route.abort()],
  ['a proxy answers', (route: Route) => route.fulfill({ status: 502, contentType: 'text/html', body: 'Bad Gateway' })],
] as const)('when %s, the account is active again and the page says so', async (_, answer) => {
  await using visit = await browser.visit(world.url + paths.account)
  const { page } = visit
  expect(await press(page, PAUSE, answer)).toBe('Paused')
  await page.waitForSelector('#flash >> text=nothing was changed')
  expect(await getBadge(page, PAUSE.badge)).toBe('Active')
})

test('a new secret stays when the response to an earlier change arrives late', async () => {
  await using visit = await browser.visit(world.url + paths.key)
  const { page } = visit
  page.on('dialog', (dialog) => dialog.accept())
  const later = await held(page, `**${paths.key}?done=*`)
  await page.click(SWITCH.button)
  await later.asked
  await page.click('#form-regenerate [type=submit]')
  const secret = await getText(page.locator('.command-key code'))
  const ended = page.evaluate(
    () => new Promise((resolve) => document.addEventListener('htmx:finally:request', resolve, { once: true })),
  )
  later.letGo()
  await ended
  expect(await getText(page.locator('.command-key code'))).toBe(secret)
  await page.goto(world.url + paths.key)
  await page.click(SWITCH.button)
  await page.locator('#form-switch', { hasText: 'Turn off' }).waitFor() // active again; the badge says so earlier
})

test('a key that was deleted in between is not shown as off', async () => {
  await using visit = await browser.visit(world.url + paths.key)
  const { page } = visit
  const answer: Answer = async (route) => {
    await world.api('DELETE', `/api/api-keys/${paths.key.split('/').at(-1)}`)
    await route.continue()
  }
  expect(await press(page, SWITCH, answer)).toBe('Off')
  await page.locator('.alert, .form-problem:not(:empty)').first().waitFor()
  expect(await getBadge(page, SWITCH.badge)).toBe('Active')
})

test('several accounts are paused immediately in the list', async () => {
  await using visit = await browser.visit(`${world.url}/accounts`)
  const { page } = visit
  const row = 'tr:has-text("ada@")'
  await page.check(`${row} [name=accountIds]`)
  const pause = { url: '**/pause', button: '.bulk >> text=Pause', badge: row }
  expect(await press(page, pause, (route) => route.abort())).toBe('Paused')
  await page.waitForSelector('#flash >> text=nothing was changed')
  expect(await getBadge(page, row)).toBe('Active')
})
