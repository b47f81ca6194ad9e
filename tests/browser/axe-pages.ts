/** Every page of the route table in its different states. Routes without a page give the reason. */
import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Ids, Visitor } from './axe-world.ts'
import { PASSWORD } from './people-world.ts'

export interface Stop {
  /** Identifies it in the output of a test. */
  name: string
  path: string
  /** `admin` by default. */
  as?: Visitor
  /** The expected status; 200 by default. */
  status?: number
  /** What is done on the page before it is checked. */
  act?: (page: Page, ids: Ids) => Promise<unknown>
}

type Stops = (ids: Ids) => Stop[]

const plainly: (path: string) => Stops = (path) => () => [{ name: 'plain', path }]

const press = (selector: string) => (page: Page) => page.click(selector)

const getDialog = (link: string, shown: string) => async (page: Page) => {
  await page.click(link)
  await page.waitForSelector(`dialog[open] ${shown}`)
}

const accountStops: Stops = ({ accounts: { ada, linus, tony } }) => [
  { name: 'usage', path: `/accounts/${ada}` },
  { name: 'statement', path: `/accounts/${ada}?tab=statement&period=30d` },
  { name: 'routing', path: `/accounts/${ada}?tab=routing` },
  { name: 'events', path: `/accounts/${ada}?tab=events` },
  { name: 'credentials', path: `/accounts/${ada}?tab=credentials` },
  { name: 'rate limited', path: `/accounts/${linus}` },
  { name: 'for a viewer', path: `/accounts/${ada}`, as: 'viewer' },
  { name: 'with a proxy pool', path: `/accounts/${tony}?tab=routing` },
  { name: 'asked whether to delete', path: `/accounts/${tony}`, act: press('text=Delete…') },
  {
    name: 'exported',
    path: `/accounts/${ada}?tab=credentials`,
    act: getDialog('text=Export for Codex', '.exported'),
  },
]

/** Two hundred routes are alike; a few of each group represent them. */
const shorten: NonNullable<Stop['act']> = (page) =>
  page.evaluate(() => {
    for (const route of document.querySelectorAll('.docs-op:nth-of-type(n + 3)')) route.remove()
  })

const importing: NonNullable<Stop['act']> = async (page, { files }) => {
  await page.setInputFiles('[name=auth_json]', files)
  await page.click('#form-files [type=submit]')
  await page.waitForURL(/draft=imp_/)
}

const planning: NonNullable<Stop['act']> = async (page, { files }) => {
  await page.setInputFiles('[name=files]', files)
  await page.click('#form-import [type=submit]')
  await page.waitForURL(/plan=imp_/)
}

/** The script begins a sign-in by itself, unless the last one failed or a proxy pool can be chosen. */
const signInStops =
  (way: 'browser' | 'device'): Stops =>
  ({ accounts: { ada } }) => [
    { name: 'before', path: `/accounts/new/${way}?account=${ada}&problem=upstream_unreachable` },
    {
      name: 'waiting',
      path: `/accounts/new/${way}`,
      act: async (page) => {
        await page.click('main [type=submit][autofocus]')
        await page.waitForSelector('.waiting')
      },
    },
  ]

