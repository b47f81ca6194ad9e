/** Verifies that a backup can be restored: intact file, known schema, matching key, valid audit log. Reads only. */
import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import type { Db } from '../../db/commit.ts'
import { schemaDifferences } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { type OpenedDatabase, readerDatabase } from '../../db/open.ts'
import { readKey } from '../lib/key-file.ts'
import { fingerprint } from '../lib/seal.ts'
import { type AuditVerdict, verifyAuditLog } from '../model/audit/audit-verify.ts'
import { getEncryptionKeyId } from '../model/encryption-key-id.ts'

/** A backup cannot be made or used; the message is for stderr. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

/** `current`, or of an older or newer release. */
type SchemaAge = 'current' | 'older' | 'newer'

export interface BackupVerdict {
  file: string
  /** SQLite's integrity findings; empty: none. */
  damage: string[]
  schema: SchemaAge
  /** Tables, indexes, triggers and views that differ from the known releases; empty when `newer`. */
  schemaDifferences: string[]
  /** The key its secrets are encrypted with; null: it has no secrets yet. */
  keyFingerprint: string | null
  /** Whether the available key matches; `missing`: there is none. */
  key: 'fits' | 'other' | 'missing'
  audit: AuditVerdict
  accounts: number
  apiKeys: number
  requests: number
}

/** Whether it can be restored. A broken audit log is reported but does not prevent it. */
export const isRestorable = ({ damage, schema, schemaDifferences, key }: BackupVerdict): boolean =>
  damage.length === 0 && schema !== 'newer' && schemaDifferences.length === 0 && key === 'fits'

/** Tries `keyFile` on it. Throws `BackupError` when it is not a Sluice database. */
export const verifyBackup = async (file: string, keyFile: string): Promise<BackupVerdict> => {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new BackupError(`There is no file ${file}.`)
  const { sqlite, db } = opened(file)
  try {
    const schema = schemaAge(sqlite, file)
    const damage = integrityFindings(sqlite)
    const keyFingerprint = await getEncryptionKeyId(db)
    return {
      file,
      damage,
      schema,
      schemaDifferences: schema === 'newer' ? [] : schemaDifferences(sqlite, MIGRATIONS),
      keyFingerprint,
      key: checkKey(keyFingerprint, keyFile),
      audit: await getAudit(sqlite, db),
      ...getSizes(sqlite),
    }
  } catch (cause) {
    throw cause instanceof BackupError ? cause : unreadable(file, cause)
  } finally {
    sqlite.close()
  }
}

const opened = (file: string): OpenedDatabase => {
  try {
    return readerDatabase(file)
  } catch (cause) {
    throw unreadable(file, cause)
  }
}

const unreadable = (file: string, cause: unknown): BackupError =>
  new BackupError(`${file} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause })

/** `PRAGMA integrity_check`, which reads every page. */
export const integrityFindings = (sqlite: Database): string[] =>
  sqlite
    .query<{ integrity_check: string }, []>('PRAGMA integrity_check')
    .all()
    .map((row) => row.integrity_check)
    .filter((finding) => finding !== 'ok')

const schemaAge = (sqlite: Database, file: string): SchemaAge => {
  const names = namesApplied(sqlite, file)
  const known = new Set(MIGRATIONS.map(({ name }) => name))
  if (names.some((name) => !known.has(name))) return 'newer'
  return names.length < known.size ? 'older' : 'current'
}

const namesApplied = (sqlite: Database, file: string): string[] => {
  if (!hasOurs(sqlite, file)) throw new BackupError(`${file} is not a backup of Sluice.`)
  return sqlite
    .query<{ name: string }, []>('SELECT name FROM migrations')
    .all()
    .map(({ name }) => name)
}

const hasOurs = (sqlite: Database, file: string): boolean => {
  try {
    return isOurs(sqlite)
  } catch (cause) {
    throw new BackupError(`${file} is not a database.`, { cause })
  }
}

/** Whether a release of Sluice wrote it. */
export const isOurs = (sqlite: Database): boolean =>
  sqlite.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'").get() !== null

/** Releases without audit hashes have nothing to verify. */
const getAudit = async (sqlite: Database, db: Db): Promise<AuditVerdict> => {
  const columns = sqlite.query<{ name: string }, []>('PRAGMA table_info(audit_logs)').all()
  if (columns.some(({ name }) => name === 'hash')) return verifyAuditLog(db)
  const rows = getCount(sqlite, 'audit_logs')
  return { isWhole: true, rows, unchained: rows, purgedThroughId: null }
}

/** Whether the key at `path` has the wanted fingerprint; null: any key fits. Throws for an invalid key. */
export const checkKey = (wanted: string | null, path: string): BackupVerdict['key'] => {
  if (!existsSync(path)) return wanted === null ? 'fits' : 'missing'
  return wanted === null || fingerprint(readKey(path)) === wanted ? 'fits' : 'other'
}

const getSizes = (sqlite: Database) => ({
  accounts: getCount(sqlite, 'accounts'),
  apiKeys: getCount(sqlite, 'api_keys'),
  requests: getCount(sqlite, 'requests'),
})

const getCount = (sqlite: Database, table: string): number =>
  sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0
