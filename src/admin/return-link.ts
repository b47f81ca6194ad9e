/** The redirect after a change to accounts: the form's page with its filters and a message. */
import type { Ctx } from '../boot/bindings.ts'
import { getPage } from '../http/return-path.ts'

/** `done` names a message in `views/words.ts`. */
export const back = (c: Ctx, done: string): string => {
  const page = getPage(c)
  page?.searchParams.set('done', done)
  return page ? page.pathname + page.search : `/accounts?done=${done}`
}
