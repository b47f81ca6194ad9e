/** The settings pages in a browser: saved by section, with confirmations, on a desktop and a phone. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/until.ts'
import { getText, getTexts, held, launchBrowser, PHONE, type TestBrowser, untilEmpty } from './browser.ts'
import {
  expireConfirmations,
  openAs,
  PASSWORD,
  type ServerWithAdmin,
  send,
  startServerWithAdmin,
} from './people-world.ts'

let browser: TestBrowser
let owned: ServerWithAdmin

beforeAll(async () => {
  ;[browser, owned] = await Promise.all([
    launchBrowser(),
    startServerWithAdmin({ env: { CODEX_LB_DESSERT: 'yes', CODEX_LB_METRICS_TOKEN: 'surely-not-to-be-seen' } }),
  ])
  await send(owned.url, 'POST', '/api/firewall/ips', { ipAddress: '10.0.0.0/8' }, owned.cookie)
  await send(owned.url, 'DELETE', '/api/firewall/ips/10.0.0.0%2F8', {}, owned.cookie)
  await send(owned.url, 'PATCH', '/api/settings', { streamTimeoutSeconds: 3600 }, owned.cookie)
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await owned?.server[Symbol.asyncDispose]()
})

const settings = async ({ url, cookie }: ServerWithAdmin): Promise<Record<string, unknown>> =>
  (await (await fetch(`${url}/api/settings`, { headers: { cookie, accept: 'application/json' } })).json()) as Record<
    string,
    unknown
  > // as: tests look at the members they name

const saved = (page: Page, section: string) => page.waitForSelector(`#${section} .done`)

test('on paper a switch is shown as text', async () => {
  await using visit = await openAs(browser, owned, '/settings/routing')
  const { page } = visit
  await page.emulateMedia({ media: 'print' })
  const first = page.locator('.switch').first()
  const word = () => first.evaluate((el) => getComputedStyle(el, '::before').content)
  await first.setChecked(true)
  expect(await word()).toBe('"on"')
  await first.setChecked(false)
  expect(await word()).toBe('"off"')
})

describe('saving', () => {
  test('a section is saved in place, and text typed in another stays', async () => {
    await using visit = await openAs(browser, owned, '/settings/routing')
    const { page } = visit
    await page.check('[name=routingStrategy][value=round_robin]')
    await page.fill('[name=connectTimeoutSeconds]', '11')
    await page.fill('[name=capacityWaitSeconds]', '7')
    await page.click('#form-limits [type=submit]')
    await saved(page, 'limits')
    expect(await settings(owned)).toMatchObject({
      capacityWaitSeconds: 7,
      connectTimeoutSeconds: 8,
      routingStrategy: 'capacity_weighted',
    })
    expect(await getText(page.locator('#setting-capacityWaitSeconds'))).toContain('changed')
    expect(await page.inputValue('[name=connectTimeoutSeconds]')).toBe('11')
    await page.click('#form-timeouts [type=submit]')
    await saved(page, 'timeouts')
    expect(await settings(owned)).toMatchObject({ connectTimeoutSeconds: 11 })
    expect(await page.isChecked('[name=routingStrategy][value=round_robin]')).toBe(true)
    await page.click('#form-routing [type=submit]')
    await saved(page, 'routing')
    expect(await settings(owned)).toMatchObject({ routingStrategy: 'round_robin' })
    expect(visit.problems).toEqual([])
  })

  test('text typed in a section during its save stays, unsaved, and is saved by the next click', async () => {
    await using visit = await openAs(browser, owned, '/settings/routing')
    const { page } = visit
    const save = () => page.click('#form-limits [type=submit]')
    const version = page.locator('#form-limits [name=expectedVersion]')
    const before = await version.inputValue()
    const saving = await held(page, '**/api/settings?*')
    await page.fill('[name=capacityWaitSeconds]', '17')
    await page.fill('[name=capacityQueueLimit]', '18')
    await save()
    await saving.asked
    await page.fill('[name=capacityQueueLimit]', '19')
    await page.fill('[name=proxyAccountStreamLimit]', '20')
    saving.letGo()
    await until(async () => (await version.inputValue()) !== before, owned.server.output)
    expect(await settings(owned)).toMatchObject({ capacityWaitSeconds: 17, capacityQueueLimit: 18 })
    expect(await page.inputValue('[name=capacityWaitSeconds]')).toBe('17')
    expect(await page.inputValue('[name=capacityQueueLimit]')).toBe('19')
    expect(await page.inputValue('[name=proxyAccountStreamLimit]')).toBe('20')
    expect(await page.locator('#limits .done').count()).toBe(0)
    await save()
    await saved(page, 'limits')
    expect(await settings(owned)).toMatchObject({ capacityQueueLimit: 19, proxyAccountStreamLimit: 20 })
    expect(visit.problems).toEqual([])
  })

  test('saving a section right after another is no conflict', async () => {
    await using visit = await openAs(browser, owned, '/settings/routing')
    const { page } = visit
    const version = page.locator('#form-limits [name=expectedVersion]')
    const before = await version.inputValue()
    const pages = await held(page, '**/settings/routing*')
    const save = async (form: string) => {
      const [answer] = await Promise.all([
        page.waitForResponse('**/api/settings?*'),
        page.click(`#form-${form} [type=submit]`),
      ])
      return answer.status()
    }
    await page.fill('[name=capacityWaitSeconds]', '31')
    expect(await save('limits')).toBe(200)
    await pages.asked
    await page.fill('[name=connectTimeoutSeconds]', '11')
    expect(await save('timeouts')).toBe(200)
    pages.letGo()
    await until(async () => (await version.inputValue()) !== before, owned.server.output)
    await page.fill('[name=capacityWaitSeconds]', '32')
    expect(await save('limits')).toBe(200)
    expect(await settings(owned)).toMatchObject({ capacityWaitSeconds: 32, connectTimeoutSeconds: 11 })
    expect(visit.problems).toEqual([])
  })

  test('another user’s change is reported beside the button', async () => {
    await using visit = await openAs(browser, owned, '/settings/data')
    const { page } = visit
    await send(owned.url, 'PATCH', '/api/settings', { requestLogRetentionDays: 7 }, owned.cookie)
    await page.uncheck('#setting-requestLogRetentionDays [data-zero]')
    await page.fill('[name=requestLogRetentionDays]', '30')
    await page.click('#form-retention [type=submit]')
    await page.waitForSelector('#form-retention .problem-line')
    expect(await getText(page.locator('#form-retention .problem-line'))).toContain('changed while you were editing')
    expect(await settings(owned)).toMatchObject({ requestLogRetentionDays: 7 })
  })

  test('text typed in another section stays after another user’s change, and saving it is rejected', async () => {
    await using visit = await openAs(browser, owned, '/settings/routing')
    const { page } = visit
    await page.fill('[name=capacityWaitSeconds]', '9')
    await page.fill('[name=connectTimeoutSeconds]', '12')
    await send(owned.url, 'PATCH', '/api/settings', { capacityWaitSeconds: 13 }, owned.cookie)
    await page.check('[name=routingStrategy][value=capacity_weighted]')
    await page.click('#form-routing [type=submit]')
    await saved(page, 'routing')
    expect(await page.inputValue('[name=capacityWaitSeconds]')).toBe('9')
    expect(await page.inputValue('[name=connectTimeoutSeconds]')).toBe('12')
    await page.click('#form-limits [type=submit]')
    expect(await getText(page.locator('#form-limits .problem-line'))).toContain('changed while you were editing')
    expect(await settings(owned)).toMatchObject({ capacityWaitSeconds: 13 })
    await page.click('#form-timeouts [type=submit]')
    await saved(page, 'timeouts')
    expect(await settings(owned)).toMatchObject({ connectTimeoutSeconds: 12 })
  })

  test('a security setting asks for a confirmation, and is then saved', async () => {
    await using visit = await openAs(browser, owned, '/settings')
    const { page } = visit
    expireConfirmations(owned.server)
    await page.check('#input-hideUpstreamQuotaFromApiKeys')
    await page.click('#form-clients [type=submit]')
    await page.waitForSelector('dialog[open] #form-confirm')
    await page.fill('#form-confirm [name=password]', PASSWORD)
    await page.click('#form-confirm [type=submit]')
    await saved(page, 'clients')
    expect(await settings(owned)).toMatchObject({ hideUpstreamQuotaFromApiKeys: true, apiKeyAuthEnabled: false })
  })
})

