/** Replaces the database with a verified and migrated backup, keeping the old files. */

import type { Database } from 'bun:sqlite'
import {
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { and, eq, lt } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../db/commit.ts'
import { acquireFolderLock } from '../../db/lock.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { type OpenedDatabase, openDatabase, readerDatabase } from '../../db/open.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { sessions } from '../../db/schema/people.ts'
import { filterInOrder } from '../lib/in-order.ts'
import { type Actor, append } from '../model/audit/audit.ts'
import { getEncryptionKeyId } from '../model/encryption-key-id.ts'
import { copyDatabase, copyPrivately, flush, getLogs, removePartial, toKey } from './backup-file.ts'
import { BackupError, type BackupVerdict, isRestorable, verifyBackup } from './backup-verify.ts'
import { getReactivated, type Reactivated } from './reactivated-by-restore.ts'

interface RestoreRequest {
  /** The backup. */
  file: string
  /** The data folder; created if missing. */
  dir: string
  databasePath: string
  keyPath: string
  /** `at` is the time of the restore. */
  actor: Actor
}

export interface Restored {
  verdict: BackupVerdict
  /** Applied migrations. */
  migrated: string[]
  /** Accounts that kept their current tokens, which are newer than the backup's. */
  tokensKept: number
  /** Null when the old database was unreadable, of another installation, or missing. */
  revived: Reactivated | null
  /** The old database belongs to another installation, with another key. */
  isForeign: boolean
  /** Where the old files are now; null: there were none. */
  aside: string | null
}

/**
 * Changes nothing before the backup is verified; then one rename replaces the database. Tokens refreshed since the
 * backup are kept, because the backup's are spent; sessions are not restored, so that no signed-out user is signed in
 * again. Throws `FolderLockedError` while a server uses the folder, and `BackupError`.
 */
export const restoreBackup = async (asked: RestoreRequest): Promise<Restored> => {
  const { file, dir } = asked
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const request = { ...asked, databasePath: resolveLinks(asked.databasePath), keyPath: resolveLinks(asked.keyPath) }
  const { databasePath, keyPath } = request
  const home = dirname(databasePath)
  const incoming = join(home, 'restore.partial')
  if (resolveLinks(file) === resolveLinks(incoming))
    throw new BackupError(
      `${file} is left over from an interrupted restore and may be incomplete. Restore the original backup.`,
    )
  const locks = [acquireFolderLock(dir)]
  try {
    if (resolveLinks(dir) !== resolveLinks(home)) locks.push(acquireFolderLock(home)) // another server may use it
    removePartial(incoming) // left by a killed process
    const chosenKey = existsSync(toKey(file)) ? toKey(file) : keyPath
    requireRestorable(await verifyBackup(file, chosenKey), keyPath)
    copyDatabase(file, incoming) // not copied bytewise: the newest commits may be in its log
    const verdict = { ...(await verifyBackup(incoming, chosenKey)), file }
    requireRestorable(verdict, keyPath)
    const prepared = await prepare(incoming, request)
    const isOtherKey = chosenKey !== keyPath && !isSameKey(chosenKey, keyPath)
    const incomingKey = isOtherKey ? prepareKey(chosenKey, keyPath) : null
    const aside = moveAside(asked, { withKey: isOtherKey })
    renameSync(incoming, databasePath)
    if (incomingKey !== null) renameSync(incomingKey, keyPath)
    flush(home)
    if (incomingKey !== null) flush(dirname(keyPath))
    return { verdict, ...prepared, aside }
  } finally {
    removePartial(incoming)
    rmSync(`${keyPath}.partial`, { force: true })
    for (const lock of locks) lock.release()
  }
}

/**
 * Resolves links, so that a database on another disk stays there; a missing path is returned unchanged. Throws for a
 * broken link.
 */
const resolveLinks = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path
    throw new BackupError(`${path} is a link to a missing or unreadable target. Mount the target, or remove the link.`)
  }
}

const requireRestorable = (verdict: BackupVerdict, keyPath: string): void => {
  if (isRestorable(verdict)) return
  const { file, damage, schema, schemaDifferences, key } = verdict
  if (damage.length > 0) throw new BackupError(`${file} is damaged: ${damage[0]}`)
  if (schema === 'newer') throw new BackupError(`${file} was created by a newer version. Update Sluice first.`)
  if (schemaDifferences.length > 0)
    throw new BackupError(
      `${file} has a schema that no release of Sluice created: ${schemaDifferences.slice(0, 5).join(', ')}. ` +
        'Restore another backup.',
    )
  const what = key === 'missing' ? 'is missing' : 'does not match'
  throw new BackupError(
    `The encryption key for ${file} ${what}. Put the right one at ${keyPath}, or next to the backup as ` +
      `${basename(toKey(file))}.`,
  )
}

