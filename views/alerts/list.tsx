/** Settings, Alerts: active alerts, the channels, the events each of them gets, and the log of messages. */
import type { FC } from 'hono/jsx'
import type { AlertView, ChannelView, DeliveryView } from '../../src/model/alerts/views.ts'
import { SECTIONS } from '../../src/settings/setting.ts'
import { SettingsFrame } from '../settings/frame.tsx'
import { SettingsCard, type ShownSettings, UnsavedBar } from '../settings/section.tsx'
import { Badge } from '../ui/badge.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Outcome } from '../ui/form.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { LivePart } from '../ui/live.tsx'
import { Since } from '../ui/time.tsx'
import { Deliveries, State } from './deliveries.tsx'
import { ALERTS_PATH, type AlertsFrame, CHANNELS_API, KIND_NAMES, SEVERITY_NAMES, SEVERITY_TONES } from './words.ts'

export interface AlertsPage extends AlertsFrame {
  standing: AlertView[]
  past: AlertView[]
  channels: ChannelView[]
  deliveries: DeliveryView[]
  settings: ShownSettings | null
}

export const AlertsPageView: FC<AlertsPage> = (page) => {
  const { frame, now, done, problem, settings, channels, deliveries } = page
  const sections = SECTIONS.filter((section) => settings?.fields.some((field) => field.section === section))
  return (
    <SettingsFrame frame={frame} now={now} title="Alerts">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      <Channels {...page} />
      <Standing {...page} />
      {settings && sections.map((section) => <SettingsCard section={section} settings={settings} />)}
      {settings && sections.length > 0 && <UnsavedBar />}
      {channels.length > 0 && <Deliveries deliveries={deliveries} now={now} src={ALERTS_PATH} hasChannel />}
      {channels.some(({ kind }) => kind !== 'uptime_kuma') && <Events {...page} />}
    </SettingsFrame>
  )
}

const Channels: FC<AlertsPage> = ({ channels, now, canWrite, canSetTargets }) => {
  const add = (
    <ButtonLink
      isMain={channels.length === 0}
      class={channels.length === 0 ? undefined : 'button button-plain card-action'}
      href={`${ALERTS_PATH}/new`}
    >
      Add channel
    </ButtonLink>
  )
  if (channels.length === 0)
    return (
      <section class="card empty">
        <h2>No channels yet</h2>
        <p>
          Sluice can tell you when an account needs sign-in, when quota runs out, or when requests fail: by e-mail,
          ntfy, Discord, Slack, Telegram, Gotify, a webhook or Uptime Kuma.
        </p>
        {canSetTargets ? add : <p class="muted small">An administrator can add channels.</p>}
      </section>
    )
  return (
    <Card id="alert-channels" title="Channels" count={channels.length} aside={canSetTargets && add}>
      <LivePart id="alert-channel-list" topics={['alerts']} src={ALERTS_PATH}>
        <ul class="rows">
          {channels.map((channel) => (
            <li class="row">
              <span class="row-main">
                <a class="source-name" href={`${ALERTS_PATH}/${channel.id}`}>
                  {channel.name}
                </a>{' '}
                <State channel={channel} />
                <span class="source-facts muted small">
                  <span>{KIND_NAMES[channel.kind]}</span>
                  <code>{channel.server ?? 'target cannot be decrypted'}</code>
                  {channel.quietHours && (
                    <span>
                      quiet {channel.quietHours.from} to {channel.quietHours.to}
                    </span>
                  )}
                </span>
                <LastDelivery channel={channel} now={now} />
              </span>
              {canWrite && (
                <Action
                  name={`test-${channel.id}`}
                  action={`${CHANNELS_API}/${channel.id}/test`}
                  label="Send a test"
                  class="source-test"
                />
              )}
            </li>
          ))}
        </ul>
      </LivePart>
    </Card>
  )
}

export const LastDelivery: FC<{ channel: ChannelView; now: string }> = ({ channel: { lastDelivery }, now }) => {
  if (lastDelivery === null) return <span class="muted small">Nothing sent yet.</span>
  return (
    <span class={lastDelivery.ok ? 'muted small' : 'source-failure small'}>
      {lastDelivery.ok ? 'Last message sent ' : `${lastDelivery.error} `}
      <span class="muted">
        <Since at={lastDelivery.at} now={now} />
      </span>
    </span>
  )
}

