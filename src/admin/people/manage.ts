/** What every handler about people does: one commit, in which the caller is read again. */
import { commit, type Sync, type Tx } from '../../../db/commit.ts'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../bindings.ts'
import { requires } from '../../http/gates.ts'
import type { AuditEvent } from '../../model/audit.ts'
import { type Caller, callerNow } from '../../model/delegation.ts'
import type { Permission } from '../../model/permissions.ts'

/** The gate of a change about people: an account that holds `permission` and confirmed lately (spec §5, step-up 1). */
export const managing = (permission: Permission, audit: AuditEvent) =>
  requires(permission, { stepUp: true, account: true, audit })

/** Throws `authentication_required` and `permission_required` for a caller who lost the right since the gate. */
export const manage = <T>(c: Ctx, permission: Permission, apply: (tx: Tx, caller: Caller) => Sync<T>): T => {
  const who = actor(c)
  return commit<T>(c.env.db, (tx) => apply(tx, callerNow(tx, who, permission)))
}

/** Where a browser goes on after a change about people; the page says what was done. */
export const peopleAfter = (event: AuditEvent): string => `/settings/access?done=${event}`
