/** The footer of every page. The script reloads it after changes, and marks the tab while no request can be served. */
import type { FC } from 'hono/jsx'
import type { ServiceLevel } from '../src/model/overview/service-level.ts'
import { getAlarm } from './levels.ts'
import { choiceWords } from './settings/words.ts'
import { Since } from './ui/time.tsx'

export interface Service {
  level: ServiceLevel
  /** A `routingStrategy` of the settings. */
  strategy: string
  /** ISO 8601; null: usage was never read. */
  usageAt: string | null
  /** ISO 8601: when this was read. */
  now: string
}

export interface FooterProps {
  version: string
  isGuest: boolean
  /** null: hidden from this user. */
  service: Service | null
}

export const Footer: FC<FooterProps> = ({ version, isGuest, service }) => (
  <footer
    id="foot"
    data-alarm={getAlarm(service?.level) ?? undefined}
    {...(service && { 'data-live': 'health settings minute', 'data-live-src': '/footer' })}
  >
    <span>Sluice {version}</span>
    {service && (
      <>
        <a href="/settings/routing">{choiceWords('routingStrategy', service.strategy).label}</a>
        <span>
          {service.usageAt === null ? (
            'Usage not synced yet'
          ) : (
            <>
              Usage synced <Since at={service.usageAt} now={service.now} />
            </>
          )}
        </span>
        <a href="/doctor">Health</a>
      </>
    )}
    {!isGuest && (
      <>
        <a href="/docs/api">API</a>
        <a href="/docs">Docs</a>
      </>
    )}
  </footer>
)
