/** The head of the pages about requests: the log, reports and the routing simulator. */
import type { FC, PropsWithChildren } from 'hono/jsx'

interface HeadProps {
  current: '/logs' | '/reports'
}

const PAGES = [
  ['/logs', 'Requests'],
  ['/reports', 'Reports'],
] as const

export const LogHead: FC<PropsWithChildren<HeadProps>> = ({ current, children }) => (
  <header class="page-head log-head">
    <h1>{TITLES[current]}</h1>
    <nav class="log-tabs" aria-label="About requests">
      {PAGES.map(([path, label]) => (
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
  '/reports': 'Reports',
}
