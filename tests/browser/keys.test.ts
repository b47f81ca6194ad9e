/** Keys in a browser: created with three fields, shown once, pasted, tested, changed and deleted. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Route } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { spawnServer } from '../support/spawn.ts'
import { getText, getTexts, held, launchBrowser, loadAndConnect, overflowsAt, type TestBrowser } from './browser.ts'
import { faultyProxy } from './faulty-proxy.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let world: World

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
  const limits = [
    { limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 25_000_000 },
    { limitType: 'requests', limitWindow: '5h', maxValue: 6 },
  ]
  await world.api('POST', '/api/api-keys/', { name: 'ci', allowedModels: ['gpt-5.5'], limits })
  await world.api('POST', '/api/api-keys/', { name: 'a key with a rather long name for the nightly batch job' })
  const [first] = await world.api<{ id: string }[]>('GET', '/api/api-keys/')
  await world.api('PATCH', `/api/api-keys/${first!.id}`, { limits: [{ ...limits[1], maxValue: 7 }, limits[0]] })
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const idOf = async (name: string): Promise<string> => {
  const keys = await world.api<{ id: string; name: string }[]>('GET', '/api/api-keys/')
  return keys.find((key) => key.name === name)?.id ?? ''
}

test('creating a key', async () => {
  await using visit = await browser.visit(`${world.url}/keys/new`)
  const { page } = visit
  await page.fill('[name=name]', 'made')
  await page.check('[name=allowedModels][value="gpt-5.5"]')
  await page.uncheck('.switch[name=neverExpires]')
  await page.selectOption('[name=expiry]', '90')
  await page.click('#form-key [type=submit]')
  const key = await getText(page.locator('.command-key code'))
  expect(key).toMatch(/^sk-clb-[\w-]{43}$/)
  expect(await overflowsAt(page)).toEqual([])
  await page.click('[data-path-test]')
  await page.locator('#key-test .tone-good').waitFor()
  await page.locator('[data-measure=stream] [data-outcome=ok]:visible').waitFor()
  await page.locator('[data-measure=socket] [data-outcome=ok]:visible').waitFor()
  await page.locator('[data-measure=upload] [data-outcome=ok]:visible').waitFor()
  await page.locator('[data-measure=headers] [data-outcome=ok]:visible').waitFor()
  await page.locator('[data-path="/v1/models"] [data-outcome=ok]:visible').waitFor()
  await page.locator('[data-path="/backend-api/codex/models"] [data-outcome=ok]:visible').waitFor()
  expect(await getText(page.locator('#key-test'))).toMatch(/It works\. \S+@example\.test answered .* using gpt-5\.5/)
  expect(await getText(page.locator('#path-test'))).toContain('one by one')
  expect(visit.problems).toEqual([])
  await page.click('text=Done, I copied it')
  await page.waitForURL(/\/keys\/key_/)
  expect(await page.content()).not.toContain(key)
})

test('a long connection shows its duration so far', async () => {
  await using visit = await browser.visit(`${world.url}/keys/${await idOf('ci')}`)
  await visit.page.click('[data-path-test]')
  await visit.page.locator('[data-measure=lasting] [data-outcome=open]:visible').waitFor()
  expect(await getText(visit.page.locator('#path-test'))).toMatch(/Open for \d+ s so far. You can leave this page/)
})

test('a failing test replaces the result of an earlier one', async () => {
  await using visit = await browser.visit(`${world.url}/keys/${await idOf('ci')}`)
  const { page } = visit
  const result = page.locator('#key-test')
  await page.click('[data-path-test]')
  await result.getByText('It works.').waitFor()
  const testing = await held(page, '**/api/api-keys/*/test')
  await page.click('[data-path-test]')
  await testing.asked
  expect(await getText(result)).toBe('')
  testing.letGo()
  await result.getByText('It works.').waitFor()
  await page.unroute('**/api/api-keys/*/test')
  await page.route('**/api/api-keys/*/test', (route) => route.abort())
  await page.click('[data-path-test]')
  await page.locator('#form-test').getByText('Sluice didn’t answer. Try again.').waitFor()
  expect(await getText(result)).toBe('')
  await page.unroute('**/api/api-keys/*/test')
  await page.click('[data-path-test]')
  await result.getByText('It works.').waitFor()
  expect(await getText(page.locator('#form-test .form-problem'))).toBe('')
})

test.each([
  ['no answer', (route: Route) => route.abort()],
  ['a proxy answers', (route: Route) => route.fulfill({ status: 502, contentType: 'text/html', body: 'Bad Gateway' })],
] as const)('when %s, a form says so, also after a message of the server', async (_, answer) => {
  await using visit = await browser.visit(`${world.url}/keys/new`, { untilLive: true })
  const { page } = visit
  const before = await world.api<unknown[]>('GET', '/api/api-keys/')
  await page.fill('[name=name]', 'unanswered')
  await page.route('**/api/api-keys/', answer)
  await page.click('#form-key [type=submit]')
  const problem = page.locator('#form-key').getByText('Sluice didn’t answer. Try again.')
  await problem.waitFor()
  await page.locator('.is-offline').waitFor()
  await world.api('POST', '/api/api-keys/', { name: 'live' }) // whose message removes the line at the top
  await page.locator('html:not(.is-offline)').waitFor()
  expect(await problem.isVisible()).toBe(true)
  expect(await page.inputValue('[name=name]')).toBe('unanswered')
  await world.api('DELETE', `/api/api-keys/${await idOf('live')}`)
  expect(await world.api<unknown[]>('GET', '/api/api-keys/')).toEqual(before)
})

