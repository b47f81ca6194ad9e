/** Checks of the data folder: permissions, file system, free space, key and backups. */
import { access, constants, stat, statfs } from 'node:fs/promises'
import { HOUR_MS } from '../lib/durations.ts'
import { readKey } from '../lib/key-file.ts'
import { fingerprint } from '../lib/seal.ts'
import { type Backup, backupFolder } from './backups.ts'
import { type Check, type Found, passed, problem, unknown, warning } from './checks.ts'
import { type PostgresFacts, postgresChecks } from './postgres-facts.ts'

export interface FolderFacts {
  dir: string
  databasePath: string
  keyPath: string
  /** The key the database is encrypted with; null: no secrets yet; undefined: unreadable. */
  keyFingerprint: string | null | undefined
  /** The result of checking the database, or its running server; null: no problem. */
  databaseFinding: Found | null
  backups: () => Promise<Backup[]>
  /** 0: no scheduled backups. */
  backupIntervalHours: number
  /** ms since epoch */
  now: number
  /** Present if the database is PostgreSQL. `databasePath` is not used then. */
  postgres?: () => Promise<PostgresFacts | { unusable: string }>
}

export const folderChecks = (facts: FolderFacts): Check[] => [
  { id: 'data_folder', title: 'Data folder', run: () => checkFolder(facts) },
  { id: 'disk_space', title: 'Free space', run: () => checkSpace(facts) },
  ...(facts.postgres
    ? postgresChecks(facts.postgres)
    : [{ id: 'database', title: 'Database file', run: () => checkDatabase(facts) }]),
  { id: 'key_file', title: 'Encryption key', run: () => checkKey(facts) },
  { id: 'backup', title: 'Backups', run: () => checkBackups(facts) },
]

const OTHERS = 0o077
const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

/** Network file systems by statfs(2) magic number: their locks are unreliable (sqlite.org/faq.html q5). */
const NETWORK = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
])

const checkFolder = async ({ dir, databasePath, postgres }: FolderFacts): Promise<Found> => {
  const folder = await stat(dir).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOTDIR') return null // its parent is a file
    throw err
  })
  if (!folder?.isDirectory()) return problem(`${dir} is not a folder.`, 'Set SLUICE_DATA_DIR to a folder.')
  const { mode, uid } = folder
  const { uid: owner } = await stat(databasePath).catch(() => ({ uid })) // created by the server
  const isWritable = await access(dir, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!isWritable)
    return problem(`Sluice can’t write to ${dir}.`, `Make the user that runs Sluice its owner: chown -R USER ${dir}`)
  const network = postgres ? undefined : NETWORK.get((await statfs(dir)).type)
  if (network)
    return problem(
      `${dir} is on a network file system (${network}), where database locks don’t work reliably.`,
      'Move the folder to a local disk.',
    )
  if ((mode & OTHERS) !== 0)
    return warning(
      `Other users of this machine can read ${dir} (mode ${octal(mode)}).`,
      uid === owner ? `chmod 0700 ${dir}` : `As root: chown ${owner} ${dir} && chmod 0700 ${dir}`,
    )
  return passed(`${dir} is writable, and other users can’t read it.`)
}

const MIB = 1024 * 1024
const LOW_BYTES = 1024 * MIB
const TOO_LOW_BYTES = 200 * MIB

const checkSpace = async ({ dir, databasePath, postgres }: FolderFacts): Promise<Found> => {
  const { bavail, bsize } = await statfs(dir)
  const free = bavail * bsize
  const used = await getSize(databasePath)
  if (postgres && free < LOW_BYTES) return warning(`${mib(free)} free.`, 'Free some disk space for backups.')
  if (postgres) return passed(`${mib(free)} free.`)
  if (free < TOO_LOW_BYTES)
    return problem(`Only ${mib(free)} free.`, 'Free some disk space, or Sluice can’t store requests and tokens.')
  if (free < Math.max(LOW_BYTES, 2 * used))
    return warning(
      `${mib(free)} free; the database takes ${mib(used)}.`,
      'Free some disk space for backups, or keep request logs for fewer days.',
    )
  return passed(`${mib(free)} free.`)
}

const LARGE_LOG_BYTES = 256 * MIB

