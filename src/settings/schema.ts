/** Every setting: its bounds, label, help and default. Adding one touches this file only. */
import { z } from 'zod'
import { RESET_POLICIES } from '../../db/schema/accounts.ts'
import { FAST_MODE_RULES } from '../../db/schema/keys.ts'
import { isZone } from '../lib/zoned-days.ts'
import { ALERTS } from './alert-settings.ts'
import { ClaudeModels } from './claude-models.ts'
import { KeyHolderPage, MemberKeyDefaults } from './key-settings.ts'
import { PLANNER } from './planner-settings.ts'
import { setting } from './setting.ts'
import { HOURS, HOURS_HINT, Origins, ZONE_HINT } from './texts.ts'
import { TIMEOUTS } from './timeouts.ts'

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

export const CLIENT_RATE_LIMITS = ['pool', 'account', 'hidden'] as const
export const WINDOW_STARTS = ['off', 'at_reset', 'at_hours'] as const

export const PAID_CREDITS = ['never', 'last', 'freely'] as const

export const OVERFLOW_KEYS = ['all', 'marked'] as const

export const Settings = z.strictObject({
  routingStrategy: setting(z.enum(STRATEGIES), {
    section: 'routing',
    label: 'Strategy',
    help: 'How Sluice chooses the account for a new conversation.',
  }),
  upstreamStreamTransport: setting(z.enum(TRANSPORTS), {
    section: 'routing',
    label: 'Streaming from ChatGPT',
    help: 'How ChatGPT streams responses to Sluice.',
  }),
  singleAccountId: setting(z.string().max(255).nullable(), {
    section: 'routing',
    label: 'Single account',
    help: 'The account that gets every request under the strategy “Single account”.',
  }),
  relativeAvailabilityPower: setting(z.number().positive().max(16), {
    section: 'routing',
    label: 'Preference for accounts with more quota',
    help: 'Used by “Relative availability”. At 1, an account with twice as much left is chosen twice as often. Higher values prefer it more strongly.',
  }),
  relativeAvailabilityTopK: setting(z.int().min(1).max(20), {
    section: 'routing',
    label: 'Accounts to choose from',
    help: 'Used by “Relative availability”. It chooses among this many of the best accounts.',
    unit: 'accounts',
  }),
  preferEarlierResetAccounts: setting(z.boolean(), {
    section: 'routing',
    label: 'Prefer accounts that reset sooner',
    help: 'Uses the account whose weekly window resets first, so less quota goes to waste.',
  }),
  paidCredits: setting(z.enum(PAID_CREDITS), {
    section: 'routing',
    label: 'Paid credits',
    help: 'Whether to spend paid credits when an account has used up its weekly or monthly quota.',
  }),
  claudeModels: ClaudeModels,
  windowStart: setting(z.enum(WINDOW_STARTS), {
    section: 'windows',
    label: 'Start five-hour windows',
    help: 'When Sluice sends a tiny request to start the window of each account that has this turned on.',
  }),
  windowStartHours: setting(
    z
      .string()
      .max(200)
      .overwrite((text) => text.trim().replace(/[\s,]+/g, ' '))
      .regex(HOURS, HOURS_HINT),
    {
      section: 'windows',
      label: 'Hours',
      help: 'For “At set hours”: times like 08:00 13:30. A window that is already running is left alone.',
    },
  ),
  windowStartZone: setting(z.string().trim().max(64).refine(isZone, ZONE_HINT), {
    section: 'windows',
    label: 'Time zone of the hours',
    help: 'A name like Europe/Berlin.',
  }),
  windowStartModel: setting(z.string().trim().min(1).max(200).nullable(), {
    section: 'windows',
    label: 'Model',
    help: 'The model these requests use. Leave empty for the cheapest model of the account.',
  }),
  ...PLANNER,
  resetPolicy: setting(z.enum(RESET_POLICIES), {
    section: 'resets',
    label: 'Use reset credits',
    help: 'When Sluice uses reset credits automatically. An account can have its own rule.',
  }),
  resetKeepCredits: setting(z.int().min(0).max(9), {
    section: 'resets',
    label: 'Credits to keep',
    help: 'Sluice leaves this many credits of each account for you.',
    unit: 'credits',
  }),
  resetMinBlockedMinutes: setting(z.int().min(0).max(10_080), {
    section: 'resets',
    label: 'Wait if the limits reset within',
    help: 'No credit is used if the limits reset on their own within this time.',
    unit: 'minutes',
  }),
  resetPercent: setting(z.int().min(50).max(100), {
    section: 'resets',
    label: 'Percent used',
    help: 'For “At a percentage” and “Before it expires”. How much of a window must be used.',
    unit: 'percent',
  }),
  overflowSourceId: setting(z.string().max(255).nullable(), {
    section: 'overflow',
    label: 'Overflow source',
    help: 'The source to use. It must support the Responses API.',
  }),
  overflowModel: setting(z.string().trim().min(1).max(255).nullable(), {
    section: 'overflow',
    label: 'Overflow model',
    help: 'The model the source uses. Without one, it gets the model that the client requested.',
  }),
  overflowKeys: setting(z.enum(OVERFLOW_KEYS), {
    section: 'overflow',
    label: 'Keys that may overflow',
    help: 'Which requests can use the overflow source.',
  }),
  overflowCostUsdPerDay: setting(z.number().min(0).max(1_000_000), {
    section: 'overflow',
    label: 'Overflow budget per day',
    help: 'When requests to the source cost this much in one day, overflow stops until the next day. A model without prices is then not used.',
    unit: 'USD',
  }),
  conversationAffinityMaxAgeDays: setting(z.int().min(1).max(365), {
    section: 'affinity',
    label: 'Keep conversations on their account',
    help: 'How long after its last request a conversation returns to the account that has it cached.',
    unit: 'days',
  }),
  proxyAccountStreamLimit: setting(z.int().min(0).max(10_000), {
    section: 'limits',
    label: 'Parallel streams per account',
    help: 'More requests go to another account or wait.',
    unit: 'streams',
  }),
  capacityWaitSeconds: setting(z.int().min(0).max(60), {
    section: 'limits',
    label: 'Wait for a free stream',
    help: 'How long a request waits when every account is at its limit before it is rejected.',
    unit: 'seconds',
  }),
  capacityQueueLimit: setting(z.int().min(0).max(10_000), {
    section: 'limits',
    label: 'Waiting requests',
    help: 'Requests beyond this number are rejected immediately, so clients back off.',
    unit: 'requests',
  }),
  inFlightBodyMiB: setting(z.int().min(16).max(8192), {
    section: 'limits',
    label: 'Memory for request bodies',
    help: 'More requests are rejected until memory is free again.',
    unit: 'MiB',
  }),
  socketsPerKey: setting(z.int().min(1).max(100_000), {
    section: 'limits',
    label: 'Open sockets per API key',
    help: 'More sockets are rejected. The Codex CLI then continues over HTTP.',
    unit: 'sockets',
  }),
  socketsPerClient: setting(z.int().min(1).max(100_000), {
    section: 'limits',
    label: 'Open sockets per client address',
    help: 'Raise it if many users share one address, for example behind a reverse proxy that isn’t trusted.',
    unit: 'sockets',
  }),
  ...TIMEOUTS,
  egressRouting: setting(z.boolean(), {
    section: 'egress',
    label: 'Require an outbound proxy for every account',
    help: 'Accounts without a pool use the default pool. An account whose proxies can’t be used is skipped, never connected directly.',
    security: true,
  }),
  egressDefaultPoolId: setting(z.string().max(255).nullable(), {
    section: 'egress',
    label: 'Default pool',
    help: 'For accounts without a pool of their own, while a proxy is required.',
    security: true,
  }),
  apiKeyAuthEnabled: setting(z.boolean(), {
    section: 'clients',
    label: 'Require an API key',
    help: 'When off, clients on this machine can connect without a key.',
    security: true,
  }),
  hideUpstreamQuotaFromApiKeys: setting(z.boolean(), {
    section: 'clients',
    label: 'Hide account quota from clients',
    help: 'Clients see the limits of their own key, but not how much quota the accounts have left.',
    security: true,
  }),
  forwardClientAnalytics: setting(z.boolean(), {
    section: 'clients',
    label: 'Forward client telemetry to ChatGPT',
    help: 'Codex reports how it is used. When off, Sluice accepts these reports and discards them.',
  }),
  clientRateLimits: setting(z.enum(CLIENT_RATE_LIMITS), {
    section: 'clients',
    label: 'Limits shown to clients',
    help: 'Which limits clients such as the Codex IDE extension show. A key with limits of its own shows those instead of the pool’s.',
    security: true,
  }),
  pooledUsageForOwners: setting(z.boolean(), {
    section: 'clients',
    label: 'Show the pool’s usage to account owners',
    help: 'For tools signed in with an account of the pool, such as ChatGPT Desktop. When off, they show only the usage of that account.',
    security: true,
  }),
  prohibitFastMode: setting(z.enum(FAST_MODE_RULES), {
    section: 'clients',
    label: 'Fast mode',
    help: 'Whether clients may use the fast service tier, which costs more. A key can have its own rule.',
  }),
  corsOrigins: setting(Origins, {
    section: 'clients',
    label: 'Allowed web apps (CORS)',
    help: 'Web pages on these origins can call /v1 from the browser with an API key. Separate origins with spaces.',
    security: true,
  }),
  keyHolderPage: KeyHolderPage,
  memberKeyDefaults: MemberKeyDefaults,
  totpRequiredOnLogin: setting(z.boolean(), {
    section: 'security',
    label: 'Require two-factor authentication',
    help: 'Applies to everyone who signs in with a password. Users without it must set it up at their next sign-in.',
    security: true,
  }),
  totpRequiredForAdminRole: setting(z.boolean(), {
    section: 'security',
    label: 'Require two-factor authentication for administrators',
    help: 'Applies to roles that can change security, users or roles, export credentials, or read conversations and the audit log.',
    security: true,
  }),
  guestAccessEnabled: setting(z.boolean(), {
    section: 'guests',
    label: 'Guest access',
    help: 'Guests can view the overview with names masked, and can’t change anything.',
    security: true,
  }),
  dashboardSessionTtlSeconds: setting(z.int().min(3600).max(31_536_000), {
    section: 'security',
    label: 'Session length',
    help: 'How long you stay signed in. Existing sessions keep their length.',
    unit: 'seconds',
    security: true,
  }),
  requestLogRetentionDays: setting(z.int().min(0).max(3650), {
    section: 'retention',
    label: 'Keep request logs',
    help: 'Older requests are deleted. Hourly totals are kept.',
    unit: 'days',
  }),
  auditRetentionDays: setting(z.int().min(0).max(3650), {
    section: 'retention',
    label: 'Keep the audit log',
    help: 'Older entries are deleted. The remaining ones can still be verified.',
    unit: 'days',
    security: true,
  }),
  captureRetentionDays: setting(z.int().min(1).max(90), {
    section: 'retention',
    label: 'Keep captured requests',
    help: 'A capture stores requests and answers in full. It is deleted this long after it ended.',
    unit: 'days',
    security: true,
  }),
  responseStoreMinutes: setting(z.int().min(0).max(1440), {
    section: 'retention',
    label: 'Keep responses for follow-up requests',
    help: 'Lets clients of /v1 continue a conversation by response ID, as with OpenAI. Kept in memory only.',
    unit: 'minutes',
  }),
  responseStoreMiB: setting(z.int().min(1).max(8192), {
    section: 'retention',
    label: 'Memory for kept responses',
    help: 'When it is full, the oldest responses are deleted first.',
    unit: 'MiB',
  }),
  ...ALERTS,
  backupIntervalHours: setting(z.int().min(0).max(720), {
    section: 'backups',
    label: 'Back up every',
    help: 'Backups go into the folder “backups” in the data folder.',
    unit: 'hours',
  }),
  backupKeep: setting(z.int().min(1).max(365), {
    section: 'backups',
    label: 'Backups to keep',
    help: 'Older backups are deleted after each scheduled backup.',
    unit: 'backups',
  }),
})