test('the firewall: an address is added, rejected twice, and removed', async () => {
  await using visit = await openAs(browser, owned, '/settings/network')
  const { page } = visit
  page.on('dialog', (dialog) => dialog.accept())
  const add = async (text: string) => {
    await page.fill('[name=ipAddress]', text)
    await page.click('#form-firewall [type=submit]')
  }
  await add('198.51.100.0/24')
  await page.waitForSelector('#firewall .rows code')
  expect(await getTexts(page.locator('#firewall .rows code'))).toEqual(['198.51.100.0/24'])
  await untilEmpty(page, '[name=ipAddress]')
  await add('198.51.100.7/24')
  await page.waitForSelector('#form-firewall .problem-line')
  expect(await getText(page.locator('#form-firewall .problem-line'))).toContain('already on the list')
  await page.click('#firewall .rows button')
  await page.waitForSelector('#firewall .rows', { state: 'detached' })
  expect(await getText(page.locator('#firewall'))).toContain('The list is empty')
})

test('the firewall: text typed for the next address while one is added stays, with the focus', async () => {
  await using visit = await openAs(browser, owned, '/settings/network')
  const { page } = visit
  page.on('dialog', (dialog) => dialog.accept())
  const field = page.locator('[name=ipAddress]')
  const adding = await held(page, '**/api/firewall/ips')
  await field.fill('198.51.100.8')
  await page.click('#form-firewall [type=submit]')
  await adding.asked
  await field.fill('198.51.100.0/25')
  for (let step = 0; step < 3; step += 1) await field.press('ArrowLeft')
  adding.letGo()
  await page.waitForSelector('#firewall .rows code')
  await field.press('9')
  expect(await field.inputValue()).toBe('198.51.100.09/25')
  await page.click('#firewall .rows button')
  await page.waitForSelector('#firewall .rows', { state: 'detached' })
  expect(visit.problems).toEqual([])
})

