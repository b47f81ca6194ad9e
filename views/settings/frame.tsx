/** The tabs beside every settings page, a menu above it on phones, and the settings search. */
import type { FC, PropsWithChildren } from 'hono/jsx'

export type TabId =
  | 'general'
  | 'access'
  | 'routing'
  | 'sources'
  | 'automations'
  | 'alerts'
  | 'network'
  | 'data'
  | 'audit'
  | 'about'

export interface Frame {
  /** null: a page outside the tabs. */
  tab: TabId | null
  tabs: { path: string; label: string; isCurrent: boolean }[]
  /** How many settings differ from their default; null: the user may not see settings. */
  changed: number | null
  /** The search text. */
  search: string
}

interface SettingsFrameProps {
  frame: Frame
  /** ISO 8601: when the page was made; relative times count from it. */
  now?: string
  title: string
}

export const SettingsFrame: FC<PropsWithChildren<SettingsFrameProps>> = ({ frame, now, title, children }) => (
  <Framed frame={frame}>
    <div class="page" data-now={now}>
      <header class="page-head">
        <h1>{title}</h1>
      </header>
      {children}
    </div>
  </Framed>
)

/** For a page with its own head. */
export const Framed: FC<PropsWithChildren<{ frame: Frame }>> = ({ frame, children }) => (
  <div class="settings">
    <aside class="settings-side">
      {frame.changed !== null && <Search {...frame} />}
      <nav class="settings-tabs" aria-label="Settings">
        <Tabs {...frame} />
      </nav>
      <details class="settings-menu">
        <summary class="button button-plain">{getCurrent(frame)}</summary>
        <nav class="settings-tabs" aria-label="Settings, as a menu">
          <Tabs {...frame} />
        </nav>
      </details>
    </aside>
    <div class="settings-body">{children}</div>
  </div>
)

const getCurrent = ({ tabs }: Frame): string => tabs.find(({ isCurrent }) => isCurrent)?.label ?? 'All settings'

const Search: FC<Frame> = ({ search }) => (
  <form method="get" action="/settings/search">
    <input type="search" name="q" value={search} maxlength={100} placeholder="Search" aria-label="Search settings" />
  </form>
)

const Tabs: FC<Frame> = ({ tabs, changed }) => (
  <ul>
    {tabs.map(({ path, label, isCurrent }) => (
      <li>
        <a class="settings-tab" href={path} aria-current={isCurrent ? 'page' : undefined}>
          {label}
        </a>
      </li>
    ))}
    {changed !== null && (
      <li>
        <a class="settings-tab settings-changed" href="/settings/search?changed=1">
          Changed from default <span class="count">{changed}</span>
        </a>
      </li>
    )}
  </ul>
)
