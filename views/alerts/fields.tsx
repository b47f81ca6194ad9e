/** The fields of an alert channel. Targets and secrets are never shown. Empty fields keep the stored values. */
import type { FC } from 'hono/jsx'
import type { ChannelKind } from '../../db/schema/alerts.ts'
import type { ChannelView } from '../../src/model/alerts/views.ts'
import { Check, Field } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { type EventChoice, SEVERITY_NAMES } from './words.ts'

interface Props {
  kind: ChannelKind
  /** Null for a new channel. */
  channel: ChannelView | null
  isPrivate: boolean
  /** The user's time zone. */
  timezone: string
  canSetTargets: boolean
  events: EventChoice[]
}

export const ChannelFields: FC<Props> = (props) => {
  const { kind, channel, isPrivate, canSetTargets } = props
  return (
    <>
      <Field label="Name" name="name" value={channel?.name} maxlength={128} autocomplete="off" required />
      {canSetTargets && <TargetFields {...props} />}
      {canSetTargets && <SecretField kind={kind} channel={channel} />}
      {canSetTargets && (
        <Check
          label="The server may be in a private network"
          name="allowPrivateAddress"
          hint="Allows this machine, and addresses like 10.x, 172.16.x and 192.168.x."
          isOn={isPrivate}
        />
      )}
      <Events {...props} />
      <Select
        label="Severity"
        name="minSeverity"
        options={[
          ['info', `${SEVERITY_NAMES.info} and above`],
          ['warning', `${SEVERITY_NAMES.warning} and above`],
          ['bad', `${SEVERITY_NAMES.bad} only`],
        ]}
        value={channel?.minSeverity ?? 'warning'}
      />
      {kind !== 'uptime_kuma' && <Quiet {...props} />}
      {kind !== 'uptime_kuma' && (
        <Check
          label="Repeat every 24 hours while an alert is active"
          name="repeatDaily"
          isOn={channel?.repeatDaily ?? false}
        />
      )}
      <Check
        label="Show e-mail addresses"
        name="showEmails"
        hint="When off, anna@example.com becomes a***@example.com."
        isOn={channel?.showEmails ?? false}
      />
      <Check label="Send alerts" name="isActive" isOn={channel?.isActive ?? true} />
    </>
  )
}

const URLS: Record<Exclude<ChannelKind, 'smtp'>, readonly [label: string, placeholder: string, hint: string]> = {
  webhook: ['URL', 'https://example.com/sluice', 'Sluice sends a POST request with JSON.'],
  ntfy: ['Topic URL', 'https://ntfy.sh/your-topic', 'The URL of your topic. Choose a name that is hard to guess.'],
  discord: [
    'Webhook URL',
    'https://discord.com/api/webhooks/…',
    'Create one in Discord under Channel settings › Integrations › Webhooks.',
  ],
  slack: ['Webhook URL', 'https://hooks.slack.com/services/…', 'Create one in a Slack app with incoming webhooks.'],
  telegram: ['Bot API', 'https://api.telegram.org', 'Leave empty for api.telegram.org.'],
  gotify: ['Server URL', 'https://gotify.example.com', 'Without /message.'],
  uptime_kuma: [
    'Push URL',
    'https://kuma.example.com/api/push/…',
    'From a push monitor. Set its interval to 60 seconds or more.',
  ],
}

const TargetFields: FC<Props> = ({ kind, channel }) => {
  if (kind === 'smtp') return <MailFields channel={channel} />
  const [label, placeholder, hint] = URLS[kind]
  return (
    <>
      {kind === 'telegram' && (
        <Field
          label="Chat ID"
          name="target.chatId"
          maxlength={64}
          autocomplete="off"
          placeholder="-1001234567890"
          hint={
            channel
              ? 'Leave empty to keep the stored one.'
              : 'The ID of the person, group or channel that gets the messages.'
          }
          required={channel === null}
        />
      )}
      <Field
        label={label}
        name="target.url"
        maxlength={2048}
        autocomplete="off"
        placeholder={placeholder}
        hint={channel ? `A URL on ${channel.server ?? 'a server'} is stored. Leave empty to keep it.` : hint}
        required={channel === null && kind !== 'telegram'}
      />
    </>
  )
}

