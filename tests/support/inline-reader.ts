/** A reader that answers on the calling thread, for tests with a database in memory. */
import type { Db } from '../../db/commit.ts'
import { read } from '../../src/model/reads.ts'
import { type Reader, toReader } from '../../src/threads/reader.ts'

export const createInlineReader = (db: Db): Reader =>
  toReader(
    async (_, name, args) => read(db, name, args),
    async () => {},
  )
