/** What there is to photograph in the demo: the pictures of the README, and every page. */
import type { Page } from 'playwright-core'
import { PHONE } from './browser.ts'

export interface Shot {
  /** File name without extension. */
  name: string
  path: string
  /** Done before the picture is taken. */
  act?: (page: Page) => Promise<void>
}

interface ReadmeShot extends Shot {
  viewport: { width: number; height: number }
}

const LARGE = { width: 1280, height: 1420 }
const SMALL = { width: 1100, height: 1000 }

export const findShots = async ({ url, link }: { url: string; link: string }) => {
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
  const accountOf = (name: string) => `/accounts/${accounts.find(({ email }) => email.startsWith(name))?.accountId}`
  const keyOf = (name: string) => `/keys/${keys.find((key) => key.name === name)?.id}`
  const request = requests.find(({ attemptCount }) => attemptCount > 1) ?? requests[0]
  const drawer = `/logs?open=${request?.id}`
  const readme: ReadmeShot[] = [
    { name: 'overview', path: '/dashboard', viewport: LARGE },
    { name: 'request', path: drawer, viewport: SMALL },
    { name: 'key-test', path: keyOf('laptop'), act: testKey, viewport: SMALL },
    { name: 'account', path: accountOf('ada'), viewport: SMALL },
    { name: 'phone', path: '/dashboard', viewport: PHONE },
  ]
  const pages: Shot[] = [
    ...Object.entries(PAGES).map(([name, path]) => ({ name, path })),
    ...['ada', 'linus', 'barbara'].map((name) => ({ name: `account-${name}`, path: accountOf(name) })),
    { name: 'account-routing', path: `${accountOf('ada')}?tab=routing` },
    { name: 'account-events', path: `${accountOf('linus')}?tab=events` },
    { name: 'account-credentials', path: `${accountOf('ada')}?tab=credentials` },
    { name: 'key', path: keyOf('review-bot') },
    { name: 'key-edit', path: `${keyOf('ci')}/edit` },
    { name: 'settings-source', path: `/settings/sources/${sources[0]?.id}` },
    { name: 'settings-source-failing', path: `/settings/sources/${sources.at(-1)?.id}` },
    { name: 'log-drawer', path: drawer },
    { name: 'settings-automation', path: `/settings/automations/${automation?.id}` },
    { name: 'settings-automation-run', path: `/settings/automations/runs/${automation?.lastRun?.id}` },
    { name: 'log-entry', path: `/logs/${request?.id}` },
    { name: 'conversation', path: `/logs/conversations/${conversations[3]?.conversationId}` },
  ]
  return { readme, pages }
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
  'reports-latency': '/reports?measure=latency',
  settings: '/settings',
  'settings-access': '/settings/access',
  'settings-routing': '/settings/routing',
  'settings-automations': '/settings/automations',
  'settings-automations-new': '/settings/automations/new?ready=mornings',
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
