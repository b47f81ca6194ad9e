/** The order in which `fill_first` and `sequential_drain` use accounts, where one was set. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'

interface Placed {
  id: string
  position: number | null
}

/** After every account that has a position. */
const UNPLACED = Number.MAX_SAFE_INTEGER

export const byPosition = (a: Pick<Placed, 'position'>, b: Pick<Placed, 'position'>): number =>
  (a.position ?? UNPLACED) - (b.position ?? UNPLACED)

/** Every account by position, the others after them by age. */
export const listByPosition = async (db: Db): Promise<Placed[]> =>
  (
    await db.select({ id: accounts.id, position: accounts.position }).from(accounts).orderBy(accounts.createdAt).all()
  ).toSorted(byPosition)

/** Puts the account at the `position`-th place, from 1, and numbers all of them; null takes it out of the order. */
export const moveAccount = async (tx: Tx, id: string, position: number | null): Promise<void> => {
  if (position === null) {
    await place(tx, id, null)
    await closeGaps(tx)
  } else
    for (const [at, account] of moved(await listByPosition(tx), id, position - 1).entries())
      await place(tx, account.id, at + 1)
}

/** Numbers the accounts that have a position from 1. Call it after one was deleted. */
export const closeGaps = async (tx: Tx): Promise<void> => {
  const placed = (await listByPosition(tx)).filter(({ position }) => position !== null)
  for (const [at, { id, position }] of placed.entries()) if (position !== at + 1) await place(tx, id, at + 1)
}

const moved = (order: readonly Placed[], id: string, to: number): Placed[] => {
  const own = order.filter((account) => account.id === id)
  return order.filter((account) => account.id !== id).toSpliced(to, 0, ...own)
}

const place = async (tx: Tx, id: string, position: number | null): Promise<void> => {
  await tx.update(accounts).set({ position }).where(eq(accounts.id, id)).run()
}
