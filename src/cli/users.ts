/** `sluice user …`: users of the dashboard from a shell, when you are locked out or have no browser. */
import { commit, type Tx } from '../../db/commit.ts'
import { createPasswords } from '../auth/passwords.ts'
import { AppError } from '../errors.ts'
import { systemRandom } from '../lib/random.ts'
import type { Actor } from '../model/audit/audit.ts'
import { plural } from '../model/overview/pool-words.ts'
import { NewPassword } from '../model/users/passwords.ts'
import { getPerson, type Person } from '../model/users/people.ts'
import { listUsers, type User } from '../model/users/people-view.ts'
import { createAdmin, setPassword, signOutEverywhere, takeTotp } from '../model/users/recovery.ts'
import { isTaken, Username } from '../model/users/usernames.ts'
import { type CliIo, cliActor, type Run, UsageError, withNewFolder } from './command.ts'
import { commandForOne } from './find.ts'
import { listing } from './listing.ts'
import { readNewPassword } from './secret.ts'
import { shortTime } from './table.ts'

export const listAllUsers = listing({
  all: listUsers,
  getName: ({ username }) => username,
  headings: ['NAME', 'ROLE', 'STATUS', 'PASSWORD', 'TWO-FACTOR', 'LAST SIGN-IN', 'ID'],
  cells: ({ id, username, role, status, hasPassword, totpConfigured, lastLoginAt }) => [
    username,
    role.name,
    status,
    hasPassword ? 'yes' : 'no',
    totpConfigured ? 'yes' : 'no',
    shortTime(lastLoginAt === null ? null : Date.parse(lastLoginAt)),
    id,
  ],
  none: 'No users yet. To create the first: sluice user create-admin admin',
})

export const createAdminUser: Run = (io, [name = '']) => {
  const username = getUsername(name)
  return withNewFolder(io, async ({ db }) => {
    if (await isTaken(db, username))
      throw new AppError('username_taken', { message: `There is already a user "${username}".` })
    const hash = await readHash(io)
    const id = systemRandom.id('usr')
    const { row } = await commit(db, (tx) => createAdmin(tx, { id, username, hash, actor: cliActor() }))
    io.stdout(`Created the administrator "${row.username}".\n`)
    return 0
  })
}

const getUsername = (given: string): string => {
  const parsed = Username.safeParse(given)
  if (parsed.success) return parsed.data
  throw new UsageError(`The user name ${parsed.error.issues[0]?.message}.`)
}

/** Hashes before the commit, because it takes a while. */
const readHash = async (io: CliIo): Promise<string> => {
  const parsed = NewPassword.safeParse(await readNewPassword(io))
  if (!parsed.success)
    throw new AppError('validation_error', { message: `The password ${parsed.error.issues[0]?.message}.` })
  return (await createPasswords()).hash(parsed.data)
}

export const USER = {
  what: 'user',
  listedBy: 'user list',
  all: listUsers,
  getNames: ({ username, email }: User) => [username, email],
}

export const resetPassword = commandForOne(USER, async (db, { id, username, status }, io) => {
  const hash = await readHash(io)
  await commit(db, async (tx) => setPassword(tx, await getPerson(tx, id), { hash, actor: cliActor() }))
  if (status === 'disabled') io.stderr('This user is disabled and cannot sign in until enabled.\n')
  return `Set a new password for "${username}" and signed them out everywhere.`
})

/** Changes one user in one commit, and reports it. */
const onOneUser = (change: (tx: Tx, person: Person, actor: Actor) => Promise<string>): Run =>
  commandForOne(USER, (db, { id }) => commit(db, async (tx) => change(tx, await getPerson(tx, id), cliActor())))

export const resetTotp = onOneUser(async (tx, person, actor) => {
  if (person.row.totpSecretSealed === null)
    throw new AppError('invalid_totp_setup', { message: `"${person.row.username}" has no two-factor authentication.` })
  await takeTotp(tx, person, actor)
  return `Removed two-factor authentication of "${person.row.username}" and signed them out everywhere.`
})

export const revokeSessions = onOneUser(async (tx, person, actor) => {
  const count = await signOutEverywhere(tx, person, actor)
  return `Signed "${person.row.username}" out of ${plural(count, 'browser')}.`
})
