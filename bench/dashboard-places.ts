/** Every page of the dashboard that is measured, by its route, so that none is missed. */

import { getCursor } from '../src/model/log/request-log-query.ts'
import { everyRoute } from '../src/routes/every-route.ts'

/** The IDs in the addresses. */
export interface Ids {
  account: string
  key: string
  /** A failed request, which keeps its routing explanation. */
  request: string
  requestId: string
  conversation: string
  /** Two positions in the log: one near the newest row and one near the oldest. */
  middle: { startedAt: number; id: string }
  end: { startedAt: number; id: string }
}

/** `long report`: a year or two, one row per day. */
export const KINDS = ['page', 'filtered log', 'long report', 'JSON'] as const
export type Kind = (typeof KINDS)[number]

export interface Place {
  path: string
  kind: Kind
  isStranger?: boolean
}

const PAGES: Record<string, (ids: Ids) => string[]> = {
  '/dashboard': () => ['/dashboard', '/dashboard?period=1h', '/dashboard?period=7d', '/dashboard?period=30d'],
  '/accounts': () => ['/accounts', '/accounts?view=cards', '/accounts?search=bench1'],
  '/accounts/:id': ({ account }) => [`/accounts/${account}`],
  '/accounts/new': () => ['/accounts/new'],
  '/accounts/new/import': () => ['/accounts/new/import'],
  '/accounts/import': () => ['/accounts/import'],
  '/keys': () => ['/keys'],
  '/keys/new': () => ['/keys/new'],
  '/keys/:id': ({ key }) => [`/keys/${key}`],
  '/keys/:id/edit': ({ key }) => [`/keys/${key}/edit`],
  '/logs': ({ request }) => ['/logs', `/logs?open=${request}`, '/logs?range=1h', '/logs?range=24h'],
  '/logs/export': () => ['/logs/export?format=csv&range=1h'],
  '/logs/tail': () => [`/logs/tail?after=${new Date(Date.now() - 60_000).toISOString()}`],
  '/accounts/simulator': ({ key }) => ['/accounts/simulator', `/accounts/simulator?model=gpt-5.5&apiKeyId=${key}`],
  '/logs/:id': ({ request }) => [`/logs/${request}`],
  '/logs/conversations/:hash': ({ conversation }) => [`/logs/conversations/${conversation}`],
  '/logs/captures': () => ['/logs/captures'],
  '/capture-line': () => ['/capture-line'],
  '/bell': () => ['/bell'],
  '/reports/strategies': () => ['/reports/strategies'],
  '/reports': ({ account, key }) => [
    '/reports',
    '/reports?timezone=Asia/Kolkata',
    ...[29, 89].flatMap((days) => [
      `/reports?start_date=${daysAgo(days)}`,
      `/reports?start_date=${daysAgo(days)}&timezone=Europe/Berlin`,
    ]),
    `/reports?start_date=${daysAgo(29)}&account_id=${account}`,
    `/reports?start_date=${daysAgo(29)}&api_key_id=${key}`,
    `/reports?start_date=${daysAgo(29)}&model=gpt-5.3`,
    ...['key', 'account', 'client'].map((stack) => `/reports?start_date=${daysAgo(29)}&stack=${stack}`),
    `/reports?start_date=${daysAgo(29)}&client=codex_exec`,
  ],
  '/settings': () => ['/settings'],
  '/settings/access': () => ['/settings/access'],
  '/settings/routing': () => ['/settings/routing'],
  '/settings/routing/sessions': ({ account }) => [
    '/settings/routing/sessions',
    `/settings/routing/sessions?accountQuery=${account}`,
    '/settings/routing/sessions?sortBy=account&kind=conversation',
  ],
  '/settings/sources': () => ['/settings/sources'],
  '/settings/sources/new': () => ['/settings/sources/new'],
  '/settings/alerts': () => ['/settings/alerts'],
  '/settings/alerts/new': () => ['/settings/alerts/new', '/settings/alerts/new?kind=smtp'],
  '/settings/automations': () => ['/settings/automations'],
  '/settings/automations/new': () => ['/settings/automations/new'],
  '/settings/network': () => ['/settings/network'],
  '/settings/data': () => ['/settings/data'],
  '/settings/about': () => ['/settings/about'],
  '/search': () => ['/search?q=codex'],
  '/settings/search': () => ['/settings/search?q=retention'],
  '/audit': () => ['/audit', '/audit?action=login_success'],
  '/docs': () => ['/docs'],
  '/footer': () => ['/footer'],
  '/docs/api': () => ['/docs/api'],
  '/docs/:guide': () => ['/docs/operating'],
  '/me': () => ['/me'],
  '/me/two-factor': () => ['/me/two-factor'],
  '/confirm': () => ['/confirm'],
}

const longReports = ({ account, key }: Ids): string[] => [
  ...[364, 729].flatMap((days) => [
    `/reports?start_date=${daysAgo(days)}`,
    `/reports?start_date=${daysAgo(days)}&timezone=Europe/Berlin`,
  ]),
  `/reports?start_date=${daysAgo(364)}&account_id=${account}`,
  `/reports?start_date=${daysAgo(364)}&api_key_id=${key}`,
  `/reports?start_date=${daysAgo(364)}&model=gpt-5.3`,
]

/** Pages for users who are not signed in. */
const ENTRANCE = ['/login']

/** Measured together with the filtered logs. */
const LISTS = ['/logs/conversations']