test('behind a misconfigured proxy a key works, and the test says what clients would encounter', async () => {
  await using proxy = faultyProxy(world.url, { maxBytes: 1024 * 1024, dropsUnderscores: true, hides: ['/v1/'] })
  await using visit = await browser.visit(`${proxy.url}/keys/${await idOf('test')}`)
  const { page } = visit
  await page.click('[data-path-test]')
  await page.locator('#key-test .tone-good').waitFor()
  await page.locator('[data-path="/backend-api/codex/models"] [data-outcome=ok]:visible').waitFor()
  const found = await getText(page.locator('#path-test'))
  expect(found).toMatch(/Large requests\. .*rejected as too large.*client_max_body_size/)
  expect(found).toMatch(/Headers with underscores\. .*session_id.*underscores_in_headers on/)
  expect(found).toContain('Requests to /v1 don’t reach Sluice. Something else answered at /v1/models')
  expect(found).toContain('Requests to /backend-api reach Sluice.')
})

test('each tab shows its own text, with this address and this key, by keyboard alone', async () => {
  await using visit = await browser.visit(`${world.url}/keys/${await idOf('ci')}`)
  const { page } = visit
  await page.locator('.client-tab input').first().focus()
  const shown: string[] = []
  const tabs = await page.locator('.client-tab').count()
  expect(tabs).toBeGreaterThan(6)
  for (let tab = 0; tab < tabs; tab++) {
    shown.push((await getTexts(page.locator('.client-panel:visible code'))).join('\n'))
    await page.keyboard.press('ArrowRight')
  }
  expect(new Set(shown).size).toBe(tabs)
  expect(shown.every((text) => text.includes(world.url))).toBe(true)
  expect(shown[0]).toContain('model = "gpt-5.5"')
})

test('behind a TLS proxy the URL of the address bar is used', async () => {
  await using visit = await browser.visit(`${world.url}/keys`)
  const { page } = visit
  await page.route('http://sluice.example.test/**', async (route) => {
    const url = new URL(route.request().url())
    if (url.pathname === '/api/events') return route.abort() // it never ends, and the server closes it after the test
    const response = await fetch(world.url + url.pathname, { headers: { accept: 'text/html' } })
    const html = (await response.text())
      .replaceAll(world.url, 'http://inner:1')
      .replace('class="client-tabs"', 'class="client-tabs" data-guess="http://inner:1"')
    await route.fulfill({
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
      body: html,
    })
  })
  await page.goto(`http://sluice.example.test/keys/${await idOf('ci')}`)
  await page.waitForFunction(() => !document.querySelector('[data-guess]'))
  expect(await getText(page.locator('[data-client=codex] code').nth(1))).toContain(
    '"http://sluice.example.test/backend-api/codex"',
  )
})

test('a key created by another user appears in the list automatically', async () => {
  await using visit = await browser.visit(`${world.url}/keys?q=elsewhere`, { untilLive: true })
  const { page } = visit
  await page.getByText('No key matches').waitFor()
  await world.api('POST', '/api/api-keys/', { name: 'made elsewhere' })
  await page.getByText('made elsewhere').waitFor()
  await world.api('DELETE', `/api/api-keys/${await idOf('made elsewhere')}`)
  await page.getByText('No key matches').waitFor()
  expect(visit.problems).toEqual([])
})

test('a page without keys shows the first one, and is empty again after the last', async () => {
  await using server = await spawnServer()
  await using visit = await browser.visit(`${server.url}/keys`, { untilLive: true })
  const { page } = visit
  const ask = (method: string, path: string, body = {}) =>
    page.evaluate(
      async ([verb, to, text]) => {
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(`/api/api-keys/${to}`, { method: verb, headers, body: text })
        return answer.status === 204 ? null : answer.json()
      },
      [method, path, JSON.stringify(body)],
    )
  const { id } = await ask('POST', '', { name: 'the first' })
  await page.locator('#key-list', { hasText: 'the first' }).waitFor()
  await loadAndConnect(page, () => page.reload())
  await ask('DELETE', id)
  await page.getByText('No keys yet').waitFor()
})

