/**
 * The account pages in a browser: search, bulk changes and deletion, the details of a blocked account, and its tabs.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { startWorld, type World } from '../clients/support/world.ts'
import { until } from '../support/until.ts'
import { getText, getTexts, launchBrowser, PHONE, type TestBrowser } from './browser.ts'
import { narrowProblems } from './narrow.ts'
import { startPopulated } from './world.ts'

setDefaultTimeout(120_000)

const HOUR_MS = 3_600_000

let browser: TestBrowser
let world: World

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
  await recordWeek(await idOf('ada'))
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

describe('the account list', () => {
  test('is filtered and sorted by its URL', async () => {
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

  test('pauses and resumes the selected accounts, and keeps its filters', async () => {
    await using visit = await browser.visit(`${world.url}/accounts?plan=plus`)
    const { page } = visit
    expect(await page.locator('.bulk').isVisible()).toBe(false)
    await page.check('[aria-label="Select grace@example.test"]')
    await page.check('[aria-label="Select tony@example.test"]')
    expect(await page.locator('.bulk').isVisible()).toBe(true)
    await page.click('.bulk >> text=Resume')
    await page.waitForSelector('.done')
    expect(await getText(row(page, 'tony'))).toContain('Active')
    expect(await names(page)).toHaveLength(3)
    await page.uncheck('[aria-label="Select grace@example.test"]')
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Pause')
    await page.waitForSelector('.done >> text=Accounts paused')
    expect(await getText(row(page, 'tony'))).toContain('Paused')
    expect(visit.problems).toEqual([])
  })

  test.each(['table', 'cards'])('prints without checkboxes (%s)', async (view) => {
    await using visit = await browser.visit(`${world.url}/accounts?view=${view}`)
    const { page } = visit
    await page.check('[aria-label="Select grace@example.test"]')
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('[type=checkbox]:visible, .bulk:visible').count()).toBe(0)
    expect(await names(page)).toHaveLength(7)
  })

  test('without scripts every dialog and simple change works', async () => {
    await using visit = await browser.visit(`${world.url}/accounts?q=tony`, { javaScriptEnabled: false })
    const { page } = visit
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Resume')
    await page.waitForURL(/q=tony&done=accounts_reactivated/)
    expect(await getText(page.locator('.done'))).toContain('Accounts resumed')
    await page.check('[aria-label="Select tony@example.test"]')
    await page.click('.bulk >> text=Pause')
    await page.waitForURL(/done=accounts_paused/)
    await page.selectOption('[name=state]', 'paused')
    await page.click('text=Apply')
    await page.waitForURL(/state=paused/)
    expect(await names(page)).toEqual(['tony@example.test'])
  })
})

describe('a blocked account', () => {
  test('says what happened, since when, on what evidence, until when, and what to do', async () => {
    await using visit = await browser.visit(`${world.url}/accounts/${await idOf('linus')}`)
    const said = await getTexts(visit.page.locator('.answers dt, .answers dd'))
    expect(said.filter((_, index) => index % 2 === 0)).toEqual(['What', 'Since', 'Evidence', 'Ends', 'What you can do'])
    expect(said[1]).toContain('limit_reached')
    expect(said[3]).toMatch(/(ago|now)$/)
    expect(said[5]).toContain('429')
    expect(said[7]).toMatch(/^in 2 h|^in 1 h 59/)
    expect(said[9]).toMatch(/Probe now\s+Clear and retry\s+Pause\s+Sign in again\s+Delete/)
  })

  test('that needs sign-in offers it first, and says why the other actions do not help', async () => {
    const id = await idOf('barbara')
    await using visit = await browser.visit(`${world.url}/accounts/${id}`)
    const first = visit.page.locator('.answers .actions > *').first()
    expect(await getText(first)).toBe('Sign in again')
    expect(await first.getAttribute('href')).toBe(`/accounts/new/browser?account=${id}`)
    expect(await visit.page.locator('button:disabled >> text=Probe now').count()).toBe(1)
    expect(await getText(visit.page.locator('.action-reasons'))).toContain('Sign in again to probe')
  })

  test('is paused, resumed and tested from its page', async () => {
    await using visit = await browser.visit(`${world.url}/accounts/${await idOf('grace')}`)
    const { page } = visit
    await page.click('button:text-is("Pause")')
    await page.waitForSelector('.done >> text=Account paused')
    expect(await getText(page.locator('.two-facts'))).toMatch(/Paused[\s\S]*Not used until you resume it/)
    await page.click('button:text-is("Resume")')
    await page.waitForSelector('.done >> text=Account resumed')
    await page.click('button:text-is("Probe now")')
    await page.waitForSelector('.probe-result >> text=served the probe')
    expect(await getText(page.locator('.two-facts'))).toMatch(/Active[\s\S]*Available/)
    expect(visit.problems).toEqual([])
  })
})

test('list and page follow changes of others, and keep selections and open dialogs', async () => {
  const id = await idOf('grace')
  const act = (action: 'pause' | 'reactivate') => world.api('POST', `/api/accounts/${id}/${action}`)
  const address = `${world.url}/accounts?plan=plus`
  await using list = await browser.visit(address, { untilLive: true })
  await using bystander = await browser.visit(address, { untilLive: true })
  await using detail = await browser.visit(`${world.url}/accounts/${id}`, { untilLive: true })
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

test('the quota on its page is the last one ChatGPT reported', async () => {
  const id = await idOf('alan')
  await using visit = await browser.visit(`${world.url}/accounts/${id}`, { untilLive: true })
  const allowance = visit.page.locator('#windows .meter-text b')
  expect(await getTexts(allowance)).toEqual(['3 % left', '18 % left'])
  getSim('alan').setUsage({ primary: { usedPercent: 40, windowMinutes: 300, resetAt: Date.now() + HOUR_MS } })
  await world.api('POST', `/api/accounts/${id}/probe`)
  await allowance.filter({ hasText: '60 % left' }).waitFor()
  expect(visit.problems).toEqual([])
})

test('the trend has a gap where there was no sample', async () => {
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
  await page.waitForSelector('.done >> text=Account saved')
  expect(await getText(page.locator('h1'))).toBe('The Bombe')
  expect(await getText(page.locator('.account-head-name .muted'))).toContain('last resort')
  await page.fill('[name=alias]', '')
  await page.check('[name=routingPolicy][value=normal]')
  await page.click('#form-routing button')
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'alan@example.test')
  expect(visit.problems).toEqual([])
})

test('a phone shows the totals of a busy account in full, beside a narrow checkbox column', async () => {
  await using visit = await browser.visit(`${world.url}/accounts`, { viewport: PHONE })
  const { page } = visit
  for (const [label, text] of [
    ['Requests', '128,221'],
    ['Cost', '$12,544.96'],
    ['Last used', '14 h 12 min ago'],
  ])
    await page.evaluate(
      ([name, value]) => {
        for (const cell of document.querySelectorAll(`[data-label="${name}"]`)) cell.textContent = value ?? null
      },
      [label, text],
    )
  expect(await narrowProblems(page)).toEqual([])
  const check = await page.locator('tbody .cell-check').first().boundingBox()
  expect(check?.width).toBeLessThan(30)
})

test('names without a break point are complete on a phone, and time ranges do not wrap', async () => {
  const id = await idOf('edsger')
  await using visit = await browser.visit(`${world.url}/accounts`, { viewport: PHONE })
  const { page } = visit
  const broken = await page
    .locator('time')
    .evaluateAll((times) => times.filter((el) => el.getClientRects().length > 1).map((el) => el.textContent))
  expect(broken).toEqual([])
  await world.api('PATCH', `/api/accounts/${id}`, { alias: 'edsger_'.repeat(12) })
  await world.api('PATCH', '/api/settings', { routingStrategy: 'single_account', singleAccountId: id })
  await page.goto(`${world.url}/accounts/${id}`)
  expect(await narrowProblems(page)).toEqual([])
  await page.goto(`${world.url}/accounts/simulator?model=gpt-5.5`)
  expect(await narrowProblems(page)).toEqual([])
  await world.api('PATCH', `/api/accounts/${id}`, { alias: null })
  await world.api('PATCH', '/api/settings', { routingStrategy: 'capacity_weighted', singleAccountId: null })
})

describe('the card view', () => {
  test('can be selected, searched and used, and stays selected', async () => {
    await using visit = await browser.visit(`${world.url}/accounts`)
    const { page } = visit
    const card = page.locator('.account-card')
    await page.click('.view-switch >> text=Cards')
    await page.waitForURL(/view=cards/)
    expect(await getTexts(page.locator('.view-switch [aria-current]'))).toEqual(['Cards'])
    expect([await card.count(), await page.locator('.accounts').count()]).toEqual([7, 0])
    await page.fill('[name=q]', 'grace')
    await page.press('[name=q]', 'Enter')
    await page.waitForURL(/q=grace/)
    expect(await names(page)).toEqual(['grace@example.test'])
    expect(await getText(card)).toMatch(/Active[\s\S]*36 % left/)
    await page.check('[aria-label="Select grace@example.test"]')
    await page.click('.bulk >> text=Pause')
    await card.getByText('Paused', { exact: true }).waitFor()
    await page.check('[aria-label="Select grace@example.test"]')
    await page.click('.bulk >> text=Resume')
    await card.getByText('Active', { exact: true }).waitFor()
    expect([await names(page), await card.count()]).toEqual([['grace@example.test'], 1])
    await page.click('.account-card .account-link')
    await page.waitForURL(`${world.url}/accounts/${await idOf('grace')}`)
    expect(visit.problems).toEqual([])
  })
})

test('reset credits are listed, and using one after a confirmation ends the block', async () => {
  const linus = getSim('linus')
  const now = Date.now()
  linus.setResetCredits([
    { id: 'later', expiresAt: now + 50.5 * HOUR_MS },
    { id: 'sooner', expiresAt: now + 5.5 * HOUR_MS },
  ])
  const id = await idOf('linus')
  await askForCredits(id)
  await using visit = await browser.visit(`${world.url}/accounts/${id}`)
  const { page } = visit
  const credits = page.locator('#reset-credits')
  const use = credits.getByRole('button', { name: 'Use a reset credit' })
  const sent: string[] = []
  page.on('request', (request) => request.method() === 'POST' && sent.push(new URL(request.url()).pathname))
  let question = ''
  const press = async (accepts: boolean) => {
    page.once('dialog', (dialog) => {
      question = dialog.message()
      return accepts ? dialog.accept() : dialog.dismiss()
    })
    await use.click()
  }
  expect(await getText(credits.locator('.count'))).toBe('2')
  expect((await getTexts(credits.locator('.row'))).join('\n')).toMatch(
    /^Full reset Resets all limits .*\s+expires in 2 d 2 h\s+Full reset .*\s+expires in 5 h/,
  )
  expect(await getText(page.locator('#windows'))).toContain('0 % left')
  await press(false)
  expect(question).toBe(
    'Use a reset credit of linus@example.test? The one that expires first is used, and this can’t be undone.',
  )
  await press(true)
  await page.waitForSelector('.done >> text=Reset credit used')
  expect(sent).toEqual([`/api/accounts/${id}/rate-limit-reset-credits/consume`])
  expect(await getText(page.locator('.two-facts'))).toMatch(/Active[\s\S]*Available/)
  expect(await getTexts(page.locator('#windows .meter-text b'))).toEqual(['100 % left', '100 % left'])
  expect(await getText(credits.locator('.count'))).toBe('1')
  expect(await getText(credits.locator('.row').nth(1))).toMatch(/redeemed$/)

  linus.setUsage({ primary: { usedPercent: 80, windowMinutes: 300, resetAt: now + HOUR_MS } })
  await press(true)
  await credits.getByText('This account has no reset credits.').waitFor()
  expect(await use.count()).toBe(0)
  expect(linus.resetCredits.map(({ status }) => status)).toEqual(['redeemed', 'redeemed'])
  expect(visit.problems).toEqual([])
})

test('selected accounts are deleted after a confirmation, and leave the list without a reload', async () => {
  await using visit = await browser.visit(`${world.url}/accounts`)
  const { page } = visit
  const bulk = page.locator('.bulk')
  const tick = (name: string) => page.check(`[aria-label="Select ${name}@example.test"]`)
  const question = page.getByRole('dialog', { name: 'Delete the selected accounts?' })
  const remaining = (await names(page)).filter((name) => !/^(barbara|tony)@/.test(name))
  let loads = 0
  page.on('load', () => loads++)
  await tick('barbara')
  await tick('tony')
  await bulk.getByRole('button', { name: 'Delete…' }).click()
  await question.getByRole('button', { name: 'Cancel' }).click()
  await question.waitFor({ state: 'hidden' })
  expect(await names(page)).toHaveLength(7)

  const [barbara, linus] = [await idOf('barbara'), await idOf('linus')]
  await bulk.getByRole('button', { name: 'Delete…' }).click()
  const [asked] = await Promise.all([
    page.waitForRequest('**/api/accounts/delete'),
    question.getByRole('button', { name: 'Delete and keep the log' }).click(),
  ])
  await page.waitForSelector('.done >> text=Accounts deleted')
  expect(await names(page)).toEqual(remaining)
  expect(asked.postData()).not.toContain('deleteHistory')
  expect([await logged(barbara), await logged(linus)]).toEqual([1, 1])
  await tick('linus')
  await bulk.getByRole('button', { name: 'Delete…' }).click()
  await question.getByRole('button', { name: 'Delete with its log' }).click()
  await row(page, 'linus').waitFor({ state: 'detached' })
  await until(async () => (await logged(linus)) === 0, world.output)
  expect([await logged(barbara), loads]).toEqual([1, 0])
  expect(visit.problems).toEqual([])
})

