/** API key forms: converts flat fields of a page to the bodies of the JSON routes. */
import type { Next } from 'hono'
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { body, parse, withInput } from '../../http/body.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { ClaudeModelsForm } from '../claude-models-form.ts'

const MICROS = 1_000_000

/** The most limits a form shows; keys with more are edited with JSON. */
const FORM_LIMITS = 12

const LimitRow = z.object({
  /** Absent: the row is empty. In dollars for `cost_usd`. */
  amount: z.number().positive().optional(),
  type: z.string().default('total_tokens'),
  window: z.string().default('weekly'),
  /** Empty: all models. */
  model: z.string().default(''),
})

/** By number. */
export const LimitRows = z.object(
  Object.fromEntries(Array.from({ length: FORM_LIMITS }, (_, index) => [String(index), LimitRow.optional()])),
)

/** Rows without an amount are left out. */
export const limitsIn = (rows: z.output<typeof LimitRows>) => Object.values(rows).flatMap((row) => getLimit(row) ?? [])

/** An empty choice enforces nothing. */
const choice = z.string().optional()

/** Missing fields stay unchanged; empty ones are cleared. */
const KeyFields = z.object({
  name: z.string().optional(),
  allowedModels: z.array(z.string()).optional(),
  expiry: z.enum(['keep', '7', '30', '90', '365']).optional(),
  /** Before `expiry`. */
  neverExpires: z.boolean().optional(),
  /** Before `limits`. */
  unlimited: z.boolean().optional(),
  limits: LimitRows.optional(),
  enforcedModel: choice,
  enforcedReasoningEffort: choice,
  allowedReasoningEfforts: z.array(z.string()).optional(),
  enforcedServiceTier: choice,
  trafficClass: choice,
  prohibitFastMode: choice,
  claudeModels: ClaudeModelsForm.optional(),
  /** All accounts, or the selected ones. */
  accountScope: z.enum(['all', 'chosen']).optional(),
  assignedAccountIds: z.array(z.string()).optional(),
  assignedTags: z.array(z.string()).optional(),
  /** All sources, or the selected ones. */
  sourceScope: z.enum(['all', 'chosen']).optional(),
  assignedSourceIds: z.array(z.string()).optional(),
  allowOverflow: z.boolean().optional(),
  usageSections: z.array(z.string()).optional(),
  applyToCodexModel: z.boolean().optional(),
  holderMayRegenerate: z.boolean().optional(),
  ownerUserId: choice,
  isActive: z.boolean().optional(),
  resetUsage: z.boolean().optional(),
  expectedVersion: z.string().optional(),
  requireKeys: z.boolean().optional(),
})
const hasAmount = ({ limits }: z.output<typeof KeyFields>): boolean =>
  Object.values(limits ?? {}).some((row) => row?.amount !== undefined)

const KeyForm = KeyFields.refine((form) => form.unlimited !== false || hasAmount(form), {
  path: ['amount'],
  message: 'enter one, or turn on Unlimited',
})
type KeyForm = z.output<typeof KeyForm>

/**
 * The body of a key route: JSON of `schema`, or a form that is converted and then validated by `schema`. The handler
 * reads `c.req.valid('json')` either way. Throws what `body` does.
 */
export const keyBody = <S extends z.ZodObject>(schema: S) => {
  const asJson = body(schema)
  const asForm = body(KeyForm)
  const either = (c: Ctx, next: Next) => {
    if (!/form/.test(c.req.header('content-type') ?? '')) return asJson(c as never, next) // as: the same context
    return asForm(c as never, async () => {
      const form: KeyForm = c.req.valid('json' as never) // as: set just before
      c.req.addValidatedData('json', parse(schema, getInput(form, c.env.clock.now())))
      await next()
    })
  }
  return withInput(either as unknown as typeof asJson, asJson.input) // as: it provides the same value in the same place
}

/** `now` is ms since epoch: a form gives the expiry in days. */
const getInput = (form: KeyForm, now: number): Record<string, unknown> => {
  const {
    expiry,
    neverExpires,
    unlimited,
    limits,
    accountScope,
    assignedAccountIds,
    assignedTags,
    sourceScope,
    assignedSourceIds,
    usageSections,
    allowedReasoningEfforts,
    ...rest
  } = form
  const input = {
    ...orNull(rest, ['enforcedModel', 'enforcedReasoningEffort', 'enforcedServiceTier', 'prohibitFastMode']),
    ...orNull(rest, ['ownerUserId']),
    expiresAt: neverExpires ? null : expiresAt(expiry, now),
    limits: unlimited ? [] : limits && limitsIn(limits),
    allowedReasoningEfforts: allowedReasoningEfforts?.length === 0 ? null : allowedReasoningEfforts,
    usageSections: usageSections?.join(','),
    assignedAccountIds:
      accountScope === undefined
        ? undefined
        : accountScope === 'all'
          ? null
          : chosenIds(assignedAccountIds, assignedTags),
    assignedTags: accountScope === 'all' ? null : assignedTags,
    assignedSourceIds: sourceScope === 'all' ? null : sourceScope && (assignedSourceIds ?? []),
  }
  return Object.fromEntries(Object.entries({ ...rest, ...input }).filter(([, value]) => value !== undefined))
}

/** A key with tags alone has no list of accounts. */
const chosenIds = (ids: string[] = [], tags: string[] = []) => (ids.length === 0 && tags.length > 0 ? null : ids)

const orNull = (form: Partial<KeyForm>, names: (keyof KeyForm)[]): Record<string, unknown> =>
  Object.fromEntries(names.flatMap((name) => (form[name] === '' ? [[name, null]] : [])))

const expiresAt = (expiry: KeyForm['expiry'], now: number): string | undefined => {
  if (expiry === undefined || expiry === 'keep') return undefined
  return iso(now + Number(expiry) * DAY_MS)
}

const getLimit = (row: z.output<typeof LimitRow> | undefined) => {
  if (row?.amount === undefined) return null
  const { amount, type, window, model } = row
  const maxValue = type === 'cost_usd' ? Math.round(amount * MICROS) : amount
  return { limitType: type, limitWindow: window, maxValue, modelFilter: model || null }
}