const MailFields: FC<{ channel: ChannelView | null }> = ({ channel }) => {
  const isNew = channel === null
  return (
    <>
      {!isNew && (
        <p class="hint">Leave a field empty to keep what is stored. Another server needs the password again.</p>
      )}
      <div class="field-row">
        <Field
          label="Mail server"
          name="target.host"
          maxlength={255}
          autocomplete="off"
          placeholder="smtp.example.com"
          required={isNew}
        />
        <Field label="Port" name="target.port" type="number" min={1} max={65_535} value={isNew ? '587' : null} />
        <Select
          label="Encryption"
          name="target.tls"
          options={[
            ...(isNew ? [] : [['', 'unchanged'] as const]),
            ['starttls', 'STARTTLS (587)'],
            ['implicit', 'TLS (465)'],
            ['none', 'none (25)'],
          ]}
          value={isNew ? 'starttls' : ''}
        />
      </div>
      <div class="field-row">
        <Field label="User name" name="target.user" maxlength={320} autocomplete="off" />
        <Field label="Password" name="target.password" type="password" maxlength={1024} autocomplete="off" />
      </div>
      <Field label="From" name="target.from" maxlength={320} placeholder="sluice@example.com" required={isNew} />
      <Field
        label="To"
        name="target.to"
        maxlength={2000}
        placeholder="you@example.com"
        hint="Separate several addresses with commas."
        required={isNew}
      />
    </>
  )
}

const SECRETS: Partial<Record<ChannelKind, readonly [label: string, hint: string]>> = {
  webhook: ['Signing secret', 'Optional. Signs each message, so that your program can verify that it is from Sluice.'],
  ntfy: ['Access token', 'Only needed for protected topics.'],
  telegram: ['Bot token', 'From @BotFather.'],
  gotify: ['Application token', 'Create one in Gotify under Apps.'],
}

const SecretField: FC<Pick<Props, 'kind' | 'channel'>> = ({ kind, channel }) => {
  const words = SECRETS[kind]
  if (!words) return null
  const [label, hint] = words
  return (
    <>
      <Field
        label={label}
        name="secret"
        type="password"
        maxlength={1024}
        autocomplete="off"
        hint={channel?.hasSecret ? 'Stored. Leave empty to keep it. If you change the server, enter it again.' : hint}
      />
      {channel?.hasSecret && (kind === 'webhook' || kind === 'ntfy') && (
        <Check label={`Remove the stored ${label.toLowerCase()}`} name="removeSecret" isOn={false} />
      )}
    </>
  )
}

const Events: FC<Props> = ({ channel, events }) => (
  <fieldset class="key-ticks" id="alert-events-title">
    <legend class="field-label">Events</legend>
    <span class="hint">Leave all empty to get every event except security events.</span>
    <input type="hidden" name="events" value="" />
    <div class="alert-event-list">
      {events
        .filter(({ isOffered, name }) => isOffered || channel?.events?.includes(name))
        .map(({ name, label, isSecurity }) => (
          <label class="check">
            <input type="checkbox" name="events" value={name} checked={channel?.events?.includes(name) ?? false} />
            <span>
              {label}
              {isSecurity && <span class="muted small"> (security)</span>}
            </span>
          </label>
        ))}
    </div>
  </fieldset>
)

const Quiet: FC<Pick<Props, 'channel' | 'timezone'>> = ({ channel, timezone }) => {
  const quiet = channel?.quietHours ?? null
  return (
    <fieldset class="key-ticks">
      <legend class="field-label">Quiet hours</legend>
      <span class="hint">Alerts wait until the end and then arrive together. Leave both times empty for none.</span>
      <div class="field-row">
        <label class="field">
          <span class="field-label">From</span>
          <input type="time" name="quietHours.from" value={quiet?.from} />
        </label>
        <label class="field">
          <span class="field-label">To</span>
          <input type="time" name="quietHours.to" value={quiet?.to} />
        </label>
        <Field label="Time zone" name="quietHours.timezone" value={quiet?.timezone ?? timezone} maxlength={64} />
      </div>
    </fieldset>
  )
}
