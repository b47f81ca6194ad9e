/** Takes `docs/screenshots`: every page at two widths in both themes, of a made-up pool. Run `bun tests/browser/screenshots.ts`; needs Chromium. */
import { Database } from 'bun:sqlite'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { spawnServer } from '../support/spawn.ts'
import { DESKTOP, launchBrowser, PHONE } from './browser.ts'
import { codeFor, PASSWORD, send, signIn } from './people-world.ts'
import { startPopulated } from './world.ts'

const FOLDER = join(import.meta.dir, '../../docs/screenshots')
const WIDTHS = [DESKTOP, PHONE]
const THEMES = ['light', 'dark'] as const

/** Name → path, for who is signed in as Admin. */
const PAGES: Record<string, string> = {
  overview: '/dashboard',
  accounts: '/accounts',
  'new-account': '/accounts/new',
  'new-account-import': '/accounts/new/import',
  keys: '/keys',
  'new-key': '/keys/new',
  logs: '/logs',
  reports: '/reports',
  settings: '/settings',
  'settings-access': '/settings/access',
  'settings-routing': '/settings/routing',
  'settings-network': '/settings/network',
  'settings-data': '/settings/data',
  'settings-about': '/settings/about',
  doctor: '/doctor',
  docs: '/docs',
  guide: '/docs/operating',
  'docs-api': '/docs/api',
  explain: '/accounts/simulator?model=gpt-5.5',
  audit: '/audit',
  me: '/me',
  'two-factor': '/me/two-factor',
  confirm: '/confirm',
}

rmSync(FOLDER, { recursive: true, force: true })
mkdirSync(FOLDER, { recursive: true })
await using world = await startPopulated()
await using browser = await launchBrowser()
const url = world.url.replace('127.0.0.1', 'localhost')
await looks('setup', '/setup')
const cookie = await ownerOf()
const invite = await invited()
const pages = { ...PAGES, ...(await details()) }
await looks('sign-in', '/login')
await looks('invite', `/invite/${invite}`)
for (const width of WIDTHS)
  for (const colorScheme of THEMES) {
    await using visit = await browser.visit(`${url}/login`, { viewport: width, colorScheme })
    await signIn(visit.page, url)
    for (const [name, path] of Object.entries(pages)) {
      await visit.page.goto(url + path)
      await shoot(visit.page, { name, width: width.width, theme: colorScheme })
    }
  }

await strangers()
await enroll()
for (const width of WIDTHS)
  for (const colorScheme of THEMES) {
    await using visit = await browser.visit(`${url}/login`, { viewport: width, colorScheme })
    await visit.page.fill('#form-login [name=password]', PASSWORD)
    await Promise.all([visit.page.waitForURL(/totp/), visit.page.click('#form-login [type=submit]')])
    await shoot(visit.page, { name: 'totp', width: width.width, theme: colorScheme })
  }

/** Somebody whom a proxy announces and nobody has added. */
async function strangers(): Promise<void> {
  await using server = await spawnServer({
    env: { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' },
  })
  const db = new Database(join(server.dataDir, 'sluice.db'))
  db.run(
    "INSERT INTO auth_providers (id, kind, label, created_at, updated_at) VALUES ('idp_trusted_header', 'trusted_header', 'Reverse proxy', 0, 0)",
  )
  db.close()
  for (const width of WIDTHS)
    for (const colorScheme of THEMES) {
      await using visit = await browser.visit(`${server.url}/health`, { viewport: width, colorScheme })
      await visit.page.setExtraHTTPHeaders({ 'remote-user': 'anna@example.test' })
      await visit.page.goto(`${server.url}/dashboard`)
      await shoot(visit.page, { name: 'auth-pending', width: width.width, theme: colorScheme })
    }
}

/** From now on the first account has a second factor. */
async function enroll(): Promise<void> {
  const started = await send(url, 'POST', '/api/dashboard-auth/totp/setup/start', {}, cookie)
  const { secret } = (await started.json()) as { secret: string } // as: the API's answer
  await send(url, 'POST', '/api/dashboard-auth/totp/setup/confirm', { secret, code: codeFor(secret) }, cookie)
}

/** A page that wants nobody signed in. */
async function looks(name: string, path: string): Promise<void> {
  for (const width of WIDTHS)
    for (const colorScheme of THEMES) {
      await using visit = await browser.visit(url + path, { viewport: width, colorScheme })
      await shoot(visit.page, { name, width: width.width, theme: colorScheme })
    }
}

async function shoot(
  page: Page,
  { name, width, theme }: { name: string; width: number; theme: string },
): Promise<void> {
  await page.waitForTimeout(250) // figures that are fetched after the page
  const before = page.viewportSize()
  if (name === 'doctor') await showWhole(page, width)
  await hideFolder(page)
  await page.screenshot({ path: join(FOLDER, `${name}-${width}-${theme}.png`) })
  if (before) await page.setViewportSize(before)
}

/** What the doctor measures stands at the end of its page. A window of that height, because bars stay where a picture of the page ends. */
async function showWhole(page: Page, width: number): Promise<void> {
  for (const measuring of await page.getByText('Measuring').all()) await measuring.waitFor({ state: 'hidden' })
  await page.setViewportSize({ width, height: await page.evaluate(() => document.documentElement.scrollHeight) })
}

/** Where this machine keeps its data is nobody's business. */
async function hideFolder(page: Page): Promise<void> {
  await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (node.nodeValue?.includes('/tmp/'))
        node.nodeValue = node.nodeValue.replaceAll(/\/tmp\/[\w.-]+/g, '/var/lib/sluice')
  })
}

/** What is about one thing: the account that has used up its allowance, a key, a turn that failed. */
async function details(): Promise<Record<string, string>> {
  const ask = async <T>(path: string): Promise<T> =>
    (await send(url, 'GET', path, undefined, cookie)).json() as Promise<T> // as: the API's answers
  const { accounts } = await ask<{ accounts: { accountId: string; email: string }[] }>('/api/accounts')
  const keys = await ask<{ id: string }[]>('/api/api-keys')
  const { requests } = await ask<{ requests: { id: string }[] }>('/api/request-logs?status=failed')
  return {
    account: `/accounts/${accounts.find(({ email }) => email.startsWith('linus'))?.accountId}`,
    key: `/keys/${keys[0]?.id}`,
    'log-entry': `/logs?open=${requests[0]?.id}`,
  }
}

/** The first account; its cookie for what is prepared without a browser. */
async function ownerOf(): Promise<string> {
  const response = await send(url, 'POST', '/api/dashboard-auth/password/setup', { password: PASSWORD })
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

async function invited(): Promise<string> {
  const person = { username: 'vera', displayName: 'Vera', roleId: 'role_viewer' }
  const response = await send(url, 'POST', '/api/dashboard-users', person, cookie)
  const { invite } = (await response.json()) as { invite: { token: string } } // as: the API's answer
  return invite.token
}
