/** Guarantees one active Admin, as a condition in the statement that could remove the last (spec §5, delegation 3). */
import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { Tx } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { ADMIN_ROLE_ID } from './roles.ts'

/** Sets role and status together. Throws `last_admin_protected`; the user must exist. */
export const setRoleAndStatus = async (
  tx: Tx,
  id: string,
  standing: { roleId: string; status: 'active' | 'disabled' },
): Promise<void> => {
  const isStillAdmin = standing.roleId === ADMIN_ROLE_ID && standing.status === 'active'
  const where = and(eq(users.id, id), isStillAdmin ? undefined : isAnotherAdminLeft(id))
  requireChanged((await tx.update(users).set(standing).where(where).run()).changes)
}

/** Also deletes sessions, identities, passkeys and the invite. Throws `last_admin_protected`; the user must exist. */
export const removeUser = async (tx: Tx, id: string): Promise<void> =>
  requireChanged(
    (
      await tx
        .delete(users)
        .where(and(eq(users.id, id), isAnotherAdminLeft(id)))
        .run()
    ).changes,
  )

const requireChanged = (changes: number): void => {
  if (changes === 0) throw new AppError('last_admin_protected')
}

/** Aliased, because both queries use the same table. */
const isAnotherAdminLeft = (id: string): SQL => sql`EXISTS (
  SELECT 1 FROM users AS others WHERE others.id <> ${id} AND others.status = 'active' AND others.role_id = ${ADMIN_ROLE_ID}
)`
