/** `sluice user …`: dashboard accounts from a shell, for who is locked out or sets a machine up without a browser. */
import { commit, type Tx } from '../../db/commit.ts'
import { createPasswords } from '../auth/passwords.ts'
import { AppError } from '../errors.ts'
import { systemRandom } from '../lib/random.ts'
import type { Actor } from '../model/audit.ts'
import { NewPassword } from '../model/credentials.ts'
import { getPerson, type Person } from '../model/people.ts'
import { listUsers, type User } from '../model/people-view.ts'
import { plural } from '../model/pool-words.ts'
import { createAdmin, setPassword, signOutEverywhere, takeTotp } from '../model/recovery.ts'
import { isTaken, Username } from '../model/usernames.ts'
import {
  type CliIo,
  type Command,
  cliActor,
  dispatch,
  onlyArgument,
  readArgs,
  UsageError,
  withFolder,
} from './command.ts'
import { aboutOne } from './find.ts'
import { listing } from './listing.ts'
import { readNewPassword } from './secret.ts'
import { shortTime } from './table.ts'

const list = listing({
  all: listUsers,
  headings: ['ID', 'NAME', 'ROLE', 'STATUS', 'PASSWORD', 'TWO-FACTOR', 'LAST SIGN-IN'],
  cells: ({ id, username, role, status, hasPassword, totpConfigured, lastLoginAt }) => [
    id,
    username,
    role.name,
    status,
    hasPassword ? 'yes' : 'no',
    totpConfigured ? 'yes' : 'no',
    shortTime(lastLoginAt === null ? null : Date.parse(lastLoginAt)),
  ],
  none: 'No accounts yet: sluice user create-admin admin',
})

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

const ACCOUNT = {
  what: 'account',
  foundBy: 'its user name, its e-mail or its id',
  all: listUsers,
  namesOf: ({ username, email }: User) => [username, email],
}

const resetPassword = aboutOne(ACCOUNT, async (db, { id, username, status }, io) => {
  const hash = await readHash(io)
  commit(db, (tx) => setPassword(tx, getPerson(tx, id), { hash, actor: cliActor() }))
  if (status === 'disabled') io.stderr('The account is disabled and cannot sign in until it is enabled.\n')
  return `"${username}" (${id}) has a new password and was signed out everywhere`
})

/** Something done to one account, and what can be said of it then. */
const onOne = (change: (tx: Tx, person: Person, actor: Actor) => string): Command =>
  aboutOne(ACCOUNT, (db, { id, username }) => {
    const done = commit(db, (tx) => change(tx, getPerson(tx, id), cliActor()))
    return `"${username}" (${id}) ${done}`
  })

const resetTotp = onOne((tx, person, actor) => {
  if (person.row.totpSecretSealed === null)
    throw new AppError('invalid_totp_setup', { message: `"${person.row.username}" has no second factor.` })
  takeTotp(tx, person, actor)
  return 'has no second factor any more and was signed out everywhere'
})

const revokeSessions = onOne((tx, person, actor) => {
  const count = signOutEverywhere(tx, person, actor)
  return `was signed out of ${plural(count, 'browser')}`
})

export const user: Command = dispatch('user', {
  list,
  'create-admin': createAdminAccount,
  'reset-password': resetPassword,
  'reset-totp': resetTotp,
  'revoke-sessions': revokeSessions,
})
