/** Moves a database between a data folder with SQLite and PostgreSQL, in either direction, while no server uses them. */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { acquireFolderLock } from '../../db/lock.ts'
import { type Copied, CopyError } from '../../db/postgres/copy.ts'
import { countNodes } from '../../db/postgres/copy-postgres.ts'
import { requireEmptySqlite } from '../../db/postgres/copy-sqlite.ts'
import { copyToPostgres, copyToSqlite } from '../../db/postgres/copy-ways.ts'
import { plural } from '../model/overview/pool-words.ts'
import { createPrivately, flush, getLogs, removePartial } from './backup-file.ts'

interface CopyRequest {
  /** A data folder, a database file, or `postgres://…`. */
  from: string
  to: string
  /** ms since epoch. */
  now: number
}

/**
 * The target must be new or without rows. Throws `CopyError`, `FolderLockedError` while a server uses a folder, and what
 * PostgreSQL throws; the target is then as it was.
 */
export const copyDatabase = async ({ from, to, now }: CopyRequest): Promise<Copied> => {
  if (isUrl(from) === isUrl(to)) throw new CopyError(isUrl(from) ? USE_PG_DUMP : USE_BACKUP)
  return isUrl(to) ? intoUrl(getFile(from), to, now) : intoFile(from, getFile(to), now)
}

/** Rejects running nodes, because the copy would miss what they store. */
const requireNoNodes = async (url: string): Promise<void> => {
  const nodes = await countNodes(url)
  if (nodes > 0)
    throw new CopyError(`Sluice is using the PostgreSQL database (${plural(nodes, 'node')}). Stop it first.`)
}

const USE_PG_DUMP = 'Both are PostgreSQL databases. Use pg_dump and pg_restore.'
const USE_BACKUP = 'Both are files. Use "sluice backup" and "sluice restore".'

export const isUrl = (place: string): boolean => /^postgres(ql)?:\/\//.test(place)

/** The database file in a data folder, or the file itself. A missing path is a folder unless it ends like a file. */
const getFile = (place: string): string => {
  const path = resolve(place)
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? !path.endsWith('.db')
  return isFolder ? join(path, 'sluice.db') : path
}

const intoUrl = (path: string, url: string, now: number): Promise<Copied> =>
  locked(path, async () => {
    if (!existsSync(path)) throw new CopyError(`There is no database at ${path}.`)
    await requireNoNodes(url)
    return copyToPostgres(path, url, now)
  })

const intoFile = async (url: string, path: string, now: number): Promise<Copied> => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const partial = `${path}.partial`
  return locked(path, async () => {
    await requireEmptySqlite(path)
    await requireNoNodes(url)
    removePartial(partial) // left by a killed process
    try {
      createPrivately(partial)
      const copied = await copyToSqlite(url, partial, now)
      flush(partial)
      for (const log of getLogs(path)) rmSync(log, { force: true }) // SQLite would apply it to the new database
      renameSync(partial, path)
      flush(dirname(path))
      return copied
    } finally {
      removePartial(partial)
    }
  })
}

/**
 * Locks the data folder of the file while `run` runs. A file outside a data folder, such as a backup, needs no lock.
 */
const locked = async <T>(path: string, run: () => Promise<T>): Promise<T> => {
  const folder = dirname(path)
  const isServed = existsSync(folder) && (basename(path) === 'sluice.db' || existsSync(join(folder, 'sluice.lock')))
  const lock = isServed ? acquireFolderLock(folder) : null
  try {
    return await run()
  } finally {
    lock?.release()
  }
}
