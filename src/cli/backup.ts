/** `sluice backup`, `sluice backup verify`: a copy of the database that is safe to keep, and the proof that one is. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../lib/clock.ts'
import { plural } from '../model/pool-words.ts'
import { keyOf, makeBackup } from '../ops/backup-file.ts'
import { BackupError, type BackupVerdict, isRestorable, verifyBackup } from '../ops/backup-verify.ts'
import { backupPath, makeBackupFolder } from '../ops/backups.ts'
import { placesOf } from '../ops/places.ts'
import { type Command, configOf, noArguments, onlyArgument, printJson, readArgs, yieldToTurns } from './command.ts'

/** Beside a running server too. Does not migrate: the server that runs may be of another release. */
const make: Command = async (args, io) => {
  const { values, positionals } = readArgs(args, {
    out: { type: 'string' },
    'with-key': { type: 'boolean' },
    json: { type: 'boolean' },
  })
  noArguments(positionals)
  const { dir, databasePath, keyPath } = placesOf(configOf(io))
  if (values['with-key'] && !existsSync(keyPath)) throw new BackupError(`There is no encryption key at ${keyPath}.`)
  yieldToTurns()
  if (values.out === undefined && existsSync(databasePath)) await makeBackupFolder(dir)
  const made = makeBackup({
    source: databasePath,
    target: values.out === undefined ? backupPath(dir, systemClock.now(), 'manual') : resolve(values.out),
    keyFile: values['with-key'] ? keyPath : null,
  })
  if (values.json) printJson(io, made)
  else io.stdout(`${made.file}\n`)
  if (!values.json) io.stderr(made.keyFile === null ? withoutKey(keyPath) : withKey(made.keyFile))
  return 0
}

const withoutKey = (keyPath: string): string =>
  `The secrets in it open only with ${keyPath}; keep a copy of that file somewhere else.\n`

const withKey = (keyFile: string): string =>
  `The key is beside it (${keyFile}): whoever has both files has every account.\n`

/** Exit code 1 when it could not be restored. A broken audit log is told beside. */
const verify: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  const file = resolve(onlyArgument(positionals, 'backup'))
  const verdict = verifyBackup(file, existsSync(keyOf(file)) ? keyOf(file) : placesOf(configOf(io)).keyPath)
  if (values.json) printJson(io, { ...verdict, isRestorable: isRestorable(verdict) })
  else io.stdout(`${sentences(verdict).join('\n')}\n`)
  return isRestorable(verdict) ? 0 : 1
}

const sentences = (verdict: BackupVerdict): string[] => {
  const { damage, schema, schemaDifferences, key, audit } = verdict
  return [
    isRestorable(verdict) ? 'OK: it can be restored.' : 'NOT RESTORABLE as it is.',
    `Holds ${holdings(verdict)}.`,
    damage.length === 0 ? 'File: whole.' : `File: damaged: ${damage[0]}`,
    `Schema: ${schemaDifferences.length === 0 ? SCHEMA[schema] : `not what Sluice creates: ${schemaDifferences.join(', ')}`}.`,
    `Encryption key: ${KEY[key]}.`,
    audit.isWhole ? `Audit log: whole, ${plural(audit.rows, 'row')}.` : `Audit log: BROKEN: ${audit.problem}.`,
  ]
}

export const holdings = ({ accounts, apiKeys, requests }: BackupVerdict): string =>
  [plural(accounts, 'account'), plural(apiKeys, 'key'), plural(requests, 'request')].join(', ')

const SCHEMA: Record<BackupVerdict['schema'], string> = {
  current: 'of this release',
  older: 'of an older release; it is brought up to date when it is restored',
  newer: 'of a newer release; update this program first',
}

const KEY: Record<BackupVerdict['key'], string> = {
  fits: 'fits',
  other: 'the one at hand is not the one it was sealed with',
  missing: 'there is none at hand to try',
}

export const backup: Command = (args, io) => (args[0] === 'verify' ? verify(args.slice(1), io) : make(args, io))
