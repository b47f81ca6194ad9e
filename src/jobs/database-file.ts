/** Warns when the database file was removed or replaced: nothing fails then, but changes are not kept. */
import type { Log } from '../lib/log.ts'
import type { Ops } from '../ops/ops.ts'

export const DATABASE_FILE_INTERVAL_MS = 60_000

export interface DatabaseFileDeps {
  ops: Pick<Ops, 'lostDatabase'>
  log: Log
}

/** Logs once: a removed file stays removed, and a moved one has been reported. */
export const databaseFileJob = ({ ops, log }: DatabaseFileDeps) => {
  let isTold = false
  return async (): Promise<void> => {
    const lost = isTold ? null : ops.lostDatabase()
    if (lost === null) return
    isTold = true
    log.error(`${lost.says} ${lost.advice}`)
  }
}
