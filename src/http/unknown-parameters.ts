/** Parameters and values of the URL that a page does not have. */
import { z } from 'zod'
import type { Ctx } from '../boot/bindings.ts'
import { FEEDBACK_PARAMETERS } from './return-path.ts'

/** Parameters that links between pages add; any page may get them. */
const OF_EVERY_PAGE: readonly string[] = [...FEEDBACK_PARAMETERS, 'return', 'section']

/** Names of parameters that are not in the schema of the page. */
export const unknownParameters = (c: Ctx, { shape }: Pick<z.ZodObject, 'shape'>): string[] =>
  [...new Set(new URL(c.req.url).searchParams.keys())].filter((name) => !Object.hasOwn(shape, name))

/** What the page shown by this request did not apply: `name` or `name=value`. */
export const notApplied = (c: Ctx): string[] => {
  const shape = c.get('querySchema')?.shape ?? {}
  const unknown = unknownParameters(c, { shape }).filter((name) => !OF_EVERY_PAGE.includes(name))
  const ignored = [...new URL(c.req.url).searchParams].filter(([name, value]) => isIgnored(shape[name], value))
  return [...unknown, ...ignored.map(([name, value]) => `${name}=${value}`)]
}

/** The schema falls back to a default for this value. Fields of a form may be empty. */
const isIgnored = (schema: unknown, value: string): boolean => {
  if (value === '') return false
  if (schema instanceof z.ZodDefault) return isIgnored(schema.unwrap(), value)
  return schema instanceof z.ZodCatch && !z.safeParse(schema.unwrap(), value).success
}
