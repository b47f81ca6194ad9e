/** The reader for the current user: users take turns, and all guests count as one. */
import type { Ctx } from '../bindings.ts'
import type { Answers } from '../reader.ts'

export const readerOf = (c: Ctx): Answers => c.env.reader.for(c.var.principal.id)
