/** The request bodies that create and change an alert channel, and the target of each kind. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { CHANNEL_KINDS, type ChannelKind, SEVERITIES } from '../../../db/schema/alerts.ts'
import { isZone } from '../../lib/zoned-days.ts'
import { ExpectedVersion } from '../edit-version.ts'
import { EVENT_NAMES } from './events.ts'

/** Accepts bare IPv6 addresses, but no host name with a port. */
const isHost = (host: string): boolean => /^[\w.-]+$/.test(host) || isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0

const text = z.string().trim()
/** Rejects control characters, because they could end a mail header or an SMTP command. */
const line = (max: number) =>
  text
    .min(1)
    .max(max)
    .refine((value) => value.isWellFormed() && !/\p{Cc}/u.test(value), 'must not contain control characters')

const isWebUrl = (value: string): boolean => {
  const url = /\s/.test(value) ? null : URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' && !url.username && !url.password
}
const WebUrl = text
  .max(2048)
  .refine(isWebUrl, 'must be an http:// or https:// URL without a user name')
  .overwrite((value) => value.replace(/#.*$/s, ''))

const Address = line(320).refine((value) => /^[^\s<>@,;:"]+@[^\s<>@,;:"]+$/.test(value), 'must be an e-mail address')
/** Accepts a list, or the comma-separated text that forms send. */
const Addresses = z.preprocess(
  (value) =>
    [value ?? '']
      .flat()
      .flatMap((one) => (typeof one === 'string' ? one.split(/[,;\s]+/) : [one]))
      .filter((one) => one !== ''),
  z.array(Address).min(1).max(20),
)

export const TLS_MODES = ['starttls', 'implicit', 'none'] as const

const TARGETS = {
  webhook: z.strictObject({ url: WebUrl }),
  ntfy: z.strictObject({
    url: WebUrl.refine((url) => getTopic(url) !== null, 'must end with the topic: https://ntfy.sh/your-topic'),
  }),
  smtp: z.strictObject({
    host: line(255).refine(isHost, 'must be a host name or an IP address, without a port'),
    port: z.int().min(1).max(65_535).default(587),
    tls: z.enum(TLS_MODES).default('starttls'),
    user: line(320).nullish(),
    password: z.string().max(1024).nullish(),
    from: Address,
    to: Addresses,
  }),
  discord: z.strictObject({ url: WebUrl }),
  slack: z.strictObject({ url: WebUrl }),
  telegram: z.strictObject({ chatId: line(64), url: WebUrl.default('https://api.telegram.org') }),
  gotify: z.strictObject({ url: WebUrl }),
  uptime_kuma: z.strictObject({ url: WebUrl }),
} satisfies Record<ChannelKind, z.ZodType>

export type Target = { [Kind in ChannelKind]: { kind: Kind } & z.output<(typeof TARGETS)[Kind]> }[ChannelKind]
export type SmtpTarget = Extract<Target, { kind: 'smtp' }>

/** Returns the last part of the path, or null if it is empty. */
export const getTopic = (url: string): string | null =>
  URL.parse(url)?.pathname.match(/\/([\w-]{1,64})\/?$/)?.[1] ?? null

/** Parses `given` as a target of this kind. Throws `ZodError` with paths below `target`. */
export const toTarget = (kind: ChannelKind, given: unknown): Target =>
  ({ kind, ...z.object({ target: TARGETS[kind] }).parse({ target: given }).target }) as Target // as: the schema of the kind

/** The fields of all kinds together. `toTarget` checks the rules of one kind. */
const AnyTarget = z
  .strictObject({
    url: text
      .max(2048)
      .optional()
      .describe(
        'For all kinds except `smtp`. For `ntfy`, it includes the topic. For `telegram`, it is the URL of the Bot API.',
      ),
    chatId: text.max(64).optional().describe('For `telegram`: the ID of the chat.'),
    host: text.max(255).optional().describe('For `smtp`: the mail server.'),
    port: z.int().min(1).max(65_535).optional().describe('`smtp`. Default: 587.'),
    tls: z.enum(TLS_MODES).optional().describe('`smtp`. Default: `starttls`.'),
    user: text.max(320).nullish().describe('For `smtp`: the user name. Null means no sign-in.'),
    password: z.string().max(1024).nullish().describe('For `smtp`. Leave it out or empty to keep the stored one.'),
    from: text.max(320).optional().describe('For `smtp`: the sender.'),
    to: z.array(text.max(4096)).max(20).optional().describe('`smtp`: 1 to 20 recipients.'),
  })
  .describe('Stored encrypted. Responses contain only the server.')

const Time = text.regex(/^$|^([01]\d|2[0-3]):[0-5]\d$/, 'must be HH:MM, from 00:00 to 23:59')
/** Empty times, as sent by forms, mean no quiet hours. */
const Quiet = z
  .strictObject({
    from: Time.describe('HH:MM.'),
    to: Time.describe('HH:MM. A time before `from` is on the next day.'),
    timezone: text.max(64).refine(isZone, 'must be a time zone like Europe/Berlin').describe('IANA time zone name.'),
  })
  .refine(({ from, to }) => from !== to || from === '', { path: ['to'], message: 'must differ from the start' })
  .refine(({ from, to }) => (from === '') === (to === ''), {
    path: ['to'],
    message: 'enter both times, or leave both empty',
  })

const Fields = {
  name: line(128).describe('Unique.'),
  target: AnyTarget,
  secret: z
    .string()
    .max(1024)
    .optional()
    .describe(
      'For `webhook`, the key that signs each message; for `ntfy`, the access token; for `telegram`, the bot token; for `gotify`, the application token. Stored encrypted and never returned. Leave it out or empty to keep the stored one.',
    ),
  events: z
    .array(z.enum(EVENT_NAMES))
    .max(EVENT_NAMES.length)
    .nullable()
    .describe('Null means all events except `security.*`.'),
  minSeverity: z.enum(SEVERITIES).describe('Less severe alerts are not sent.'),
  quietHours: Quiet.nullable().describe('Alerts wait until the end of these hours. Null means no quiet hours.'),
  isActive: z.boolean().describe('Whether alerts are sent.'),
  allowPrivateAddress: z
    .boolean()
    .describe('Allows servers in private networks. Default: true for `ntfy`, `gotify` and `uptime_kuma`.'),
  showEmails: z.boolean().describe('Messages show e-mail addresses unmasked.'),
  repeatDaily: z.boolean().describe('Repeats an alert every 24 hours while it lasts.'),
}

export const NewChannel = z.strictObject({
  kind: z.enum(CHANNEL_KINDS).describe('Cannot be changed later.'),
  name: Fields.name,
  target: Fields.target,
  secret: Fields.secret,
  events: Fields.events.default(null).describe('Null means all events except `security.*`.'),
  minSeverity: Fields.minSeverity.default('warning').describe('Less severe alerts are not sent.'),
  quietHours: Fields.quietHours
    .default(null)
    .describe('Alerts wait until the end of these hours. Null means no quiet hours.'),
  isActive: Fields.isActive.default(true).describe('Whether alerts are sent.'),
  allowPrivateAddress: Fields.allowPrivateAddress.optional(),
  showEmails: Fields.showEmails.default(false).describe('Messages show e-mail addresses unmasked.'),
  repeatDaily: Fields.repeatDaily.default(false).describe('Repeats an alert every 24 hours while it lasts.'),
})
export type NewChannel = z.output<typeof NewChannel>

export const ChannelPatch = z
  .strictObject(Fields)
  .partial()
  .extend({
    removeSecret: z.boolean().optional().describe('Removes the stored secret.'),
    expectedVersion: ExpectedVersion,
  })
export type ChannelPatch = z.output<typeof ChannelPatch>

/** Kinds whose server is usually in the same network as Sluice. */
export const isUsuallyPrivate = (kind: ChannelKind): boolean =>
  kind === 'ntfy' || kind === 'gotify' || kind === 'uptime_kuma'

/** Kinds that do not work without a secret. */
export const needsSecret = (kind: ChannelKind): boolean => kind === 'telegram' || kind === 'gotify'