export type Settings = z.output<typeof Settings>
export type SettingName = keyof Settings
export const SettingsPatch = Settings.partial()

/** Separate from the schema: `.default()` would fill keys that a PATCH leaves out (zod 4.6). */
export const DEFAULTS: Settings = {
  routingStrategy: 'capacity_weighted',
  upstreamStreamTransport: 'auto',
  singleAccountId: null,
  relativeAvailabilityPower: 2,
  relativeAvailabilityTopK: 5,
  preferEarlierResetAccounts: true,
  paidCredits: 'last',
  claudeModels: { opus: null, sonnet: null, haiku: null },
  windowStart: 'off',
  windowStartHours: '',
  windowStartZone: 'UTC',
  windowStartModel: null,
  plannerMode: 'off',
  plannerZone: 'UTC',
  plannerWorkingDays: 'mon tue wed thu fri',
  plannerWorkingHoursStart: '09:00',
  plannerWorkingHoursEnd: '18:00',
  plannerMaxStartsPerDay: 3,
  plannerMinGainPercent: 5,
  resetPolicy: 'never',
  resetKeepCredits: 0,
  resetMinBlockedMinutes: 60,
  resetPercent: 95,
  overflowSourceId: null,
  overflowModel: null,
  overflowKeys: 'all',
  overflowCostUsdPerDay: 0,
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
  imageTimeoutSeconds: 300,
  egressRouting: false,
  egressDefaultPoolId: null,
  apiKeyAuthEnabled: false,
  hideUpstreamQuotaFromApiKeys: false,
  forwardClientAnalytics: false,
  clientRateLimits: 'pool',
  pooledUsageForOwners: true,
  prohibitFastMode: 'off',
  corsOrigins: '',
  keyHolderPage: false,
  memberKeyDefaults: { maxKeys: 5, models: null, limits: [], expiresDays: null },
  totpRequiredOnLogin: false,
  totpRequiredForAdminRole: false,
  guestAccessEnabled: false,
  dashboardSessionTtlSeconds: 604_800,
  requestLogRetentionDays: 0,
  auditRetentionDays: 0,
  captureRetentionDays: 7,
  responseStoreMinutes: 60,
  responseStoreMiB: 64,
  alertMinAccounts: 0,
  alertAccountPercent: 0,
  alertBlockedHours: 0,
  backupIntervalHours: 24,
  backupKeep: 7,
}

export const SETTING_NAMES = Object.keys(DEFAULTS) as SettingName[] // as: Object.keys forgets the literal types

/** The names of a patch whose change needs `security:write` and step-up. */
export const securityNames = (patch: Partial<Settings>): SettingName[] =>
  SETTING_NAMES.filter((name) => name in patch && Settings.shape[name].meta()?.security === true)
