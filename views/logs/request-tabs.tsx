/** The tabs of one request: its figures, and what a capture stored of it. In the drawer they replace its content. */
import type { FC } from 'hono/jsx'

export const RequestTabs: FC<{ id: string; current: 'details' | 'captured' }> = ({ id, current }) => (
  <nav class="request-tabs" aria-label="Parts of this request">
    <Tab href={`/logs/${id}`} label="Details" isCurrent={current === 'details'} />
    <Tab href={`/logs/${id}/captured`} label="Captured" isCurrent={current === 'captured'} />
  </nav>
)

const Tab: FC<{ href: string; label: string; isCurrent: boolean }> = ({ href, label, isCurrent }) => (
  <a
    href={href}
    hx-get={href}
    hx-target="closest article"
    hx-select="article"
    hx-swap="outerHTML"
    aria-current={isCurrent ? 'page' : undefined}
  >
    {label}
  </a>
)