test.each([
  ['table', '[data-select-all]', 25],
  ['cards', '[name=accountIds]', 3],
])('an account that replaces a changed one is not selected (%s)', async (view, box, count) => {
  const accounts = Array.from({ length: 30 }, (_, n) => ({
    email: `user${100 + n}@example.test`,
    plan: 'plus' as const,
  }))
  await using many = await startWorld({ accounts })
  await using visit = await browser.visit(`${many.url}/accounts?state=active&view=${view}`)
  const { page } = visit
  const before = await names(page)
  for (let at = 0; at < Math.min(count, await page.locator(box).count()); at++) await page.locator(box).nth(at).check()
  await page.click('.bulk >> text=Pause')
  await page.waitForSelector('.done >> text=Accounts paused')
  const after = await names(page)
  expect(after.slice(0, before.length - count)).toEqual(before.slice(count))
  expect(after.length).toBeGreaterThan(before.length - count)
  expect(await page.locator('[name=accountIds]:checked, [data-select-all]:checked').count()).toBe(0)
  expect(await page.locator('.bulk').isVisible()).toBe(false)
  expect(visit.problems).toEqual([])
})

test('the page of an account that another user deletes says so, and stays open', async () => {
  const id = await idOf('edsger')
  await using visit = await browser.visit(`${world.url}/accounts/${id}`, { untilLive: true })
  await world.api('DELETE', `/api/accounts/${id}`)
  await visit.page.locator('#flash', { hasText: 'This account does not exist. It may have been deleted.' }).waitFor()
  expect(await visit.page.locator('#account-title').isVisible()).toBe(true)
})

