/** The reader in the name of who asks: callers take turns, all guests together as one. */
import type { Ctx } from '../bindings.ts'
import type { Answers } from '../reader.ts'

export const readerOf = (c: Ctx): Answers => c.env.reader.for(c.var.principal.id)
