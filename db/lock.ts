/** One server per data folder: two would invalidate each other's refresh tokens and lose the accounts. */
import { Database } from 'bun:sqlite'
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePrivate } from './private-file.ts'

export interface FolderLock {
  release(): void
}

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
 * Locks the folder until `release` or the end of the process, even after a crash: the kernel holds the lock through a
 * database under BEGIN EXCLUSIVE. Keep the returned object, or the lock is garbage collected. Throws
 * `FolderLockedError` immediately when this or another process holds the lock.
 */
export function acquireFolderLock(dir: string): FolderLock {
  const path = join(dir, 'sluice.lock')
  const pidPath = join(dir, 'sluice.pid')
  createPrivately(path)
  const sqlite = openLock(path, () => new FolderLockedError(dir, readPid(pidPath)))
  writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 })
  for (const file of [path, `${path}-journal`, pidPath]) makePrivate(file) // a crash may have left them
  return {
    release: once(() => {
      rmSync(pidPath, { force: true })
      sqlite.close()
    }),
  }
}

/**
 * Creates the file before SQLite does, because a journal gets the mode of its database. Does not open an existing file:
 * closing it would drop a lock this process holds (fcntl).
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

/** Whether another connection holds the database or its lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')
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
