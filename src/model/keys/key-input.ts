/** The request bodies that create and change an API key. */
import { z } from 'zod'
import { FAST_MODE_RULES, LIMIT_TYPES, LIMIT_WINDOWS } from '../../../db/schema/keys.ts'
import { Settings } from '../../settings/schema.ts'
import { Tags } from '../accounts/account-tags.ts'
import { EFFORTS } from '../catalog/efforts.ts'
import { ExpectedVersion } from '../edit-version.ts'
import { limitIdentity } from './key-limits.ts'

export const SERVICE_TIERS = ['auto', 'default', 'priority', 'flex', 'ultrafast'] as const
const USAGE_SECTIONS = ['upstream_limits', 'account_pool_usage'] as const
export type UsageSection = (typeof USAGE_SECTIONS)[number]

const lowerCase = z.string().trim().toLowerCase()
const effort = lowerCase.pipe(z.enum(EFFORTS))
const modelName = z.string().trim().min(1).max(255)
const distinct = <T>(values: T[]): T[] => [...new Set(values)]

/** `fast` is what some clients call the priority tier. */
const serviceTier = lowerCase.transform((tier) => (tier === 'fast' ? 'priority' : tier)).pipe(z.enum(SERVICE_TIERS))

/** A comma-separated list, stored as one. Empty shows no section. */
const usageSections = z
  .string()
  .transform((text) => text.split(',').flatMap((part) => part.trim() || []))
  .pipe(z.array(z.enum(USAGE_SECTIONS)))
  .transform((sections) => distinct(sections).join(','))

const Limit = z
  .strictObject({
    limitType: z.enum(LIMIT_TYPES).describe('The unit that is limited.'),
    limitWindow: z.enum(LIMIT_WINDOWS).describe('The period. A month is 30 days.'),
    maxValue: z
      .int({ error: ({ code }) => (code === 'invalid_type' ? 'must be a whole number' : undefined) })
      .min(1)
      .describe('Tokens or requests; micro-dollars for `cost_usd`.'),
    modelFilter: z
      .string()
      .trim()
      .max(255)
      .nullish()
      .describe('Counts only this model. Absent, null or empty: all models.'),
  })
  .transform(({ modelFilter, ...limit }) => ({ ...limit, modelFilter: modelFilter ?? '' }))
export type LimitInput = z.output<typeof Limit>

/** Only `name` is required; other fields take the default of their column. */
export const NewKey = z.strictObject({
  name: z.string().trim().min(1).max(128).describe('Display name.'),
  allowedModels: z
    .array(modelName)
    .max(1000)
    .transform(distinct)
    .nullish()
    .describe('Allowed models. Null or empty: all.'),
  applyToCodexModel: z
    .boolean()
    .optional()
    .describe('The native catalog marks models outside `allowedModels` as hidden instead of removing them.'),
  enforcedModel: modelName.nullish().describe('Used instead of the model the client requests.'),
  enforcedReasoningEffort: effort.nullish().describe('Used instead of the effort the client requests.'),
  allowedReasoningEfforts: z
    .array(effort.refine((name) => name !== 'none', '`none` can be enforced but not listed.'))
    .min(1)
    .transform(distinct)
    .nullish()
    .describe('Other efforts are rejected. `none` cannot be listed. Null: all.'),
  enforcedServiceTier: serviceTier.nullish().describe('`fast` means `priority`. On `/v1` only.'),
  trafficClass: z
    .enum(['foreground', 'opportunistic'])
    .optional()
    .describe('`opportunistic`: uses only quota that foreground keys leave over, otherwise 429.'),
  prohibitFastMode: z
    .enum(FAST_MODE_RULES)
    .nullish()
    .describe('`strip` sends requests without a fast tier, `refuse` rejects them. Null: the setting of this name.'),
  claudeModels: Settings.shape.claudeModels
    .nullish()
    .describe('Models for the Claude names, like the setting. Null, for all or for one name: use the setting.'),
  holderMayRegenerate: z
    .boolean()
    .optional()
    .describe('The holder of the key can create a new secret on the page of the key (`keyHolderPage`).'),
  transportPolicyOverride: z
    .enum(['smart', 'always_http', 'always_websocket'])
    .nullish()
    .describe('Overrides the transport setting for HTTP clients. `smart` and null use the setting.'),
  usageSections: usageSections
    .optional()
    .describe('What `GET /v1/usage` shows of the pool: `upstream_limits`, `account_pool_usage`, comma-separated.'),
  expiresAt: z.iso
    .datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .nullish()
    .describe('ISO 8601 with a zone. Null: never expires.'),
  assignedAccountIds: z
    .array(z.string().min(1))
    .max(1000)
    .transform(distinct)
    .nullish()
    .describe('Accounts that may serve this key. Null: all, or those of `assignedTags`; empty: none but those.'),
  assignedTags: Tags.nullish().describe(
    'Accounts with any of these tags may serve this key, beside `assignedAccountIds`. Null: no choice by tag; empty: none, so that only `assignedAccountIds` may.',
  ),
  ownerUserId: z
    .string()
    .min(1)
    .max(64)
    .nullish()
    .describe('User id of the owner. Absent: the user who creates it; null: no owner.'),
  assignedSourceIds: z
    .array(z.string().min(1))
    .max(1000)
    .transform(distinct)
    .nullish()
    .describe('Model sources that may serve this key, before accounts. Null: all, where no account has the model.'),
  allowOverflow: z
    .boolean()
    .optional()
    .describe('Marks the key for overflow to a model source, where the settings allow it to marked keys only.'),
  limits: z
    .array(Limit)
    .max(100)
    .refine(areDistinct, 'Two limits have the same type, window and model.')
    .optional()
    .describe('Replaces the list of limits. Limits that stay keep their usage.'),
})
export type NewKey = z.output<typeof NewKey>

export const KeyPatch = NewKey.partial().extend({
  isActive: z.boolean().optional().describe('When off, requests with this key are rejected.'),
  resetUsage: z.boolean().optional().describe('Sets the usage of every limit back to zero.'),
  expectedVersion: ExpectedVersion,
})
export type KeyPatch = z.output<typeof KeyPatch>

function areDistinct(limits: LimitInput[]): boolean {
  return new Set(limits.map(limitIdentity)).size === limits.length
}
