/** Shared by handlers about users: one commit that rereads the caller. */
import { commit, type Tx } from '../../../db/commit.ts'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { requires } from '../../http/gates.ts'
import type { AuditEvent } from '../../model/audit/audit.ts'
import { type Caller, callerNow } from '../../model/users/delegation.ts'
import type { Permission } from '../../model/users/permissions.ts'

/** The gate for changes to users: requires a user with `permission` and a recent confirmation (spec §5, step-up 1). */
export const requiresManaging = (permission: Permission, audit: AuditEvent) =>
  requires(permission, { stepUp: true, account: true, audit })

/** Throws `authentication_required` and `permission_required` for a caller who lost the permission since the gate. */
export const commitAsManager = async <T>(
  c: Ctx,
  permission: Permission,
  apply: (tx: Tx, caller: Caller) => Promise<T>,
): Promise<T> => {
  const who = actor(c)
  return commit<T>(c.env.db, async (tx) => apply(tx, await callerNow(tx, who, permission)))
}

/** The page to redirect to after a change, with its message. */
export const usersPageAfter = (event: AuditEvent): string => `/settings/access?done=${event}`
