/** What a page says about the last attempt: names in its query, turned into our own words. */
import type { Context } from 'hono'
import { doneText, problemText } from '../../../views/words.ts'
import { CODES, type Code } from '../../errors.ts'

export interface Said {
  /** The error code, of ours or not. */
  code: string | null
  problem: string | null
  done: string | null
}

/** Reads `problem`, `field`, `wait` and `done`. A code or event nobody knows says nothing. */
export const said = (c: Context): Said => {
  const code = c.req.query('problem') ?? null
  return { code, problem: code === null ? null : problemOf(c, code), done: doneText(c.req.query('done')) }
}

const problemOf = (c: Context, code: string): string | null => {
  if (!isCode(code)) return null
  const wait = Number(c.req.query('wait'))
  return problemText(
    { code, field: c.req.query('field') ?? null, waitSeconds: Number.isInteger(wait) && wait > 0 ? wait : null },
    CODES[code][1],
  )
}

const isCode = (code: string): code is Code => Object.hasOwn(CODES, code)