const checkDatabase = async ({ databasePath, databaseFinding }: FolderFacts): Promise<Found> => {
  if (databaseFinding !== null) return databaseFinding
  const { mode, size } = await stat(databasePath)
  const log = await getSize(`${databasePath}-wal`)
  if ((mode & OTHERS) !== 0)
    return warning(`Other users can read ${databasePath} (mode ${octal(mode)}).`, `chmod 0600 ${databasePath}`)
  if (log > LARGE_LOG_BYTES)
    return warning(
      `Its write-ahead log has grown to ${mib(log)}.`,
      'Another process has been reading the database for a long time. Look for a stuck backup or an open SQLite shell.',
    )
  return passed(`${mib(size)}, plus a write-ahead log of ${mib(log)}.`)
}

const checkKey = async ({ keyPath, keyFingerprint }: FolderFacts): Promise<Found> => {
  const found = await stat(keyPath).catch(() => null)
  if (!found)
    return keyFingerprint === null
      ? unknown(`${keyPath} will be created on first start.`)
      : problem(
          `${keyPath} is missing. Sluice won’t start again, and its tokens can’t be decrypted without it.`,
          'Restore the file from your copy before you stop Sluice.',
        )
  const { mode } = found
  const fault = getFault(keyPath, keyFingerprint ?? null)
  if (fault !== null)
    return problem(
      `${keyPath} ${fault}. Sluice won’t start again.`,
      'Restore the key file that belongs to this database.',
    )
  if ((mode & OTHERS) !== 0)
    return warning(`Other users could read ${keyPath} (mode ${octal(mode)}).`, `chmod 0600 ${keyPath}`)
  if (keyFingerprint === undefined) return unknown('Can’t check it, because the database can’t be read.')
  return passed('It matches the database, and only its owner can read it. Keep a copy somewhere else.')
}

const getFault = (keyPath: string, wanted: string | null): string | null => {
  try {
    const own = fingerprint(readKey(keyPath))
    return wanted === null || own === wanted ? null : 'is not the key this database was encrypted with'
  } catch (err) {
    return `can’t be used (${err instanceof Error ? err.message : err})`
  }
}

const checkBackups = async (facts: FolderFacts): Promise<Found> => {
  const { backups, backupIntervalHours, now } = facts
  const made = await backups().catch((err: NodeJS.ErrnoException) => unreadable(facts, err))
  if (!Array.isArray(made)) return made
  const newest = made.find(({ at }) => at <= now)
  const [future] = made
  if (future && future.at > now)
    return warning(
      `${future.name} is dated in the future and is ignored.`,
      'Check the clock of this machine, then rename or delete the file.',
    )
  if (backupIntervalHours === 0)
    return newest
      ? unknown(`Last backup ${span(now - newest.at)} ago. Scheduled backups are off.`)
      : warning('There are no backups, and scheduled backups are off.', 'Turn them on under Settings → Data.')
  if (!newest)
    return warning(
      'There are no backups yet.',
      'The first one is made within 10 minutes of a start. To make one now, run "sluice backup".',
    )
  const age = now - newest.at
  if (age > 2 * backupIntervalHours * HOUR_MS)
    return problem(
      `The last backup is ${span(age)} old, but one is due every ${backupIntervalHours} hours.`,
      'Run "sluice backup" to see why backups fail.',
    )
  return passed(`Last backup ${span(age)} ago (${newest.name}, ${mib(newest.bytes)}).`)
}

/** A server cannot make backups there either. */
const unreadable = async ({ dir, databasePath }: FolderFacts, { code, message }: NodeJS.ErrnoException) => {
  const folder = backupFolder(dir)
  if (code === 'ENOTDIR')
    return problem(`${folder} is not a folder.`, 'Move that file away. The next backup creates the folder.')
  if (code !== 'EACCES' && code !== 'EPERM')
    return problem(`${folder} can’t be read: ${message}.`, 'The disk may be failing. Check the system log.')
  const { uid } = await stat(databasePath).catch(() => ({ uid: 'USER' })) // created by the server
  return problem(
    `The current user can’t read ${folder}.`,
    `Run this as the user that runs Sluice. If you already do, run as root: chown -R ${uid} ${folder} && chmod 0700 ${folder}`,
  )
}

const span = (ms: number): string => {
  if (ms < HOUR_MS) return `${Math.max(1, Math.round(ms / 60_000))} min`
  return ms < 48 * HOUR_MS ? `${Math.round(ms / HOUR_MS)} h` : `${Math.round(ms / HOUR_MS / 24)} days`
}

const getSize = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

const mib = (bytes: number): string =>
  bytes >= 1024 * MIB ? `${(bytes / MIB / 1024).toFixed(1)} GiB` : `${Math.ceil(bytes / MIB)} MiB`
