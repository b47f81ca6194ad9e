/** Makes one backup: a snapshot of the database, checked before it gets its final name. Blocks; never call it in a server. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Connection, vacuumInto } from '../../db/connection.ts'
import { readerDatabase } from '../../db/open.ts'
import { postgresBytes } from '../../db/postgres/copy-postgres.ts'
import { copyToSqlite } from '../../db/postgres/copy-ways.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { systemRandom } from '../lib/random.ts'
import { getEncryptionKeyId } from '../model/encryption-key-id.ts'
import { BackupError, checkKey, integrityFindings, isOurs } from './backup-verify.ts'

interface BackupRequest {
  /** The database, which may be in use: a file, or PostgreSQL. `now` is ms since epoch. */
  source: string | { url: string; now: number }
  /** Path of the copy; must not exist. */
  target: string
  /** The key file to copy to `<target>.key`; null: no key, so the backup's secrets stay encrypted. */
  keyFile: string | null
  /** For tests: free bytes on the disk of a path. */
  roomFor?: (path: string) => number
  /** For tests: creates a hard link. */
  link?: (from: string, to: string) => unknown
}

interface BackupMade {
  file: string
  bytes: number
  keyFile: string | null
}

/**
 * Uses `VACUUM INTO`: one read transaction, so a running server continues writing and the copy is consistent. For
 * PostgreSQL, it writes the same kind of file, also from one snapshot. Both files have mode 0600 from the start. Throws
 * `BackupError` after removing partial files.
 */
export const makeBackup = async (request: BackupRequest): Promise<BackupMade> => {
  const { source, target, keyFile, roomFor = freeBytes, link = linkSync } = request
  if (typeof source === 'string' && !existsSync(source)) throw new BackupError(`There is no database at ${source}.`)
  // SQLite would use an earlier log file of that name for this database.
  const names = [target, ...getLogs(target), ...(keyFile === null ? [] : [toKey(target)])]
  for (const path of names) if (existsSync(path)) throw taken(path)
  if (!existsSync(dirname(target)))
    throw new BackupError(`The folder ${dirname(target)} does not exist. Create it first.`)
  const partial = getPartial(target)
  try {
    createPrivately(partial)
    removeLeftovers(dirname(target), statSync(partial).mtimeMs, (name) => name === basename(target))
    requireRoom(await getBytes(source), roomFor(target))
    if (typeof source === 'string') copyInto(source, partial)
    else await copyToSqlite(source.url, partial, source.now)
    await requireWhole(partial, keyFile)
    if (keyFile !== null) copyPrivately(keyFile, toKey(partial))
    await moveIntoPlace(partial, target, link)
    if (keyFile !== null) await moveIntoPlace(toKey(partial), toKey(target), link)
  } catch (cause) {
    throw cause instanceof BackupError ? cause : new BackupError(`The backup failed: ${getMessage(cause)}`, { cause })
  } finally {
    removePartial(partial)
  }
  return { file: target, bytes: statSync(target).size, keyFile: keyFile === null ? null : toKey(target) }
}

/**
 * Copies through the connection of a server whose database file was deleted, which no other process can read. Returns
 * null, or why it failed, like `writeInChild`.
 */
export const copyThroughServer = async (writer: Connection, target: string): Promise<string | null> => {
  const partial = getPartial(target)
  try {
    createPrivately(partial)
    await writer.call(vacuumInto, partial)
    await requireWhole(partial)
    await moveIntoPlace(partial, target, linkSync)
    return null
  } catch (err) {
    return getMessage(err)
  } finally {
    removePartial(partial)
  }
}

/** A separate name for each running backup, so that two never remove each other's file. */
const getPartial = (target: string): string => `${target}.${systemRandom.bytes(4).toHex()}.partial`

/** The target of a partial backup's file name; null: not a partial backup. */
const getTarget = (name: string): string | null => {
  const target = name.replace(/(\.[0-9a-f]{8})?\.partial(\.key|-wal|-shm|-journal)?$/, '')
  return target === name ? null : target
}

/** Younger files may still be in use. */
const LEFTOVER_MS = HOUR_MS

/**
 * Removes partial backups of killed processes whose target passes `isMeant`. `now` is by the file system's clock, which
 * may be another machine's.
 */
