/** The log in a browser: filters, one request beside the list, the live tail, and use without scripts. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { getText, getTexts, launchBrowser, type TestBrowser } from './browser.ts'
import { sendTestRequest, startPopulated } from './world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let world: World
const at = (path: string) => `${world.url}${path}`

beforeAll(async () => {
  ;[browser, world] = await Promise.all([launchBrowser(), startPopulated()])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const ids = (page: Page): Promise<string[]> =>
  page.locator('#log-rows tr').evaluateAll((rows) => rows.map((row) => row.id))

test('filters go into the URL, without empty ones, and Clear removes them', async () => {
  await using visit = await browser.visit(at('/logs'))
  const { page } = visit
  const all = (await ids(page)).length
  await page.selectOption('[name=status]', 'failed')
  await page.waitForURL(at('/logs?status=failed'))
  expect((await ids(page)).length).toBe(2)
  expect(await getTexts(page.locator('#log-rows .result b'))).toEqual([
    'No account available (1 account tried)',
    'All accounts at their limit (1 account tried)',
  ])
  await page.click('text=Clear filters')
  await page.waitForURL(at('/logs'))
  expect((await ids(page)).length).toBe(all)
  expect(visit.problems).toEqual([])
})

test('a request opens beside the list, has a URL, and closes with Back, Escape and the close button', async () => {
  await using visit = await browser.visit(at('/logs?status=failed'))
  const { page } = visit
  const drawer = page.locator('#drawer')
  await page.click('#log-rows tr:first-child .cell-model')
  await drawer.locator('h2').waitFor()
  expect(page.url()).toContain('/logs?status=failed&open=')
  expect(await getText(drawer.locator('h2'))).toContain('No account available (1 account tried)')
  expect(await getText(drawer)).toContain('The access token was refused.')
  expect(await drawer.locator('h2').evaluate((el) => el === document.activeElement)).toBe(true)
  await page.keyboard.press('j')
  await drawer.locator('h2', { hasText: 'All accounts at their limit' }).waitFor()
  await page.keyboard.press('Escape')
  await drawer.locator('h2').waitFor({ state: 'detached' })
  expect(page.url()).toBe(at('/logs?status=failed'))
  await page.goBack()
  await drawer.locator('h2', { hasText: 'All accounts at their limit' }).waitFor()
  await drawer.locator('.request-close').click()
  await drawer.locator('h2').waitFor({ state: 'detached' })
  expect(visit.problems).toEqual([])
})

const readHistogram = async (page: Page) => {
  const { from, step, bars, box } = await page.locator('#log-histogram svg').evaluate((svg) => ({
    from: Date.parse(svg.closest('figure')!.dataset.from!),
    step: Number(svg.closest('figure')!.dataset.step),
    bars: (svg as SVGSVGElement).viewBox.baseVal.width, // as: it is one
    box: svg.getBoundingClientRect().toJSON() as DOMRect, // as: its members
  }))
  return {
    ...{ step, bars, box },
    timeOf: (bar: number) => `${new Date(from + bar * step).toISOString().slice(0, 19)}Z`,
    getMiddle: (bar: number) => box.x + ((bar + 0.5) / bars) * box.width,
  }
}

test('dragging over the histogram sets the time, and a click sets one bar', async () => {
  await using visit = await browser.visit(at('/logs?range=24h&status=ok'))
  const { page } = visit
  const { step, bars, box, timeOf, getMiddle } = await readHistogram(page)
  await page.mouse.move(getMiddle(bars - 1), box.y + 20)
  await page.mouse.down()
  await page.mouse.move(getMiddle(0), box.y + 30, { steps: 3 })
  await page.mouse.up()
  await page.waitForURL(/since=/)
  const asked = new URL(page.url()).searchParams
  expect(Object.fromEntries(asked)).toEqual({
    status: 'ok',
    since: timeOf(0),
    until: timeOf(bars - 1000 / step),
  })
  expect((await ids(page)).length).toBeGreaterThan(0)
  await page.goBack()
  const again = await readHistogram(page) // a minute may have begun
  await page.mouse.click(again.getMiddle(bars - 1), box.y + 20)
  await page.waitForURL(/since=/)
  expect(new URL(page.url()).searchParams.get('since')).toBe(again.timeOf(bars - 1))
  expect(visit.problems).toEqual([])
})

test('the reason for the account is in the request, and the id can be copied', async () => {
  await using visit = await browser.visit(at('/logs?status=ok'))
  const { page } = visit
  await page.click('#log-rows tr:first-child .row-link')
  const drawer = page.locator('#drawer')
  await drawer.locator('.candidates').first().waitFor()
  const candidates = await getTexts(drawer.locator('.candidate'))
  expect(candidates[0]).toContain('chosen')
  expect(candidates.join('\n')).toMatch(/tony@example\.test\s+paused/)
  expect(candidates.join('\n')).toMatch(/barbara@example\.test\s+needs sign-in/)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await drawer.locator('[data-action=copy]').first().click()
  await drawer.locator('[data-action=copy].is-done').waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  expect(await getText(drawer.locator('.copied code').first())).toBe(copied)
})

describe('live', () => {
  const start = async (page: Page) => {
    await page.check('[data-tail]')
    return ids(page)
  }

  test('a new request appears at the top, automatically and once', async () => {
    await using visit = await browser.visit(at('/logs'))
    const { page } = visit
    const before = await start(page)
    await sendTestRequest(world)
    await page.waitForFunction((count) => document.querySelectorAll('#log-rows tr').length > count, before.length)
    expect((await ids(page)).slice(1)).toEqual(before)
    expect((await getTexts(page.locator('#log-rows .result b')))[0]).toBe('Completed')
    expect(visit.problems).toEqual([])
  })

  test('continues after a proxy reported Sluice as unavailable', async () => {
    await using visit = await browser.visit(at('/logs'))
    const { page } = visit
    await page.route('**/logs/tail?*', (route) => route.fulfill({ status: 502, body: 'Bad Gateway' }))
    const refused = page.waitForResponse('**/logs/tail?*')
    const before = await start(page)
    await refused
    await page.unroute('**/logs/tail?*')
    await sendTestRequest(world)
    await page.waitForFunction((count) => document.querySelectorAll('#log-rows tr').length > count, before.length)
  })

  test('is in the URL, and stays when filters change', async () => {
    await using visit = await browser.visit(at('/logs?live=true'))
    const { page } = visit
    expect(await page.isChecked('[data-tail]')).toBe(true)
    const before = (await ids(page)).length
    await sendTestRequest(world)
    await page.waitForFunction((count) => document.querySelectorAll('#log-rows tr').length > count, before)
    await page.selectOption('[name=status]', 'ok')
    await page.waitForURL(at('/logs?status=ok&live=true'))
    await page.uncheck('[data-tail]')
    expect(page.url()).toBe(at('/logs?status=ok'))
    await page.click('.chips >> text=All')
    await page.waitForURL(at('/logs'))
    await page.check('[data-tail]')
    expect(page.url()).toBe(at('/logs?live=true'))
    await page.click('.chips >> text=Errors')
    await page.waitForURL(at('/logs?status=failed&live=true'))
  })

  test('fills an empty filter', async () => {
    await using visit = await browser.visit(at(`/logs?since=${new Date().toISOString()}&status=ok`))
    const { page } = visit
    const count = page.locator('#log .count')
    await start(page)
    expect(await getText(count)).toBe('0')
    await sendTestRequest(world)
    await page.locator('#log-rows tr').first().waitFor()
    expect(await getText(count)).toBe('1 on this page')
    await sendTestRequest(world)
    await page.locator('#log-rows tr').nth(1).waitFor()
    expect(await getText(count)).toBe('2 on this page')
  })

  test.each([
    { title: 'omitted rows are on the older page', limit: 50 },
    { title: 'omitted rows can be reached when there was no older page', limit: 1000 },
  ])('the number of rows is limited: $title', async ({ limit }) => {
    await using visit = await browser.visit(at(`/logs?limit=${limit}`))
    const { page } = visit
    await start(page)
    const name = logTurns(210)
    await page.waitForFunction((id) => document.querySelectorAll(`[id^="log-${id}"]`).length === 200, name)
    const shown = await ids(page)
    expect(await getText(page.locator('#log .count'))).toBe('200 on this page')
    await page.click('text=Older')
    await page.waitForURL(/cursor=/)
    const all = await world.api<{ requests: { id: string }[] }>('GET', '/api/request-logs?limit=1000')
    const next = all.requests.findIndex(({ id }) => `log-${id}` === shown.at(-1)) + 1
    expect([(await ids(page))[0], next]).toEqual([`log-${all.requests[next]?.id}`, 200])
  })

  test('selecting pauses the tail, and Resume continues it', async () => {
    await using visit = await browser.visit(at('/logs'))
    const { page } = visit
    await start(page)
    await page
      .locator('#log-rows .cell-model')
      .first()
      .evaluate((cell) => getSelection()?.selectAllChildren(cell))
    await page.locator('#tail-resume').waitFor()
    expect(await getText(page.locator('#tail-says'))).toBe('Paused while you select')
    const before = await ids(page)
    await sendTestRequest(world)
    await page.click('#tail-resume')
    await page.waitForFunction((count) => document.querySelectorAll('#log-rows tr').length > count, before.length)
    expect(await page.isChecked('[data-tail]')).toBe(true)
  })

  test('scrolling pauses it until you are back at the top', async () => {
    await using visit = await browser.visit(at('/logs?columns=route'), { viewport: { width: 390, height: 320 } })
    const { page } = visit
    await start(page)
    await page.mouse.wheel(0, 3000)
    await page.locator('#tail-resume').waitFor()
    expect(await getText(page.locator('#tail-says'))).toBe('Paused while you scroll')
    await page.evaluate(() => scrollTo(0, 0))
    await page.locator('#tail-resume').waitFor({ state: 'hidden' })
  })
})

