/** Writes that only record a request and must not make it fail. */
import { commit, type Tx } from '../../db/commit.ts'
import type { Ctx } from '../boot/bindings.ts'

/** Commits `write`. If the database is busy or read-only, the record is skipped and the request continues. */
export const tryCommit = async ({ env: { db, log } }: Ctx, write: (tx: Tx) => Promise<unknown>): Promise<void> => {
  try {
    await commit(db, write)
  } catch (err) {
    log.debug('a note about a request could not be stored', { err })
  }
}
