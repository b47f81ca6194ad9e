/** The body of a change of settings: JSON, or the form of a section, whose fields for `memberKeyDefaults` are flat. */
import type { Next } from 'hono'
import { z } from 'zod'
import type { Ctx } from '../boot/bindings.ts'
import { body, parse, withInput } from '../http/body.ts'
import { LimitRows, limitsIn } from './key-form.ts'

const KeyRulesForm = z
  .object({
    maxKeys: z.number().optional(),
    models: z.array(z.string()).default([]),
    expiresDays: z.number().nullable().optional(),
    /** Before `limits`. */
    unlimited: z.boolean().optional(),
    limits: LimitRows.default({}),
  })
  .transform(({ models, unlimited, limits, ...rules }) => ({
    ...rules,
    models: models.length > 0 ? models : null,
    limits: unlimited ? [] : limitsIn(limits),
  }))

/** The handler reads `c.req.valid('json')` either way. Throws what `body` does. */
export const settingsBody = <S extends z.ZodObject>(schema: S) => {
  const asJson = body(schema)
  const asForm = body(schema.extend({ memberKeyDefaults: KeyRulesForm.optional() }))
  const either = (c: Ctx, next: Next) => {
    if (!/form/.test(c.req.header('content-type') ?? '')) return asJson(c as never, next) // as: the same context
    return asForm(c as never, async () => {
      c.req.addValidatedData('json', parse(schema, c.req.valid('json' as never))) // as: set just before
      await next()
    })
  }
  return withInput(either as unknown as typeof asJson, asJson.input) // as: it provides the same value in the same place
}
