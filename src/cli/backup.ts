/** `sluice backup`, `sluice backup verify`: a consistent copy of the database, and whether one can be restored. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../lib/clock.ts'
import { plural } from '../model/overview/pool-words.ts'
import { makeBackup, toKey } from '../ops/backup-file.ts'
import { BackupError, type BackupVerdict, isRestorable, verifyBackup } from '../ops/backup-verify.ts'
import { backupPath, makeBackupFolder } from '../ops/backups.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { getConfig, printJson, type Run, yieldToTurns } from './command.ts'

interface BackupOptions {
  out?: string
  withKey?: true
  json?: true
}

/** Works while the server runs. Does not migrate, because the running server may be a different release. */
export const makeBackupFile: Run<BackupOptions> = async (io, _args, { out, withKey, json }) => {
  const { dir, databasePath, databaseUrl, keyPath } = getFolderPaths(getConfig(io))
  const now = systemClock.now()
  if (withKey && !existsSync(keyPath)) throw new BackupError(`There is no encryption key at ${keyPath}.`)
  yieldToTurns()
  if (out === undefined && (databaseUrl !== null || existsSync(databasePath))) await makeBackupFolder(dir)
  const made = await makeBackup({
    source: databaseUrl === null ? databasePath : { url: databaseUrl, now },
    target: out === undefined ? backupPath(dir, now, 'manual') : resolve(out),
    keyFile: withKey ? keyPath : null,
  })
  if (json) printJson(io, made)
  else io.stdout(`${made.file}\n`)
  if (!json) io.stderr(made.keyFile === null ? keyElsewhere(keyPath) : keyBeside(made.keyFile))
  return 0
}

const keyElsewhere = (keyPath: string): string =>
  `The tokens in it can only be decrypted with ${keyPath}. Keep a copy of that file somewhere else.\n`

const keyBeside = (keyFile: string): string =>
  `The encryption key is next to it: ${keyFile}. Anyone with both files can use every account.\n`

/** Exit code 1 when it cannot be restored. A broken audit log is reported but allowed. */
export const verifyBackupFile: Run = async (io, [name = ''], { json }) => {
  const file = resolve(name)
  const verdict = await verifyBackup(
    file,
    existsSync(toKey(file)) ? toKey(file) : getFolderPaths(getConfig(io)).keyPath,
  )
  if (json) printJson(io, { ...verdict, isRestorable: isRestorable(verdict) })
  else io.stdout(`${sentences(verdict).join('\n')}\n`)
  return isRestorable(verdict) ? 0 : 1
}

const sentences = (verdict: BackupVerdict): string[] => {
  const { damage, schema, schemaDifferences, key, audit } = verdict
  return [
    isRestorable(verdict) ? 'OK: this backup can be restored.' : 'This backup cannot be restored.',
    `Contents: ${contentText(verdict)}.`,
    damage.length === 0 ? 'File: intact.' : `File: damaged: ${damage[0]}`,
    `Schema: ${schemaDifferences.length === 0 ? SCHEMA[schema] : `not what Sluice creates: ${schemaDifferences.join(', ')}`}.`,
    `Encryption key: ${KEY[key]}.`,
    audit.isWhole ? `Audit log: verified, ${audit.rows} entries.` : `Audit log: broken: ${audit.problem}.`,
  ]
}

export const contentText = ({ accounts, apiKeys, requests }: BackupVerdict): string =>
  [plural(accounts, 'account'), plural(apiKeys, 'key'), plural(requests, 'request')].join(', ')

const SCHEMA: Record<BackupVerdict['schema'], string> = {
  current: 'this release',
  older: 'an older release; the restore migrates it',
  newer: 'a newer release; update Sluice first',
}

const KEY: Record<BackupVerdict['key'], string> = {
  fits: 'matches',
  other: 'does not match; this backup needs another key',
  missing: 'not found, so it could not be checked',
}
