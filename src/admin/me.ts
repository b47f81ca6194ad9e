/** `/me`, `/me/two-factor`: what users see and change about themselves. */

import type { ClockProps } from '../../views/me/clock.tsx'
import { MePage } from '../../views/me.tsx'
import { TwoFactorPage } from '../../views/two-factor.tsx'
import { mayCreateLocalAdmin } from '../auth/local-admin.ts'
import { hasOwnSession, ownAccount } from '../auth/own-account.ts'
import { requireOwnAccount } from '../auth/principal.ts'
import { isBound } from '../auth/resolve.ts'
import { offerTotp } from '../auth/totp.ts'
import type { Ctx } from '../boot/bindings.ts'
import { open, signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { returnPath } from '../http/return-path.ts'
import { chosenZone, viewerHours, viewerZone } from '../http/viewer-clock.ts'
import { iso } from '../lib/iso.ts'
import { listPeople, personVersion } from '../model/users/people.ts'
import { countRecoveryCodes } from '../model/users/recovery-codes.ts'
import { getPasskeys } from './auth/passkeys.ts'
import { ownSessions } from './auth/sessions.ts'
import { getFormFeedback } from './form-feedback.ts'

export const showMyAccount = createHandlers(signedIn(), (c) => {
  if (c.var.principal.kind !== 'account') return c.redirect('/settings')
  const principal = requireOwnAccount(c.var.principal)
  const { row, role } = principal.person
  const { items, unavailableReason, availableAt } = getPasskeys(c)
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
      mayCreateLocalAdmin: mayCreateLocalAdmin(c, principal),
      isOnlyAccount: listPeople(c.env.db).length === 1,
      hasTotp: row.totpSecretSealed !== null,
      recoveryCodesLeft: countRecoveryCodes(c.env.db, row.id),
      passkeys: { items, unavailableReason, availableAt },
      sessions: ownSessions(c).items,
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
  (c) => {
    const { person } = ownAccount(c)
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
