/** What may be said about an API key from outside: the fields of a new key and of a change to one. */
import { z } from 'zod'
import { LIMIT_TYPES, LIMIT_WINDOWS } from '../../db/schema/keys.ts'

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra'] as const
export const SERVICE_TIERS = ['auto', 'default', 'priority', 'flex', 'ultrafast'] as const
export const USAGE_SECTIONS = ['upstream_limits', 'account_pool_usage'] as const
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
    limitType: z.enum(LIMIT_TYPES),
    limitWindow: z.enum(LIMIT_WINDOWS),
    /** Tokens, requests or credits; micro-dollars for `cost_usd`. */
    maxValue: z.int().min(1),
    /** Exact model; absent, null or empty: all models. */
    modelFilter: z.string().trim().max(255).nullish(),
  })
  .refine(({ limitType, modelFilter }) => limitType !== 'credits' || !modelFilter, {
    path: ['modelFilter'],
    error: 'A credits limit counts all models.',
  })
  .transform(({ modelFilter, ...limit }) => ({ ...limit, modelFilter: modelFilter ?? '' }))
export type LimitInput = z.output<typeof Limit>

/** What makes two limits of one key the same limit. */
export const limitIdentity = (limit: Omit<LimitInput, 'maxValue'>): string =>
  [limit.limitType, limit.limitWindow, limit.modelFilter].join(' ')

/** Only `name` is needed: what is left out takes the default of its column. */
export const NewKey = z.strictObject({
  name: z.string().trim().min(1).max(128),
  /** null or empty: every model. */
  allowedModels: z.array(modelName).max(1000).transform(distinct).nullish(),
  applyToCodexModel: z.boolean().optional(),
  enforcedModel: modelName.nullish(),
  enforcedReasoningEffort: effort.nullish(),
  allowedReasoningEfforts: z
    .array(effort.refine((name) => name !== 'none', 'No effort at all can be enforced, but not listed.'))
    .min(1)
    .transform(distinct)
    .nullish(),
  enforcedServiceTier: serviceTier.nullish(),
  trafficClass: z.enum(['foreground', 'opportunistic']).optional(),
  transportPolicyOverride: z.enum(['smart', 'always_http', 'always_websocket']).nullish(),
  usageSections: usageSections.optional(),
  /** Older clients: one total_tokens limit of a week for all models. */
  weeklyTokenLimit: z.int().min(1).nullish(),
  expiresAt: z.iso
    .datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .nullish(),
  /** null: every account; a list: only these, and an empty list none. */
  assignedAccountIds: z.array(z.string().min(1)).max(1000).transform(distinct).nullish(),
  /** Account id; absent: who makes the key. null: nobody's. */
  ownerUserId: z.string().min(1).max(64).nullish(),
  /** Model sources do not exist yet, so no key can be confined to some. */
  assignedSourceIds: z.null().optional(),
  limits: z.array(Limit).max(100).refine(areDistinct, 'Two limits have the same type, window and model.').optional(),
})
export type NewKey = z.output<typeof NewKey>

export const KeyPatch = NewKey.partial().extend({
  isActive: z.boolean().optional(),
  /** Sets the use of every limit back to zero. */
  resetUsage: z.boolean().optional(),
})
export type KeyPatch = z.output<typeof KeyPatch>

function areDistinct(limits: LimitInput[]): boolean {
  return new Set(limits.map(limitIdentity)).size === limits.length
}
