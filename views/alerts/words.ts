/** Names and texts of alert channels, and the data shared by the alert pages. */
import type { ChannelKind, Severity } from '../../db/schema/alerts.ts'
import type { Frame } from '../settings/frame.tsx'
import type { Tone } from '../ui/badge.tsx'

export interface AlertsFrame {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
  canWrite: boolean
  /** Whether the user may set targets and secrets. */
  canSetTargets: boolean
  events: EventChoice[]
}

export interface EventChoice {
  name: string
  label: string
  /** The most severe that its alerts are. */
  severity: Severity
  /** Whether it is a security event, which is sent only if chosen. */
  isSecurity: boolean
  /** Whether the user may choose it. */
  isOffered: boolean
}

export const ALERTS_PATH = '/settings/alerts'
export const CHANNELS_API = '/api/alerts/channels'

export const KIND_NAMES: Record<ChannelKind, string> = {
  webhook: 'Webhook',
  ntfy: 'ntfy',
  smtp: 'E-mail',
  discord: 'Discord',
  slack: 'Slack',
  telegram: 'Telegram',
  gotify: 'Gotify',
  uptime_kuma: 'Uptime Kuma',
}

export const KIND_TEXTS: Record<ChannelKind, string> = {
  webhook: 'A signed JSON document for your own program',
  ntfy: 'Push messages on your phone, from ntfy.sh or your own server',
  smtp: 'Plain text through your mail server',
  discord: 'Messages in a Discord channel',
  slack: 'Messages in a Slack channel',
  telegram: 'Messages from a Telegram bot',
  gotify: 'Push messages from your Gotify server',
  uptime_kuma: 'A heartbeat for a push monitor: down while an alert is active',
}

export const SEVERITY_NAMES: Record<Severity, string> = { info: 'Info', warning: 'Warning', bad: 'Error' }
export const SEVERITY_TONES: Record<Severity, Tone> = { info: 'idle', warning: 'wait', bad: 'bad' }
