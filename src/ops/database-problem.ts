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

/**
 * SQLite's base code, without extensions as in `SQLITE_IOERR_READ`; the kind of PostgreSQL's error; a file system code
 * only for this file.
 */
const getCode = (err: Error, path: string): string => {
  const { code, errno, path: at } = err as Omit<NodeJS.ErrnoException, 'errno'> & { errno?: unknown } // as: undefined if absent
  if (String(code).startsWith('ERR_POSTGRES_'))
    return POSTGRES_CODES.find(([kind]) => kind.test(`${code} ${errno}`))?.[1] ?? ''
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

const unreachable = (_: string, message: string): DatabaseProblem => ({
  says: `PostgreSQL cannot be reached: ${message}.`,
  advice: `Check that it runs and that this machine can connect to the address in ${URL_VARIABLE}.`,
})

const login = (_: string, message: string): DatabaseProblem => ({
  says: `PostgreSQL rejected the connection: ${message}.`,
  advice: `Check the user, password and database in ${URL_VARIABLE}.`,
})

const crowded = (_: string, message: string): DatabaseProblem => ({
  says: `PostgreSQL accepts no more connections: ${message}.`,
  advice: 'Raise its max_connections. Each node uses up to 12.',
})

const postgresFull = (_: string, message: string): DatabaseProblem => ({
  says: `PostgreSQL has no space left: ${message}.`,
  advice: 'Free some space on the disk of PostgreSQL.',
})

const postgresReadOnly = (): DatabaseProblem => ({
  says: 'PostgreSQL is read-only.',
  advice: `${URL_VARIABLE} may point to a standby. Set it to the primary server.`,
})

const URL_VARIABLE = 'SLUICE_DATABASE_URL'

/** By code and SQLSTATE (www.postgresql.org/docs/15/errcodes-appendix.html). */
const POSTGRES_CODES: readonly [RegExp, string][] = [
  [/^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)_/, 'postgres-unreachable'],
  [/ (08|57P0|25P03)/, 'postgres-unreachable'],
  [/^ERR_POSTGRES_\w*AUTH| (28|3D)/, 'postgres-login'],
  [/ 53300/, 'postgres-crowded'],
  [/ 53100/, 'postgres-full'],
  [/ 25006/, 'postgres-read-only'],
]

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
  'postgres-unreachable': unreachable,
  'postgres-login': login,
  'postgres-crowded': crowded,
  'postgres-full': postgresFull,
  'postgres-read-only': postgresReadOnly,
}
