/** Page titles for browser tabs. */
import type { FC } from 'hono/jsx'

/** A view with its own title, such as the account's name. */
export type Titled<T> = FC<T> & { title?: (value: T) => string }

const TITLES: Readonly<Record<string, string>> = {
  '/dashboard': 'Overview',
  '/accounts': 'Accounts',
  '/accounts/simulator': 'Routing simulator',
  '/accounts/import': 'Import from another tool',
  '/accounts/new': 'Add account',
  '/accounts/new/browser': 'Add account: browser',
  '/accounts/new/device': 'Add account: code',
  '/accounts/new/import': 'Add account: file',
  '/key': 'Your key',
  '/keys': 'Keys',
  '/keys/new': 'Create key',
  '/logs': 'Logs',
  '/logs/captures': 'Captures',
  '/logs/conversations': 'Conversations',
  '/reports': 'Reports',
  '/reports/strategies': 'Compare strategies',
  '/settings': 'Access & keys',
  '/settings/access': 'Users',
  '/settings/routing': 'Routing',
  '/settings/routing/sessions': 'Sticky sessions',
  '/settings/sources': 'Model sources',
  '/settings/sources/new': 'Add source',
  '/settings/automations': 'Automations',
  '/settings/automations/new': 'Create automation',
  '/settings/automations/runs': 'Run',
  '/settings/alerts': 'Alerts',
  '/settings/alerts/new': 'Add channel',
  '/settings/network': 'Network',
  '/settings/data': 'Data',
  '/settings/data/sizes': 'Table sizes',
  '/settings/about': 'About',
  '/settings/search': 'Search settings',
  '/search': 'Search',
  '/audit': 'Audit log',
  '/doctor': 'Health check',
  '/docs': 'Docs',
  '/docs/api': 'API',
  '/me': 'My account',
  '/me/two-factor': 'Set up two-factor authentication',
  '/login': 'Sign in',
  '/totp': 'Enter the code',
  '/setup': 'Choose a password',
  '/confirm': 'Confirm it’s you',
  '/auth/pending': 'You don’t have access yet',
  '/invite': 'Join Sluice',
  // Where a form without scripts ends.
  '/api/api-keys': 'Keys',
  '/api/key': 'Your key',
  '/api/dashboard-auth/totp': 'Recovery codes',
  '/api/dashboard-users': 'Users',
  '/api/model-sources': 'Model sources',
}

/** A page without a title uses its parent's. */
export const getTitle = (path: string): string => {
  for (let part = path; part !== ''; part = part.slice(0, part.lastIndexOf('/'))) {
    const title = TITLES[part]
    if (title !== undefined) return title
  }
  return 'Dashboard'
}
