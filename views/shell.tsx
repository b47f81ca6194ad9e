/** The frame of every page: head, navigation, messages, dialogs and footer. */
import { type Child, type FC, type PropsWithChildren, useContext } from 'hono/jsx'
import { type Grants, holds, type Permission } from '../src/model/users/permissions.ts'
import { Footer, type Service } from './footer.tsx'
import { getAlarm } from './levels.ts'
import { getTitle } from './titles.ts'
import { IconButton, Submit } from './ui/button.tsx'
import {
  ChartIcon,
  EyeIcon,
  EyeOffIcon,
  GaugeIcon,
  GearIcon,
  HelpIcon,
  KeyIcon,
  LeaveIcon,
  ListIcon,
  Mark,
  PersonIcon,
  PulseIcon,
  SearchIcon,
  StackIcon,
  ThemeIcon,
} from './ui/icons.tsx'
import { ViewerClockContext } from './ui/viewer-clock.ts'

/** The signed-in user, as far as pages show it. */
export type Visitor = { grants: Grants } & (
  | { kind: 'account'; name: string; role: string; hasSession: boolean }
  | { kind: 'guest' | 'local_bootstrap' | 'disabled' }
)

interface ShellProps {
  path: string
  /** Used if the path alone is not enough. */
  title?: string
  /** The theme cookie; anything but its two values follows the system. */
  theme?: string
  assets: { style: string; script: string; access: string; htmx: string }
  version: string
  /** null: not signed in, so there is no navigation. */
  visitor: Visitor | null
  /** The id of the last change included in the page. */
  liveId: string
  /** null: hidden from this user. */
  service: Service | null
  /** E-mail addresses and names are masked. */
  isPrivate: boolean
  /** Shown while a capture runs; null: not signed in. */
  captureLine: Child
  /** Null if the user is not signed in. */
  bell: Child
}

interface Entry {
  path: string
  label: string
  icon: FC
  /** The key pressed after `g`. */
  key: string
  /** null: everyone except guests. */
  needs: Permission | null
  /** The scope `own` is enough. */
  isOwn?: boolean
  /** Left out on phones when there are more than `PHONE_ENTRIES`. */
  isOnDesksOnly?: boolean
  /** Other paths of this entry; they take precedence over a parent entry's path. */
  also?: readonly string[]
}

/** Users get only links they may open. */
const NAVIGATION: readonly Entry[] = [
  { path: '/dashboard', label: 'Overview', icon: GaugeIcon, key: 'o', needs: 'dashboard:read', isOwn: true },
  {
    path: '/accounts',
    label: 'Accounts',
    icon: StackIcon,
    key: 'a',
    needs: 'accounts:read',
  },
  { path: '/keys', label: 'Keys', icon: KeyIcon, key: 'k', needs: 'api_keys:read', isOwn: true },
  { path: '/logs', label: 'Logs', icon: ListIcon, key: 'l', needs: 'dashboard:read', isOwn: true },
  {
    path: '/reports',
    label: 'Reports',
    icon: ChartIcon,
    key: 'r',
    needs: 'dashboard:read',
    isOwn: true,
    isOnDesksOnly: true,
  },
  { path: '/settings', label: 'Settings', icon: GearIcon, key: 's', needs: null, also: ['/audit'] },
]

/** The bar on a phone has room for five. */
const PHONE_ENTRIES = 5

const entriesFor = ({ kind, grants }: Visitor): Entry[] =>
  NAVIGATION.filter(({ needs, isOwn }) =>
    needs === null ? kind !== 'guest' : holds(grants, needs, isOwn ? 'own' : 'all'),
  )

