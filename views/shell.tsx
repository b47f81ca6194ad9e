/** What stands around every page: head, brand, navigation, the place for messages and dialogs. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { type Grants, holds, type Permission } from '../src/model/permissions.ts'
import { titleOf } from './titles.ts'
import { IconButton, Submit } from './ui/button.tsx'
import {
  ChartIcon,
  GaugeIcon,
  GearIcon,
  HelpIcon,
  KeyIcon,
  LeaveIcon,
  ListIcon,
  Mark,
  PersonIcon,
  PulseIcon,
  StackIcon,
  ThemeIcon,
} from './ui/icons.tsx'

/** Who looks at the page, as far as the page says so. */
export type Visitor = { grants: Grants } & (
  | { kind: 'account'; name: string; role: string; hasSession: boolean }
  | { kind: 'guest' | 'local_bootstrap' | 'disabled' }
)

interface ShellProps {
  path: string
  /** Where the path alone does not say it. */
  title?: string
  /** The cookie of the theme switch; anything but its two values follows the system. */
  theme?: string
  assets: { style: string; script: string; access: string; htmx: string }
  version: string
  /** Navigation is for those who may go there; null: nobody is signed in. */
  visitor: Visitor | null
  /** Of the last change that the page knows. */
  liveId: string
}

interface Entry {
  path: string
  label: string
  icon: FC
  /** After `g`. */
  key: string
  /** null: everybody but guests. */
  needs: Permission | null
  /** The bar of a phone has room for five. */
  isOnDesksOnly?: boolean
  /** Pages of this part that stand under a path of their own. */
  also?: readonly string[]
}

/** Only what exists, and only what the visitor may see: a link that leads nowhere teaches people not to click. */
const NAVIGATION: readonly Entry[] = [
  { path: '/dashboard', label: 'Overview', icon: GaugeIcon, key: 'o', needs: 'dashboard:read' },
  { path: '/accounts', label: 'Accounts', icon: StackIcon, key: 'a', needs: 'accounts:read' },
  { path: '/keys', label: 'Keys', icon: KeyIcon, key: 'k', needs: 'api_keys:read' },
  { path: '/logs', label: 'Logs', icon: ListIcon, key: 'l', needs: 'dashboard:read' },
  { path: '/reports', label: 'Reports', icon: ChartIcon, key: 'r', needs: 'dashboard:read', isOnDesksOnly: true },
  { path: '/settings', label: 'Settings', icon: GearIcon, key: 's', needs: null, also: ['/audit'] },
]

const entriesFor = ({ kind, grants }: Visitor): Entry[] =>
  NAVIGATION.filter(({ needs }) => (needs === null ? kind !== 'guest' : holds(grants, needs)))

export const Shell: FC<PropsWithChildren<ShellProps>> = (props) => {
  const { path, title, theme, assets, version, visitor, liveId, children } = props
  return (
    <html
      lang="en"
      data-theme={theme === 'light' || theme === 'dark' ? theme : undefined}
      data-live-id={visitor ? liveId : undefined}
    >
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <meta name="color-scheme" content="light dark" />
        <meta
          name="htmx-config"
          content='{"history":false,"includeIndicatorCSS":false,"morphIgnore":["data-htmx-powered","open"]}'
        />
        <title>{title ?? titleOf(path)} · Sluice</title>
        <link rel="icon" href={FAVICON} />
        <link rel="stylesheet" href={assets.style} />
        <script src={assets.htmx} defer />
        <script src={assets.script} defer />
        <script src={assets.access} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="top">
          <a class="brand" href="/dashboard">
            <Mark />
            <span>Sluice</span>
          </a>
          {visitor && <Navigation path={path} visitor={visitor} />}
          <span class="top-end">
            <span class="version">v{version}</span>
            <IconButton action="theme" label="Switch light and dark" icon={ThemeIcon} />
            {visitor && <AccountMenu visitor={visitor} />}
          </span>
        </header>
        <p class="offline" role="status">
          No answer from Sluice; this page shows what was last known.
        </p>
        <p class="signed-out" role="status">
          You are signed out, and what you typed is still here.{' '}
          <a href="/login" target="_blank" rel="noopener">
            Sign in in another tab
          </a>
          , then send it.
        </p>
        <p class="unlive" role="status">
          Live updates do not arrive here, so this page asks every 30 seconds.
          {visitor && holds(visitor.grants, 'dashboard:read') && <a href="/doctor">Why?</a>}
        </p>
        <div id="flash" role="alert" />
        <main id="main">{children}</main>
        <dialog id="dialog" class="dialog" />
        {visitor && <Shortcuts visitor={visitor} />}
      </body>
    </html>
  )
}

