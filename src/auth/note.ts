/** Writes that merely tell of a request, so that the request does not fail with them. */
import { commit, type Tx } from '../../db/commit.ts'
import type { Ctx } from '../bindings.ts'

/** Commits `write`. A database that is busy or takes no writes leaves the note out, and fails nobody's request. */
export const note = ({ env: { db, log } }: Ctx, write: (tx: Tx) => void): void => {
  try {
    commit(db, write)
  } catch (err) {
    log.debug('a note about a request could not be stored', { err })
  }
}
