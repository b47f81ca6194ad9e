/**
 * Every page of the route table, with its dialogs and menus, in both themes and all layouts: no axe violations, no
 * overflow, no errors in the console. Other browser tests need not look for these.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { everyRoute } from '../../src/routes/every-route.ts'
import { getViolations } from './axe.ts'
import { findColorOnlyInformation, findLostInForcedColors } from './axe-colours.ts'
import { NO_PAGES, PAGES, PARTS, REFUSALS, type Stop } from './axe-pages.ts'
import { type Places, startAxeServers } from './axe-world.ts'
import { DESKTOP, getText, launchBrowser, overflows, overflowsAt, type TestBrowser } from './browser.ts'
import { focusProblems } from './keyboard.ts'
import { narrowProblems } from './narrow.ts'

setDefaultTimeout(180_000)

const NARROW = { width: 360, height: 740 }
/** Between the breakpoints of the style. */
const BETWEEN = [820, 720]

let browser: TestBrowser
let places: Places

beforeAll(async () => {
  browser = await launchBrowser()
  places = await startAxeServers(browser)
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await places?.[Symbol.asyncDispose]()
})

/** Opens the page of a stop; throws if another page opens. */
const arrive = async ({ path, as = 'admin', act, status = 200 }: Stop): Promise<{ page: Page; problems: string[] }> => {
  const { page, url, problems } = await places.as(as)
  await page.setViewportSize(DESKTOP)
  await showIn(page, 'light')
  problems.length = 0
  const response = await page.goto(url + path)
  const [wanted] = path.split('?')
  expect(new URL(page.url()).pathname, await getText(page.locator('body'))).toBe(wanted ?? '')
  expect(response?.status()).toBe(status)
  await act?.(page, places.ids)
  return { page, problems }
}

/** axe takes long on a long list whose details are all open. */
const FIRST_DETAILS = 12

/** Opens the first `most` details. */
const unfold = (page: Page, most = Number.POSITIVE_INFINITY) =>
  page.evaluate((end) => {
    for (const details of [...document.querySelectorAll<HTMLDetailsElement>('main details')].slice(0, end))
      details.open = true
    // The shadow at its sides lies behind every word of a table, and axe cannot determine contrast on a gradient.
    for (const table of document.querySelectorAll<HTMLElement>('.scroll-x')) table.style.background = 'none'
  }, most)

const showIn = (page: Page, colorScheme: 'light' | 'dark') => page.emulateMedia({ colorScheme })

/** Without what the browser reports about the error status of the page itself, once each. */
const withoutOwnStatus = (problems: string[], url: string, status: number): string[] =>
  [`${url} answered ${status}`, `Failed to load resource: the server responded with a status of ${status} `].reduce(
    (rest, own) => {
      const index = rest.findIndex((problem) => problem.startsWith(own))
      return index < 0 ? rest : rest.toSpliced(index, 1)
    },
    problems,
  )

/** What is wrong at this stop, and where. Each width and each theme once: what depends on both has not been seen yet. */
const lookAt = async (stop: Stop, { isFirst }: { isFirst: boolean }): Promise<string[]> => {
  const { page, problems } = await arrive(stop)
  const found: string[] = []
  const note = (look: string, what: readonly string[]) =>
    found.push(...what.map((one) => `${stop.name}, ${look}: ${one}`))
  note('collapsed', await overflows(page))
  await unfold(page, FIRST_DETAILS)
  note('wide', await getViolations(page, 'everything'))
  note('colour alone', await findColorOnlyInformation(page))
  if (isFirst) note('wide', await focusProblems(page))
  note('forced colours', await findLostInForcedColors(page))
  await showIn(page, 'dark')
  await page.setViewportSize(NARROW)
  note('narrow, dark', await getViolations(page, isFirst ? 'everything' : 'looks'))
  await unfold(page)
  note('narrow', await overflows(page))
  note('narrow', await narrowProblems(page))
  note('narrow', await focusProblems(page))
  note('unfolded', await overflowsAt(page, isFirst ? [...BETWEEN, DESKTOP.width] : [DESKTOP.width]))
  note('console', stop.status ? withoutOwnStatus(problems, page.url(), stop.status) : problems)
  return found
}

