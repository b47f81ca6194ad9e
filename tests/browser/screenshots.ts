/**
 * `bun run screenshots`: takes the pictures of the README into `docs/screenshots`, with the data of the demo. With `--
 * --all FOLDER`: every page at two widths and in both themes. Needs Chromium.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { MEMBER } from '../../scripts/demo/member.ts'
import { DESKTOP, launchBrowser, PHONE, type TestBrowser } from './browser.ts'
import { findShots, type Shot } from './shots.ts'

const ROOT = resolve(import.meta.dir, '../..')
const FOLDER = join(ROOT, 'docs/screenshots')
const LOOKS = [DESKTOP, PHONE].flatMap((viewport) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ viewport, colorScheme })),
)

const { all, only } = parseArgs({ options: { all: { type: 'string' }, only: { type: 'string' } } }).values
await using demo = await startDemo()
await using browser = await launchBrowser()
const { readme, findPages } = await findShots(demo)
if (all === undefined) await takeReadme(browser)
else await takeAll(browser, all)

async function takeReadme(chromium: TestBrowser): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  for (const { viewport, ...shot } of readme) {
    await using visit = await chromium.visit(demo.link, { viewport, colorScheme: 'light' })
    await take(visit.page, shot, join(FOLDER, `${shot.name}.png`))
  }
}

async function takeAll(chromium: TestBrowser, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const wanted = (await findPages()).filter(({ name }) => only === undefined || new RegExp(only).test(name))
  for (const { viewport, colorScheme } of LOOKS)
    for (const [visitor, shots] of Map.groupBy(wanted, (shot) => shot.as ?? 'admin')) {
      const start = visitor === 'admin' ? demo.link : `${demo.url}/login`
      await using visit = await chromium.visit(start, { viewport, colorScheme })
      if (visitor === 'member') await signInAsMember(visit.page)
      for (const shot of shots) {
        const path = join(folder, `${shot.name}-${viewport.width}-${colorScheme}.png`)
        await take(visit.page, shot, path, true).catch((error) => process.stderr.write(`${shot.name}: ${error}\n`))
      }
    }
}

async function take(page: Page, { path, act }: Shot, file: string, fullPage = false): Promise<void> {
  await page.goto(demo.url + path)
  await act?.(page)
  for (const measuring of await page.getByText('Measuring').all()) await measuring.waitFor({ state: 'hidden' })
  await page.waitForTimeout(400) // figures that are fetched after the page, and transitions
  await hideFolder(page)
  await page.screenshot({ path: file, fullPage })
}

async function signInAsMember(page: Page): Promise<void> {
  const data = { username: MEMBER, password: demo.password }
  const response = await page.request.post(`${demo.url}/api/dashboard-auth/password/login`, { data })
  if (!response.ok()) throw new Error(`The Member was answered ${response.status()}.`)
}

/** The pictures are the same whatever folder the demo got. */
async function hideFolder(page: Page): Promise<void> {
  await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (node.nodeValue?.includes('/tmp/'))
        node.nodeValue = node.nodeValue.replaceAll(/\/tmp\/[\w.-]+/g, '/var/lib/sluice')
  })
}

interface Demo extends AsyncDisposable {
  url: string
  /** Signs a browser in. */
  link: string
  /** The password of both users. */
  password: string
  /** An API key. */
  key: string
}

/** Without traffic, so that the pictures show the seeded week only. */
async function startDemo(): Promise<Demo> {
  const child = Bun.spawn([process.execPath, 'scripts/demo.ts', '--port', '0', '--no-traffic'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ready = Promise.withResolvers<string>()
  const read = async () => {
    let output = ''
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      output += decoder.decode(chunk, { stream: true })
      if (output.includes('Ctrl-C')) ready.resolve(output)
    }
    ready.reject(new Error(`The demo ended with ${await child.exited}.\n${output}`))
  }
  void read() // read to its end, because the demo would block without a reader
  const output = await ready.promise
  const printed = (name: string) => new RegExp(`${name} +(\\S+)`).exec(output)?.[1]?.replace('/dashboard', '') ?? ''
  return {
    url: printed('Dashboard'),
    link: printed('Open'),
    password: printed('Password'),
    key: printed('API key'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      await child.exited
    },
  }
}
