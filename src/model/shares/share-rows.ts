/** Reads and stores the shares of users and roles. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { shares, users } from '../../../db/schema/people.ts'

/** A share of the pool's capacity in percent. Null means that the window is not limited. */
export interface Share {
  fiveHourPercent: number | null
  weeklyPercent: number | null
}

export interface Holder {
  userId: string
  username: string
  share: Share
}

/** The shares by ID of the user or role. */
export const listShares = async (db: Db): Promise<ReadonlyMap<string, Share>> =>
  new Map(
    (await db.select().from(shares).all()).map(({ holderId, fiveHourPercent, weeklyPercent }) => [
      holderId,
      { fiveHourPercent, weeklyPercent },
    ]),
  )

/** The users who have a share, their own or that of their role. */
export const listHolders = async (db: Db): Promise<Holder[]> => {
  const stored = await listShares(db)
  if (stored.size === 0) return []
  const rows = await db
    .select({ id: users.id, username: users.username, roleId: users.roleId })
    .from(users)
    .orderBy(users.username)
    .all()
  return rows.flatMap(({ id, username, roleId }) => {
    const share = stored.get(id) ?? stored.get(roleId)
    return share ? [{ userId: id, username, share }] : []
  })
}

/** Stores or, if null, removes a share. Returns whether anything changed. */
export const storeShare = async (tx: Tx, holderId: string, share: Share | null): Promise<boolean> => {
  const wanted = share?.fiveHourPercent == null && share?.weeklyPercent == null ? null : share
  const before = await tx.select().from(shares).where(eq(shares.holderId, holderId)).get()
  if (isSame(before ?? null, wanted)) return false
  await tx.delete(shares).where(eq(shares.holderId, holderId)).run()
  if (wanted)
    await tx
      .insert(shares)
      .values({ holderId, ...wanted })
      .run()
  return true
}

const isSame = (one: Share | null, other: Share | null): boolean =>
  one?.fiveHourPercent === other?.fiveHourPercent && one?.weeklyPercent === other?.weeklyPercent
