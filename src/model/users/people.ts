/** Reads dashboard users with their roles and credentials. */

import { and, asc, eq, isNotNull, isNull, or } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { identities, passkeys, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { filterInOrder } from '../../lib/in-order.ts'
import { getVersion } from '../edit-version.ts'
import { findRole, listRoles, PRESET_ROLES, type Role } from './roles.ts'

export type UserRow = typeof users.$inferSelect

/** A row with its role. A deleted role grants nothing. */
export interface Person {
  row: UserRow
  role: Role
}

const NO_GRANTS_ROLE: Role = {
  ...PRESET_ROLES[0]!,
  id: 'role_none',
  slug: 'none',
  name: 'No role',
  isAssignable: false,
  grants: new Map(),
} // presets are not empty

export const toPerson = async (db: Db, row: UserRow): Promise<Person> => ({
  row,
  role: (await findRole(db, row.roleId)) ?? NO_GRANTS_ROLE,
})

export const findPerson = async (db: Db, id: string): Promise<Person | null> => {
  const row = await db.select().from(users).where(eq(users.id, id)).get()
  return row ? await toPerson(db, row) : null
}

/** Throws `user_not_found`. */
export const getPerson = async (db: Db, id: string): Promise<Person> => {
  const person = await findPerson(db, id)
  if (!person) throw new AppError('user_not_found')
  return person
}

/** The version of a user's editable members. */
export const personVersion = ({ username, displayName, email, roleId, status }: UserRow): string =>
  getVersion([username, displayName, email, roleId, status])

/** All users, oldest first. */
export const listPeople = async (db: Db): Promise<Person[]> => {
  const roles = new Map((await listRoles(db)).map((role) => [role.id, role]))
  return (await db.select().from(users).orderBy(asc(users.createdAt), asc(users.id)).all()).map((row) => ({
    row,
    role: roles.get(row.roleId) ?? NO_GRANTS_ROLE,
  }))
}

/** Active users with a password: with none, password sign-in is impossible; with one, no name is needed. */
export const passwordHolders = (db: Db): Promise<UserRow[]> =>
  db
    .select()
    .from(users)
    .where(and(eq(users.status, 'active'), isNotNull(users.passwordHash)))
    .all()

/** Whether there is no user who can sign in: until then a local client is the administrator (spec §5). */
export const isEmptyInstall = async (db: Db): Promise<boolean> =>
  (await db
    .select({ id: users.id })
    .from(users)
    .where(or(eq(users.status, 'active'), isNotNull(users.passwordHash)))
    .limit(1)
    .get()) === undefined

/** Whether any user, active or not, has a password. */
export const hasPasswordAccount = async (db: Db): Promise<boolean> =>
  (await db.select({ id: users.id }).from(users).where(isNotNull(users.passwordHash)).limit(1).get()) !== undefined

export const hasPasskey = async (db: Db, userId: string): Promise<boolean> =>
  (await db.select({ id: passkeys.id }).from(passkeys).where(eq(passkeys.userId, userId)).limit(1).get()) !== undefined

/** The user linked to a proxy identity. */
export const findByIdentity = async (db: Db, subject: string): Promise<Person | null> => {
  const found = await db
    .select({ row: users })
    .from(identities)
    .innerJoin(users, eq(users.id, identities.userId))
    .where(and(eq(identities.provider, 'trusted_header'), eq(identities.subject, subject)))
    .get()
  return found ? await toPerson(db, found.row) : null
}

/** Number of active users with a password and no second factor, for the settings page (spec §2). */
export const countWithoutTotp = async (db: Db, isCounted: (role: Role) => boolean): Promise<number> =>
  (
    await filterInOrder(
      await db
        .select()
        .from(users)
        .where(and(eq(users.status, 'active'), isNotNull(users.passwordHash), isNull(users.totpSecretSealed)))
        .all(),
      async (row) => isCounted((await toPerson(db, row)).role),
    )
  ).length
