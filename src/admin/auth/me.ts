/** `/api/dashboard-auth/me`: the signed-in user, however they signed in. */
import { z } from 'zod'
import { commit, type Db } from '../../../db/commit.ts'
import { countOwnChange, ownAccount } from '../../auth/own-account.ts'
import { type AccountPrincipal, getActor, requireOwnAccount } from '../../auth/principal.ts'
import { methodName } from '../../auth/session-view.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { ExpectedVersion } from '../../model/edit-version.ts'
import { getPerson, personVersion } from '../../model/users/people.ts'
import { DisplayName, Email } from '../../model/users/people-input.ts'
import { roleReferenceView } from '../../model/users/people-view.ts'
import { updateProfile } from '../../model/users/profile.ts'
import { countRecoveryCodes } from '../../model/users/recovery-codes.ts'

const Profile = z.strictObject({
  displayName: DisplayName.optional(),
  email: Email.optional(),
  expectedVersion: ExpectedVersion,
})

/** Throws `user_account_required` and the 401 of the case. */
export const showMe = createHandlers(open('the signed-in user, also before setting up required two-factor'), (c) =>
  c.json(toMe(c.env.db, ownAccount(c))),
)

/** Throws `edit_conflict`, `email_taken`, `own_account_rate_limited`, and as above. */
export const editMe = createHandlers(
  open('the signed-in user, also before setting up required two-factor', {
    audit: 'profile_updated',
    check: ownAccount,
  }),
  body(Profile),
  (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const doer = getActor(principal, c)
    countOwnChange(c, principal, 'profile_updated')
    commit(c.env.db, (tx) => updateProfile(tx, principal.id, c.req.valid('json'), doer))
    return proceed(
      c,
      toMe(c.env.db, { ...principal, person: getPerson(c.env.db, principal.id) }),
      '/me?done=profile_updated',
    )
  },
)

const toMe = (db: Db, { method, person: { row, role } }: AccountPrincipal) => ({
  id: row.id,
  username: row.username,
  displayName: row.displayName,
  email: row.email,
  role: roleReferenceView(role),
  authMethod: methodName(method),
  totpConfigured: row.totpSecretSealed !== null,
  recoveryCodesLeft: countRecoveryCodes(db, row.id),
  mustChangePassword: false,
  version: personVersion(row),
})
