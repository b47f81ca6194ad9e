/** Validated query parameters, rejected like bodies. */
import { zValidator } from '@hono/zod-validator'
import type { Context } from 'hono'
import { z } from 'zod'
import { invalid, withInput } from './body.ts'

/** A flag in a query; false when missing. `z.coerce.boolean()` would read `false` as true. */
export const Flag = z
  .enum(['true', 'false', '1', '0'])
  .default('false')
  .transform((text) => text === 'true' || text === '1')

/** The handler reads `c.req.valid('query')`. Throws `validation_error` with `details.fields`. */
export const query = <S extends z.ZodObject>(schema: S) =>
  withInput(
    zValidator('query', schema, (result, c: Context) => {
      c.set('querySchema', schema)
      if (!result.success) throw invalid(result.error)
    }),
    { in: 'query', schema },
  )
