/** What may be said about an API key from outside: the fields of a new key and of a change to one. */
import { z } from 'zod'
import { LIMIT_TYPES, LIMIT_WINDOWS } from '../../db/schema/keys.ts'
import { ExpectedVersion } from './edit-version.ts'
import { limitIdentity } from './key-limits.ts'

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra'] as const
export const SERVICE_TIERS = ['auto', 'default', 'priority', 'flex', 'ultrafast'] as const
const USAGE_SECTIONS = ['upstream_limits', 'account_pool_usage'] as const
export type UsageSection = (typeof USAGE_SECTIONS)[number]

const lowerCase = z.string().trim().toLowerCase()
const effort = lowerCase.pipe(z.enum(EFFORTS))
const modelName = z.string().trim().min(1).max(255)
const distinct = <T>(values: T[]): T[] => [...new Set(values)]

/** `fast` is what some clients call the priority tier. */
const serviceTier = lowerCase.transform((tier) => (tier === 'fast' ? 'priority' : tier)).pipe(z.enum(SERVICE_TIERS))

/** A comma list, kept as one. An empty one shows no section. */
const usageSections = z
  .string()
  .transform((text) => text.split(',').flatMap((part) => part.trim() || []))
  .pipe(z.array(z.enum(USAGE_SECTIONS)))
  .transform((sections) => distinct(sections).join(','))

const Limit = z
  .strictObject({
    limitType: z.enum(LIMIT_TYPES).describe('What is counted.'),
    limitWindow: z.enum(LIMIT_WINDOWS).describe('For how long; a month is 30 days.'),
    maxValue: z
      .int({ error: ({ code }) => (code === 'invalid_type' ? 'must be a whole number' : undefined) })
      .min(1)
      .describe('Tokens, requests or credits; millionths of a dollar for `cost_usd`.'),
    modelFilter: z.string().trim().max(255).nullish().describe('One model. Absent, null or empty: all together.'),
  })
  .refine(({ limitType, modelFilter }) => limitType !== 'credits' || !modelFilter, {
    path: ['modelFilter'],
    error: 'A credits limit counts all models.',
  })
  .transform(({ modelFilter, ...limit }) => ({ ...limit, modelFilter: modelFilter ?? '' }))
export type LimitInput = z.output<typeof Limit>

/** Only `name` is needed: what is left out takes the default of its column. */
export const NewKey = z.strictObject({
  name: z.string().trim().min(1).max(128).describe('What people call the key.'),
  allowedModels: z
    .array(modelName)
    .max(1000)
    .transform(distinct)
    .nullish()
    .describe('The models it may ask for. Null or empty: all.'),
  applyToCodexModel: z
    .boolean()
    .optional()
    .describe('The native catalog hides models outside `allowedModels` instead of leaving them out.'),
  enforcedModel: modelName.nullish().describe('Asked for in place of whatever the client asks for.'),
  enforcedReasoningEffort: effort.nullish().describe('Used in place of the client’s.'),
  allowedReasoningEfforts: z
    .array(effort.refine((name) => name !== 'none', 'No effort at all can be enforced, but not listed.'))
    .min(1)
    .transform(distinct)
    .nullish()
    .describe('Other efforts are refused; `none` cannot be listed. Null: all.'),
  enforcedServiceTier: serviceTier.nullish().describe('`fast` means `priority`. On `/v1` only.'),
  trafficClass: z.enum(['foreground', 'opportunistic']).optional().describe('Stored; no effect yet.'),
  transportPolicyOverride: z
    .enum(['smart', 'always_http', 'always_websocket'])
    .nullish()
    .describe('For clients that come over HTTP, instead of the setting; `smart` and null leave it to that.'),
  usageSections: usageSections
    .optional()
    .describe('What `GET /v1/usage` shows of the pool: `upstream_limits`, `account_pool_usage`, comma separated.'),
  expiresAt: z.iso
    .datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .nullish()
    .describe('ISO 8601 with a zone. Null: never.'),
  assignedAccountIds: z
    .array(z.string().min(1))
    .max(1000)
    .transform(distinct)
    .nullish()
    .describe('Only these accounts serve it. Null: all; empty: none.'),
  ownerUserId: z
    .string()
    .min(1)
    .max(64)
    .nullish()
    .describe('Id of the person it belongs to. Absent: who makes it; null: nobody.'),
  assignedSourceIds: z.null().optional().describe('Model sources do not exist yet, so no key can be confined to some.'),
  limits: z
    .array(Limit)
    .max(100)
    .refine(areDistinct, 'Two limits have the same type, window and model.')
    .optional()
    .describe('What it may use. A change replaces the list; limits that stay keep their use.'),
})
export type NewKey = z.output<typeof NewKey>

export const KeyPatch = NewKey.partial().extend({
  isActive: z.boolean().optional().describe('Off, it is refused from the next request on.'),
  resetUsage: z.boolean().optional().describe('Sets the use of every limit back to zero.'),
  expectedVersion: ExpectedVersion,
})
export type KeyPatch = z.output<typeof KeyPatch>

function areDistinct(limits: LimitInput[]): boolean {
  return new Set(limits.map(limitIdentity)).size === limits.length
}