test('a search without scripts leads to the setting', async () => {
  await using visit = await openAs(browser, owned, '/settings/about', { javaScriptEnabled: false })
  const { page } = visit
  await page.fill('[name=q]', 'idle')
  await page.press('[name=q]', 'Enter')
  await page.click('text=Idle stream')
  await page.waitForURL((url) => url.hash === '#setting-streamIdleTimeoutSeconds')
  await page.goto(`${owned.url}/settings/data`)
  await page.click('text=Show table sizes')
  await page.locator('tbody tr').first().waitFor()
  expect(await page.locator('tbody tr').count()).toBeGreaterThan(10)
})

test('a backup is created from the page', async () => {
  await using visit = await openAs(browser, owned, '/settings/data')
  const { page } = visit
  await page.click('#form-backup button')
  await page.waitForSelector('#backup-list li')
  expect(await getText(page.locator('#backup-list li'))).toMatch(/sluice-\d{8}-\d{6}-manual\.db/)
})

const PAGES = [
  '/settings',
  '/settings/access',
  '/settings/routing',
  '/settings/network',
  '/settings/data',
  '/settings/about',
  '/settings/search?changed=1',
  '/audit',
]

test.each(PAGES)('%s shows no secret of the environment', async (path) => {
  const response = await fetch(owned.url + path, { headers: { cookie: owned.cookie, accept: 'text/html' } })
  expect([response.redirected, response.status]).toEqual([false, 200])
  expect(await response.text()).not.toContain('surely-not-to-be-seen')
})

test('on a phone the tabs are a menu', async () => {
  await using visit = await openAs(browser, owned, '/settings', { viewport: PHONE })
  const { page } = visit
  await page.click('.settings-menu summary')
  await Promise.all([page.waitForURL(/\/settings\/about$/), page.click('.settings-menu a:text-is("About")')])
  expect(await getText(page.locator('#unknown'))).toContain('CODEX_LB_DESSERT')
})

test('without scripts the settings are readable, and nothing looks as if it could be saved', async () => {
  await using visit = await openAs(browser, owned, '/settings/routing', { javaScriptEnabled: false })
  const { page } = visit
  expect(await page.locator('#setting-routingStrategy').isVisible()).toBe(true)
  expect(await page.locator('[name=routingStrategy]:checked').count()).toBe(1)
  expect(await page.inputValue('[name=streamIdleTimeoutSeconds]')).toBe('300')
  expect(await page.locator('main [type=submit]:visible').allTextContents()).toEqual([])
  await page.press('[name=streamIdleTimeoutSeconds]', 'Enter')
  expect(page.url()).toBe(`${owned.url}/settings/routing`)
  expect(visit.problems).toEqual([])
})
