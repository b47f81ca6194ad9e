/** What the tab of the browser says of each page. */
import type { FC } from 'hono/jsx'

/** A view that knows its title: a page about one thing is called like it. */
export type Titled<T> = FC<T> & { title?: (value: T) => string }

const TITLES: Readonly<Record<string, string>> = {
  '/dashboard': 'Overview',
  '/accounts': 'Accounts',
  '/accounts/simulator': 'Routing simulator',
  '/accounts/new': 'Add account',
  '/accounts/new/browser': 'Add account: browser',
  '/accounts/new/device': 'Add account: code',
  '/accounts/new/import': 'Add account: file',
  '/keys': 'Keys',
  '/keys/new': 'Create key',
  '/logs': 'Logs',
  '/reports': 'Reports',
  '/settings': 'Settings',
  '/settings/access': 'Users',
  '/settings/routing': 'Routing',
  '/settings/network': 'Network',
  '/settings/data': 'Data',
  '/settings/data/sizes': 'What each table takes',
  '/settings/about': 'About',
  '/settings/search': 'Search settings',
  '/audit': 'Audit log',
  '/doctor': 'Doctor',
  '/docs': 'Docs',
  '/docs/api': 'API',
  '/me': 'My account',
  '/me/two-factor': 'Set up two-factor authentication',
  '/login': 'Sign in',
  '/totp': 'Enter the code',
  '/setup': 'Choose a password',
  '/confirm': 'Confirm that it is you',
  '/auth/pending': 'You don’t have access yet',
  '/invite': 'Join Sluice',
  // What a form without script ends on.
  '/api/api-keys': 'Keys',
  '/api/dashboard-auth/totp': 'Recovery codes',
  '/api/dashboard-users': 'Users',
}

/** Of a page that has none, that of the page it is a part of. */
export const titleOf = (path: string): string => {
  for (let part = path; part !== ''; part = part.slice(0, part.lastIndexOf('/'))) {
    const title = TITLES[part]
    if (title !== undefined) return title
  }
  return 'Dashboard'
}