const Standing: FC<AlertsPage> = ({ standing, past, now, canWrite }) => (
  <Card id="alerts-standing" title="Active alerts" count={standing.length || null}>
    <LivePart id="alert-list" topics={['alerts']} src={ALERTS_PATH}>
      {standing.length === 0 && (
        <div class="card-body">
          <p class="muted">No active alerts. A problem must last for a minute before it becomes an alert.</p>
        </div>
      )}
      {standing.length > 0 && (
        <ul class="rows">
          {standing.map((alert) => (
            <li class="row">
              <span class="row-main">
                <Badge tone={SEVERITY_TONES[alert.severity]}>{SEVERITY_NAMES[alert.severity]}</Badge>{' '}
                <a href={alert.path}>{alert.text}</a>
                <span class="source-facts muted small">
                  <Since at={alert.since} now={now} />
                  {alert.acknowledgedAt && <span>acknowledged by {alert.acknowledgedBy}</span>}
                </span>
              </span>
              {canWrite && alert.acknowledgedAt === null && (
                <Action
                  name={`acknowledge-${alert.key.replace(/[^\w-]/g, '-')}`}
                  action={`/api/alerts/${encodeURIComponent(alert.key)}/acknowledge`}
                  label="Acknowledge"
                  class="source-test"
                />
              )}
            </li>
          ))}
        </ul>
      )}
      {past.length > 0 && (
        <details class="fold card-part">
          <summary class="reveal">Past alerts</summary>
          <ul class="rows">
            {past.map((alert) => (
              <li class="row">
                <span class="row-main">
                  {alert.title}: {alert.text}
                  <span class="source-facts muted small">
                    <Since at={alert.since} now={now} />
                    <span>{endText(alert)}</span>
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </LivePart>
  </Card>
)

const MINUTE_MS = 60_000

const endText = ({ raisedAt, recoveredAt, since }: AlertView): string => {
  if (recoveredAt === null || recoveredAt === raisedAt) return 'a single event'
  const minutes = Math.max(1, Math.round((Date.parse(recoveredAt) - Date.parse(since)) / MINUTE_MS))
  return minutes < 120 ? `lasted ${minutes} min` : `lasted ${Math.round(minutes / 60)} h`
}

/** A table of the events that each channel gets. */
const Events: FC<AlertsPage> = ({ channels, events, canWrite }) => {
  const shown = channels.filter(({ kind }) => kind !== 'uptime_kuma')
  return (
    <Card id="alert-events" title="Who gets what">
      <div class="scroll-x" tabindex={0}>
        <table class="figures alert-ticks">
          <caption class="sr">Events by channel</caption>
          <thead>
            <tr>
              <th scope="col">Event</th>
              {shown.map(({ id, name, minSeverity }) => (
                <th scope="col" class="alert-tick">
                  {canWrite ? <a href={`${ALERTS_PATH}/${id}#alert-events-title`}>{name}</a> : name}
                  {minSeverity !== 'info' && <span class="alert-least muted">{LEAST[minSeverity]}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {events.map((event) => (
              <tr>
                <th scope="row">{event.label}</th>
                {shown.map((channel) => (
                  <td class="alert-tick">{gets(channel, event) ? <Tick /> : <span class="muted">–</span>}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  )
}

const LEAST = { warning: 'warnings, errors', bad: 'errors only' } as const

const gets = (
  { events, mayGetSecurity, minSeverity }: ChannelView,
  { name, severity, isSecurity }: AlertsFrame['events'][number],
): boolean => {
  if (RANK[severity] < RANK[minSeverity]) return false
  return isSecurity ? mayGetSecurity && (events?.includes(name) ?? false) : (events?.includes(name) ?? true)
}

const RANK = { info: 0, warning: 1, bad: 2 } as const

const Tick: FC = () => (
  <>
    <CheckIcon />
    <span class="sr">yes</span>
  </>
)
