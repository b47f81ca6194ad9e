/** The account pages in a browser: finding, changing several at once, the five answers of a blocked one, and its tabs. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { until } from '../clients/support/until.ts'
import type { World } from '../clients/support/world.ts'
import { runCommand } from '../support/spawn.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { DESKTOP, launchBrowser, overflows, PHONE, screenshot, type TestBrowser, textOf, textsOf } from './browser.ts'
import { forgetConfirmations, PASSWORD, send, signIn, startOwned } from './people-world.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(30_000)

const HOUR_MS = 3_600_000

let browser: TestBrowser
let world: World

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
  await recordWeek(await idOf('ada'))
}, 60_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const LOOKS = [
  { name: 'desk-light', viewport: DESKTOP, colorScheme: 'light' },
  { name: 'desk-dark', viewport: DESKTOP, colorScheme: 'dark' },
  { name: 'phone-light', viewport: PHONE, colorScheme: 'light' },
  { name: 'phone-dark', viewport: PHONE, colorScheme: 'dark' },
] as const

describe.each(LOOKS)('$name', ({ name, ...options }) => {
  test('every page fits, and the browser has nothing to complain about', async () => {
    const ada = `/accounts/${await idOf('ada')}`
    const pages: Record<string, string> = {
      list: '/accounts',
      cards: '/accounts?view=cards',
      usage: ada,
      routing: `${ada}?tab=routing`,
      events: `${ada}?tab=events`,
      credentials: `${ada}?tab=credentials`,
      blocked: `/accounts/${await idOf('linus')}`,
    }
    await using visit = await browser.visit(`${world.url}/accounts`, options)
    for (const [page, path] of Object.entries(pages)) {
      await visit.page.goto(world.url + path)
      await visit.page.waitForLoadState('load')
      await screenshot(visit.page, `accounts-${page}-${name}`)
      expect([page, await overflows(visit.page)]).toEqual([page, []])
    }
    expect(visit.problems).toEqual([])
  })

  test('it is still readable at 360 pixels', async () => {
    await using visit = await browser.visit(`${world.url}/accounts`, {
      ...options,
      viewport: { width: 360, height: 740 },
    })
    expect(await overflows(visit.page)).toEqual([])
    await visit.page.goto(`${world.url}/accounts/${await idOf('linus')}`)
    expect(await overflows(visit.page)).toEqual([])
  })
})

describe('the list', () => {
  test('is narrowed and sorted by its address', async () => {
    await using visit = await browser.visit(`${world.url}/accounts`)
    const { page } = visit
    expect(await names(page)).toHaveLength(7)
    await page.selectOption('[name=state]', 'paused')
    await page.waitForURL(/state=paused/)
    expect(await names(page)).toEqual(['tony@example.test'])
    expect(new URL(page.url()).search).toBe('?state=paused')
    await page.click('.filter-form a')
    await page.waitForURL(`${world.url}/accounts`)
    await page.keyboard.press('/')
    await page.keyboard.type('grace')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=grace/)
    expect(await names(page)).toEqual(['grace@example.test'])
    await page.goBack()
    await page.click('th >> text=5-hour')
    await page.waitForURL(/sort=five_hour/)
    expect((await names(page))[0]).toBe('barbara@example.test')
    await page.click('th >> text=5-hour')
    await page.waitForURL(/order=desc/)
    expect((await names(page))[0]).toBe('linus@example.test')
    expect(visit.problems).toEqual([])
  })

  test('pauses and resumes what is ticked, and keeps its filters', async () => {
    await using visit = await browser.visit(`${world.url}/accounts?plan=plus`)
    const { page } = visit
    expect(await page.locator('.bulk').isVisible()).toBe(false)
    await page.check('[aria-label="Select grace@example.test"]')
    await page.check('[aria-label="Select tony@example.test"]')
    expect(await page.locator('.bulk').isVisible()).toBe(true)
    await screenshot(page, 'accounts-bulk')
    await page.click('.bulk >> text=Resume')
    await page.waitForSelector('.done')
    expect(await textOf(row(page, 'tony'))).toContain('Active')
    expect(await names(page)).toHaveLength(3)
    await page.uncheck('[aria-label="Select grace@example.test"]')
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Pause')
    await page.waitForSelector('.done >> text=were paused')
    expect(await textOf(row(page, 'tony'))).toContain('Paused')
    expect(visit.problems).toEqual([])
  })

  test('without script everything that is a question or a plain change works', async () => {
    await using visit = await browser.visit(`${world.url}/accounts?q=tony`, { javaScriptEnabled: false })
    const { page } = visit
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Resume')
    await page.waitForURL(/q=tony&done=accounts_reactivated/)
    expect(await textOf(page.locator('.done'))).toContain('in use again')
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Pause')
    await page.waitForURL(/done=accounts_paused/)
    await page.selectOption('[name=state]', 'paused')
    await page.click('text=Apply')
    expect(await names(page)).toEqual(['tony@example.test'])
  })
})

describe('a blocked account', () => {
  test('answers what, since when, on what evidence, until when, and what can be done', async () => {
    await using visit = await browser.visit(`${world.url}/accounts/${await idOf('linus')}`)
    const said = await textsOf(visit.page.locator('.answers dt, .answers dd'))
    expect(said.filter((_, index) => index % 2 === 0)).toEqual([
      'What',
      'Since',
      'On what evidence',
      'Until',
      'What you can do',
    ])
    expect(said[1]).toContain('usage_limit_reached')
    expect(said[3]).toMatch(/(ago|now)$/)
    expect(said[5]).toContain('429')
    expect(said[7]).toMatch(/ends by itself in 2 h/)
    expect(said[9]).toMatch(/Probe now\s+Clear and retry\s+Pause\s+Re-authenticate\s+Delete/)
  })

  test('that needs a sign-in offers it first, and says why the rest does not help', async () => {
    const id = await idOf('barbara')
    await using visit = await browser.visit(`${world.url}/accounts/${id}`)
    const first = visit.page.locator('.answers .actions > *').first()
    expect(await textOf(first)).toBe('Re-authenticate')
    expect(await first.getAttribute('href')).toBe(`/accounts/new/browser?account=${id}`)
    expect(await visit.page.locator('button:disabled >> text=Probe now').count()).toBe(1)
    expect(await textOf(visit.page.locator('.action-reasons'))).toContain('Without a new sign-in')
  })

  test('is paused, resumed and probed from its page', async () => {
    await using visit = await browser.visit(`${world.url}/accounts/${await idOf('grace')}`)
    const { page } = visit
    await page.click('button:text-is("Pause")')
    await page.waitForSelector('.done >> text=was paused')
    expect(await textOf(page.locator('.two-facts'))).toMatch(/Paused[\s\S]*Not asked until it is resumed/)
    await page.click('button:text-is("Resume")')
    await page.waitForSelector('.done >> text=in use again')
    await page.click('button:text-is("Probe now")')
    await page.waitForSelector('.done >> text=served the probe')
    expect(await textOf(page.locator('.two-facts'))).toMatch(/Active[\s\S]*Eligible now/)
    expect(visit.problems).toEqual([])
  })
})

test('list and page follow what others do, and take nothing away that is ticked or asked', async () => {
  const id = await idOf('grace')
  const act = (action: 'pause' | 'reactivate') => world.api('POST', `/api/accounts/${id}/${action}`)
  const address = `${world.url}/accounts?plan=plus`
  await using list = await browser.visit(address)
  await using bystander = await browser.visit(address)
  await using detail = await browser.visit(`${world.url}/accounts/${id}`)
  await detail.page.waitForResponse('**/api/events')
  await act('pause')
  await row(list.page, 'grace').getByText('Paused', { exact: true }).waitFor()
  await detail.page.locator('.two-facts', { hasText: 'Paused' }).waitFor()
  await list.page.check('[aria-label="Select grace@example.test"]')
  await detail.page.click('text=Delete…')
  await act('reactivate')
  await row(bystander.page, 'grace').getByText('Active', { exact: true }).waitFor()
  expect(await list.page.isChecked('[aria-label="Select grace@example.test"]')).toBe(true)
  expect(await detail.page.locator('dialog[open] >> text=Delete grace@example.test?').isVisible()).toBe(true)
  await list.page.uncheck('[aria-label="Select grace@example.test"]')
  await row(list.page, 'grace').getByText('Active', { exact: true }).waitFor()
  await detail.page.keyboard.press('Escape')
  await detail.page.locator('.two-facts', { hasText: 'Active' }).waitFor()
  expect([...list.problems, ...detail.problems]).toEqual([])
})

