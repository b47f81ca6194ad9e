/** Every setting: its bounds, what it is called and does, and its default beside it. Adding one touches this file only. */
import { z } from 'zod'

export const STRATEGIES = [
  'capacity_weighted',
  'usage_weighted',
  'round_robin',
  'relative_availability',
  'fill_first',
  'sequential_drain',
  'reset_drain',
  'single_account',
] as const

const TRANSPORTS = ['auto', 'http', 'websocket'] as const

export const PAID_CREDITS = ['never', 'last', 'freely'] as const

/** The forms of the settings pages: what stands in one section is saved together. */
export const SECTIONS = [
  'security',
  'guests',
  'clients',
  'routing',
  'affinity',
  'limits',
  'timeouts',
  'retention',
  'backups',
] as const
export type Section = (typeof SECTIONS)[number]

interface SettingMeta {
  section: Section
  label: string
  /** One sentence: what a change of it brings about. */
  help: string
  /** Of a number, in words. */
  unit?: string
  /** Asks for `security:write` and a recent confirmation when the value changes. */
  security?: true
}

/** `words` as metadata of `schema`, where `settings/fields.ts` reads them. */
const setting = <S extends z.ZodType>(schema: S, words: SettingMeta): S => schema.meta({ ...words })

const seconds = (max: number) => z.int().min(1).max(max)

/** Scheme, host, port, and no path. */
const ORIGINS = /^([a-z][a-z0-9+.-]*:\/\/[^\s,/?#@*]+([\s,]+|$))*$/
const ORIGINS_HINT = 'must be origins like https://app.example, separated by spaces'

/**
 * An origin as browsers send it: without the default port, the host in Punycode. The origin of a URL is `null` for schemes
 * the URL standard does not know, like `app://`. Null: not a URL.
 */
const normalOrigin = (text: string): string | null => {
  const url = URL.parse(text)
  return url && `${url.protocol}//${url.host}`
}

export const Settings = z.strictObject({
  routingStrategy: setting(z.enum(STRATEGIES), {
    section: 'routing',
    label: 'Strategy',
    help: 'How the account of a new conversation is chosen among those that can serve it.',
  }),
  upstreamStreamTransport: setting(z.enum(TRANSPORTS), {
    section: 'routing',
    label: 'Upstream stream transport',
    help: 'How answers are streamed from the upstream to Sluice.',
  }),
  singleAccountId: setting(z.string().max(255).nullable(), {
    section: 'routing',
    label: 'Single account',
    help: 'The one that serves every turn under the strategy “Single account”.',
  }),
  relativeAvailabilityPower: setting(z.number().positive().max(16), {
    section: 'routing',
    label: 'Relative availability: power',
    help: 'The higher, the more the accounts with much left are preferred; 1 is in proportion to what is left.',
  }),
  relativeAvailabilityTopK: setting(z.int().min(1).max(20), {
    section: 'routing',
    label: 'Relative availability: candidates',
    help: 'Only so many of the best accounts take part in the draw.',
    unit: 'accounts',
  }),
  preferEarlierResetAccounts: setting(z.boolean(), {
    section: 'routing',
    label: 'Spend what resets first',
    help: 'Prefers the account whose weekly window ends soonest, so that less of it is lost.',
  }),
  paidCredits: setting(z.enum(PAID_CREDITS), {
    section: 'routing',
    label: 'Paid credits',
    help: 'What happens when the weekly or monthly quota of an account is used up and it has paid credits left.',
  }),
  conversationAffinityMaxAgeDays: setting(z.int().min(1).max(365), {
    section: 'affinity',
    label: 'Remember who served a conversation',
    help: 'A conversation goes back to its account for this long after its last turn, where the upstream has it cached.',
    unit: 'days',
  }),
  proxyAccountStreamLimit: setting(z.int().min(0).max(10_000), {
    section: 'limits',
    label: 'Parallel streams per account',
    help: 'Further turns go to another account, or wait. 0: no limit.',
    unit: 'streams',
  }),
  capacityWaitSeconds: setting(z.int().min(0).max(60), {
    section: 'limits',
    label: 'Wait for a free stream',
    help: 'How long a turn waits when every account is at its limit, before it is refused.',
    unit: 'seconds',
  }),
  capacityQueueLimit: setting(z.int().min(0).max(10_000), {
    section: 'limits',
    label: 'Turns that may wait',
    help: 'Turns beyond this many are refused at once, so that clients back off.',
    unit: 'turns',
  }),
  inFlightBodyMiB: setting(z.int().min(16).max(8192), {
    section: 'limits',
    label: 'Memory for request bodies',
    help: 'Further requests are refused until some of the bodies are done with.',
    unit: 'MiB',
  }),
  socketsPerKey: setting(z.int().min(1).max(100_000), {
    section: 'limits',
    label: 'Open sockets per API key',
    help: 'Further sockets of the key are rejected; the Codex CLI then goes on over HTTP.',
    unit: 'sockets',
  }),
  socketsPerClient: setting(z.int().min(1).max(100_000), {
    section: 'limits',
    label: 'Open sockets per client address',
    help: 'Raise it when many users share one address, as behind a reverse proxy whose headers are not trusted.',
    unit: 'sockets',
  }),
  connectTimeoutSeconds: setting(seconds(60), {
    section: 'timeouts',
    label: 'Connecting',
    help: 'After this the upstream counts as out of reach and the next account is tried.',
    unit: 'seconds',
  }),
  firstEventTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'First event',
    help: 'How long one account may stay silent before its first event.',
    unit: 'seconds',
  }),
  commitTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'Before the answer starts',
    help: 'All attempts of a turn together; then the client is told.',
    unit: 'seconds',
  }),
  streamIdleTimeoutSeconds: setting(seconds(7200), {
    section: 'timeouts',
    label: 'Silence between events',
    help: 'A stream that is silent for longer is ended with an error.',
    unit: 'seconds',
  }),
  streamTimeoutSeconds: setting(seconds(86_400), {
    section: 'timeouts',
    label: 'A whole stream',
    help: 'Even a stream that is still busy is ended after this.',
    unit: 'seconds',
  }),
  compactTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'Compaction',
    help: 'How long the upstream may take to shorten a conversation.',
    unit: 'seconds',
  }),
  apiKeyAuthEnabled: setting(z.boolean(), {
    section: 'clients',
    label: 'Require an API key from every client',
    help: 'While this is off, clients on this machine and in the ranges of the environment are served without a key.',
    security: true,
  }),
  hideUpstreamQuotaFromApiKeys: setting(z.boolean(), {
    section: 'clients',
    label: 'Hide the quota of the pool from API keys',
    help: 'Clients see their own limits, and not how much the accounts behind them have left.',
    security: true,
  }),
  corsOrigins: setting(
    z
      .string()
      .trim()
      .toLowerCase()
      .max(2000)
      .regex(ORIGINS, ORIGINS_HINT)
      .refine((text) => text.split(/[\s,]+/).every((one) => one === '' || URL.canParse(one)), ORIGINS_HINT)
      .overwrite((text) => text.replace(/[^\s,]+/g, (one) => normalOrigin(one) ?? one)),
    {
      section: 'clients',
      label: 'Web apps that may call the API',
      help: 'Pages of these origins can use /v1 from the browser, always with an API key. Separate them by spaces; empty: none.',
      security: true,
    },
  ),
  totpRequiredOnLogin: setting(z.boolean(), {
    section: 'security',
    label: 'Require two-factor from everybody with a password',
    help: 'Who has not set it up does so before anything else.',
    security: true,
  }),
  totpRequiredForAdminRole: setting(z.boolean(), {
    section: 'security',
    label: 'Require two-factor from administrators',
    help: 'Of roles that may change security, people or roles, export credentials, or read conversations and the audit log.',
    security: true,
  }),
  guestAccessEnabled: setting(z.boolean(), {
    section: 'guests',
    label: 'Let guests look without an account',
    help: 'They see the overview with names masked and can change nothing.',
    security: true,
  }),
  dashboardSessionTtlSeconds: setting(z.int().min(3600).max(31_536_000), {
    section: 'security',
    label: 'A sign-in lasts',
    help: 'Then the password is asked for again; sign-ins from before keep their length.',
    unit: 'seconds',
    security: true,
  }),
  requestLogRetentionDays: setting(z.int().min(0).max(3650), {
    section: 'retention',
    label: 'Keep request logs',
    help: 'Older ones are deleted bit by bit; the hourly sums stay. 0: for ever.',
    unit: 'days',
  }),
  auditRetentionDays: setting(z.int().min(0).max(3650), {
    section: 'retention',
    label: 'Keep the audit log',
    help: 'What is left can still be proven to be whole. 0: for ever.',
    unit: 'days',
    security: true,
  }),
  backupIntervalHours: setting(z.int().min(0).max(720), {
    section: 'backups',
    label: 'Make a backup every',
    help: 'Into the folder “backups” of the data folder. 0: never.',
    unit: 'hours',
  }),
  backupKeep: setting(z.int().min(1).max(365), {
    section: 'backups',
    label: 'Keep the newest',
    help: 'Older backups are deleted after a new one was made by the schedule.',
    unit: 'backups',
  }),
})

