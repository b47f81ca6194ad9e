/** Settings about keys that people outside the team of operators create or hold. */
import { z } from 'zod'
import { LIMIT_TYPES, LIMIT_WINDOWS } from '../../db/schema/keys.ts'

const Limit = z.strictObject({
  limitType: z.enum(LIMIT_TYPES),
  limitWindow: z.enum(LIMIT_WINDOWS),
  /** Tokens or requests; micro-dollars for `cost_usd`. */
  maxValue: z.int().min(1),
  /** Null: all models. */
  modelFilter: z.string().trim().max(255).nullish(),
})

/** What users who manage only their own keys may create. */
export const MemberKeyDefaults = z
  .strictObject({
    maxKeys: z.int().min(0).max(1000),
    /** Null: all models. */
    models: z.array(z.string().trim().min(1).max(255)).min(1).max(1000).nullable(),
    /** Every key has at least these. */
    limits: z.array(Limit).max(12),
    /** Null: keys need not expire. */
    expiresDays: z.int().min(1).max(3650).nullable(),
  })
  .meta({
    section: 'members',
    label: 'Keys of Members',
    help: 'How many keys each Member can have, and what these keys can do. Existing keys stay as they are.',
  })
export type MemberKeyDefaults = z.output<typeof MemberKeyDefaults>

export const KeyHolderPage = z.boolean().meta({
  section: 'clients',
  label: 'Page for key holders',
  help: 'At /key, anyone who enters an API key sees its use, limits and last requests, without a dashboard user.',
  security: true,
})
