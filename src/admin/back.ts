/** Where a browser goes after a change to accounts: the page of the form with its filters, and what was done. */
import type { Ctx } from '../bindings.ts'
import { pageOf } from '../http/return-path.ts'

/** `done` names a sentence of `views/words.ts`. */
export const back = (c: Ctx, done: string): string => {
  const page = pageOf(c)
  page?.searchParams.set('done', done)
  return page ? page.pathname + page.search : `/accounts?done=${done}`
}
