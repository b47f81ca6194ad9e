/** Opens the data folder: migrates the database, and checks the encryption key against it. */
import type { Database } from 'bun:sqlite'
import { closeSync, existsSync, fstatSync, openSync, statSync } from 'node:fs'
import { commit, type Db, shareChanges } from '../../db/commit.ts'
import { acquireFolderLock, type FolderLock, FolderLockedError, folderLocks, type Locks } from '../../db/lock.ts'
import { breakingMigrations, isOutdated, migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { type OpenedDatabase, openDatabase } from '../../db/open.ts'
import type { OpenedPostgres } from '../../db/postgres/open.ts'
import { type Clock, sleepSync } from '../lib/clock.ts'
import { loadOrCreateKey } from '../lib/key-file.ts'
import type { Random } from '../lib/random.ts'
import { createSealer, fingerprint, type Sealer } from '../lib/seal.ts'
import { claimEncryptionKeyId, getEncryptionKeyId } from '../model/encryption-key-id.ts'
import { getDatabaseProblem } from '../ops/database-problem.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { FolderError, makePrivateFolder } from './private-folder.ts'

export interface Folder {
  dir: string
  databasePath: string
  db: Db
  /** The engine of the database. */
  engine: { sqlite: Database } | { postgres: OpenedPostgres }
  /** Locks shared by all processes that use the database. */
  locks: Locks
  sealer: Sealer
  /** False once the database file was removed, replaced or moved: later writes are lost when this process ends. */
  isNamed(): boolean
  close(): unknown
}

/** The folder of a server. */
export type ServedFolder = Omit<Folder, 'engine'>

interface OpenDeps {
  clock: Clock
  random: Random
  /** The caller holds the server's lock. */
  isLocked?: boolean
  /** An earlier server still uses the folder, so that the schema may only grow. */
  isShared?: boolean
}

/**
 * Opens the folder of `config`, creating it if missing, readable only by its owner (decisions §1). Commands need no
 * lock and work while the server runs, unless they would migrate the schema under an older server. Throws
 * `FolderError`, and what `migrate` throws.
 */
export const openFolder = async (
  config: Places & { DATABASE_URL?: string | undefined },
  deps: OpenDeps,
): Promise<Folder> =>
  config.DATABASE_URL === undefined
    ? openSqliteFolder(config, deps)
    : openPostgresFolder(config.DATABASE_URL, config, deps)

type Places = Parameters<typeof getFolderPaths>[0]

export const openSqliteFolder = async (
  places: Places,
  { clock, random, isLocked = false, isShared = false }: OpenDeps,
): Promise<Folder & { engine: { sqlite: Database } }> => {
  const { dir, databasePath, keyPath } = getFolderPaths(places)
  makePrivateFolder(dir)
  const { sqlite, db } = openFile(databasePath)
  try {
    const lock = isLocked ? null : lockToMigrate(sqlite, dir)
    try {
      if (isShared) requireGrowth(sqlite)
      migrate(sqlite, MIGRATIONS, clock.now())
    } finally {
      lock?.release()
    }
    await shareChanges(db)
    const sealer = createSealer(await openKey(db, keyPath, random), random)
    const file = holdFile(databasePath, sqlite)
    return { dir, databasePath, db, engine: { sqlite }, locks: folderLocks(dir), sealer, ...file }
  } catch (err) {
    sqlite.close()
    throw asFolderError(err, databasePath)
  }
}

/** With PostgreSQL, the folder still has the encryption key, backups and captures. */
const openPostgresFolder = async (url: string, places: Places, { clock, random }: OpenDeps): Promise<Folder> => {
  const { dir, databasePath, keyPath } = getFolderPaths(places)
  makePrivateFolder(dir)
  const { connectPostgres } = await import('./connect-postgres.ts')
  const postgres = await connectPostgres(url, { clock, node: random.bytes(8).toHex() })
  const { db, close } = postgres
  try {
    const sealer = createSealer(await openKey(db, keyPath, random), random)
    return { dir, databasePath, db, engine: { postgres }, locks: folderLocks(dir), sealer, isNamed: () => true, close }
  } catch (err) {
    await close()
    throw asFolderError(err, databasePath)
  }
}

/**
 * Detects a removed or replaced file by its link count and the creation time of the file at its path. Inode numbers
 * change on FUSE. Without creation times both are 0 and equal.
 */
const holdFile = (path: string, sqlite: Database): Pick<Folder, 'isNamed' | 'close'> => {
  const file = openSync(path, 'r')
  const close = () => {
    sqlite.close()
    closeSync(file) // last: closing any descriptor of the file releases SQLite's locks on it
  }
  const isNamed = () => {
    const { nlink, birthtimeMs } = fstatSync(file)
    return nlink > 0 && existsSync(path) && statSync(path).birthtimeMs === birthtimeMs
  }
  return { isNamed, close }
}

const requireGrowth = (sqlite: Database): void => {
  const [name] = breakingMigrations(sqlite, MIGRATIONS)
  if (name === undefined) return
  throw new FolderError(
    `This release changes the database in a way the running server cannot use (${name}). Restart Sluice instead of reloading it.`,
  )
}

/** When several commands start together, one migrates and the others wait. */
const LOCK_TRIES = 30
const LOCK_PAUSE_MS = 100

/** Null when no migration is needed any more. Throws `FolderError` while a server holds the lock. */
const lockToMigrate = (sqlite: Database, dir: string): FolderLock | null => {
  for (let tries = 1; isOutdated(sqlite, MIGRATIONS); tries++)
    try {
      return acquireFolderLock(dir)
    } catch (cause) {
      if (!(cause instanceof FolderLockedError)) throw cause
      if (tries < LOCK_TRIES) sleepSync(LOCK_PAUSE_MS)
      else
        throw new FolderError(`${cause.message} It runs an older release than this program. Restart it first.`, {
          cause,
        })
    }
  return null
}

/** Converts errors of the database at `path` to a `FolderError` with advice; returns others unchanged. */
export const asFolderError = (err: unknown, path: string): unknown => {
  const trouble = getDatabaseProblem(err, path)
  return trouble ? new FolderError(`${trouble.says} ${trouble.advice}`, { cause: err }) : err
}

const openFile = (path: string): OpenedDatabase => {
  try {
    return openDatabase(path)
  } catch (err) {
    throw asFolderError(err, path)
  }
}

/** Creates a key only for a database without one: a new key could not decrypt old secrets. */
const openKey = async (db: Db, path: string, random: Random): Promise<Uint8Array> => {
  const known = await getEncryptionKeyId(db)
  if (known !== null && !existsSync(path)) throw wrongKey(`The encryption key file ${path} is missing.`)
  const key = loadOrCreateKey(path, random)
  if ((known ?? (await commit(db, (tx) => claimEncryptionKeyId(tx, fingerprint(key))))) === fingerprint(key)) return key
  throw wrongKey(`${path} is not the encryption key of this database.`)
}

const wrongKey = (what: string): FolderError =>
  new FolderError(`${what} Restore the file that belongs to this database, or set SLUICE_ENCRYPTION_KEY_FILE to it.`)
