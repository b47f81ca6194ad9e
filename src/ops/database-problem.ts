/** Explains why a database is unusable, with advice. */
import { dirname, join } from 'node:path'

export interface DatabaseProblem {
  says: string
  advice: string
}

/** Explains `err` about the database at `path`; null: unrelated. */
export const getDatabaseProblem = (err: unknown, path: string): DatabaseProblem | null => {
  if (!(err instanceof Error)) return null
  const trouble = DATABASE_PROBLEMS[getCode(err, path)]
  return trouble ? trouble(path, err.message) : getDatabaseProblem(err.cause, path)
}

/** SQLite's base code, without extensions as in `SQLITE_IOERR_READ`; a file system code only for this file. */
const getCode = (err: Error, path: string): string => {
  const { code, path: at } = err as NodeJS.ErrnoException // as: both are undefined if absent
  const [sqlite] = /^SQLITE_[A-Z]+/.exec(String(code)) ?? []
  return sqlite ?? (at === path ? String(code) : '')
}

/** Whether `err` says that the folder of the database at `path` is not a folder. */
export const isNotAFolderError = (err: unknown, path: string): boolean => {
  if (!(err instanceof Error)) return false
  const { code, path: at } = err as NodeJS.ErrnoException // as: both are undefined if absent
  return code === 'ENOTDIR' && String(at).startsWith(join(dirname(path), '/'))
}

export const damaged = (path: string, finding: string): DatabaseProblem => ({
  says: `${path} is damaged: ${finding}.`,
  advice: `Stop the server and run "sluice restore FILE". Scheduled backups are in ${join(dirname(path), 'backups')}.`,
})

export const lost = (path: string): DatabaseProblem => ({
  says: `${path} was deleted or replaced while the server was using it. Changes are lost when the server stops.`,
  advice:
    'Do not stop the server yet. Create a backup under Settings → Data, which still has everything. ' +
    'Then stop the server and run "sluice restore FILE".',
})

/** No backup is possible, because its folder would be inside a non-folder. */
export const missingFolderProblem = (dir: string): DatabaseProblem => ({
  says: `${dir} is no longer a folder, although the server is using it. Changes are lost when the server stops.`,
  advice:
    'Do not stop the server yet. Put the folder back, and nothing is lost. If the folder is gone, move away what took its ' +
    'place and create a backup under Settings → Data, which still has everything. ' +
    'Then stop the server and run "sluice restore FILE".',
})

const full = (path: string): DatabaseProblem => ({
  says: `There is no space left for ${path}.`,
  advice: `Free some space on the disk of ${dirname(path)}.`,
})

const failing = (path: string, message: string): DatabaseProblem => ({
  says: `${path} cannot be read or written: ${message}.`,
  advice: 'The disk may be full or failing. Check the system log.',
})

const closed = (path: string, message: string): DatabaseProblem => ({
  says: `${path} cannot be opened for writing: ${message}.`,
  advice: `Make the user that runs Sluice the owner of ${dirname(path)} and its files. Check that the disk is not mounted read-only.`,
})

const DATABASE_PROBLEMS: Readonly<Record<string, (path: string, message: string) => DatabaseProblem>> = {
  SQLITE_NOTADB: damaged,
  SQLITE_CORRUPT: damaged,
  SQLITE_FULL: full,
  ENOSPC: full,
  EDQUOT: full,
  SQLITE_IOERR: failing,
  EIO: failing,
  SQLITE_CANTOPEN: closed,
  SQLITE_PERM: closed,
  SQLITE_READONLY: closed,
  EACCES: closed,
  EPERM: closed,
  EROFS: closed,
  EISDIR: closed,
}