const Navigation: FC<{ path: string; visitor: Visitor }> = ({ path, visitor }) => (
  <nav class="nav" aria-label="Main">
    {entriesFor(visitor).map((entry) => (
      <a
        class={entry.isOnDesksOnly ? 'desk-only' : undefined}
        href={entry.path}
        data-go={entry.key}
        aria-current={isPartOf(entry, path) ? 'page' : undefined}
      >
        <entry.icon />
        <span>{entry.label}</span>
      </a>
    ))}
  </nav>
)

/** What the script does on a key; it opens with `?`. */
const Shortcuts: FC<{ visitor: Visitor }> = ({ visitor }) => (
  <dialog id="shortcuts" class="dialog" aria-labelledby="shortcuts-title">
    <div class="panel">
      <h2 id="shortcuts-title">Keyboard shortcuts</h2>
      <dl class="shortcuts">
        {entriesFor(visitor).map(({ key, label }) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{label}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search on this page</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close, or leave a field</dd>
      </dl>
      <form method="dialog">
        <Submit isPlain>Close</Submit>
      </form>
    </div>
  </dialog>
)

const isPartOf = ({ path: main, also = [] }: Entry, path: string): boolean =>
  [main, ...also].some((own) => path === own || path.startsWith(`${own}/`))

/** Who am I, and the way out. Who has no account is offered one instead. */
const AccountMenu: FC<{ visitor: Visitor }> = ({ visitor }) => {
  switch (visitor.kind) {
    case 'disabled':
      return null
    case 'guest':
      return (
        <a class="top-link" href="/login">
          Sign in
        </a>
      )
    case 'local_bootstrap':
      return (
        <a class="top-link" href="/setup">
          Set a password
        </a>
      )
    case 'account':
      return <OwnMenu {...visitor} />
  }
}

const OwnMenu: FC<Extract<Visitor, { kind: 'account' }>> = ({ name, role, grants, hasSession }) => (
  <details class="menu">
    <summary class="menu-button">
      <PersonIcon />
      <span class="menu-name">{name}</span>
    </summary>
    <div class="menu-body">
      <p class="menu-who">
        <strong>{name}</strong>
        <span class="muted">{role}</span>
      </p>
      <a class="menu-item" href="/me">
        <PersonIcon /> My account
      </a>
      {holds(grants, 'dashboard:read') && (
        <>
          <a class="menu-item" href="/reports">
            <ChartIcon /> Reports
          </a>
          <a class="menu-item" href="/doctor">
            <PulseIcon /> Health check
          </a>
        </>
      )}
      <button class="menu-item needs-script" type="button" data-action="shortcuts">
        <HelpIcon /> Keyboard shortcuts
      </button>
      {hasSession && (
        <form method="post" action="/api/dashboard-auth/logout">
          <button class="menu-item" type="submit">
            <LeaveIcon /> Sign out
          </button>
        </form>
      )}
    </div>
  </details>
)

const FAVICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke-linecap="round" stroke-linejoin="round" stroke-width="2.2"><path stroke="#7b8a92" d="M4 3v18M20 3v18"/><path stroke="#0e7f93" d="M7.5 4.5h9v6h-9zM6.5 15c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7M6.5 19c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7"/></svg>',
)}`