/** Migrates the copy and closes it as one file without log. */
const prepare = async (
  path: string,
  request: RestoreRequest,
): Promise<Pick<Restored, 'migrated' | 'tokensKept' | 'revived' | 'isForeign'>> => {
  const opened = openDatabase(path)
  try {
    const migrated = migrate(opened.sqlite, MIGRATIONS, request.actor.at)
    const present = (await withPresent(request.databasePath, ({ db }) => tokensIn(db, opened))) ?? []
    const isForeign = (await withPresent(request.databasePath, ({ db }) => areUnrelated(opened.db, db))) ?? false
    const revived = isForeign
      ? null
      : await withPresent(request.databasePath, ({ db }) => getReactivated(opened.db, db))
    const tokensKept = await commit(opened.db, async (tx) => {
      await tx.delete(sessions).run()
      const kept = (await filterInOrder(present, (account) => keepTokens(tx, account))).length
      const details = { file: basename(request.file), migrated: migrated.length, tokensKept: kept }
      await append(tx, request.actor, 'backup_restored', { details })
      return kept
    })
    opened.stopReading()
    opened.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
    opened.sqlite.run('PRAGMA journal_mode = DELETE')
    return { migrated, tokensKept, revived, isForeign }
  } finally {
    opened.sqlite.close()
  }
}

type PresentTokens = Pick<
  typeof accounts.$inferSelect,
  'id' | 'accessTokenSealed' | 'refreshTokenSealed' | 'idTokenSealed' | 'lastRefreshAt'
>

/** Tokens of the old database if encrypted with the same key; otherwise none. */
const tokensIn = async (present: Db, { db }: OpenedDatabase): Promise<PresentTokens[]> => {
  if ((await getEncryptionKeyId(present)) !== (await getEncryptionKeyId(db))) return []
  const { id, accessTokenSealed, refreshTokenSealed, idTokenSealed, lastRefreshAt } = accounts
  return present
    .select({ id, accessTokenSealed, refreshTokenSealed, idTokenSealed, lastRefreshAt })
    .from(accounts)
    .all()
}

/** Releases without fingerprints count as the same installation. */
const areUnrelated = async (restored: Db, present: Db): Promise<boolean> => {
  const [ours, theirs] = [await getEncryptionKeyId(restored), await getEncryptionKeyId(present)]
  return ours !== null && theirs !== null && ours !== theirs
}

/** The result of `look` on the old database; null when missing or unreadable. */
const withPresent = async <T>(path: string, look: (present: OpenedDatabase) => Promise<T>): Promise<T | null> => {
  if (!existsSync(path)) return null
  let present: OpenedDatabase | null = null
  try {
    present = readerDatabase(path)
    return await look(present)
  } catch {
    return null // damaged, which may be the reason for the restore
  } finally {
    present?.sqlite.close()
  }
}

/** They are sealed for their column and row, which are the same here. */
const keepTokens = async (tx: Tx, { id, ...tokens }: PresentTokens): Promise<boolean> =>
  (
    await tx
      .update(accounts)
      .set(tokens)
      .where(and(eq(accounts.id, id), lt(accounts.lastRefreshAt, tokens.lastRefreshAt)))
      .run()
  ).changes > 0

/**
 * Keeps the old files by a second link under their usual names, so that the database keeps its name until the final
 * rename.
 */
const moveAside = ({ dir, databasePath, keyPath, actor }: RestoreRequest, { withKey }: { withKey: boolean }) => {
  const database = resolveLinks(databasePath)
  const files = [database, ...getLogs(database), ...(withKey ? [keyPath] : [])]
  if (!files.some((path) => existsSync(path))) return null
  const stamp = new Date(actor.at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  const aside = freeName(join(dir, `before-restore-${stamp}`))
  mkdirSync(aside, { mode: 0o700 })
  if (existsSync(database)) writeLogInto(database) // SQLite would otherwise create an empty file and drop the log
  const keep = (from: string, name: string) => {
    if (existsSync(from)) linkOrCopy(from, join(aside, name))
  }
  keep(database, basename(databasePath))
  if (withKey) keep(resolveLinks(keyPath), basename(keyPath))
  // A leftover log must not be used for the new database.
  for (const path of getLogs(database)) {
    keep(path, basename(databasePath) + path.slice(database.length))
    rmSync(path, { force: true })
  }
  flush(aside)
  flush(dir)
  return aside
}

/** Two restores may start in the same second; the lock excludes other writers. */
const freeName = (path: string): string => {
  let name = path
  for (let n = 2; existsSync(name); n++) name = `${path}-${n}`
  return name
}

/** Closing the last connection writes the log into the database; for a damaged one the log is kept. */
const writeLogInto = (path: string): void => {
  let opened: { sqlite: Database } | null = null
  try {
    opened = openDatabase(path)
    opened.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // keep what is possible: file and log are moved together
  } finally {
    opened?.sqlite.close()
  }
}

const linkOrCopy = (from: string, to: string): void => {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to, constants.COPYFILE_EXCL) // a file system without links, or a different one
    flush(to)
  }
}

const isSameKey = (one: string, other: string): boolean =>
  existsSync(other) && readFileSync(one, 'utf8').trim() === readFileSync(other, 'utf8').trim()

/** Next to its destination, so that anything that can fail does so before files are replaced. */
const prepareKey = (from: string, to: string): string => {
  const incoming = `${to}.partial`
  rmSync(incoming, { force: true })
  copyPrivately(from, incoming)
  return incoming
}
