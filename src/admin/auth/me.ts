/**
 * `/me`, `/me/two-factor` and `/api/dashboard-auth/me`: what users see and change about themselves, however they signed
 * in.
 */
import { z } from 'zod'
import { commit, type Db } from '../../../db/commit.ts'
import type { ClockProps } from '../../../views/me/clock.tsx'
import { MePage } from '../../../views/me.tsx'
import { TwoFactorPage } from '../../../views/two-factor.tsx'
import { mayCreateLocalAdmin } from '../../auth/local-admin.ts'
import { countOwnChange, hasOwnSession, ownAccount } from '../../auth/own-account.ts'
import { type AccountPrincipal, getActor, requireOwnAccount } from '../../auth/principal.ts'
import { isBound } from '../../auth/resolve.ts'
import { methodName } from '../../auth/session-view.ts'
import { offerTotp } from '../../auth/totp.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { body } from '../../http/body.ts'
import { open, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import { chosenZone, viewerHours, viewerZone } from '../../http/viewer-clock.ts'
import { iso } from '../../lib/iso.ts'
import { ExpectedVersion } from '../../model/edit-version.ts'
import { getPerson, listPeople, personVersion } from '../../model/users/people.ts'
import { DisplayName, Email } from '../../model/users/people-input.ts'
import { roleReferenceView } from '../../model/users/people-view.ts'
import { updateProfile } from '../../model/users/profile.ts'
import { countRecoveryCodes } from '../../model/users/recovery-codes.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { shareUsesOf } from '../people/shares.ts'
import { getPasskeys } from './passkeys.ts'
import { ownSessions } from './sessions.ts'

const Profile = z.strictObject({
  displayName: DisplayName.optional(),
  email: Email.optional(),
  expectedVersion: ExpectedVersion,
})

/** Throws `user_account_required` and the 401 of the case. */
export const showMe = createHandlers(
  open('the signed-in user, also before setting up required two-factor'),
  async (c) => c.json(await toMe(c.env.db, await ownAccount(c))),
)

/** Throws `edit_conflict`, `email_taken`, `own_account_rate_limited`, and as above. */
export const editMe = createHandlers(
  open('the signed-in user, also before setting up required two-factor', {
    audit: 'profile_updated',
    check: ownAccount,
  }),
  body(Profile),
  async (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const doer = getActor(principal, c)
    await countOwnChange(c, principal, 'profile_updated')
    await commit(c.env.db, (tx) => updateProfile(tx, principal.id, c.req.valid('json'), doer))
    return proceed(
      c,
      await toMe(c.env.db, { ...principal, person: await getPerson(c.env.db, principal.id) }),
      '/me?done=profile_updated',
    )
  },
)

const toMe = async (db: Db, { method, person: { row, role } }: AccountPrincipal) => ({
  id: row.id,
  username: row.username,
  displayName: row.displayName,
  email: row.email,
  role: roleReferenceView(role),
  authMethod: methodName(method),
  totpConfigured: row.totpSecretSealed !== null,
  recoveryCodesLeft: await countRecoveryCodes(db, row.id),
  mustChangePassword: false,
  version: personVersion(row),
})

export const showMyAccount = createHandlers(signedIn(), async (c) => {
  if (c.var.principal.kind !== 'account') return c.redirect('/settings')
  const principal = requireOwnAccount(c.var.principal)
  const { row, role } = principal.person
  const { items, unavailableReason, availableAt } = await getPasskeys(c)
  return reply(
    c,
    {
      username: row.username,
      displayName: row.displayName,
      email: row.email,
      version: personVersion(row),
      role: { name: role.name },
      hasPassword: row.passwordHash !== null,
      managesPassword: hasOwnSession(principal),
      mayCreateLocalAdmin: await mayCreateLocalAdmin(c, principal),
      isOnlyAccount: (await listPeople(c.env.db)).length === 1,
      hasTotp: row.totpSecretSealed !== null,
      recoveryCodesLeft: await countRecoveryCodes(c.env.db, row.id),
      passkeys: { items, unavailableReason, availableAt },
      sessions: (await ownSessions(c)).items,
      shareUses: shareUsesOf(c, principal.id),
      clock: getClock(c),
      now: iso(c.env.clock.now()),
      ...getFormFeedback(c),
    },
    MePage,
  )
})

const getClock = (c: Ctx): ClockProps => {
  const chosen = chosenZone(c)
  return {
    chosenZone: chosen ?? null,
    isUnknown: chosen !== undefined && viewerZone(c) !== chosen,
    hours: viewerHours(c),
    zones: Intl.supportedValuesOf('timeZone'),
  }
}

/** Also open to users who must set up two-factor first. */
export const showTwoFactor = createHandlers(
  open('the signed-in user, also before setting up required two-factor'),
  async (c) => {
    const { person } = await ownAccount(c)
    if (person.row.totpSecretSealed !== null) return c.redirect('/me#two-factor')
    return reply(
      c,
      {
        ...offerTotp(c.env.random, person.row.username),
        isRequired: isBound(person, c.env.settings.current()),
        isForLocalAdmin: returnPath(c).startsWith('/setup'),
        returnTo: returnPath(c),
        problem: getFormFeedback(c).problem,
      },
      TwoFactorPage,
    )
  },
)