test('changing, disabling, a new secret, and deleting', async () => {
  await world.api('POST', '/api/api-keys/', { name: 'short-lived' })
  const id = await idOf('short-lived')
  await using visit = await browser.visit(`${world.url}/keys/${id}`)
  const { page } = visit
  page.on('dialog', (dialog) => dialog.accept())
  await page.click('.key-actions a:has-text("Edit")')
  await page.click('.key-fold:has-text("Limits") summary')
  await page.uncheck('.switch[name=unlimited]')
  await page.fill('[name="limits.0.amount"]', '2.5')
  await page.selectOption('[name="limits.0.type"]', 'cost_usd')
  await page.click('text=Save')
  await page.locator('#limits:has-text("$2.50")').waitFor()
  await page.click('button:has-text("Turn off")')
  await page.locator('button:has-text("Turn on")').waitFor() // the badge changes before the key does
  await page.click('[data-path-test]')
  await page.locator('#key-test .tone-bad').waitFor()
  expect(await getText(page.locator('.key-head'))).toContain('Off')
  expect(await getText(page.locator('#key-test'))).toContain('The key is turned off')
  await page.click('button:has-text("Turn on")')
  await page.locator('button:has-text("Turn off")').waitFor()
  expect(await getText(page.locator('.key-head'))).toContain('Active')
  await page.click('button:has-text("Replace secret")')
  await page.locator('.command-key').waitFor()
  await page.click('text=Done, I copied it')
  await page.click('button:has-text("Delete")')
  await page.waitForURL(/\/keys\?done=/)
  expect(await getText(page.locator('.done'))).toContain('The key was deleted')
  expect(await page.locator('.key-name', { hasText: 'short-lived' }).count()).toBe(0)
  expect(visit.problems).toEqual([])
})

test('the first key turns on the key requirement; later the notice of the list does', async () => {
  await using own = await spawnServer()
  await using visit = await browser.visit(`${own.url}/keys/new`)
  const { page } = visit
  const settings = async () =>
    (await fetch(`${own.url}/api/settings`)).json() as Promise<{ apiKeyAuthEnabled: boolean }>
  expect(await page.getByLabel('Require a key from now on').isChecked()).toBe(true)
  await page.fill('[name=name]', 'laptop')
  await page.click('#form-key [type=submit]')
  expect(await getText(page.locator('.command-key code'))).toMatch(/^sk-clb-/)
  expect((await settings()).apiKeyAuthEnabled).toBe(true)
  const json = { headers: { 'content-type': 'application/json' }, body: '{"apiKeyAuthEnabled":false}' }
  await fetch(`${own.url}/api/settings`, { method: 'PATCH', ...json })
  await page.goto(`${own.url}/keys`)
  page.on('dialog', (dialog) => dialog.accept())
  await page.click('text=Require keys')
  await page.waitForSelector('.keys-optional', { state: 'detached' })
  expect((await settings()).apiKeyAuthEnabled).toBe(true)
  expect(visit.problems).toEqual([])
})

test('without scripts: sorting, searching, creating and showing', async () => {
  await using visit = await browser.visit(`${world.url}/keys`, { javaScriptEnabled: false })
  const { page } = visit
  await page.click('.sort:has-text("Cost")')
  await page.waitForURL(/sort=/)
  expect(await page.locator('th[aria-sort=descending]').count()).toBe(1)
  await page.fill('[name=q]', 'nightly')
  await page.press('[name=q]', 'Enter')
  await page.waitForURL(/q=nightly/)
  expect(await page.locator('.key-name').count()).toBe(1)
  await page.goto(`${world.url}/keys/new`)
  await page.fill('[name=name]', 'plain')
  await page.click('#form-key [type=submit]')
  expect(await getText(page.locator('.command-key code'))).toMatch(/^sk-clb-/)
  expect(visit.problems).toEqual([])
})

test('without scripts the browser requires the confirmation checkbox before a new secret', async () => {
  await world.api('POST', '/api/api-keys/', { name: 'renewed plainly' })
  const path = `${world.url}/keys/${await idOf('renewed plainly')}`
  await using visit = await browser.visit(path, { javaScriptEnabled: false })
  const { page } = visit
  await page.click('button:text-is("Replace secret")')
  expect(page.url()).toBe(path)
  await page.getByLabel('Create a new secret for renewed plainly?').check()
  await page.click('button:text-is("Replace secret")')
  expect(await getText(page.locator('.command-key code'))).toMatch(/^sk-clb-/)
  expect(visit.problems).toEqual([])
})
