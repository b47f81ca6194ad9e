/** The screenshots of the demo: the pictures of the README, and every page. */
import type { Page } from 'playwright-core'
import { PHONE } from './browser.ts'

export interface Shot {
  /** File name without extension. */
  name: string
  path: string
  /** `admin` by default. */
  as?: 'member' | 'nobody'
  /** Done before the picture is taken. */
  act?: (page: Page) => Promise<void>
}

interface ReadmeShot extends Shot {
  viewport: { width: number; height: number }
}

const LARGE = { width: 1280, height: 1420 }
const SMALL = { width: 1100, height: 1000 }

interface Demo {
  url: string
  link: string
  key: string
}

export const findShots = async ({ url, link, key }: Demo) => {
  const signedIn = await fetch(link, { redirect: 'manual' })
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const get = async <T>(path: string): Promise<T> =>
    (await fetch(url + path, { headers: { accept: 'application/json', cookie } })).json() as Promise<T> // as: the API's answers
  const { accounts } = await get<{ accounts: { accountId: string; email: string }[] }>('/api/accounts')
  const keys = await get<{ id: string; name: string }[]>('/api/api-keys')
  const { sources } = await get<{ sources: { id: string }[] }>('/api/model-sources/')
  const { requests } = await get<{ requests: { id: string; attemptCount: number }[] }>(
    '/api/request-logs?status=failed&limit=50',
  )
  const { items } = await get<{ items: { id: string; lastRun: { id: string } | null }[] }>('/api/automations')
  const [automation] = items
  const { conversations } = await get<{ conversations: { conversationId: string }[] }>('/api/conversations')
  const toAccount = (name: string) => `/accounts/${accounts.find(({ email }) => email.startsWith(name))?.accountId}`
  const toKey = (name: string) => `/keys/${keys.find((key) => key.name === name)?.id}`
  const request = requests.find(({ attemptCount }) => attemptCount > 1) ?? requests[0]
  const drawer = `/logs?open=${request?.id}`
  const readme: ReadmeShot[] = [
    { name: 'overview', path: '/dashboard', viewport: LARGE },
    { name: 'request', path: drawer, viewport: SMALL },
    { name: 'key-test', path: toKey('laptop'), act: testKey, viewport: SMALL },
    { name: 'account', path: toAccount('ada'), viewport: SMALL },
    { name: 'phone', path: '/dashboard', viewport: PHONE },
  ]
  const pages = (captured: Captured): Shot[] => [
    ...Object.entries(PAGES).map(([name, path]) => ({ name, path })),
    ...['ada', 'linus', 'barbara'].map((name) => ({ name: `account-${name}`, path: toAccount(name) })),
    { name: 'account-statement', path: `${toAccount('ada')}?tab=statement` },
    { name: 'account-routing', path: `${toAccount('ada')}?tab=routing` },
    { name: 'account-events', path: `${toAccount('linus')}?tab=events` },
    { name: 'account-credentials', path: `${toAccount('ada')}?tab=credentials` },
    { name: 'key', path: toKey('review-bot') },
    { name: 'key-edit', path: `${toKey('ci')}/edit` },
    { name: 'settings-source', path: `/settings/sources/${sources[0]?.id}` },
    { name: 'settings-source-failing', path: `/settings/sources/${sources.at(-1)?.id}` },
    { name: 'log-drawer', path: drawer },
    { name: 'settings-automation', path: `/settings/automations/${automation?.id}` },
    { name: 'settings-automation-run', path: `/settings/automations/runs/${automation?.lastRun?.id}` },
    { name: 'log-entry', path: `/logs/${request?.id}` },
    { name: 'conversation', path: `/logs/conversations/${conversations[3]?.conversationId}` },
    { name: 'account-route', path: `${toAccount('tony')}?tab=routing` },
    { name: 'strategies-run', path: '/reports/strategies?run=1', act: compared },
    { name: 'captures', path: '/logs/captures' },
    { name: 'capture', path: `/logs/captures/${captured.captureId}` },
    { name: 'captured', path: `/logs/${captured.requestId}/captured` },
    { name: 'login', path: '/login', as: 'nobody' },
    { name: 'key-page-entry', path: '/key', as: 'nobody' },
    { name: 'key-page', path: '/key', as: 'nobody', act: (page) => enterKey(page, key) },
    ...Object.entries(MEMBERS_PAGES).map(([name, path]): Shot => ({ name: `member-${name}`, path, as: 'member' })),
    { name: 'member-key', path: toKey('desktop'), as: 'member' },
  ]
  return { readme, findPages: async () => pages(await captureOne({ url, cookie, key })) }
}

