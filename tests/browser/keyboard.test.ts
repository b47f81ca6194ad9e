/** Every task with only Tab, Enter, Space, Escape and arrow keys. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { getText, launchBrowser, type TestBrowser } from './browser.ts'
import { isFocused, openDialog, pressAt, tabTo, typeInto } from './keyboard.ts'
import { expireConfirmations, PASSWORD, send } from './people-world.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let world: World
let url: string
/** One for all tests, so the user stays signed in. */
let page: Page

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
  url = world.url.replace('127.0.0.1', 'localhost')
  await send(url, 'POST', '/api/dashboard-auth/password/setup', { password: PASSWORD })
  page = (await browser.visit(`${url}/login`)).page
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const button = (name: string | RegExp) => page.getByRole('button', { name })
const link = (name: string | RegExp) => page.getByRole('link', { name })

test('signing in', async () => {
  await typeInto(page.locator('#form-login [name=password]'), PASSWORD)
  await page.keyboard.press('Enter')
  await page.waitForURL(/dashboard/)
})

test('skipping the navigation to the main content', async () => {
  await page.goto(`${url}/accounts`)
  await page.keyboard.press('Tab')
  expect(await isFocused(link('Skip to content'))).toBe(true)
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.querySelector('main')?.contains(document.activeElement))).toBe(true)
})

test('adding an account from a file, in dialogs that trap the focus and return it', async () => {
  const file = join(world.dataDir, 'emmy.json')
  writeFileSync(file, world.upstream.addAccount({ email: 'emmy@example.test' }).authJson())
  // With a second file it asks which ones to import.
  const broken = join(world.dataDir, 'broken.json')
  writeFileSync(broken, '{"tokens":')
  await page.goto(`${url}/accounts`)
  const way = link('Add account')
  await pressAt(way)
  await openDialog(page)
  await page.keyboard.press('Escape')
  expect(await isFocused(way)).toBe(true)

  await pressAt(way)
  await pressAt((await openDialog(page)).getByRole('link', { name: 'File' }))
  const files = page.locator('dialog input[name=auth_json]')
  await files.waitFor()
  await openDialog(page)
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), pressAt(files, 'Space')])
  await chooser.setFiles([file, broken])
  await pressAt(button('Import'))
  await page.locator('dialog .preflight').waitFor()
  await openDialog(page)
  await pressAt(button('Import selected'))
  await page.locator('dialog .imported').waitFor()
  await openDialog(page)
  await Promise.all([page.waitForEvent('load'), pressAt(link('Done'))])
  await link('emmy@example.test').waitFor()
})

test('a sign-in with a code: begun, copied and cancelled', async () => {
  await page.goto(`${url}/accounts`)
  const way = link('Add account')
  await pressAt(way)
  await pressAt((await openDialog(page)).getByRole('link', { name: 'Code' }))
  const code = page.locator('dialog .device-code-text')
  await code.waitFor()
  await openDialog(page)
  await pressAt(button('Copy code'))
  await page.locator('.device-code .is-done').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await getText(code))
  await pressAt(button('Cancel'))
  await page.locator('dialog').getByText('Sign-in cancelled').waitFor()
  await openDialog(page)
  await page.keyboard.press('Escape')
  expect(await isFocused(way)).toBe(true)
})

test('pausing and resuming an account without losing the focus', async () => {
  await page.goto(`${url}/accounts`)
  await pressAt(link('grace@example.test'))
  await page.waitForURL(/accounts\/acc_/)
  await pressAt(button('Pause'))
  await button('Resume').waitFor()
  await page.locator('.account-head :focus').waitFor()
  await pressAt(button('Resume'))
  await button('Pause').waitFor()
})

test('pausing and resuming several accounts', async () => {
  await page.goto(`${url}/accounts?plan=plus`)
  const standsAt = (name: string, state: string) =>
    page.locator('.accounts tbody tr', { hasText: name }).getByText(state, { exact: true }).waitFor()
  await pressAt(page.getByLabel('Select emmy@example.test'), 'Space')
  await pressAt(page.getByLabel('Select grace@example.test'), 'Space')
  await pressAt(button('Pause'))
  await page.locator('.done', { hasText: 'Accounts paused' }).waitFor() // the badges change earlier
  await Promise.all([standsAt('emmy', 'Paused'), standsAt('grace', 'Paused')])
  await page.locator('.bulk :focus').waitFor()
  await pressAt(button('Resume'))
  await Promise.all([standsAt('emmy', 'Active'), standsAt('grace', 'Active')])
})

