/** Parameters of the URL that a page does not have. */
import type { z } from 'zod'
import type { Ctx } from '../bindings.ts'

export const unknownParameters = (c: Ctx, { shape }: z.ZodObject): string[] =>
  [...new Set(new URL(c.req.url).searchParams.keys())].filter((name) => !Object.hasOwn(shape, name))
