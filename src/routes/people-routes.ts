/** Routes about users and how they sign in: a part of the table in `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import { listAuditLog } from '../admin/audit.ts'
import { chooseClock } from '../admin/auth/clock.ts'
import { changeGuestPassword, logInAsGuest, logOutAllGuests, removeGuestPassword } from '../admin/auth/guest.ts'
import { logIn } from '../admin/auth/login.ts'
import { editMe, showMe, showMyAccount, showTwoFactor } from '../admin/auth/me.ts'
import {
  deletePasskey,
  editPasskey,
  finishPasskeySignIn,
  finishPasskeyStepUp,
  finishRegistration,
  listOwnPasskeys,
  startPasskeySignIn,
  startPasskeyStepUp,
  startRegistration,
} from '../admin/auth/passkeys.ts'
import { removePassword, replacePassword } from '../admin/auth/password.ts'
import { logOut, logOutEverywhere, showSession } from '../admin/auth/session.ts'
import {
  endOtherSessions,
  endOwnSession,
  endUserSession,
  listOwnSessions,
  listSessionsOf,
} from '../admin/auth/sessions.ts'
import { setUpPassword } from '../admin/auth/setup.ts'
import { showConfirm, showLogin, showPending, showSetup, showTotp } from '../admin/auth/sign-in.ts'
import { stepUp } from '../admin/auth/step-up.ts'
import { confirmTotpSetup, removeTotp, renewRecoveryCodes, startTotpSetup, verifyTotp } from '../admin/auth/totp.ts'
import { acceptInvitation, showInvitation, showInvitePage } from '../admin/people/accept.ts'
import { inviteUser, listInvitations, resendInvitation, revokeInvitation } from '../admin/people/invites.ts'
import { editAuthProvider, listAuthProviders } from '../admin/people/providers.ts'
import {
  addRole,
  changeRole,
  copyRole,
  listDashboardRoles,
  listPermissions,
  removeRole,
} from '../admin/people/roles.ts'
import { listShareUses } from '../admin/people/shares.ts'
import {
  deleteDashboardUser,
  editDashboardUser,
  listDashboardUsers,
  reactivateUserKeys,
  resetUserTotp,
  revokeUserSessions,
} from '../admin/people/users.ts'
import { showAccess, showSettings } from '../admin/settings/access.ts'
import type { AppEnv } from '../boot/bindings.ts'

/** `/api/dashboard-auth`: passwords, second factors, confirmations, guests, own account. Forms can only POST. */
export const mountSignIn = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-auth/session', ...showSession)
  app.post('/api/dashboard-auth/password/setup', ...setUpPassword)
  app.post('/api/dashboard-auth/password/login', ...logIn)
  app.post('/api/dashboard-auth/password/change', ...replacePassword)
  app.delete('/api/dashboard-auth/password', ...removePassword)
  app.post('/api/dashboard-auth/password/remove', ...removePassword)
  app.post('/api/dashboard-auth/guest/login', ...logInAsGuest)
  app.post('/api/dashboard-auth/guest/password', ...changeGuestPassword)
  app.delete('/api/dashboard-auth/guest/password', ...removeGuestPassword)
  app.post('/api/dashboard-auth/guest/password/remove', ...removeGuestPassword)
  app.post('/api/dashboard-auth/guest/logout-all', ...logOutAllGuests)
  app.post('/api/dashboard-auth/totp/setup/start', ...startTotpSetup)
  app.post('/api/dashboard-auth/totp/setup/confirm', ...confirmTotpSetup)
  app.post('/api/dashboard-auth/totp/verify', ...verifyTotp)
  app.post('/api/dashboard-auth/totp/disable', ...removeTotp)
  app.post('/api/dashboard-auth/totp/recovery-codes', ...renewRecoveryCodes)
  app.post('/api/dashboard-auth/step-up', ...stepUp)
  app.post('/api/dashboard-auth/logout', ...logOut)
  app.post('/api/dashboard-auth/logout-all', ...logOutEverywhere)
  app.get('/api/dashboard-auth/me', ...showMe)
  app.patch('/api/dashboard-auth/me', ...editMe)
  app.post('/api/dashboard-auth/me', ...editMe)
  app.post('/api/dashboard-auth/clock', ...chooseClock)
}