export const Shell: FC<PropsWithChildren<ShellProps>> = (props) => {
  const { path, title, theme, assets, version, visitor, liveId, children } = props
  const clock = useContext(ViewerClockContext)
  const alarm = getAlarm(props.service?.level)
  return (
    <html
      lang="en"
      data-theme={theme === 'light' || theme === 'dark' ? theme : undefined}
      data-live-id={visitor ? liveId : undefined}
      data-time-zone={clock.isKnown ? clock.zone : undefined}
      data-hours={clock.hours === 12 ? 12 : undefined}
    >
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width,initial-scale=1,viewport-fit=cover" />
        <meta name="color-scheme" content="light dark" />
        <meta
          name="htmx-config"
          content='{"history":false,"includeIndicatorCSS":false,"morphIgnore":["data-htmx-powered","open"]}'
        />
        <title>
          {alarm && `● ${alarm} · `}
          {title ?? getTitle(path)} · Sluice
        </title>
        <link rel="icon" href={alarm ? toAlarmColors(FAVICON) : FAVICON} />
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
            {visitor && visitor.kind !== 'guest' && (
              <IconButton action="palette" label="Search" icon={SearchIcon} class="needs-script" />
            )}
            {props.bell}
            {visitor && <PrivacyEye isOn={props.isPrivate} />}
            <IconButton action="theme" label="Switch light and dark" icon={ThemeIcon} />
            {visitor && <AccountMenu visitor={visitor} />}
          </span>
        </header>
        <p class="offline" role="status">
          Sluice isn’t responding. This page may be outdated.
        </p>
        <p class="signed-out" role="status">
          You are signed out. Your input is still here.{' '}
          <a href="/login" target="_blank" rel="noopener">
            Sign in in another tab
          </a>
          , then submit it.
        </p>
        <p class="unlive" role="status">
          Live updates don’t arrive. Refreshing every 30 seconds.
          {visitor && holds(visitor.grants, 'dashboard:read') && <a href="/doctor">Why?</a>}
        </p>
        {props.captureLine}
        <div id="flash" role="alert" />
        <main id="main">{children}</main>
        {visitor && <Footer isGuest={visitor.kind === 'guest'} version={version} service={props.service} />}
        <dialog id="dialog" class="dialog" />
        {visitor && <Shortcuts visitor={visitor} />}
      </body>
    </html>
  )
}

const PrivacyEye: FC<{ isOn: boolean }> = ({ isOn }) => (
  <button
    class="icon-button needs-script"
    type="button"
    data-action="privacy"
    aria-pressed={isOn}
    title="Hide names and e-mails"
  >
    {isOn ? <EyeOffIcon /> : <EyeIcon />}
  </button>
)

const Navigation: FC<{ path: string; visitor: Visitor }> = ({ path, visitor }) => {
  const entries = entriesFor(visitor)
  const current =
    entries.find(({ also = [] }) => also.some(isAbove(path))) ?? entries.find((entry) => isAbove(path)(entry.path))
  return (
    <nav class="nav" aria-label="Main">
      {entries.map((entry) => (
        <a
          class={entry.isOnDesksOnly && entries.length > PHONE_ENTRIES ? 'desk-only' : undefined}
          href={entry.path}
          data-go={entry.key}
          aria-current={entry === current ? 'page' : undefined}
        >
          <entry.icon />
          <span>{entry.label}</span>
        </a>
      ))}
    </nav>
  )
}

const isAbove =
  (path: string) =>
  (part: string): boolean =>
    path === part || path.startsWith(`${part}/`)

/** Opens with `?`. */
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
        <dd>Search this page</dd>
        <dt>
          <kbd>Ctrl K</kbd>
        </dt>
        <dd>Search all</dd>
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

/** The user menu, or a way to become a user. */
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
          <a class="menu-item phone-only" href="/reports">
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

/** Characters that need no encoding in an attribute are kept, because the icon is in every page. */
const shorter = (encoded: string): string =>
  encoded.replaceAll('%20', ' ').replaceAll('%2F', '/').replaceAll('%3D', '=').replaceAll('%3A', ':')

const FAVICON = `data:image/svg+xml,${shorter(
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke-linecap="round" stroke-width="2.2"><path stroke="#7b8a92" d="M4 3v18M20 3v18"/><path stroke="#0e7f93" d="M7.5 4.5h9v6h-9zM6.5 15c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7M6.5 19c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7"/></svg>',
  ),
)}`

/** Two reds, so that the script can restore them: see `alarm` in views/assets/app.js. */
const toAlarmColors = (icon: string): string =>
  icon.replaceAll('%230e7f93', '%23d33a2c').replaceAll('%237b8a92', '%23d33a2d')
