/** What a restore makes valid again although it was revoked, so that it can be revoked again. */
import { and, eq } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { passkeys, users } from '../../db/schema/people.ts'
import { settings } from '../../db/schema/system.ts'

export interface Reactivated {
  /** Names of keys disabled or deleted since. */
  keys: string[]
  /** User names of users disabled or deleted since. */
  people: string[]
  /** User names whose password has changed since: the old one works again. */
  passwords: string[]
  /** Names of passkeys removed since, with their users. */
  passkeys: string[]
  /** Whether guest access is on again. */
  guests: boolean
}

/** Compares `restored` with `present`. Throws SQLite errors for missing tables. */
export const getReactivated = async (restored: Db, present: Db): Promise<Reactivated> => {
  const [before, now] = [await validIn(restored), await validIn(present)]
  const lost = new Map([...before.people].filter(([id]) => !now.people.has(id)))
  const isOther = ({ id, hash }: { id: string; hash: string | null }) =>
    hash !== null && now.people.has(id) && now.people.get(id)?.hash !== hash
  return {
    keys: [...before.keys].filter(([id]) => !now.keys.has(id)).map(([, name]) => name),
    people: [...lost.values()].map(({ username }) => username),
    passwords: [...before.people.values()].filter(isOther).map(({ username }) => username),
    passkeys: [...before.passkeys].filter(([id]) => !now.passkeys.has(id)).map(([, name]) => name),
    guests: before.guests && !now.guests,
  }
}

const validIn = async (db: Db) => ({
  keys: new Map(
    (await db.select({ id: apiKeys.id, name: apiKeys.name }).from(apiKeys).where(eq(apiKeys.isActive, true)).all()).map(
      ({ id, name }) => [id, name],
    ),
  ),
  people: new Map(
    (
      await db
        .select({ id: users.id, username: users.username, hash: users.passwordHash })
        .from(users)
        .where(eq(users.status, 'active'))
        .all()
    ).map((row) => [row.id, row]),
  ),
  passkeys: new Map(
    (
      await db
        .select({ id: passkeys.id, name: passkeys.name, username: users.username })
        .from(passkeys)
        .innerJoin(users, and(eq(users.id, passkeys.userId), eq(users.status, 'active')))
        .all()
    ).map(({ id, name, username }) => [id, `${name} of ${username}`]),
  ),
  guests: (await db.select().from(settings).where(eq(settings.key, 'guestAccessEnabled')).get())?.value === true,
})
