/** Alerts as HTTP requests, with the body and headers for each kind of channel. */
import { createHmac } from 'node:crypto'
import type { Severity } from '../../../db/schema/alerts.ts'
import { getTopic, type SmtpTarget, type Target } from '../../model/alerts/channel-input.ts'
import type { AlertMessage } from '../../model/alerts/messages.ts'

type HttpTarget = Exclude<Target, SmtpTarget>

export interface AlertRequest {
  url: string
  headers: Record<string, string>
  /** Null for a GET request. */
  body: string | null
}

interface Sending {
  message: AlertMessage
  secret: string | null
  /** ms since epoch */
  now: number
}

/** The request that sends a message. For Uptime Kuma it is a heartbeat, used for tests; see `toHeartbeat`. */
export const toRequest = (target: HttpTarget, sending: Sending): AlertRequest => {
  switch (target.kind) {
    case 'webhook':
      return toWebhook(target.url, sending)
    case 'ntfy':
      return toNtfy(target.url, sending)
    case 'discord':
      return json(target.url, toDiscord(sending.message))
    case 'slack':
      return json(target.url, { text: toSlack(sending.message) })
    case 'telegram':
      return json(`${trimmed(target.url)}/bot${encodeURIComponent(sending.secret ?? '')}/sendMessage`, {
        chat_id: target.chatId,
        text: cut(plain(sending.message), 4096),
        disable_web_page_preview: true,
      })
    case 'gotify':
      return toGotify(target.url, sending)
    case 'uptime_kuma':
      return toHeartbeat(target.url, { isUp: true, text: sending.message.title })
  }
}

/** Replaces the three parameters that Uptime Kuma shows in the push URL. */
export const toHeartbeat = (push: string, { isUp, text }: { isUp: boolean; text: string }): AlertRequest => {
  const url = new URL(push)
  url.searchParams.set('status', isUp ? 'up' : 'down')
  url.searchParams.set('msg', cut(text, 200))
  url.searchParams.delete('ping')
  return { url: url.href, headers: {}, body: null }
}

/** The signature also covers the time and the delivery ID, so that an old message or a part of it cannot be reused. */
export const signWebhook = (secret: string, signed: { timestamp: string; delivery: string; body: string }): string =>
  `sha256=${createHmac('sha256', secret).update(`${signed.timestamp}.${signed.delivery}.${signed.body}`).digest('hex')}`

const toWebhook = (url: string, { message, secret, now }: Sending): AlertRequest => {
  const body = JSON.stringify(message)
  const timestamp = String(Math.floor(now / 1000))
  const signature: Record<string, string> = secret
    ? { 'x-sluice-signature': signWebhook(secret, { timestamp, delivery: message.id, body }) }
    : {}
  return {
    url,
    headers: {
      'content-type': 'application/json',
      'x-sluice-event': message.event,
      'x-sluice-delivery': message.id,
      'x-sluice-timestamp': timestamp,
      ...signature,
    },
    body,
  }
}

const NTFY_PRIORITY: Record<Severity, number> = { info: 3, warning: 4, bad: 5 }
const NTFY_TAG: Record<Severity, string> = { info: 'information_source', warning: 'warning', bad: 'rotating_light' }
const LOW_PRIORITY = 2

/** Published as JSON at the root of the server, because headers cannot carry every character. */
const toNtfy = (topicUrl: string, { message, secret }: Sending): AlertRequest => {
  const topic = getTopic(topicUrl) ?? ''
  const root = topicUrl.replace(/[?#].*$/s, '').replace(/[\w-]+\/?$/, '')
  const { title, text, url, edge, severity } = message
  const isOver = edge === 'recovered'
  const request = json(root, {
    topic,
    title: cut(title, 250),
    message: cut(text, 3500),
    priority: isOver ? LOW_PRIORITY : NTFY_PRIORITY[severity],
    tags: [isOver ? 'white_check_mark' : NTFY_TAG[severity]],
    ...(url && { click: url }),
  })
  return secret ? { ...request, headers: { ...request.headers, authorization: `Bearer ${secret}` } } : request
}

const COLORS: Record<Severity, number> = { info: 0x3b82a0, warning: 0xd39e2c, bad: 0xd33a2c }
const GREEN = 0x2e9e5b

/** Mentions are off: names could contain them. */
const toDiscord = ({ title, text, url, edge, severity, at }: AlertMessage) => ({
  username: 'Sluice',
  allowed_mentions: { parse: [] },
  embeds: [
    {
      title: cut(title, 256),
      description: cut(text, 4000),
      color: edge === 'recovered' ? GREEN : COLORS[severity],
      timestamp: at,
      ...(url && { url }),
    },
  ],
})

/** Slack's three control characters are escaped, so that names cannot make links or mentions. */
const toSlack = ({ title, text, url }: AlertMessage): string => {
  const escaped = (value: string) => value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `*${escaped(title)}*\n${escaped(cut(text, 3500))}${url ? `\n<${escaped(url)}|Open Sluice>` : ''}`
}

const GOTIFY_PRIORITY: Record<Severity, number> = { info: 4, warning: 6, bad: 9 }

const toGotify = (server: string, { message, secret }: Sending): AlertRequest => {
  const { title, text, url, edge, severity } = message
  const request = json(`${trimmed(server)}/message`, {
    title,
    message: text,
    priority: edge === 'recovered' ? LOW_PRIORITY : GOTIFY_PRIORITY[severity],
    ...(url && { extras: { 'client::notification': { click: { url } } } }),
  })
  return { ...request, headers: { ...request.headers, 'x-gotify-key': secret ?? '' } }
}

/** The message as plain text, for channels without formatting. */
export const plain = ({ title, text, url }: AlertMessage): string => [title, text, ...(url ? [url] : [])].join('\n\n')

const json = (url: string, value: unknown): AlertRequest => ({
  url,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

const trimmed = (url: string): string => url.replace(/\/+$/, '')

/** Shortens text without leaving half a surrogate pair at the end. */
const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`