const JSON_TWINS: Record<string, (ids: Ids) => string[]> = {
  '/api/settings': () => ['/api/settings'],
  '/api/accounts': () => ['/api/accounts'],
  '/api/accounts/:id/statement': ({ account }) => [`/api/accounts/${account}/statement`],
  '/api/accounts/:id/trends': ({ account }) => [`/api/accounts/${account}/trends`],
  '/api/api-keys': () => ['/api/api-keys'],
  '/api/api-keys/:id/trends': ({ key }) => [`/api/api-keys/${key}/trends`],
  '/api/api-keys/:id/usage-7d': ({ key }) => [`/api/api-keys/${key}/usage-7d`],
  '/api/request-logs': () => ['/api/request-logs'],
  '/api/request-logs/:id': ({ request }) => [`/api/request-logs/${request}`],
  '/api/conversations/:hash': ({ conversation }) => [`/api/conversations/${conversation}`],
  '/api/sticky-sessions': () => ['/api/sticky-sessions'],
  '/api/model-sources': () => ['/api/model-sources'],
  '/api/alerts': () => ['/api/alerts', '/api/alerts/channels', '/api/alerts/deliveries'],
  '/api/automations': () => ['/api/automations', '/api/automations/runs'],
  '/api/captures': () => ['/api/captures', '/api/conversation-archive'],
  '/api/quota-planner': () => ['/api/quota-planner/decisions', '/api/quota-planner/forecast'],
  '/api/usage': () => ['/api/usage/summary', '/api/usage/history', '/api/usage/window?window=primary'],
  '/api/reports': () => ['/api/reports', `/api/reports?start_date=${daysAgo(89)}`],
  '/api/explain': () => ['/api/explain?model=gpt-5.5'],
  '/api/audit-logs': () => ['/api/audit-logs'],
  '/api/dashboard-users': () => ['/api/dashboard-users'],
  '/api/shares': () => ['/api/shares'],
  '/api/openapi.json': () => ['/api/openapi.json'],
}

/** Not measured: pages that call the upstream, stream events, or show something this folder does not have. */
const LEFT_OUT =
  /^\/(api|v1|backend-api|wham|assets|health)(\/|$)|^\/(|metrics|apis|doctor.*|logs\/explain|setup|totp|auth\/pending|invite\/:token|key|settings\/(alerts|sources|automations|automations\/runs)\/:id|logs\/(captures\/:id|:id\/captured)|accounts\/new\/(browser|device)|settings\/data\/sizes)$/

const filteredLogs = ({ account, key, requestId, conversation, middle, end }: Ids): string[] => {
  const since = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString()
  return [
    `accountId=${account}`,
    `apiKeyId=${key}`,
    'model=gpt-5.3',
    'model=gpt-5.5&model=gpt-5.3',
    'status=failed',
    'status=ok',
    'status=cancelled',
    'code=usage_limit_reached',
    'range=7d&status=failed',
    `since=${since(20)}&until=${since(10)}`,
    'search=overloaded',
    'search=desk+42',
    'search=nowhere+to+be+found',
    `search=${requestId}`,
    `conversation_id=${conversation}`,
    `accountId=${account}&model=gpt-5.3&status=failed`,
    `accountId=${account}&apiKeyId=${key}`,
    `accountId=${account}&search=nowhere`,
    `apiKeyId=${key}&search=nowhere`,
    'model=gpt-5.5&search=nowhere',
    'status=failed&search=nowhere',
    'model=no-such-model',
    'client=codex_exec',
    'client=no-such-client',
    `cursor=${getCursor(middle)}`,
    `cursor=${getCursor(middle)}&search=nowhere`,
    `newer=${getCursor(end)}`,
    `newer=${getCursor(end)}&accountId=${account}&search=nowhere`,
    'limit=200',
    'slow=true',
    'status=rejected',
  ].map((query) => `/logs?${query}`)
}

/** Lists over a million requests. */
const filteredConversations = ({ account, middle }: Ids): string[] =>
  [
    '',
    'timeframe=1d',
    `cursor=${getCursor(middle)}`,
    `cursor=${getCursor(middle)}&search=nowhere`,
    'search=gpt-5.3',
    'search=desk+42',
    'search=nowhere+to+be+found',
    `search=${account}`,
  ].map((query) => `/logs/conversations?${query}`)

export const getFolderPaths = (ids: Ids): Place[] => {
  const forgotten = everyRoute.filter(
    ({ method, path }) =>
      method === 'GET' && !LEFT_OUT.test(path) && !(path in PAGES) && ![...ENTRANCE, ...LISTS].includes(path),
  )
  if (forgotten.length > 0) throw new Error(`not measured: ${forgotten.map(({ path }) => path).join(', ')}`)
  const of = (kind: Place['kind'], paths: string[]) => paths.map((path): Place => ({ path, kind }))
  return [
    ...of('page', all(PAGES, ids)),
    ...ENTRANCE.map((path): Place => ({ path, kind: 'page', isStranger: true })),
    ...of('filtered log', [
      ...filteredLogs(ids),
      ...filteredConversations(ids),
      '/api/conversations',
      '/api/request-logs/options',
    ]),
    ...of('long report', longReports(ids)),
    ...of('JSON', all(JSON_TWINS, ids)),
  ]
}

const all = (paths: Record<string, (ids: Ids) => string[]>, ids: Ids): string[] =>
  Object.values(paths).flatMap((of) => of(ids))

const DAY_MS = 86_400_000

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