interface Captured {
  captureId: string
  requestId: string
}

/** Records one request, and ends the capture, because every page names one that runs. */
const captureOne = async ({ url, cookie, key }: { url: string; cookie: string; key: string }): Promise<Captured> => {
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { accept: 'application/json', 'content-type': 'application/json', cookie }
    const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return response.json() as Promise<T> // as: the API's answers
  }
  const [laptop] = (await ask<{ id: string; name: string }[]>('GET', '/api/api-keys/')).filter(
    ({ name }) => name === 'laptop',
  )
  const { id: captureId } = await ask<{ id: string }>('POST', '/api/captures', { keyId: laptop?.id, minutes: 60 })
  const answer = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.5', input: 'Say hello.', stream: true }),
  })
  await answer.text()
  const { items } = await ask<{ items: { id: string }[] }>('GET', '/api/conversation-archive')
  await ask('DELETE', `/api/captures/${captureId}`)
  return { captureId, requestId: items[0]?.id ?? '' }
}

const compared = (page: Page) => page.waitForSelector('#strategies table').then(() => {})

const enterKey = async (page: Page, key: string): Promise<void> => {
  if ((await page.locator('[name=secret]').count()) === 0) return
  await page.fill('[name=secret]', key)
  await page.keyboard.press('Enter')
  await page.waitForSelector('#requests')
}

const testKey = async (page: Page): Promise<void> => {
  const button = page.getByRole('button', { name: /^Test/ }).first()
  await button.scrollIntoViewIfNeeded()
  await button.click()
  await page.waitForTimeout(1500)
}

const PAGES: Record<string, string> = {
  overview: '/dashboard',
  'overview-1h': '/dashboard?period=1h',
  'overview-7d': '/dashboard?period=7d',
  accounts: '/accounts',
  'accounts-cards': '/accounts?view=cards',
  'new-account': '/accounts/new',
  'new-account-browser': '/accounts/new/browser',
  'new-account-device': '/accounts/new/device',
  'new-account-import': '/accounts/new/import',
  simulator: '/accounts/simulator?model=gpt-5.5',
  keys: '/keys',
  'new-key': '/keys/new',
  logs: '/logs',
  'logs-rejected': '/logs?status=rejected',
  conversations: '/logs/conversations',
  reports: '/reports',
  strategies: '/reports/strategies',
  'reports-latency': '/reports?measure=latency',
  settings: '/settings',
  'settings-access': '/settings/access',
  'settings-routing': '/settings/routing',
  'settings-automations': '/settings/automations',
  'settings-automations-new': '/settings/automations/new?ready=mornings',
  'settings-alerts': '/settings/alerts',
  'settings-alert-kinds': '/settings/alerts/new',
  'settings-alert-mail': '/settings/alerts/new?kind=smtp',
  'settings-sources': '/settings/sources',
  'settings-source-new': '/settings/sources/new',
  'sticky-sessions': '/settings/routing/sessions',
  'settings-network': '/settings/network',
  'settings-data': '/settings/data',
  'settings-about': '/settings/about',
  'settings-search': '/settings/search?q=key',
  search: '/search?q=key',
  doctor: '/doctor',
  docs: '/docs',
  guide: '/docs/operating',
  audit: '/audit',
  me: '/me',
  'two-factor': '/me/two-factor',
  confirm: '/confirm',
}

const MEMBERS_PAGES: Record<string, string> = {
  overview: '/dashboard',
  keys: '/keys',
  'new-key': '/keys/new',
  logs: '/logs',
  reports: '/reports',
  me: '/me',
}