test('the trend breaks where there was no sample', async () => {
  await using visit = await browser.visit(`${world.url}/accounts/${await idOf('ada')}`)
  const path = (await visit.page.locator('.trend-line-1').first().getAttribute('d')) ?? ''
  expect(path.split('M').length - 1).toBeGreaterThan(1)
  await visit.page.click('.as-table summary')
  expect(await visit.page.locator('.as-table tbody tr').count()).toBe(7)
})

test('alias and policy are saved in one form', async () => {
  await using visit = await browser.visit(`${world.url}/accounts/${await idOf('alan')}?tab=routing`)
  const { page } = visit
  await page.fill('[name=alias]', 'The Bombe')
  await page.check('[name=routingPolicy][value=preserve]')
  await page.click('#form-routing button')
  await page.waitForSelector('.done >> text=was saved')
  expect(await textOf(page.locator('h1'))).toBe('The Bombe')
  expect(await textOf(page.locator('.account-head-name .muted'))).toContain('kept back')
  await page.fill('[name=alias]', '')
  await page.check('[name=routingPolicy][value=normal]')
  await page.click('#form-routing button')
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'alan@example.test')
  expect(visit.problems).toEqual([])
})

describe('where people sign in', () => {
  test('an export asks for a confirmation, then shows the file; a deletion asks what becomes of the log', async () => {
    const own = await startOwned()
    await using server = own.server
    const upstream = createUpstream()
    const path = join(server.dataDir, 'auth.json')
    writeFileSync(path, upstream.addAccount({ email: 'ada@example.test' }).authJson())
    const imported = await runCommand(['accounts', 'import', path], { dataDir: server.dataDir })
    expect(imported.exitCode).toBe(0)
    await using visit = await browser.visit(`${own.url}/login`)
    const { page } = visit
    await signIn(page, own.url)
    await until(async () => {
      await page.goto(`${own.url}/accounts`)
      return (await page.locator('.account-link').count()) === 1
    }, own.server.output)
    await page.click('.account-link')
    await page.click('.tabs >> text=Credentials')
    forgetConfirmations(server)
    await page.click('text=Codex auth.json')
    await page.fill('dialog[open] [name=password]', PASSWORD)
    await page.click('dialog[open] [type=submit]')
    await page.waitForSelector('dialog[open] .exported')
    await screenshot(page, 'accounts-exported')
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Save as a file')])
    expect(download.suggestedFilename()).toBe('auth-ada-example.test.json')
    await page.click('dialog[open] >> text=Close')
    await page.click('text=Delete…')
    await screenshot(page, 'accounts-delete')
    await page.click('dialog[open] >> text=Delete, keep the log')
    await page.waitForURL(/\/accounts\?done=account_deleted/)
    expect(await textOf(page.locator('.empty'))).toContain('No accounts yet')
    await screenshot(page, 'accounts-empty')
  })

  test('a viewer sees masked names, no evidence, no credentials, and why the buttons do nothing', async () => {
    const own = await startOwned()
    await using server = own.server
    const upstream = createUpstream()
    const path = join(server.dataDir, 'auth.json')
    writeFileSync(path, upstream.addAccount({ email: 'ada@example.test' }).authJson())
    await runCommand(['accounts', 'import', path], { dataDir: server.dataDir })
    const invited = await send(
      own.url,
      'POST',
      '/api/dashboard-users',
      { username: 'vera', roleId: 'role_viewer' },
      own.cookie,
    )
    const { invite } = (await invited.json()) as { invite: { token: string } }
    await using visit = await browser.visit(`${own.url}/invite/${invite.token}`)
    const { page } = visit
    await page.fill('[name=password]', PASSWORD)
    await Promise.all([page.waitForURL(/dashboard/), page.click('#form-invite button')])
    await until(async () => {
      await page.goto(`${own.url}/accounts`)
      return (await page.locator('.account-link').count()) === 1
    }, own.server.output)
    expect(await names(page)).toEqual(['a***@example.test'])
    expect(await page.locator('[name=accountIds], .bulk').count()).toBe(0)
    await page.click('.account-link')
    expect(await textsOf(page.locator('.tabs a'))).toEqual(['Usage', 'Routing', 'Events'])
    expect(await page.locator('.account-head button:not(:disabled)').count()).toBe(0)
    expect(await textOf(page.locator('.action-reasons'))).toBe('Your role can look at accounts but not change them.')
    expect(await page.content()).not.toContain('ada@')
    await screenshot(page, 'accounts-viewer')
    expect(visit.problems).toEqual([])
  })
})

