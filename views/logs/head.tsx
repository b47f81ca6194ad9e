/** The head of the pages about requests: the log, reports and the routing simulator. */
import type { FC, PropsWithChildren } from 'hono/jsx'

interface HeadProps {
  current: '/logs' | '/logs/explain' | '/reports'
  mayExplain: boolean
}

const PAGES = [
  ['/logs', 'Requests'],
  ['/reports', 'Reports'],
  ['/logs/explain', 'Routing simulator'],
] as const

export const LogHead: FC<PropsWithChildren<HeadProps>> = ({ current, mayExplain, children }) => (
  <header class="page-head log-head">
    <h1>{TITLES[current]}</h1>
    <nav class="log-tabs" aria-label="About requests">
      {PAGES.filter(([path]) => mayExplain || path !== '/logs/explain').map(([path, label]) => (
        <a href={path} aria-current={path === current ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
    {children}
  </header>
)

const TITLES: Record<HeadProps['current'], string> = {
  '/logs': 'Logs',
  '/logs/explain': 'Routing simulator',
  '/reports': 'Reports',
}
