/** The members of an account that make up its rule for reset credits. */
import { z } from 'zod'
import { RESET_POLICIES } from '../../../db/schema/accounts.ts'

/** Null: the setting for all accounts. */
export const ResetRuleFields = z.object({
  resetPolicy: z
    .enum(RESET_POLICIES)
    .nullish()
    .describe('When reset credits are used without being asked. Null, here and below: the setting for all accounts.'),
  keepCredits: z.int().min(0).max(9).nullish().describe('Reset credits that the rule leaves.'),
  minBlockedMinutes: z
    .int()
    .min(0)
    .max(10_080)
    .nullish()
    .describe('The rule uses none if the limits reset on their own sooner.'),
  percent: z.int().min(50).max(100).nullish().describe('How much of a window must be used.'),
})