/** A page, and its further states with fewer checks. */
const lookAtAll = async (stops: readonly Stop[]): Promise<string[]> => {
  const found: string[] = []
  for (const [index, stop] of stops.entries()) found.push(...(await lookAt(stop, { isFirst: index === 0 })))
  return found
}

describe('there are no accessibility violations on', () => {
  test.each(Object.entries(PAGES))('%s', async (_, stopsOf) => {
    expect(await lookAtAll(stopsOf(places.ids))).toEqual([])
  })

  test('error pages', async () => {
    expect(await lookAtAll(REFUSALS)).toEqual([])
  })
})

describe('the checks detect violations', () => {
  const hasPaleLetters = (page: Page) => getViolations(page, 'looks')
  const sticksOutAt820 = (page: Page) => overflowsAt(page, BETWEEN.slice(0, 1))
  const DOT = '<i class="dot" aria-hidden="true"></i>'

  test.each([
    ['a state without a text', findColorOnlyInformation, '<span class="badge tone-bad"></span>'],
    [
      'one word in two colors',
      findColorOnlyInformation,
      `<b class="badge tone-bad">${DOT}Paused</b><b class="badge tone-good">${DOT}Paused</b>`,
    ],
    [
      'a switch without a knob',
      findLostInForcedColors,
      '<input class="switch" type="checkbox" style="appearance: none">',
    ],
    [
      'a tab without a distinct style',
      findLostInForcedColors,
      '<nav><a href="#a" aria-current="page">A</a><a href="#b">B</a></nav>',
    ],
    ['pale letters', hasPaleLetters, '<p style="color: #ccc; background: #fff">pale</p>'],
    ['a wide page', narrowProblems, '<p style="width: 500px">wide</p>'],
    ['what sticks out', sticksOutAt820, '<div style="width: 900px; position: absolute">wide</div>'],
    ['truncated text', narrowProblems, '<p style="width: 40px; overflow: hidden; white-space: nowrap">a long text</p>'],
    ['small letters', narrowProblems, '<p style="font-size: 9px">small</p>'],
    ['a focus without an outline', focusProblems, '<a href="#a" style="outline: 0">here</a>'],
    [
      'a covered focus',
      focusProblems,
      '<a href="#a">here</a><p style="position: fixed; inset: 0; background: red"></p>',
    ],
  ])('%s is found', async (_, check, html) => {
    const { page } = await places.as('nobody')
    await page.goto('about:blank')
    await page.setViewportSize(NARROW)
    await page.setContent(html)
    expect(await check(page)).toHaveLength(1)
  })
})

describe('no page is missing', () => {
  const routes = everyRoute.filter(
    ({ method, path }) => method === 'GET' && !/^\/(api|v1|backend-api|wham)\//.test(path),
  )

  test('every route that can show a page is listed here', () => {
    const known = [PAGES, PARTS, NO_PAGES].flatMap(Object.keys)
    expect(known.toSorted()).toEqual(routes.map(({ path }) => path).toSorted())
  })

  test.each(Object.keys(NO_PAGES))('%s shows none', async (path) => {
    const { url } = await places.as('new')
    const abort = new AbortController()
    const answer = await fetch(url + path, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
      signal: abort.signal,
    })
    const isPage = answer.ok && answer.headers.get('content-type')?.startsWith('text/html') === true
    abort.abort()
    expect(isPage).toBe(false)
  })

  test.each(Object.entries(PARTS))('%s is listed in %s', async (part, whole) => {
    const { page, url } = await places.as('admin')
    await page.goto(url + whole.replace(':key', places.ids.keys.ci ?? ''))
    expect(await page.content()).toContain(`"${part}`)
  })
})