test('without scripts: filters, one request, older pages, and the explanation', async () => {
  await using visit = await browser.visit(at('/logs?limit=2'), { javaScriptEnabled: false })
  const { page } = visit
  const first = await ids(page)
  await page.click('text=Older')
  await page.waitForURL(/cursor=/)
  const second = await ids(page)
  expect(second).toHaveLength(2)
  expect(second.filter((id) => first.includes(id))).toEqual([])
  await page.click('a:text-is("Newest")')
  await page.click('#log-rows tr:first-child .row-link')
  await page.locator('#drawer h2').waitFor()
  await page.click('#drawer .request-close')
  await page.waitForURL(at('/logs?limit=2'))
  expect(await page.locator('#drawer h2').count()).toBe(0)
  await page.goto(at('/accounts/simulator'))
  await page.fill('[name=model]', 'gpt-5.5')
  await page.click('.filter-card button')
  expect(await getText(page.locator('#explanation'))).toContain('The request would use this account.')
  expect(visit.problems).toEqual([])
})

test('a report is shown in the time zone of the browser and saved as a file', async () => {
  await using visit = await browser.visit(at('/reports'))
  const { page } = visit
  await Promise.all([page.waitForURL(/timezone=/), page.click('.filter-card button')])
  expect(await getText(page.locator('.report-tile').first())).toMatch(/^Cost\s+\$/)
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')])
  expect(download.suggestedFilename()).toMatch(/\.csv$/)
  expect(visit.problems.filter((problem) => !problem.includes('ERR_ABORTED'))).toEqual([]) // a download is no navigation
})