test('creating a key, copying and testing it', async () => {
  await page.goto(`${url}/keys`)
  await pressAt(link('Create key'))
  await page.waitForURL(/keys\/new/)
  await typeInto(page.locator('[name=name]'), 'by keyboard')
  await pressAt(page.locator('[name=allowedModels][value="gpt-5.5"]'), 'Space')
  await pressAt(page.locator('.switch[name=neverExpires]'), 'Space')
  await tabTo(page.getByRole('combobox', { name: 'Expires' }))
  await page.keyboard.press('ArrowDown')
  await pressAt(page.locator('summary', { hasText: 'Limits' }))
  await pressAt(page.locator('.switch[name=unlimited]'), 'Space')
  await typeInto(page.locator('[name="limits.0.amount"]'), '100')
  await pressAt(button('Create key'))
  const shown = page.locator('.command-key')
  await shown.waitFor()
  await pressAt(shown.getByRole('button'))
  await shown.locator('.is-done').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await getText(shown.locator('code')))
  await tabTo(page.locator('.client-tab input:checked'))
  await page.keyboard.press('ArrowRight')
  expect(await page.locator('.client-tab input').nth(1).isChecked()).toBe(true)
  await pressAt(button('Test key'))
  await page.locator('#key-test .key-finding').first().waitFor()
})

test('a key gets a limit', async () => {
  await page.goto(`${url}/keys`)
  await pressAt(link('test'))
  await page.waitForURL(/keys\/key_/)
  await pressAt(link('Edit'))
  await page.waitForURL(/edit/)
  await pressAt(page.locator('summary', { hasText: 'Limits' }))
  await pressAt(page.locator('.switch[name=unlimited]'), 'Space')
  await typeInto(page.locator('[name="limits.0.amount"]'), '2.5')
  await tabTo(page.locator('[name="limits.0.type"]'))
  await page.keyboard.type('dollars')
  await tabTo(page.locator('[name="limits.0.window"]'))
  await page.keyboard.press('ArrowUp')
  await pressAt(button('Save'))
  await page.locator('#limits', { hasText: /\$2\.50/ }).waitFor()
  expect(await getText(page.locator('#limits'))).toContain('dollars per 7 days')
})

test('the log: filtering, opening a request, moving to the next, and returning', async () => {
  await page.goto(`${url}/logs`)
  await tabTo(page.locator('[name=status]'))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.waitForURL(/status=failed/)
  const rows = page.locator('#log-rows .row-link')
  await pressAt(rows.first())
  const title = page.locator('#drawer h2')
  await title.filter({ hasText: 'No account available' }).waitFor()
  await page.waitForFunction(() => document.activeElement?.matches('#drawer h2'))
  await page.keyboard.press('j')
  await title.filter({ hasText: 'All accounts at their limit' }).waitFor()
  await page.keyboard.press('Escape')
  await title.waitFor({ state: 'detached' })
  expect(await isFocused(rows.nth(1))).toBe(true)
})

test('a response that arrives after leaving the page is ignored', async () => {
  await page.goto(`${url}/logs`)
  const left = Promise.withResolvers<void>()
  await page.route('**/logs/trn_*', async (route) => {
    await left.promise
    await route.continue()
  })
  const row = page.locator('#log-rows .row-link').first()
  const [answer] = await Promise.all([page.waitForResponse(/logs\/trn_/), pressAt(row).then(leave)])
  await answer.finished()
  await page.waitForFunction(() => !document.querySelector('.htmx-request'))
  expect(await page.locator('#drawer h2').count()).toBe(0)
  await page.unroute('**/logs/trn_*')

  async function leave() {
    await page.waitForURL(/open=/)
    await page.goBack()
    left.resolve()
  }
})

test('a setting is changed and saved', async () => {
  await page.goto(`${url}/settings/routing`)
  await tabTo(page.locator('[name=routingStrategy]:checked'))
  await page.keyboard.press('ArrowDown')
  const save = page.locator('#form-routing [type=submit]')
  await pressAt(save)
  await page.locator('#routing .done').waitFor()
  await page.locator('#form-routing [type=submit]:focus').waitFor()
  await page.goto(`${url}/settings`)
  const guests = page.locator('#input-guestAccessEnabled')
  await pressAt(guests, 'Space')
  expect(await guests.isChecked()).toBe(true)
})

