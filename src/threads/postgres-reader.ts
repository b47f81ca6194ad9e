/** The reader on PostgreSQL, which needs no threads: the server limits how long a query runs. */
import type { Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { read } from '../model/reads.ts'
import { type Reader, toReader } from './reader.ts'

/** `query_canceled` (www.postgresql.org/docs/15/errcodes-appendix.html). */
const CANCELED = '57014'

/** `db` has a limit on how long a query runs. */
export const createPostgresReader = (db: Db): Reader =>
  toReader(
    async (_, name, args) => {
      try {
        return await read(db, name, args)
      } catch (error) {
        if (isCanceled(error)) throw new AppError('busy', { cause: error })
        throw error
      }
    },
    async () => {},
  )

/** drizzle wraps errors. */
const isCanceled = (error: unknown): boolean =>
  error instanceof Error && (('errno' in error && error.errno === CANCELED) || isCanceled(error.cause))
