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

const meta = (
  section: Section,
  label: string,
  help: string,
  more: Pick<SettingMeta, 'unit' | 'security'> = {},
): SettingMeta & Record<string, unknown> => ({ section, label, help, ...more })

const SECURITY = { security: true } as const
const SECONDS = { unit: 'seconds' } as const
const DAYS = { unit: 'days' } as const

const seconds = (max: number) => z.int().min(1).max(max)

export const Settings = z.strictObject({
  routingStrategy: z
    .enum(STRATEGIES)
    .meta(
      meta('routing', 'Strategy', 'How the account of a new conversation is chosen among those that can serve it.'),
    ),
  upstreamStreamTransport: z
    .enum(TRANSPORTS)
    .meta(meta('routing', 'Upstream stream transport', 'How answers are streamed from the upstream to Sluice.')),
  singleAccountId: z
    .string()
    .max(255)
    .nullable()
    .meta(meta('routing', 'Single account', 'The one that serves every turn under the strategy “Single account”.')),
  relativeAvailabilityPower: z
    .number()
    .positive()
    .max(16)
    .meta(
      meta(
        'routing',
        'Relative availability: power',
        'The higher, the more the accounts with much left are preferred; 1 is in proportion to what is left.',
      ),
    ),
  relativeAvailabilityTopK: z
    .int()
    .min(1)
    .max(20)
    .meta(
      meta('routing', 'Relative availability: candidates', 'Only so many of the best accounts take part in the draw.', {
        unit: 'accounts',
      }),
    ),
  preferEarlierResetAccounts: z
    .boolean()
    .meta(
      meta(
        'routing',
        'Spend what resets first',
        'Prefers the account whose weekly window ends soonest, so that less of it is lost.',
      ),
    ),
  conversationAffinityMaxAgeDays: z
    .int()
    .min(1)
    .max(365)
    .meta(
      meta(
        'affinity',
        'Remember who served a conversation',
        'A conversation goes back to its account for this long after its last turn, where the upstream has it cached.',
        DAYS,
      ),
    ),
  proxyAccountStreamLimit: z
    .int()
    .min(0)
    .max(10_000)
    .meta(
      meta('limits', 'Parallel streams per account', 'Further turns go to another account, or wait. 0: no limit.', {
        unit: 'streams',
      }),
    ),
  capacityWaitSeconds: z
    .int()
    .min(0)
    .max(60)
    .meta(
      meta(
        'limits',
        'Wait for a free stream',
        'How long a turn waits when every account is at its limit, before it is refused.',
        SECONDS,
      ),
    ),
  capacityQueueLimit: z
    .int()
    .min(0)
    .max(10_000)
    .meta(
      meta('limits', 'Turns that may wait', 'Turns beyond this many are refused at once, so that clients back off.', {
        unit: 'turns',
      }),
    ),
  inFlightBodyMiB: z
    .int()
    .min(16)
    .max(8192)
    .meta(
      meta(
        'limits',
        'Memory for request bodies',
        'Further requests are refused until some of the bodies are done with.',
        {
          unit: 'MiB',
        },
      ),
    ),
  connectTimeoutSeconds: seconds(60).meta(
    meta(
      'timeouts',
      'Connecting',
      'After this the upstream counts as out of reach and the next account is tried.',
      SECONDS,
    ),
  ),
  firstEventTimeoutSeconds: seconds(3600).meta(
    meta('timeouts', 'First event', 'How long one account may stay silent before its first event.', SECONDS),
  ),
  commitTimeoutSeconds: seconds(3600).meta(
    meta('timeouts', 'Before the answer starts', 'All attempts of a turn together; then the client is told.', SECONDS),
  ),
  streamIdleTimeoutSeconds: seconds(7200).meta(
    meta('timeouts', 'Silence between events', 'A stream that is silent for longer is ended with an error.', SECONDS),
  ),
  streamTimeoutSeconds: seconds(86_400).meta(
    meta('timeouts', 'A whole stream', 'Even a stream that is still busy is ended after this.', SECONDS),
  ),
  compactTimeoutSeconds: seconds(3600).meta(
    meta('timeouts', 'Compaction', 'How long the upstream may take to shorten a conversation.', SECONDS),
  ),
  apiKeyAuthEnabled: z
    .boolean()
    .meta(
      meta(
        'clients',
        'Require an API key from every client',
        'While this is off, clients on this machine and in the ranges of the environment are served without a key.',
        SECURITY,
      ),
    ),
  hideUpstreamQuotaFromApiKeys: z
    .boolean()
    .meta(
      meta(
        'clients',
        'Hide the quota of the pool from API keys',
        'Clients see their own limits, and not how much the accounts behind them have left.',
        SECURITY,
      ),
    ),
  totpRequiredOnLogin: z
    .boolean()
    .meta(
      meta(
        'security',
        'Require two-factor from everybody with a password',
        'Who has not set it up does so before anything else.',
        SECURITY,
      ),
    ),
  totpRequiredForAdminRole: z
    .boolean()
    .meta(
      meta(
        'security',
        'Require two-factor from administrators',
        'Of roles that may change security, people or roles, export credentials, or read conversations and the audit log.',
        SECURITY,
      ),
    ),
  guestAccessEnabled: z
    .boolean()
    .meta(
      meta(
        'guests',
        'Let guests look without an account',
        'They see the overview with names masked and can change nothing.',
        SECURITY,
      ),
    ),
  dashboardSessionTtlSeconds: z
    .int()
    .min(3600)
    .max(31_536_000)
    .meta(
      meta(
        'security',
        'A sign-in lasts',
        'Then the password is asked for again; sign-ins from before keep their length.',
        {
          unit: 'seconds',
          security: true,
        },
      ),
    ),
  requestLogRetentionDays: z
    .int()
    .min(0)
    .max(3650)
    .meta(
      meta(
        'retention',
        'Keep request logs',
        'Older ones are deleted bit by bit; the hourly sums stay. 0: for ever.',
        DAYS,
      ),
    ),
  auditRetentionDays: z
    .int()
    .min(0)
    .max(3650)
    .meta(
      meta('retention', 'Keep the audit log', 'What is left can still be proven to be whole. 0: for ever.', {
        unit: 'days',
        security: true,
      }),
    ),
  backupIntervalHours: z
    .int()
    .min(0)
    .max(720)
    .meta(
      meta('backups', 'Make a backup every', 'Into the folder “backups” of the data folder. 0: never.', {
        unit: 'hours',
      }),
    ),
  backupKeep: z
    .int()
    .min(1)
    .max(365)
    .meta(
      meta('backups', 'Keep the newest', 'Older backups are deleted after a new one was made by the schedule.', {
        unit: 'backups',
      }),
    ),
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
  conversationAffinityMaxAgeDays: 30,
  proxyAccountStreamLimit: 8,
  capacityWaitSeconds: 5,
  capacityQueueLimit: 256,
  inFlightBodyMiB: 512,
  connectTimeoutSeconds: 8,
  firstEventTimeoutSeconds: 120,
  commitTimeoutSeconds: 180,
  streamIdleTimeoutSeconds: 300,
  streamTimeoutSeconds: 7200,
  compactTimeoutSeconds: 180,
  apiKeyAuthEnabled: false,
  hideUpstreamQuotaFromApiKeys: false,
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
