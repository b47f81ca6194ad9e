/** The bell at the top of every page: the active alerts. */
import type { FC } from 'hono/jsx'
import { BellIcon } from './ui/icons.tsx'
import { Since } from './ui/time.tsx'

export interface BellProps {
  /** Most severe first. */
  alerts: {
    key: string
    severity: 'info' | 'warning' | 'bad'
    text: string
    path: string
    /** ISO 8601: when it began. */
    at: string
    isAcknowledged: boolean
  }[]
  /** The number of alerts, including those that are not listed. */
  total: number
  unacknowledged: number
  /** Whether the user may open the alerts page. */
  hasPage: boolean
  /** Whether the script keeps it up to date. */
  isLive: boolean
  /** ISO 8601 */
  now: string
}

export const Bell: FC<BellProps> = (props) => (
  <span id="bell" {...(props.isLive && { 'data-live': 'alerts', 'data-live-src': '/bell' })}>
    {props.total > 0 ? <Alerts {...props} /> : props.hasPage && <NoAlerts />}
  </span>
)

const PAGE = '/settings/alerts'

const NoAlerts: FC = () => (
  <a class="menu-button bell-button" href={PAGE} title="No alerts">
    <BellIcon />
  </a>
)

const Alerts: FC<BellProps> = ({ alerts, total, unacknowledged, hasPage, now }) => {
  const label = total === 1 ? '1 alert' : `${total} alerts`
  const isBad = alerts.some(({ severity, isAcknowledged }) => severity === 'bad' && !isAcknowledged)
  return (
    <details class="menu bell">
      <summary class="menu-button bell-button" aria-label={label} title={label}>
        <BellIcon />
        {unacknowledged > 0 && <span class={isBad ? 'bell-count is-bad' : 'bell-count'}>{unacknowledged}</span>}
      </summary>
      <div class="menu-body bell-body">
        <ul class="bell-list">
          {alerts.map(({ severity, text, path, at, isAcknowledged }) => (
            <li class={isAcknowledged ? 'bell-item is-acknowledged' : `bell-item is-${severity}`}>
              <a class="bell-link" href={path}>
                {text}
              </a>
              <span class="muted small">
                <Since at={at} now={now} />
                {isAcknowledged && ' · acknowledged'}
              </span>
            </li>
          ))}
        </ul>
        {total > alerts.length && <p class="bell-more muted small">and {total - alerts.length} more</p>}
        {hasPage && (
          <a class="menu-item" href={PAGE}>
            All alerts and channels
          </a>
        )}
      </div>
    </details>
  )
}