const names = (page: Page): Promise<string[]> => textsOf(page.locator('.account-link'))

const row = (page: Page, name: string) => page.locator('.accounts tbody tr', { hasText: name })

const idOf = async (name: string): Promise<string> => {
  const { accounts } = await world.api<{ accounts: { accountId: string; email: string }[] }>('GET', '/api/accounts')
  return accounts.find(({ email }) => email.startsWith(name))?.accountId ?? ''
}

/** Samples of a week with a night missing, and what was spent, as the hourly jobs leave them. */
const recordWeek = async (accountId: string): Promise<void> => {
  const db = new Database(join(world.dataDir, 'sluice.db'))
  db.run('PRAGMA busy_timeout = 5000')
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  for (let back = 167; back > 0; back -= 1) {
    if (back > 60 && back < 72) continue
    const values = [accountId, hour - back * HOUR_MS, (back * 37) % 90, ((167 - back) * 0.6) % 100]
    db.run('INSERT INTO usage_samples (account_id, hour, five_hour_used, weekly_used) VALUES (?, ?, ?, ?)', values)
  }
  for (const [model, cost] of [
    ['gpt-5.5', 1_234_000],
    ['gpt-5.4-mini', 90_000],
  ] as const)
    db.run("INSERT OR REPLACE INTO request_hours VALUES (?, ?, '', ?, 120, 2, 1, 90000, 30000, 12000, ?, 0)", [
      hour - 5 * HOUR_MS,
      accountId,
      model,
      cost,
    ])
  const events = [
    ['import', 'added', 'auth.json'],
    ['token', 'refreshed', null],
    ['state', 'rate_limited', '429 usage_limit_reached: The usage limit has been reached'],
    ['probe', 'served', 'HTTP 200'],
    ['state', 'active', null],
  ] as const
  for (const [index, [kind, result, detail]] of events.entries())
    db.run('INSERT INTO account_events (account_id, at, kind, result, detail) VALUES (?, ?, ?, ?, ?)', [
      accountId,
      Date.now() - (5 - index) * HOUR_MS,
      kind,
      result,
      detail,
    ])
  db.close()
}