test('the first firewall address needs a confirmation before it is added', async () => {
  await page.goto(`${url}/settings/network`)
  expireConfirmations(world)
  const field = page.locator('[name=ipAddress]')
  const entries = page.locator('#firewall .rows code')
  await typeInto(field, '198.51.100.0/24')
  expect(await answerAfter('dismiss', () => page.keyboard.press('Enter'))).toStartWith('Add the first entry?')
  expect([await isFocused(field), await field.inputValue()]).toEqual([true, '198.51.100.0/24'])
  await answerAfter('accept', () => page.keyboard.press('Enter'))
  await page.locator('dialog #form-confirm').waitFor()
  await openDialog(page)
  expect(await entries.count()).toBe(0)
  await typeInto(page.locator('#form-confirm [name=password]'), PASSWORD)
  await page.keyboard.press('Enter')
  await entries.filter({ hasText: '198.51.100.0/24' }).waitFor()
  await page.locator('#form-firewall :focus').waitFor()
  expect(await answerAfter('accept', () => pressAt(button('Remove')))).toContain('It is the last entry')
  await entries.waitFor({ state: 'detached' })
})

test('a backup is created, and the focus is kept', async () => {
  await page.goto(`${url}/settings/data`)
  await pressAt(button('Back up now'))
  await page.locator('#backup-list li').waitFor()
  await page.locator('button:focus', { hasText: 'Back up now' }).waitFor()
})

test('a confirmation opens over the form, and returns to it', async () => {
  await page.goto(`${url}/settings/access`)
  expireConfirmations(world)
  await pressAt(page.locator('#invite > summary'))
  await typeInto(page.locator('#form-invite [name=username]'), 'ada')
  await page.keyboard.press('Enter')
  await page.locator('dialog #form-confirm').waitFor()
  await openDialog(page)
  await typeInto(page.locator('#form-confirm [name=password]'), PASSWORD)
  await page.keyboard.press('Enter')
  await page.locator('dialog .command').waitFor()
  await openDialog(page)
  await Promise.all([page.waitForEvent('load'), pressAt(page.getByRole('link', { name: 'Done' }))])
})

test('a dialog opened by a button handles its own keys', async () => {
  await page.goto(`${url}/accounts`)
  await pressAt(link('ada@example.test'))
  await pressAt(link('Credentials'))
  await page.waitForURL(/tab=credentials/)
  const save = button('Export for Codex')
  await pressAt(save)
  await page.locator('dialog .exported').waitFor()
  await openDialog(page)
  await pressAt(button('Close'))
  await page.locator('button:focus', { hasText: 'Export for Codex' }).waitFor()
  expireConfirmations(world)
  await page.keyboard.press('Enter')
  await page.locator('dialog #form-confirm').waitFor()
  await openDialog(page)
  await page.keyboard.press('Escape')
  await page.locator('button:focus', { hasText: 'Export for Codex' }).waitFor()
})

test('the menu and the list of shortcuts close with Escape, and the focus returns', async () => {
  await page.goto(`${url}/dashboard`)
  const menu = page.locator('summary.menu-button:not(.bell-button)')
  await pressAt(menu)
  await tabTo(link('My account'))
  await page.keyboard.press('Escape')
  expect([await isFocused(menu), await page.locator('.menu[open]').count()]).toEqual([true, 0])
  await pressAt(menu)
  await pressAt(button('Keyboard shortcuts'))
  await openDialog(page)
  await page.keyboard.press('Escape')
  expect(await isFocused(menu)).toBe(true)
})

test('deleting requires a confirmation first', async () => {
  await page.goto(`${url}/accounts`)
  await pressAt(link('tony@example.test'))
  const remove = button('Delete…')
  await pressAt(remove)
  await openDialog(page)
  await page.keyboard.press('Escape')
  expect(await isFocused(remove)).toBe(true)
  await page.keyboard.press('Enter')
  await pressAt((await openDialog(page)).getByRole('button', { name: 'Delete and keep the log' }))
  await page.waitForURL(/done=account_deleted/)
  expect(await link('tony@example.test').count()).toBe(0)

  await tabTo(page.getByLabel('Select barbara@example.test'))
  await page.keyboard.press('Space')
  await pressAt(button('Delete…'))
  await openDialog(page)
  await pressAt(button('Cancel'))
  expect(await isFocused(button('Delete…'))).toBe(true)
})

/** The dialog the browser shows after `act`, which is answered. */
async function answerAfter(answer: 'accept' | 'dismiss', act: () => Promise<void>): Promise<string> {
  const asked = Promise.withResolvers<string>()
  page.once('dialog', async (dialog) => {
    await dialog[answer]()
    asked.resolve(dialog.message())
  })
  const [question] = await Promise.all([asked.promise, act()])
  return question
}