export const removeLeftovers = (folder: string, now: number, isMeant: (name: string) => boolean): void => {
  for (const name of readdirSync(folder).filter((name) => isMeant(getTarget(name) ?? ''))) {
    const path = join(folder, name)
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: now }
    if (mtimeMs < now - LEFTOVER_MS) rmSync(path, { force: true })
  }
}

/** Removes a partial copy with its key and SQLite's files. */
export const removePartial = (partial: string): void => {
  for (const path of [partial, ...getLogs(partial), toKey(partial)]) rmSync(path, { force: true })
}

/** SQLite's files next to a database. */
export const getLogs = (path: string): string[] => ['-wal', '-shm', '-journal'].map((suffix) => path + suffix)

const MIB = 1024 * 1024
/** Left free for requests and tokens, which are stored at the same time. */
const SPARE_BYTES = 200 * MIB

/** Includes SQLite's log, which may contain newer pages. */
const getBytes = async (source: BackupRequest['source']): Promise<number> => {
  if (typeof source !== 'string') return postgresBytes(source.url)
  const log = `${source}-wal`
  return statSync(source).size + (existsSync(log) ? statSync(log).size : 0)
}

const requireRoom = (bytes: number, free: number): void => {
  if (free < bytes + SPARE_BYTES)
    throw new BackupError(
      `Not enough free space for a backup: ${Math.floor(free / MIB)} MiB are free, but it needs ` +
        `${Math.ceil((bytes + SPARE_BYTES) / MIB)} MiB, including a reserve for the server.`,
    )
}

const freeBytes = (path: string): number => {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

/** By a link, because a rename would replace a file created in the meantime. */
const moveIntoPlace = async (
  partial: string,
  target: string,
  link: (from: string, to: string) => unknown,
): Promise<void> => {
  try {
    await link(partial, target)
  } catch {
    createPrivately(target) // vfat, exFAT and many shares have no links: this is what the rename replaces
    try {
      renameSync(partial, target)
    } catch (err) {
      rmSync(target) // it would be taken for a backup
      throw err
    }
  }
}

/** Path of a backup's key, if it has one. */
export const toKey = (backup: string): string => `${backup}.key`

/** Copies any other file, readable only by its owner at all times. */
export const copyPrivately = (from: string, to: string): void => {
  createPrivately(to)
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  flush(to)
}

/** Makes data written to `path` survive a power cut. */
export const flush = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Creates one file, readable only by its owner, with everything committed in `source`, including its log. `target` must
 * not exist.
 */
export const copyDatabase = (source: string, target: string): void => {
  createPrivately(target)
  copyInto(source, target)
  flush(target)
}

/** Into an existing empty file. */
const copyInto = (source: string, target: string): void => {
  const { sqlite } = readerDatabase(source)
  try {
    sqlite.run('PRAGMA query_only = OFF') // under it SQLite refuses to write the copy, too (SQLite 3.54)
    vacuumInto(sqlite, target)
  } finally {
    sqlite.close()
  }
}

/** SQLite accepts an empty file as target. */
export const createPrivately = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException // as: the file system throws nothing else
    throw code === 'EEXIST' ? taken(path, cause) : cause
  }
}

const taken = (path: string, cause?: unknown): BackupError =>
  new BackupError(`${path} already exists. Choose another name.`, { cause })

/** Checks a new backup: stored durably, intact, and encrypted with its key. */
const requireWhole = async (path: string, keyFile: string | null = null): Promise<void> => {
  flush(path)
  const { sqlite, db } = readerDatabase(path)
  try {
    const [finding] = integrityFindings(sqlite)
    if (finding !== undefined)
      throw new BackupError(`No backup was created, because the database is damaged: ${finding}`)
    if (!isOurs(sqlite)) throw new BackupError('No backup was created, because this is not a database of Sluice.')
    if (keyFile !== null && checkKey(await getEncryptionKeyId(db), keyFile) === 'other')
      throw new BackupError(
        `${keyFile} is not the encryption key of this database. Set SLUICE_ENCRYPTION_KEY_FILE to the right one.`,
      )
  } finally {
    sqlite.close()
  }
}

const getMessage = (err: unknown): string => (err instanceof Error ? err.message : String(err))
