/** Chromium for the page tests: one browser, a new profile per page, and a record of all errors. */
import { type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { CHROMIUM, findProgram } from '../../scripts/programs.ts'
import { PATIENCE_MS, until } from '../support/until.ts'

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // No page lives long enough for V8's optimizing compilers: an axe run took twice the processor time with them.
  '--js-flags=--no-opt --no-maglev',
]

const CLOSING_MS = 5000
/** Less than a test has, so that a wait in vain says what for, and the browser lives on. */
const WAITING_MS = PATIENCE_MS

export const DESKTOP = { width: 1280, height: 900 } as const
export const PHONE = { width: 390, height: 844 } as const
/** One for each layout of the style. */
const EVERY_WIDTH = [DESKTOP.width, 820, 720, 360] as const

type ContextOptions = Pick<BrowserContextOptions, 'colorScheme' | 'javaScriptEnabled' | 'proxy' | 'ignoreHTTPSErrors'>

export interface PageOptions extends ContextOptions {
  viewport?: { width: number; height: number }
  /** As a `cookie` header has it: `name=value`. */
  cookie?: string
  /** Time moves by `page.clock` only. */
  isClockHeld?: boolean
  /** Until the page receives changes, too. */
  untilLive?: boolean
}

export interface Visit extends AsyncDisposable {
  page: Page
  /** Console errors, uncaught exceptions, failed requests and violations of the content security policy. */
  problems: string[]
}

export interface TestBrowser extends AsyncDisposable {
  /** Opens `url` in a profile of its own. */
  visit(url: string, options?: PageOptions): Promise<Visit>
}

/** `flags`: of Chromium, in addition. */
export const launchBrowser = async ({ flags = [] }: { flags?: string[] } = {}): Promise<TestBrowser> => {
  const executablePath = findProgram(CHROMIUM)
  if (!executablePath) throw new Error('No Chromium on this machine; install chromium and run again.')
  const browser = await chromium.launch({ executablePath, args: [...FLAGS, ...flags] })
  return {
    async visit(url, { viewport = DESKTOP, cookie = '', isClockHeld = false, untilLive = false, ...options } = {}) {
      const context = await browser.newContext({ viewport, ...options })
      const [name = '', value = ''] = cookie.split('=')
      if (name !== '') await context.addCookies([{ name, value, url: new URL(url).origin }])
      const page = await context.newPage()
      page.setDefaultTimeout(WAITING_MS)
      const problems = watch(page)
      if (isClockHeld) await holdClock(page)
      const load = () => page.goto(url)
      const response = await (untilLive ? loadAndConnect(page, load) : load())
      if (response?.status() !== 200) throw new Error(`${url} answered ${response?.status()}.`)
      // A profile closed in the middle of a load may hang; it then ends with the browser.
      return { page, problems, [Symbol.asyncDispose]: () => Promise.race([context.close(), Bun.sleep(CLOSING_MS)]) }
    },
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

const holdClock = async ({ clock }: Page): Promise<void> => {
  const time = Date.now()
  await clock.install({ time })
  await clock.pauseAt(time + 1000)
}

/** The result of `load`, once the event stream of the loaded page has been answered. */
export const loadAndConnect = async <T>(page: Page, load: () => Promise<T>): Promise<T> => {
  const [loaded] = await Promise.all([load(), page.waitForResponse('**/api/events*')])
  return loaded
}

/** Until the page is at `pathname`, after any number of redirects, which abort each other's loading. */
export const arrivedAt = (page: Page, pathname: string): Promise<void> =>
  until(
    () => new URL(page.url()).pathname === pathname,
    () => page.url(),
  )

/** Requests matching `glob` wait until they are released. */
export const held = async (page: Page, glob: string) => {
  const asked = Promise.withResolvers<void>()
  const free = Promise.withResolvers<void>()
  await page.route(glob, async (route) => {
    asked.resolve()
    await free.promise
    await route.continue()
  })
  return { asked: asked.promise, letGo: free.resolve }
}

/** The visible text: hidden text is omitted, and lines are kept. */
// biome-ignore lint/performance/useDomNodeTextContent: the reason is above
export const getText = (locator: Locator): Promise<string> => locator.innerText()

export const getTexts = async (locator: Locator): Promise<string[]> => Promise.all((await locator.all()).map(getText))

/** Until this field is empty. */
export const untilEmpty = (page: Page, field: string) =>
  page.waitForFunction((path) => document.querySelector<HTMLInputElement>(path)?.value === '', field)

/**
 * If the page is wider than the window: its width, or the elements that stick out and are not in a part that scrolls or
 * clips. Empty if nothing does.
 */
export const overflows = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? ['the document'] : []
    const isClipped = (el: Element): boolean => {
      const parent = el.parentElement
      if (!parent || parent === document.body) return false
      return getComputedStyle(parent).overflowX !== 'visible' || isClipped(parent)
    }
    const isOut = (el: Element) => {
      const { right, left } = el.getBoundingClientRect()
      return (right > innerWidth + 0.5 || left < -0.5) && !isClipped(el)
    }
    const out = [...document.querySelectorAll('body *')].filter(isOut)
    return [...wide, ...out.map((el) => `${el.tagName.toLowerCase()}.${el.getAttribute('class')}`)]
  })

/** What sticks out at the widths, and at which; the width stays the last one. */
export const overflowsAt = async (page: Page, widths: readonly number[] = EVERY_WIDTH): Promise<string[]> => {
  const found: string[] = []
  for (const width of widths) {
    await page.setViewportSize({ width, height: DESKTOP.height })
    found.push(...(await overflows(page)).map((what) => `at ${width}: ${what}`))
  }
  return found
}

const watch = (page: Page): string[] => {
  const problems: string[] = []
  page.on('console', (message) => {
    if (isAskedWithoutKey(message.location().url) && message.text().includes('401')) return
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText
    // Leaving a page ends what its scripts were asking, which is no problem.
    const isScripted = ['fetch', 'xhr', 'eventsource'].includes(request.resourceType())
    if (isScripted && reason === 'net::ERR_ABORTED') return
    problems.push(`${request.url()} failed: ${reason}`)
  })
  page.on('response', (response) => {
    if (response.status() === 401 && isAskedWithoutKey(response.url())) return
    if (response.status() >= 400) problems.push(`${response.url()} answered ${response.status()}`)
  })
  return problems
}

/** The requests that `measures.js` deliberately sends without a key. */
const isAskedWithoutKey = (url: string): boolean => /\/(v1|backend-api\/codex)\/models$/.test(url)
