/**
 * Locks of a data folder, held by the kernel until they are released or their process ends, even after a crash: the
 * folder itself has one server, and within it only one process runs the jobs or refreshes the tokens of an account.
 */
import { Database } from 'bun:sqlite'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isBusy } from './busy.ts'
import { makePrivate } from './private-file.ts'

export interface FolderLock {
  /** Safe to call repeatedly. */
  release(): void
}

/** Locks by name, shared by all processes that use one database. */
export interface Locks {
  /**
   * Returns null while this or another process holds the lock. `onLost` is called if the lock is lost before it is
   * released: on PostgreSQL, when the connection is lost.
   */
  tryLock(name: string, onLost?: () => void): Promise<FolderLock | null>
}

export const folderLocks = (dir: string): Locks => ({ tryLock: async (name) => tryLock(dir, name) })

/** Held by the process that runs the jobs. */
export const JOBS_LOCK = 'jobs'

/** Held by the server process with this number while it runs. */
export const processLock = (number: number): string => `process-${number}`

export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError'

  /** Null when the holder has not written it yet. */
  constructor(
    readonly dir: string,
    readonly pid: number | null,
  ) {
    super(`Another server${pid === null ? '' : ` (process ${pid})`} is using the folder ${dir}.`)
  }
}

/**
 * Locks the folder for one server. Keep the returned object, or the lock is garbage collected. Throws
 * `FolderLockedError` immediately when this or another process holds the lock, or when a server process that lost its
 * supervisor is still ending.
 */
export function acquireFolderLock(dir: string): FolderLock {
  const path = join(dir, 'sluice.lock')
  const pidPath = join(dir, 'sluice.pid')
  const refuse = () => new FolderLockedError(dir, readPid(pidPath))
  const sqlite = openLock(path)
  if (!sqlite) throw refuse()
  if (hasServer(dir)) {
    sqlite.close()
    throw new FolderLockedError(dir, null) // the stored pid is the lost supervisor's
  }
  writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 })
  makePrivate(pidPath) // a crash may have left it
  return {
    release: once(() => {
      rmSync(pidPath, { force: true })
      sqlite.close()
    }),
  }
}

/**
 * The lock with this name in the folder, or null while this or another process holds it. Keep the returned object. Its
 * file stays: removing a lock file while another process waits for it would let two hold the lock.
 */
export function tryLock(dir: string, name: string): FolderLock | null {
  mkdirSync(join(dir, LOCKS), { recursive: true, mode: 0o700 })
  const sqlite = openLock(pathOf(dir, name))
  return sqlite && { release: once(() => sqlite.close()) }
}

/** Whether a server process runs, with a supervisor or without. */
function hasServer(dir: string): boolean {
  if (isHeld(dir, JOBS_LOCK)) return true
  if (!existsSync(join(dir, LOCKS))) return false
  return readdirSync(join(dir, LOCKS)).some((file) => {
    const number = /^process-(\d+)\.lock$/.exec(file)?.[1]
    return number !== undefined && isHeld(dir, processLock(Number(number)))
  })
}

function isHeld(dir: string, name: string): boolean {
  if (!existsSync(pathOf(dir, name))) return false
  const lock = tryLock(dir, name)
  lock?.release()
  return lock === null
}

const LOCKS = 'locks'

const pathOf = (dir: string, name: string): string => join(dir, LOCKS, `${encodeURIComponent(name)}.lock`)

/** A database under BEGIN EXCLUSIVE; null while another connection holds it. */
function openLock(path: string): Database | null {
  createPrivately(path)
  const sqlite = new Database(path)
  try {
    sqlite.run('PRAGMA busy_timeout = 0')
    sqlite.run('BEGIN EXCLUSIVE')
  } catch (error) {
    sqlite.close()
    if (isBusy(error)) return null
    throw error
  }
  for (const file of [path, `${path}-journal`]) makePrivate(file) // a crash may have left them
  return sqlite
}

/**
 * Creates the file before SQLite does, because a journal gets the mode of its database. Does not open an existing file:
 * closing it would drop a lock this process holds (fcntl).
 */
function createPrivately(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** Read only after the lock was denied, so a file left by a crash is not trusted. */
function readPid(path: string): number | null {
  try {
    return Number.parseInt(readFileSync(path, 'utf8'), 10) || null
  } catch {
    return null // the holder has the lock but has not written its pid yet
  }
}

function once(run: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    run()
  }
}
