/** `sluice restore FILE`: puts a backup in the place of the present database, while no server runs. */
import { resolve } from 'node:path'
import { plural } from '../model/pool-words.ts'
import { placesOf } from '../ops/places.ts'
import { type Restored, restoreBackup } from '../ops/restore.ts'
import type { Revived } from '../ops/revived.ts'
import { holdings } from './backup.ts'
import { type Command, cliActor, configOf, onlyArgument, printJson, readArgs } from './command.ts'

export const restore: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  const file = resolve(onlyArgument(positionals, 'backup'))
  const restored = restoreBackup({ file, ...placesOf(configOf(io)), actor: cliActor() })
  if (values.json) printJson(io, restored)
  else io.stdout(`${sentences(restored).join('\n')}\n`)
  return 0
}

const sentences = ({ verdict, migrated, tokensKept, revived, isForeign, aside }: Restored): string[] => [
  `Restored ${verdict.file}: ${holdings(verdict)}.`,
  ...(migrated.length === 0 ? [] : [`Brought up to date by ${migrated.join(', ')}.`]),
  ...(tokensKept === 0
    ? []
    : [`The present tokens of ${plural(tokensKept, 'account')} were kept, because they are newer.`]),
  ...(verdict.audit.isWhole ? [] : [`Its audit log is broken: ${verdict.audit.problem}.`]),
  ...(isForeign ? [FOREIGN] : []),
  ...(revived === null ? [] : revivedSentences(revived)),
  ...(aside === null ? [] : [`What was there before is in ${aside}; remove it once all is well.`]),
  'Everybody has to sign in again. Start the server with "sluice serve".',
  'An account whose token was renewed after the backup, and is not known here any more, will ask for a new sign-in.',
]

const FOREIGN =
  'The backup is of another installation: its keys, people and settings hold now, and none of those that were here.'

const revivedSentences = ({ keys, people, passwords, passkeys, guests }: Revived): string[] => [
  ...valid(keys, (names) => `Keys that were revoked since work again; revoke them anew: ${names}.`),
  ...valid(people, (names) => `People who were disabled since may sign in again; disable them anew: ${names}.`),
  ...valid(passwords, (names) => `The old passwords hold again; change them anew: ${names}.`),
  ...valid(passkeys, (names) => `Passkeys that were removed since sign in again; remove them anew: ${names}.`),
  ...(guests ? ['Guests are let in again; see Settings, Access.'] : []),
]

/** As JSON, because somebody typed these names: they cannot move the cursor of a terminal. */
const valid = (names: readonly string[], say: (names: string) => string): string[] =>
  names.length === 0 ? [] : [say(names.map((name) => JSON.stringify(name)).join(', '))]
