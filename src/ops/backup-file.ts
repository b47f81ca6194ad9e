/** Makes one backup: a copy of the database as of one moment, read through before it gets its name. Blocks; never call it in a server. */
import type { Database } from 'bun:sqlite'
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
import { checkpoint } from '../../db/checkpoint.ts'
import { readerDatabase } from '../../db/open.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { systemRandom } from '../lib/random.ts'
import { fingerprintOf } from '../model/key-fingerprint.ts'
import { BackupError, integrityFindings, isOurs, tryKey } from './backup-verify.ts'

interface BackupRequest {
  /** Of the database, which may be in use. */
  source: string
  /** Where the copy goes; nothing may be there. */
  target: string
  /** The key file that goes along as `<target>.key`; null: none does, and the copy opens no secret by itself. */
  keyFile: string | null
  /** For tests: bytes that are free for the file at a path. */
  roomFor?: (path: string) => number
  /** For tests: gives a file a second name. */
  link?: typeof linkSync
}

interface BackupMade {
  file: string
  bytes: number
  keyFile: string | null
}

/**
 * `VACUUM INTO`: one read transaction, so that a running server goes on writing and the copy is of one moment. Both files
 * have mode 0600 from the start. Throws `BackupError`; what was begun is removed then.
 */
export const makeBackup = (request: BackupRequest): BackupMade => {
  const { source, target, keyFile, roomFor = freeBytes, link = linkSync } = request
  if (!existsSync(source)) throw new BackupError(`There is no database at ${source}.`)
  // SQLite would take the log of an earlier file of that name for this one's.
  const names = [target, ...logsOf(target), ...(keyFile === null ? [] : [keyOf(target)])]
  for (const path of names) if (existsSync(path)) throw taken(path)
  if (!existsSync(dirname(target)))
    throw new BackupError(`The folder ${dirname(target)} does not exist. Create it first.`)
  const partial = partialOf(target)
  try {
    createPrivately(partial)
    removeLeftovers(dirname(target), statSync(partial).mtimeMs, (name) => name === basename(target))
    demandRoom(source, roomFor(target))
    vacuumInto(source, partial)
    carryOver(source)
    demandWhole(partial, keyFile)
    if (keyFile !== null) copyPrivately(keyFile, keyOf(partial))
    giveName(partial, target, link)
    if (keyFile !== null) giveName(keyOf(partial), keyOf(target), link)
  } catch (cause) {
    throw cause instanceof BackupError ? cause : new BackupError(`The backup failed: ${messageOf(cause)}`, { cause })
  } finally {
    removePartial(partial)
  }
  return { file: target, bytes: statSync(target).size, keyFile: keyFile === null ? null : keyOf(target) }
}

/**
 * From the connection of a server whose database file lost its name: no other process can read it any more. Blocks all
 * streams, which is better than to lose everything. Like what a child writes: null, or why it failed.
 */
export const rescue = (sqlite: Database, target: string): string | null => {
  const partial = partialOf(target)
  try {
    createPrivately(partial)
    sqlite.run('VACUUM INTO ?', [partial])
    demandWhole(partial)
    giveName(partial, target, linkSync)
    return null
  } catch (err) {
    return messageOf(err)
  } finally {
    removePartial(partial)
  }
}

/** One of its own for each that is being made: of two under one name neither may take the other's file away. */
const partialOf = (target: string): string => `${target}.${systemRandom.bytes(4).toHex()}.partial`

/** What was to become of a file that is called so; null: it is no backup that was begun. */
const targetOf = (name: string): string | null => {
  const target = name.replace(/(\.[0-9a-f]{8})?\.partial(\.key|-wal|-shm|-journal)?$/, '')
  return target === name ? null : target
}

/** A younger one may still be written. */
const LEFTOVER_MS = HOUR_MS

/** Of backups that were killed, under the names that `isMeant` says. `now` is by the clock of the file system, which may be another machine's. */
export const removeLeftovers = (folder: string, now: number, isMeant: (name: string) => boolean): void => {
  for (const name of readdirSync(folder).filter((name) => isMeant(targetOf(name) ?? ''))) {
    const path = join(folder, name)
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: now }
    if (mtimeMs < now - LEFTOVER_MS) rmSync(path, { force: true })
  }
}

/** A copy that was begun, with the key beside it and what SQLite puts there. */
export const removePartial = (partial: string): void => {
  for (const path of [partial, ...logsOf(partial), keyOf(partial)]) rmSync(path, { force: true })
}

/** What SQLite keeps beside a database. */
export const logsOf = (path: string): string[] => ['-wal', '-shm', '-journal'].map((suffix) => path + suffix)

const MIB = 1024 * 1024
/** What is left for turns and tokens, which need to be stored meanwhile. */
const SPARE_BYTES = 200 * MIB

/** With its log, which may hold what the file does not yet. */
const demandRoom = (source: string, free: number): void => {
  const log = `${source}-wal`
  const bytes = statSync(source).size + (existsSync(log) ? statSync(log).size : 0)
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

/** By a link: a rename would replace what somebody else put there meanwhile. */
const giveName = (partial: string, target: string, link: typeof linkSync): void => {
  try {
    link(partial, target)
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

/** Where the key of a backup lies, when it was asked for. */
export const keyOf = (backup: string): string => `${backup}.key`

/** For any other file: readable by its owner only, at no moment by others. */
export const copyPrivately = (from: string, to: string): void => {
  createPrivately(to)
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  flush(to)
}

/** Makes what was written to `path` last through a power cut. */
export const flush = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** One file, readable by its owner only, with all that is committed in `source`, also in a log beside it. `target` must not be there. */
export const copyDatabase = (source: string, target: string): void => {
  createPrivately(target)
  vacuumInto(source, target)
  flush(target)
}

/** Into an empty file that is there. */
const vacuumInto = (source: string, target: string): void => {
  const { sqlite } = readerDatabase(source)
  try {
    sqlite.run('PRAGMA query_only = OFF') // under it SQLite refuses to write the copy, too (measured)
    sqlite.run('VACUUM INTO ?', [target])
  } finally {
    sqlite.close()
  }
}

/**
 * While it was copied, all that a server wrote stayed in the log. Carried over here, and at once, no commit of the server has
 * to do it, which would hold its turns for as long (measured: 0.4 s after half a minute of them).
 */
const carryOver = (source: string): void => {
  try {
    checkpoint(source)
  } catch {
    // The copy is there. Who may not write to the folder, or meets a server that is opening or closing, owes it nothing.
  }
}

/** SQLite takes an empty file for its target. */
const createPrivately = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException // as: the file system throws nothing else
    throw code === 'EEXIST' ? taken(path, cause) : cause
  }
}

const taken = (path: string, cause?: unknown): BackupError =>
  new BackupError(`${path} already exists. Choose another name.`, { cause })

/** Of what was just written: that it is there to stay, sound, and sealed with the key that goes along. */
const demandWhole = (path: string, keyFile: string | null = null): void => {
  flush(path)
  const { sqlite, db } = readerDatabase(path)
  try {
    const [finding] = integrityFindings(sqlite)
    if (finding !== undefined)
      throw new BackupError(`No backup was created, because the database is damaged: ${finding}`)
    if (!isOurs(sqlite)) throw new BackupError('No backup was created, because this is not a database of Sluice.')
    if (keyFile !== null && tryKey(fingerprintOf(db), keyFile) === 'other')
      throw new BackupError(
        `${keyFile} is not the encryption key of this database. Set SLUICE_ENCRYPTION_KEY_FILE to the right one.`,
      )
  } finally {
    sqlite.close()
  }
}

const messageOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
