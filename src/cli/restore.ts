/** `sluice restore FILE`: replaces the database with a backup while no server runs. */
import { resolve } from 'node:path'
import { plural } from '../model/overview/pool-words.ts'
import { BackupError } from '../ops/backup-verify.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import type { Reactivated } from '../ops/reactivated-by-restore.ts'
import { type Restored, restoreBackup } from '../ops/restore.ts'
import { contentText } from './backup.ts'
import { cliActor, getConfig, printJson, type Run } from './command.ts'

export const restore: Run = async (io, [file = ''], { json }) => {
  const places = getFolderPaths(getConfig(io))
  if (places.databaseUrl !== null) throw new BackupError(ON_POSTGRES)
  const restored = await restoreBackup({ file: resolve(file), ...places, actor: cliActor() })
  if (json) printJson(io, restored)
  else io.stdout(`${sentences(restored).join('\n')}\n`)
  return 0
}

const ON_POSTGRES =
  'The database is PostgreSQL. Copy the backup into a new, empty database instead, and set SLUICE_DATABASE_URL to it: ' +
  'sluice database copy --from FILE --to postgres://…'

const sentences = ({ verdict, migrated, tokensKept, revived, isForeign, aside }: Restored): string[] => [
  `Restored ${verdict.file}: ${contentText(verdict)}.`,
  ...(migrated.length === 0 ? [] : [`Migrated with ${migrated.join(', ')}.`]),
  ...(tokensKept === 0 ? [] : [`Kept the current tokens of ${plural(tokensKept, 'account')}, because they are newer.`]),
  ...(verdict.audit.isWhole ? [] : [`Its audit log is broken: ${verdict.audit.problem}.`]),
  ...(isForeign ? [FOREIGN] : []),
  ...(revived === null ? [] : reactivatedSentences(revived)),
  ...(aside === null ? [] : [`The previous database is in ${aside}. Delete it once everything works.`]),
  'All users have to sign in again. Start the server with "sluice serve".',
  'Accounts whose tokens were refreshed after the backup may need a new sign-in.',
]

const FOREIGN = 'The backup is from another installation: its keys, users and settings replace the ones that were here.'

const reactivatedSentences = ({ keys, people, passwords, passkeys, guests }: Reactivated): string[] => [
  ...valid(keys, (names) => `Keys revoked since the backup work again. Revoke them: ${names}.`),
  ...valid(people, (names) => `Users disabled since the backup can sign in again. Disable them: ${names}.`),
  ...valid(passwords, (names) => `Passwords changed since the backup are the old ones again. Change them: ${names}.`),
  ...valid(passkeys, (names) => `Passkeys removed since the backup work again. Remove them: ${names}.`),
  ...(guests ? ['Guest access is on again. See Settings → Access & keys.'] : []),
]

/** As JSON, so that names cannot control the terminal. */
const valid = (names: readonly string[], say: (names: string) => string): string[] =>
  names.length === 0 ? [] : [say(names.map((name) => JSON.stringify(name)).join(', '))]