test('accounts of one email are distinguished also when the email is too long for its place', async () => {
  const email = 'edsger.wybe.dijkstra.with.a.long.name@mathematics.example.test'
  const form = new FormData()
  form.append('auth_json', new File([world.upstream.addAccount({ email, plan: 'edu' }).authJson()], 'auth.json'))
  expect((await fetch(at('/api/accounts/import'), { method: 'POST', body: form })).status).toBe(200)
  const { accounts } = await world.api<{ accounts: { accountId: string; email: string }[] }>('GET', '/api/accounts')
  const seats = accounts.filter((account) => account.email === email)
  for (const { accountId } of seats) {
    await world.api('PATCH', '/api/settings', { routingStrategy: 'single_account', singleAccountId: accountId })
    await sendTestRequest(world)
  }
  await using visit = await browser.visit(at('/logs'))
  const { page } = visit
  for (const [path, place] of [
    ['/logs', '.cell-account'],
    ['/accounts/simulator?model=gpt-5.5', '.candidate-name'],
    ['/reports', '.share-name'],
  ] as const) {
    await page.goto(at(path))
    const ends = page.locator(place, { hasText: '(edu, acc_' })
    const seen = await ends.evaluateAll((names) =>
      names.map((name) => {
        const end = document.createRange()
        end.selectNodeContents(name)
        end.setStart(name.lastChild!, name.lastChild!.textContent!.indexOf('acc_'))
        return end.getBoundingClientRect().right <= name.getBoundingClientRect().right
      }),
    )
    expect([path, ...seen]).toEqual([path, ...seats.map(() => true)])
  }
  await world.api('PATCH', '/api/settings', { routingStrategy: 'capacity_weighted', singleAccountId: null })
})

test('a search that stops after 50,000 requests says how far it came, and continues on request', async () => {
  const name = logTurns(1, Date.now() - 3_600_000)
  logTurns(50_000)
  await using visit = await browser.visit(at('/logs'))
  const { page } = visit
  await page.fill('[name=search]', name)
  await page.press('[name=search]', 'Enter')
  await page.waitForURL(at(`/logs?search=${name}`))
  expect(await getText(page.locator('#log-empty'))).toMatch(/^No matches so far\./)
  expect(await getText(page.locator('.pager'))).toMatch(/^Searched back to \w.*\.\s+Search older$/)
  await page.click('text=Search older')
  await page.waitForURL(/cursor=/)
  expect(await ids(page)).toEqual([`log-${name}_0`])
  expect(new URL(page.url()).searchParams.get('search')).toBe(name)
  await page.fill('[name=search]', 'no such thing')
  await page.press('[name=search]', 'Enter')
  await page.waitForURL(/search=no/)
  await page.click('text=Search older')
  await page.waitForURL(/cursor=/)
  expect(await getText(page.locator('#log'))).not.toMatch(/so far|Search older/)
  expect(visit.problems).toEqual([])
})

/** Turns that end at `endedAt` (ms), as the ledger writes them; returns what their ids begin with. */
const logTurns = (count: number, endedAt = Date.now()): string => {
  const name = `trn_tail_${endedAt}`
  const db = new Database(join(world.dataDir, 'sluice.db'))
  db.run('PRAGMA busy_timeout = 5000')
  db.run(
    `WITH RECURSIVE turns(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM turns WHERE n + 1 < ?1)
    INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
    SELECT ?2 || '_' || n, ?2 || '_' || n, ?3, '/v1/responses', 'normal', 'http', 'ok', 200, 1, 0 FROM turns`,
    [count, name, endedAt],
  )
  db.close()
  return name
}
