/** Groups of routes, by path prefix. */

interface Group {
  id: string
  title: string
  /** A sentence that helps to find something. */
  about: string
  prefixes: readonly string[]
}

/** In page order. A path belongs to the group with the longest matching prefix, or to the last one. */
export const GROUPS: readonly Group[] = [
  {
    id: 'v1',
    title: 'OpenAI SDKs',
    about: 'Model requests in OpenAI’s format.',
    prefixes: ['/v1'],
  },
  {
    id: 'codex',
    title: 'Codex CLI and its extension',
    about: 'Model requests of the Codex CLI.',
    prefixes: ['/backend-api', '/wham', '/api/codex', '/api/fleet'],
  },
  {
    id: 'accounts',
    title: 'Accounts',
    about: 'Add, pause, probe, export and reset the accounts of the pool.',
    prefixes: ['/api/accounts', '/api/oauth', '/api/import'],
  },
  { id: 'keys', title: 'API keys', about: 'Keys for model clients.', prefixes: ['/api/api-keys', '/api/key'] },
  {
    id: 'sources',
    title: 'Model sources',
    about: 'OpenAI-compatible servers beside the ChatGPT accounts.',
    prefixes: ['/api/model-sources'],
  },
  {
    id: 'logs',
    title: 'Logs and reports',
    about: 'Requests with their results, cost and routing.',
    prefixes: [
      '/api/usage',
      '/api/request-logs',
      '/api/rejected-clients',
      '/api/conversations',
      '/api/reports',
      '/api/explain',
      '/api/dashboard',
      '/api/captures',
      '/api/conversation-archive',
    ],
  },
  {
    id: 'alerts',
    title: 'Alerts',
    about: 'Active and past alerts, and the channels they are sent to.',
    prefixes: ['/api/alerts'],
  },
  {
    id: 'automations',
    title: 'Automations',
    about: 'Small requests on chosen accounts at set times.',
    prefixes: ['/api/automations'],
  },
  {
    id: 'settings',
    title: 'Settings and firewall',
    about: 'Change settings, and which addresses can connect.',
    prefixes: ['/api/settings', '/api/firewall', '/api/sticky-sessions', '/api/quota-planner'],
  },
  {
    id: 'people',
    title: 'Users and roles',
    about: 'Users, invites, roles and the audit log.',
    prefixes: ['/api/dashboard-users', '/api/dashboard-roles', '/api/auth-providers', '/api/audit-logs'],
  },
  {
    id: 'sign-in',
    title: 'Signing in',
    about: 'Passwords, two-factor authentication, passkeys, guests and your own user.',
    prefixes: ['/api/dashboard-auth'],
  },
  {
    id: 'service',
    title: 'Operations',
    about: 'Health, metrics, backups, live events and this reference.',
    prefixes: [
      '/health',
      '/metrics',
      '/api/backups',
      '/api/doctor',
      '/api/events',
      '/api/openapi.json',
      '/doctor/checks',
      '/doctor/stream',
      '/doctor/socket',
      '/doctor/upload',
    ],
  },
  { id: 'pages', title: 'Pages', about: 'Pages of the dashboard.', prefixes: [''] },
]

export const getGroup = (path: string): string => {
  const fitting = GROUPS.flatMap(({ id, prefixes }) => prefixes.map((prefix) => [prefix, id] as const))
    .filter(([prefix]) => prefix === '' || path === prefix || path.startsWith(`${prefix}/`))
    .toSorted(([a], [b]) => b.length - a.length)
  return fitting[0]?.[1] ?? 'pages'
}
