/** The reader for the current user: users take turns, and all guests count as one. */
import type { Ctx } from '../boot/bindings.ts'
import type { Answers } from '../threads/reader.ts'

export const toReader = (c: Ctx): Answers => c.env.reader.for(c.var.principal.id)
