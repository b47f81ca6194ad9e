/** Links of a page to itself, with another query. */
import type { Ctx } from '../bindings.ts'

/** `path` with the query of this request: without what is empty or in `drop`, and with `add` at its end. */
export const linkFrom = (
  c: Ctx,
  path: string,
  { drop, add = {} }: { drop: readonly string[]; add?: Record<string, string> },
): string => {
  const kept = [...new URL(c.req.url).searchParams].filter(([name, value]) => value !== '' && !drop.includes(name))
  const params = new URLSearchParams([...kept, ...Object.entries(add)]).toString()
  return params === '' ? path : `${path}?${params}`
}
