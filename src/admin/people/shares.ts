/** `/api/shares`: the users' shares of the pool and their use. */
import type { Ctx } from '../../boot/bindings.ts'
import { signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import type { ShareUse } from '../../model/shares/shares.ts'
import { holds } from '../../model/users/permissions.ts'

/** All users if the signed-in user manages users, otherwise only the signed-in user. */
export const listShareUses = createHandlers(signedIn(), (c) => {
  const items = c.env.shares
    .describe()
    .filter(({ holder }) => mayManageUsers(c) || holder.userId === c.var.principal.id)
    .flatMap(({ holder: { userId, username }, windows }) => windows.map((use) => ({ userId, username, ...use })))
  return c.json({ items })
})

/** The use of one user's share in each window. Empty if they have no share. */
export const shareUsesOf = (c: Ctx, userId: string): ShareUse[] =>
  c.env.shares.describe().find(({ holder }) => holder.userId === userId)?.windows ?? []

const mayManageUsers = (c: Ctx): boolean => holds(c.var.principal.grants, 'users:manage')
