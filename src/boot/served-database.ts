/** How a server process uses its database, for each engine. */
import type { Database } from 'bun:sqlite'
import { writeWith } from '../../db/commit.ts'
import { FolderLockedError, processLock, tryLock } from '../../db/lock.ts'
import type { Folder, ServedFolder } from '../cli/open-folder.ts'
import { systemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { OtherProcesses } from '../model/keys/key-leases.ts'
import { createReader } from '../threads/reader.ts'
import { replayThreads } from '../threads/replayer.ts'
import { startWriter } from '../threads/writer.ts'
import type { World } from './build-bindings.ts'
import type { Config } from './env.ts'
import type { StartOrder } from './worker-messages.ts'

/** What a server needs from its database and from the other servers that use it. */
export interface Served extends Pick<World, 'folder' | 'reader' | 'startReplay' | 'others' | 'sharing' | 'nodes'> {
  /** Whether no other server uses the database. */
  isAlone: boolean
}

interface ServeDeps {
  config: Config
  start: StartOrder | null
  log: Log
}

export const serveDatabase = async ({ engine, ...folder }: Folder, deps: ServeDeps): Promise<Served> =>
  'sqlite' in engine
    ? serveSqlite(folder, engine.sqlite, deps)
    : (await import('./served-postgres.ts')).servePostgres(folder, engine.postgres, deps.config.DATABASE_URL ?? '')

const serveSqlite = async (
  opened: ServedFolder,
  sqlite: Database,
  { config, start, log }: ServeDeps,
): Promise<Served> => {
  const others = start && othersOf(config, start)
  return {
    folder: await writingInThread(opened, sqlite, log),
    reader: createReader({ path: opened.databasePath, clock: systemClock, log }),
    startReplay: replayThreads(opened.databasePath),
    ...(others && { others }),
    ...(others && start.processes > 1 && { sharing: { ...others, processes: start.processes } }),
    isAlone: true, // the folder is locked
  }
}

/**
 * Ends the server, because without the writing thread it can store nothing, not even renewed tokens. A restart fixes
 * that.
 */
const writingInThread = async (folder: ServedFolder, sqlite: Database, log: Log): Promise<ServedFolder> => {
  const writer = await startWriter(folder.databasePath, (reason) => {
    log.error('the thread that writes to the database has ended, and the server with it', { reason })
    process.exit(1)
  })
  writeWith(folder.db, writer)
  sqlite.close()
  const close = async () => {
    sqlite.close() // the reading connection. The last one to close removes the write-ahead log
    await writer.close()
    await folder.close()
  }
  return { ...folder, close }
}

/** Each process holds a lock while it runs, so that the others notice when it ends. */
const othersOf = ({ DATA_DIR }: Config, { number }: StartOrder): OtherProcesses => {
  const own = tryLock(DATA_DIR, processLock(number))
  if (!own) throw new FolderLockedError(DATA_DIR, null)
  const isAlive = (other: number) => {
    if (other === number) return own !== null
    const lock = tryLock(DATA_DIR, processLock(other))
    lock?.release()
    return lock === null
  }
  let earlier = Array.from({ length: number - 1 }, (_, i) => i + 1)
  const hasEarlier = () => {
    earlier = earlier.filter(isAlive) // an ended process does not come back
    return earlier.length > 0
  }
  return { number, isAlive, hasEarlier }
}