const names = (page: Page): Promise<string[]> => getTexts(page.locator('.account-link'))

const row = (page: Page, name: string) => page.locator('.accounts tbody tr', { hasText: name })

const idOf = async (name: string): Promise<string> => {
  const { accounts } = await world.api<{ accounts: { accountId: string; email: string }[] }>('GET', '/api/accounts')
  return accounts.find(({ email }) => email.startsWith(name))?.accountId ?? ''
}

const getSim = (name: string) => {
  const account = world.upstream.accounts.find(({ email }) => email.startsWith(name))
  if (!account) throw new Error(`There is no account of ${name}.`)
  return account
}

/** Fetches the reset credits now instead of within a minute: this happens before one is used, and none has this id. */
const askForCredits = async (id: string): Promise<void> => {
  const consume = `/api/accounts/${id}/rate-limit-reset-credits/consume`
  await expect(world.api('POST', consume, { creditId: 'none' })).rejects.toThrow('target_reset_credit_changed')
}

/** How many requests of the account are in the log. */
const logged = async (id: string): Promise<number> =>
  (await world.api<{ total: number }>('GET', `/api/request-logs?accountId=${id}`)).total

/** Samples of a week with a night missing, and the spending, as the hourly jobs store them. */
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
    db.run(
      "INSERT OR REPLACE INTO request_hours VALUES (?, ?, '', ?, '', '', 120, 2, 1, 90000, 30000, 12000, ?, 0, 0, 0, 0)",
      [hour - 5 * HOUR_MS, accountId, model, cost],
    )
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