export type Settings = z.output<typeof Settings>
export type SettingName = keyof Settings
export const SettingsPatch = Settings.partial()

/** Kept apart from the schema: `.default()` would fill every key a PATCH leaves out (measured, zod 4.6). */
export const DEFAULTS: Settings = {
  routingStrategy: 'capacity_weighted',
  upstreamStreamTransport: 'auto',
  singleAccountId: null,
  relativeAvailabilityPower: 2,
  relativeAvailabilityTopK: 5,
  preferEarlierResetAccounts: true,
  paidCredits: 'last',
  conversationAffinityMaxAgeDays: 30,
  proxyAccountStreamLimit: 8,
  capacityWaitSeconds: 5,
  capacityQueueLimit: 256,
  inFlightBodyMiB: 512,
  socketsPerKey: 64,
  socketsPerClient: 128,
  connectTimeoutSeconds: 8,
  firstEventTimeoutSeconds: 120,
  commitTimeoutSeconds: 180,
  streamIdleTimeoutSeconds: 300,
  streamTimeoutSeconds: 7200,
  compactTimeoutSeconds: 180,
  apiKeyAuthEnabled: false,
  hideUpstreamQuotaFromApiKeys: false,
  corsOrigins: '',
  totpRequiredOnLogin: false,
  totpRequiredForAdminRole: false,
  guestAccessEnabled: false,
  dashboardSessionTtlSeconds: 604_800,
  requestLogRetentionDays: 0,
  auditRetentionDays: 0,
  backupIntervalHours: 24,
  backupKeep: 7,
}

export const SETTING_NAMES = Object.keys(DEFAULTS) as SettingName[] // as: Object.keys forgets the literal types

/** The names of a patch whose change needs `security:write` and step-up. */
export const securityNames = (patch: Partial<Settings>): SettingName[] =>
  SETTING_NAMES.filter((name) => name in patch && Settings.shape[name].meta()?.security === true)