/** Path of the route table → where to look. */
export const PAGES: Record<string, Stops> = {
  '/dashboard': () => [
    { name: 'full', path: '/dashboard' },
    { name: 'chart as a table', path: '/dashboard?period=1h', act: press('#requests summary') },
    { name: 'menu of the account', path: '/dashboard', act: press('summary.menu-button:not(.bell-button)') },
    { name: 'shortcuts', path: '/dashboard', act: (page) => page.keyboard.press('?') },
    { name: 'help of a card', path: '/dashboard', act: press('#requests .help') },
    { name: 'new', path: '/dashboard', as: 'new' },
    { name: 'of a Member', path: '/dashboard', as: 'member' },
  ],
  '/accounts': () => [
    { name: 'list', path: '/accounts' },
    { name: 'some ticked', path: '/accounts', act: press('[name=accountIds] >> nth=1') },
    { name: 'cards', path: '/accounts?view=cards' },
    { name: 'none yet', path: '/accounts', as: 'new' },
    { name: 'adding one', path: '/accounts', act: getDialog('main a[href="/accounts/new"]', '#new-account') },
  ],
  '/accounts/:id': accountStops,
  '/accounts/new': plainly('/accounts/new'),
  '/accounts/new/browser': signInStops('browser'),
  '/accounts/new/device': signInStops('device'),
  '/accounts/new/import': () => [
    { name: 'before', path: '/accounts/new/import' },
    { name: 'looked at', path: '/accounts/new/import', act: importing },
  ],
  '/accounts/import': () => [
    { name: 'before', path: '/accounts/import' },
    { name: 'plan', path: '/accounts/import', act: planning },
    {
      name: 'result',
      path: '/accounts/import',
      act: async (page, world) => {
        await planning(page, world)
        await page.click('#form-import [type=submit]')
        await page.waitForSelector('text=Import finished')
      },
    },
  ],
  '/doctor': plainly('/doctor'),
  '/docs': plainly('/docs'),
  '/docs/api': () => [{ name: 'its beginning', path: '/docs/api', act: shorten }],
  '/docs/:guide': plainly('/docs/operating'),
  '/keys': () => [
    { name: 'list', path: '/keys' },
    { name: 'for a viewer', path: '/keys', as: 'viewer', status: 403 },
    { name: 'of a Member', path: '/keys', as: 'member' },
    { name: 'none yet', path: '/keys', as: 'new' },
  ],
  '/key': () => [
    { name: 'entry', path: '/key', as: 'nobody' },
    { name: 'entered', path: '/key', as: 'holder' },
  ],
  '/keys/new': () => [
    { name: 'empty', path: '/keys/new' },
    { name: 'for a Member', path: '/keys/new', as: 'member' },
    {
      name: 'made',
      path: '/keys/new',
      act: async (page) => {
        await page.fill('[name=name]', 'looked at')
        await page.click('#form-key [type=submit]')
        await page.waitForSelector('.command-key')
      },
    },
  ],
  '/keys/:id': ({ keys, membersKey }) => [
    { name: 'with limits', path: `/keys/${keys.ci}` },
    { name: 'of a Member', path: `/keys/${membersKey}`, as: 'member' },
    {
      name: 'tested',
      path: `/keys/${keys.test}`,
      act: async (page) => {
        await page.click('[data-path-test]')
        await page.waitForSelector('#key-test .key-finding')
      },
    },
  ],
  '/keys/:id/edit': ({ keys }) => [{ name: 'with limits', path: `/keys/${keys.ci}/edit` }],
  '/logs': ({ requests }) => [
    { name: 'list', path: '/logs' },
    { name: 'every column', path: '/logs?columns=total&columns=effort&columns=route&columns=tool&columns=request' },
    { name: 'one open', path: `/logs?open=${requests.failed}` },
    { name: 'nothing found', path: '/logs?search=nothing-like-this' },
    { name: 'live', path: '/logs', act: press('[data-tail]') },
    { name: 'none yet', path: '/logs', as: 'new' },
    { name: 'of a Member', path: '/logs', as: 'member' },
    { name: 'rejected, with an unknown parameter', path: '/logs?status=rejected&nonsense=1' },
    { name: 'more filters', path: '/logs?since=2026-01-01T00:00:00Z&status=failed' },
  ],
  '/accounts/simulator': () => [
    { name: 'before', path: '/accounts/simulator' },
    { name: 'answered', path: '/accounts/simulator?model=gpt-5.5' },
  ],
  '/logs/captures': () => [{ name: 'one running', path: '/logs/captures' }],
  '/logs/captures/:id': ({ captureId }) => [{ name: 'its requests', path: `/logs/captures/${captureId}` }],
  '/logs/:id/captured': ({ capturedId }) => [{ name: 'captured', path: `/logs/${capturedId}/captured` }],
  '/logs/:id': ({ requests }) => [
    { name: 'failed', path: `/logs/${requests.failed}` },
    { name: 'done', path: `/logs/${requests.ok}` },
  ],
  '/logs/conversations': () => [
    { name: 'list', path: '/logs/conversations' },
    { name: 'nothing found', path: '/logs/conversations?search=nothing-like-this' },
  ],
  '/logs/conversations/:hash': ({ conversation }) => [{ name: 'one', path: `/logs/conversations/${conversation}` }],
  '/reports': () => [
    { name: 'full', path: '/reports' },
    { name: 'chart as a table', path: '/reports?measure=latency', act: press('#chart summary') },
    { name: 'nothing yet', path: '/reports', as: 'new' },
    { name: 'of a Member', path: '/reports', as: 'member' },
  ],
  '/reports/strategies': () => [
    { name: 'before', path: '/reports/strategies' },
    { name: 'compared', path: '/reports/strategies?run=1', act: (page) => page.waitForSelector('#strategies table') },
  ],
  '/settings': () => [
    { name: 'all', path: '/settings' },
    { name: 'for a viewer', path: '/settings', as: 'viewer' },
  ],
  '/settings/access': () => [
    { name: 'people', path: '/settings/access' },
    {
      name: 'invited',
      path: '/settings/access',
      act: async (page) => {
        // The sign-in may be more than five minutes ago.
        const stepUp = new URL('/api/dashboard-auth/step-up', page.url()).href
        const confirmed = await page.request.post(stepUp, { data: { password: PASSWORD } })
        expect(confirmed.status()).toBe(200)
        await page.click('#invite > summary')
        await page.fill('#form-invite [name=username]', 'looked.at')
        await page.click('#form-invite [type=submit]')
        await page.waitForSelector('dialog[open] .command code')
      },
    },
    { name: 'behind a proxy', path: '/settings/access', as: 'boss' },
  ],
  '/settings/routing': () => [{ name: 'all', path: '/settings/routing' }],
  '/settings/routing/sessions': () => [
    { name: 'list', path: '/settings/routing/sessions' },
    { name: 'none found', path: '/settings/routing/sessions?keyQuery=ffffffff' },
  ],
  '/settings/automations': () => [
    { name: 'list', path: '/settings/automations' },
    { name: 'for a viewer', path: '/settings/automations', as: 'viewer' },
    { name: 'none yet', path: '/settings/automations', as: 'new' },
  ],
  '/settings/automations/new': plainly('/settings/automations/new?ready=mornings'),
  '/settings/automations/:id': ({ automation }) => [{ name: 'plain', path: `/settings/automations/${automation}` }],
  '/settings/automations/runs/:id': ({ run }) => [{ name: 'plain', path: `/settings/automations/runs/${run}` }],
  '/settings/alerts': () => [
    { name: 'list', path: '/settings/alerts' },
    { name: 'none yet', path: '/settings/alerts', as: 'new' },
  ],
  '/settings/alerts/new': () => [
    { name: 'kinds', path: '/settings/alerts/new' },
    { name: 'mail', path: '/settings/alerts/new?kind=smtp' },
  ],
  '/settings/alerts/:id': ({ channel }) => [{ name: 'plain', path: `/settings/alerts/${channel}` }],
  '/settings/sources': () => [
    { name: 'list', path: '/settings/sources' },
    { name: 'none yet', path: '/settings/sources', as: 'new' },
  ],
  '/settings/sources/new': plainly('/settings/sources/new'),
  '/settings/sources/:id': ({ source }) => [{ name: 'with models', path: `/settings/sources/${source}` }],
  '/settings/network': plainly('/settings/network'),
  '/settings/data': plainly('/settings/data'),
  '/settings/data/sizes': plainly('/settings/data/sizes'),
  '/settings/about': plainly('/settings/about'),
  '/settings/search': () => [{ name: 'changed', path: '/settings/search?changed=1' }],
  '/search': () => [
    { name: 'found', path: '/search?q=key' },
    {
      name: 'palette',
      path: '/dashboard',
      act: async (page) => {
        await page.keyboard.press('Control+k')
        await page.waitForSelector('#palette .palette-hit')
      },
    },
  ],
  '/audit': () => [{ name: 'full', path: '/audit' }],
  '/login': () => [{ name: 'refused', path: '/login?problem=invalid_credentials', as: 'nobody' }],
  '/totp': () => [{ name: 'before', path: '/totp', as: 'half' }],
  '/setup': () => [
    { name: 'on this machine', path: '/setup', as: 'new' },
    { name: 'from elsewhere', path: '/setup', as: 'far' },
  ],
  '/confirm': plainly('/confirm'),
  '/auth/pending': () => [{ name: 'a stranger', path: '/auth/pending', as: 'stranger' }],
  '/invite/:token': ({ inviteToken }) => [
    { name: 'waiting', path: `/invite/${inviteToken}`, as: 'nobody' },
    { name: 'not known', path: '/invite/nothing-like-this', as: 'nobody', status: 404 },
  ],
  '/me': () => [
    { name: 'of an Admin', path: '/me' },
    { name: 'of a Member', path: '/me', as: 'member' },
  ],
  '/me/two-factor': plainly('/me/two-factor'),
}

/** GET routes outside the API that no user opens. */
export const NO_PAGES: Record<string, string> = {
  '/': 'leads to the overview',
  '/apis': 'leads to the keys',
  '/logs/explain': 'leads to the simulator',
  '/metrics': 'text for Prometheus',
  '/mcp': 'an interface for programs',
  '/doctor/stream': 'pieces that are timed',
  '/doctor/socket': 'a socket',
  '/assets/:file': 'style and scripts',
  '/logs/export': 'a file',
  '/health': 'a probe',
  '/health/live': 'a probe',
  '/health/ready': 'a probe',
  '/health/startup': 'a probe',
}

/** Pages for which there is no route, or not for this visitor. */
export const REFUSALS: Stop[] = [
  { name: 'nothing there', path: '/nothing-like-this', status: 404 },
  { name: 'not allowed', path: '/settings/access', as: 'viewer', status: 403 },
  { name: 'no such account', path: '/accounts/acc_nothing', status: 404 },
]

/** Parts of pages that are fetched by themselves; as pages they are the part alone. */
export const PARTS: Record<string, string> = {
  '/logs/tail': '/logs',
  '/footer': '/keys',
  '/capture-line': '/keys',
  '/bell': '/keys',
  '/doctor/checks': '/keys/:key',
}