/** `/api/dashboard-auth/passkeys`, `/api/dashboard-auth/sessions`. */
export const mountPasskeys = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-auth/passkeys', ...listOwnPasskeys)
  app.post('/api/dashboard-auth/passkeys/register/start', ...startRegistration)
  app.post('/api/dashboard-auth/passkeys/register/finish', ...finishRegistration)
  app.patch('/api/dashboard-auth/passkeys/:id', ...editPasskey)
  app.delete('/api/dashboard-auth/passkeys/:id', ...deletePasskey)
  app.post('/api/dashboard-auth/passkeys/sign-in/start', ...startPasskeySignIn)
  app.post('/api/dashboard-auth/passkeys/sign-in/finish', ...finishPasskeySignIn)
  app.post('/api/dashboard-auth/passkeys/step-up/start', ...startPasskeyStepUp)
  app.post('/api/dashboard-auth/passkeys/step-up/finish', ...finishPasskeyStepUp)
  app.get('/api/dashboard-auth/sessions', ...listOwnSessions)
  app.delete('/api/dashboard-auth/sessions', ...endOtherSessions)
  app.delete('/api/dashboard-auth/sessions/:id', ...endOwnSession)
  app.get('/api/dashboard-users/:id/sessions', ...listSessionsOf)
  app.delete('/api/dashboard-users/:id/sessions/:sessionId', ...endUserSession)
}

/** Users, invites, roles, sign-in providers, and the audit log. */
export const mountPeople = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-users', ...listDashboardUsers)
  app.post('/api/dashboard-users', ...inviteUser)
  app.get('/api/dashboard-users/invites', ...listInvitations)
  app.patch('/api/dashboard-users/:id', ...editDashboardUser)
  app.delete('/api/dashboard-users/:id', ...deleteDashboardUser)
  app.post('/api/dashboard-users/:id/invite', ...resendInvitation)
  app.delete('/api/dashboard-users/:id/invite', ...revokeInvitation)
  app.post('/api/dashboard-users/:id/reset-totp', ...resetUserTotp)
  app.post('/api/dashboard-users/:id/revoke-sessions', ...revokeUserSessions)
  app.post('/api/dashboard-users/:id/reactivate-keys', ...reactivateUserKeys)
  app.get('/api/dashboard-auth/invite/:token', ...showInvitation)
  app.post('/api/dashboard-auth/invite/accept', ...acceptInvitation)
  app.get('/api/dashboard-roles', ...listDashboardRoles)
  app.get('/api/dashboard-roles/permissions', ...listPermissions)
  app.post('/api/dashboard-roles', ...addRole)
  app.patch('/api/dashboard-roles/:id', ...changeRole)
  app.delete('/api/dashboard-roles/:id', ...removeRole)
  app.post('/api/dashboard-roles/:id/clone', ...copyRole)
  app.get('/api/shares', ...listShareUses)
  app.get('/api/auth-providers', ...listAuthProviders)
  app.patch('/api/auth-providers/:id', ...editAuthProvider)
  app.get('/api/audit-logs', ...listAuditLog)
}

/** Pages about users; each is a JSON route's handler, or combines several of their values. */
export const mountPeoplePages = (app: Hono<AppEnv>): void => {
  app.get('/login', ...showLogin)
  app.get('/totp', ...showTotp)
  app.get('/setup', ...showSetup)
  app.get('/confirm', ...showConfirm)
  app.get('/auth/pending', ...showPending)
  app.get('/invite/:token', ...showInvitePage)
  app.get('/me', ...showMyAccount)
  app.get('/me/two-factor', ...showTwoFactor)
  app.get('/settings', ...showSettings)
  app.get('/settings/access', ...showAccess)
}
