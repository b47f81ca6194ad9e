/** `sluice user …`: dashboard accounts from a shell, for who is locked out or sets a machine up without a browser. */
import { commit, type Db, type Tx } from '../../db/commit.ts'
import { createPasswords } from '../auth/passwords.ts'
import { AppError } from '../errors.ts'
import { systemRandom } from '../lib/random.ts'
import type { Actor } from '../model/audit.ts'
import { NewPassword } from '../model/credentials.ts'
import { getPerson, type Person } from '../model/people.ts'
import { listUsers, type User } from '../model/people-view.ts'
import { createAdmin, setPassword, signOutEverywhere, takeTotp } from '../model/recovery.ts'
import { isTaken, Username } from '../model/usernames.ts'
import {
  type CliIo,
  type Command,
  cliActor,
  dispatch,
  noArguments,
  onlyArgument,
  printJson,
  readArgs,
  UsageError,
  withFolder,
} from './command.ts'
import { findOne } from './find.ts'
import { readNewPassword } from './secret.ts'
import { shortTime, table } from './table.ts'

const list: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  noArguments(positionals)
  return withFolder(io, ({ db }) => {
    const users = listUsers(db)
    if (values.json) printJson(io, users)
    else if (users.length === 0) io.stdout('No accounts yet: sluice user create-admin admin\n')
    else io.stdout(table(['ID', 'NAME', 'ROLE', 'STATUS', 'PASSWORD', 'TWO-FACTOR', 'LAST SIGN-IN'], users.map(cells)))
    return 0
  })
}

const cells = ({ id, username, role, status, hasPassword, totpConfigured, lastLoginAt }: User): string[] => [
  id,
  username,
  role.name,
  status,
  hasPassword ? 'yes' : 'no',
  totpConfigured ? 'yes' : 'no',
  shortTime(lastLoginAt === null ? null : Date.parse(lastLoginAt)),
]

const createAdminAccount: Command = (args, io) => {
  const { positionals } = readArgs(args, {})
  const username = usernameOf(onlyArgument(positionals, 'user name'))
  return withFolder(io, async ({ db }) => {
    if (isTaken(db, username))
      throw new AppError('username_taken', { message: `There is an account "${username}" already.` })
    const hash = await readHash(io)
    const id = systemRandom.id('usr')
    const { row } = commit(db, (tx) => createAdmin(tx, { id, username, hash, actor: cliActor() }))
    io.stdout(`Created the administrator "${row.username}" (${row.id})\n`)
    return 0
  })
}

const usernameOf = (given: string): string => {
  const parsed = Username.safeParse(given)
  if (parsed.success) return parsed.data
  throw new UsageError(`The user name ${parsed.error.issues[0]?.message}.`)
}

/** Hashing takes a while and comes before the commit. */
const readHash = async (io: CliIo): Promise<string> => {
  const parsed = NewPassword.safeParse(await readNewPassword(io))
  if (!parsed.success)
    throw new AppError('validation_error', { message: `The password ${parsed.error.issues[0]?.message}.` })
  return (await createPasswords()).hash(parsed.data)
}

const resetPassword: Command = (args, io) => {
  const wanted = wantedName(args)
  return withFolder(io, async ({ db }) => {
    const { row } = find(db, wanted)
    const hash = await readHash(io)
    commit(db, (tx) => setPassword(tx, getPerson(tx, row.id), { hash, actor: cliActor() }))
    io.stdout(`"${row.username}" (${row.id}) has a new password and was signed out everywhere\n`)
    if (row.status === 'disabled') io.stderr('The account is disabled and cannot sign in until it is enabled.\n')
    return 0
  })
}

/** Something done to one account, and the sentence that says so. */
const onOne =
  (change: (tx: Tx, person: Person, actor: Actor) => string): Command =>
  (args, io) => {
    const wanted = wantedName(args)
    return withFolder(io, ({ db }) => {
      const { row } = find(db, wanted)
      const done = commit(db, (tx) => change(tx, getPerson(tx, row.id), cliActor()))
      io.stdout(`"${row.username}" (${row.id}) ${done}\n`)
      return 0
    })
  }

const resetTotp = onOne((tx, person, actor) => {
  if (person.row.totpSecretSealed === null)
    throw new AppError('invalid_totp_setup', { message: `"${person.row.username}" has no second factor.` })
  takeTotp(tx, person, actor)
  return 'has no second factor any more and was signed out everywhere'
})

const revokeSessions = onOne((tx, person, actor) => {
  const count = signOutEverywhere(tx, person, actor)
  return `was signed out of ${count} ${count === 1 ? 'browser' : 'browsers'}`
})

const wantedName = (args: readonly string[]): string =>
  onlyArgument(readArgs(args, {}).positionals, 'account: its user name, its e-mail or its id')

const find = (db: Db, wanted: string): Person => {
  const { id } = findOne(listUsers(db), wanted, {
    what: 'account',
    namesOf: ({ username, email }) => [username, email],
  })
  return getPerson(db, id)
}

export const user: Command = dispatch('user', {
  list,
  'create-admin': createAdminAccount,
  'reset-password': resetPassword,
  'reset-totp': resetTotp,
  'revoke-sessions': revokeSessions,
})
