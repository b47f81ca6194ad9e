/** Settings: adding an alert channel, and one channel with its messages. */
import type { FC } from 'hono/jsx'
import type { ChannelKind } from '../../db/schema/alerts.ts'
import type { ChannelView, DeliveryView } from '../../src/model/alerts/views.ts'
import { SettingsFrame } from '../settings/frame.tsx'
import type { Titled } from '../titles.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Form, Outcome } from '../ui/form.tsx'
import { Deliveries, State } from './deliveries.tsx'
import { ChannelFields } from './fields.tsx'
import { LastDelivery } from './list.tsx'
import { ALERTS_PATH, type AlertsFrame, CHANNELS_API, KIND_NAMES, KIND_TEXTS } from './words.ts'

export interface NewChannelPage extends AlertsFrame {
  /** Null until a kind is chosen. */
  kind: ChannelKind | null
  /** Whether servers of this kind are usually in a private network. */
  isPrivate: boolean
  timezone: string
}

export interface ChannelPage extends AlertsFrame {
  channel: ChannelView
  timezone: string
  deliveries: DeliveryView[]
}

const Crumbs: FC = () => (
  <nav class="crumbs" aria-label="Breadcrumb">
    <a href={ALERTS_PATH}>Alerts</a>
  </nav>
)

export const NewAlertChannelPage: FC<NewChannelPage> = (page) => {
  const { frame, now, problem, kind } = page
  if (kind === null)
    return (
      <SettingsFrame frame={frame} now={now} title="Add channel">
        <Crumbs />
        <Card id="alert-kinds" title="Where should alerts go?">
          <ul class="rows">
            {(Object.keys(KIND_NAMES) as ChannelKind[]) // as: its keys
              .map((each) => (
                <li class="row">
                  <span class="row-main">
                    <a class="source-name" href={`${ALERTS_PATH}/new?kind=${each}`}>
                      {KIND_NAMES[each]}
                    </a>
                    <span class="source-facts muted small">{KIND_TEXTS[each]}</span>
                  </span>
                </li>
              ))}
          </ul>
        </Card>
      </SettingsFrame>
    )
  return (
    <SettingsFrame frame={frame} now={now} title={`Add channel: ${KIND_NAMES[kind]}`}>
      <Crumbs />
      <section class="card">
        <Form name="alert-channel" class="card-body stack" action={CHANNELS_API} problem={problem}>
          <input type="hidden" name="kind" value={kind} />
          <ChannelFields {...page} kind={kind} channel={null} />
          <div class="actions">
            <Submit>Add channel</Submit>
            <ButtonLink href={`${ALERTS_PATH}/new`}>Back</ButtonLink>
          </div>
        </Form>
      </section>
    </SettingsFrame>
  )
}

export const AlertChannelPage: Titled<ChannelPage> = (page) => {
  const { frame, now, done, problem, channel, canWrite, deliveries } = page
  const action = `${CHANNELS_API}/${channel.id}`
  return (
    <SettingsFrame frame={frame} now={now} title={channel.name}>
      <Outcome done={done} problem={canWrite ? null : problem} />
      <Crumbs />
      <TextCard id="alert-channel-state" title={KIND_NAMES[channel.kind]} aside={<State channel={channel} />}>
        <p>
          Sends to <code>{channel.server ?? 'a target that cannot be decrypted'}</code>.{' '}
          <LastDelivery channel={channel} now={now} />
        </p>
        {canWrite && (
          <div class="actions">
            <Action name="test" action={`${action}/test`} label="Send a test" />
            <Action
              name="delete"
              action={`${action}/delete`}
              label="Delete channel"
              confirm={`Delete ${channel.name}? Its messages are deleted too.`}
              isRisky
            />
          </div>
        )}
      </TextCard>
      {canWrite && (
        <TextCard id="alert-channel" title="Settings">
          <Form name="alert-channel" class="stack" action={action} problem={problem}>
            <input type="hidden" name="expectedVersion" value={channel.version} />
            <ChannelFields {...page} kind={channel.kind} channel={channel} isPrivate={channel.allowPrivateAddress} />
            <div class="actions">
              <Submit>Save</Submit>
            </div>
          </Form>
        </TextCard>
      )}
      {channel.kind !== 'uptime_kuma' && (
        <Deliveries deliveries={deliveries} now={now} src={`${ALERTS_PATH}/${channel.id}`} />
      )}
    </SettingsFrame>
  )
}

AlertChannelPage.title = ({ channel }) => channel.name
