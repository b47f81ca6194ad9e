/** Copies everything from one engine to the other, from one snapshot. */
import { type Copied, copyRows } from './copy.ts'
import { fromPostgres, intoPostgres } from './copy-postgres.ts'
import { fromSqlite, intoSqlite } from './copy-sqlite.ts'

/** Copies the database file at `path` into the new or empty database at `url`. `now` is ms since epoch. */
export const copyToPostgres = (path: string, url: string, now: number): Promise<Copied> =>
  fromSqlite(path, (source) => intoPostgres(url, now, (target) => copyRows(source, target)))

/**
 * Copies the database at `url` into the existing empty file at `path`. The caller flushes the file. `now` is ms since
 * epoch.
 */
export const copyToSqlite = (url: string, path: string, now: number): Promise<Copied> =>
  fromPostgres(url, (source) => intoSqlite(path, now, (target) => copyRows(source, target)))
