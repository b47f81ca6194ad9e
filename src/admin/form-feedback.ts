/**
 * Messages about the last attempt: codes in the query of the page that a form returns to, converted to our own text.
 */
import type { Context } from 'hono'
import { doneText, problemText, undoneText } from '../../views/words.ts'
import type { Ctx } from '../boot/bindings.ts'
import { CODES, type Code } from '../errors.ts'
import { draftFor } from '../http/fill-form.ts'
import { getPage } from '../http/return-path.ts'

interface FormFeedback {
  /** The error code, of ours or not. */
  code: string | null
  problem: string | null
  done: string | null
}

/** Reads `problem`, `field`, `wait`, `done`, and the message of the form in `draft`. Unknown codes give no message. */
export const getFormFeedback = (c: Ctx): FormFeedback => {
  const code = c.req.query('problem') ?? null
  const done = c.req.query('done')
  const problem = draftFor(c)?.problem ?? (code === null ? undoneText(done) : getProblem(c, code))
  return { code, problem, done: doneText(done) }
}

const getProblem = (c: Context, code: string): string | null => {
  if (!isCode(code)) return null
  const wait = Number(c.req.query('wait'))
  return problemText(
    { code, field: c.req.query('field') ?? null, waitSeconds: Number.isInteger(wait) && wait > 0 ? wait : null },
    CODES[code][1],
  )
}

const isCode = (code: string): code is Code => Object.hasOwn(CODES, code)

/** `done` names a message in `views/words.ts`. */
export const back = (c: Ctx, done: string): string => {
  const page = getPage(c)
  page?.searchParams.set('done', done)
  return page ? page.pathname + page.search : `/accounts?done=${done}`
}
