/** One server a folder: two of them would spend each other's refresh tokens and lose the accounts. */
import { Database } from 'bun:sqlite'
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePrivate } from './private-file.ts'

export interface FolderLock {
  release(): void
}

export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError'

  /** `pid` is null when the holder has not written it yet. */
  constructor(
    readonly dir: string,
    readonly pid: number | null,
  ) {
    super(`Another server${pid === null ? '' : ` (process ${pid})`} is using the folder ${dir}.`)
  }
}

/**
 * Takes the folder until `release` or the end of the process, however it ends: the lock is the kernel's, held by a
 * database under BEGIN EXCLUSIVE. Keep what is returned: with it the lock is collected. Throws `FolderLockedError` at once when another process, or this one, has it.
 */
export function acquireFolderLock(dir: string): FolderLock {
  const path = join(dir, 'sluice.lock')
  const pidPath = join(dir, 'sluice.pid')
  createPrivately(path)
  const sqlite = openLock(path, () => new FolderLockedError(dir, readPid(pidPath)))
  writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 })
  for (const file of [path, `${path}-journal`, pidPath]) makePrivate(file) // left by a release that did not
  return {
    release: once(() => {
      rmSync(pidPath, { force: true })
      sqlite.close()
    }),
  }
}

/**
 * Creates the file before SQLite does, which gives a journal the mode of its database. An existing file is not opened: closing
 * it again would drop a lock that this process already holds (fcntl).
 */
function createPrivately(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

function openLock(path: string, locked: () => Error): Database {
  const sqlite = new Database(path)
  try {
    sqlite.run('PRAGMA busy_timeout = 0')
    sqlite.run('BEGIN EXCLUSIVE')
    return sqlite
  } catch (error) {
    sqlite.close()
    throw isBusy(error) ? locked() : error
  }
}

/** Whether somebody else holds the database or its lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')
}

/** Only ever read after the lock was refused, so a file left by a crash is not believed. */
function readPid(path: string): number | null {
  try {
    return Number.parseInt(readFileSync(path, 'utf8'), 10) || null
  } catch {
    return null // the holder is between taking the lock and writing its number
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
