/** Links from a page to itself with a different query. */
import type { Ctx } from '../boot/bindings.ts'

/** `path` with this request's query, without empty parameters and those in `drop`, plus `add`. */
export const linkFrom = (
  c: Ctx,
  path: string,
  { drop, add = {} }: { drop: readonly string[]; add?: Record<string, string> },
): string => {
  const kept = [...new URL(c.req.url).searchParams].filter(([name, value]) => value !== '' && !drop.includes(name))
  const params = new URLSearchParams([...kept, ...Object.entries(add)]).toString()
  return params === '' ? path : `${path}?${params}`
}
