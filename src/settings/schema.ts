/** Every setting: one line with its bounds and label, and its default beside it. Adding one touches this file only. */
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

/** `security: true` asks for `security:write` and a recent confirmation when the value changes. */
interface SettingMeta {
  section: 'routing' | 'limits' | 'timeouts' | 'access' | 'data'
  label: string
  security?: true
}

const meta = (
  section: SettingMeta['section'],
  label: string,
  security?: true,
): SettingMeta & Record<string, unknown> => (security ? { section, label, security } : { section, label })

const seconds = (max: number) => z.int().min(1).max(max)

export const TRANSPORTS = ['auto', 'http', 'websocket'] as const

export const Settings = z.strictObject({
  upstreamStreamTransport: z.enum(TRANSPORTS).meta(meta('routing', 'Upstream stream transport')),
  routingStrategy: z.enum(STRATEGIES).meta(meta('routing', 'Strategy')),
  singleAccountId: z.string().max(255).nullable().meta(meta('routing', 'Account of the single-account strategy')),
  relativeAvailabilityPower: z.number().positive().max(16).meta(meta('routing', 'Relative availability: power')),
  relativeAvailabilityTopK: z.int().min(1).max(20).meta(meta('routing', 'Relative availability: candidates kept')),
  preferEarlierResetAccounts: z.boolean().meta(meta('routing', 'Spend the account that resets first')),
  conversationAffinityMaxAgeDays: z.int().min(1).max(365).meta(meta('routing', 'Remember the owner of a conversation')),
  proxyAccountStreamLimit: z
    .int()
    .min(0)
    .max(10_000)
    .meta(meta('limits', 'Parallel streams per account (0: no limit)')),
  capacityWaitSeconds: z.int().min(0).max(60).meta(meta('limits', 'Wait for a free stream slot')),
  capacityQueueLimit: z.int().min(0).max(10_000).meta(meta('limits', 'Turns that may wait for a slot')),
  inFlightBodyMiB: z.int().min(16).max(8192).meta(meta('limits', 'Request bodies held in memory')),
  connectTimeoutSeconds: seconds(60).meta(meta('timeouts', 'Connect')),
  firstEventTimeoutSeconds: seconds(3600).meta(meta('timeouts', 'First event')),
  commitTimeoutSeconds: seconds(3600).meta(meta('timeouts', 'Everything before the answer starts')),
  streamIdleTimeoutSeconds: seconds(7200).meta(meta('timeouts', 'Silence between events')),
  streamTimeoutSeconds: seconds(86_400).meta(meta('timeouts', 'Whole stream')),
  compactTimeoutSeconds: seconds(3600).meta(meta('timeouts', 'Compaction')),
  apiKeyAuthEnabled: z.boolean().meta(meta('access', 'Require an API key from every client', true)),
  hideUpstreamQuotaFromApiKeys: z.boolean().meta(meta('access', 'Hide the quota of the pool from API keys', true)),
  totpRequiredOnLogin: z.boolean().meta(meta('access', 'Require two-factor from everybody with a password', true)),
  totpRequiredForAdminRole: z.boolean().meta(meta('access', 'Require two-factor from administrators', true)),
  guestAccessEnabled: z.boolean().meta(meta('access', 'Let guests look without an account', true)),
  dashboardSessionTtlSeconds: z
    .int()
    .min(3600)
    .max(31_536_000)
    .meta(meta('access', 'Length of a session (seconds)', true)),
  requestLogRetentionDays: z.int().min(0).max(3650).meta(meta('data', 'Keep request logs (days, 0: for ever)')),
  auditRetentionDays: z
    .int()
    .min(0)
    .max(3650)
    .meta(meta('data', 'Keep the audit log (days, 0: for ever)', true)),
})

export type Settings = z.output<typeof Settings>
export type SettingName = keyof Settings
export const SettingsPatch = Settings.partial()

/** Kept apart from the schema: `.default()` would fill every key a PATCH leaves out (measured, zod 4.6). */
export const DEFAULTS: Settings = {
  upstreamStreamTransport: 'auto',
  routingStrategy: 'capacity_weighted',
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
}

export const SETTING_NAMES = Object.keys(DEFAULTS) as SettingName[] // as: Object.keys forgets the literal types

/** The names of a patch whose change needs `security:write` and step-up. */
export const securityNames = (patch: Partial<Settings>): SettingName[] =>
  SETTING_NAMES.filter((name) => name in patch && Settings.shape[name].meta()?.security === true)
