/** The session response, from the resolved principal. */
import type { Ctx } from '../boot/bindings.ts'
import { iso } from '../lib/iso.ts'
import { activeProviders } from '../model/users/auth-providers.ts'
import { hasBootstrapToken } from '../model/users/bootstrap-token.ts'
import { grantableRoles } from '../model/users/delegation.ts'
import { guestPasswordHash } from '../model/users/guest.ts'
import { hasPasswordAccount, listPeople, type Person, passwordHolders } from '../model/users/people.ts'
import { roleReferenceView } from '../model/users/people-view.ts'
import { grantNames, holds } from '../model/users/permissions.ts'
import { ADMIN_ROLE_ID, listRoles } from '../model/users/roles.ts'
import { confirmationEnd, type SignInMethod, STEP_UP_MS } from '../model/users/sessions.ts'
import { needsBootstrapToken } from './bootstrap.ts'
import { hasOwnSession } from './own-account.ts'
import type { Principal } from './principal.ts'
import type { Resolution } from './resolve.ts'

export const sessionView = async (c: Ctx, resolution: Resolution) => {
  const principal = resolution.kind === 'principal' && !resolution.mustEnroll ? resolution.principal : null
  return {
    authenticated: principal !== null,
    ...(await methodsView(c)),
    ...stateView(resolution),
    role: principal !== null && principal.kind !== 'guest' ? ('admin' as const) : ('guest' as const),
    permissions: principal === null ? [] : grantNames(principal.grants),
    login: await loginView(c, resolution),
    stepUp: stepUpView(principal, c.env.clock.now()),
    accessSummary: principal !== null && holds(principal.grants, 'users:manage') ? await accessSummary(c) : null,
    assignableRoleIds:
      principal?.kind === 'account' ? (await grantableRoles(c.env.db, principal.person)).map(({ id }) => id) : [],
  }
}

/** Sign-in methods of this install, the same for everyone at the same location. */
const methodsView = async (c: Ctx) => {
  const { db, env, settings } = c.env
  const mode = env.DASHBOARD_AUTH_MODE
  const hasPassword = await hasPasswordAccount(db)
  const { guestAccessEnabled } = settings.current()
  return {
    authMode: mode,
    passwordRequired: mode !== 'disabled' && hasPassword,
    passwordManagementEnabled: mode !== 'disabled',
    bootstrapRequired: mode === 'standard' && !hasPassword && (await needsBootstrapToken(c)),
    bootstrapTokenConfigured: await hasBootstrapToken(db),
    guestAccessEnabled,
    guestPasswordRequired: guestAccessEnabled && (await guestPasswordHash(db)) !== null,
  }
}

const stateView = (resolution: Resolution) => {
  const { person, method } = getSubject(resolution)
  const principal = resolution.kind === 'principal' ? resolution.principal : null
  return {
    authMethod: method,
    passwordSessionActive: principal?.kind === 'account' && hasOwnSession(principal),
    /** Whether this session lacks the second factor; not the setting of that name. */
    totpRequiredOnLogin: resolution.kind === 'half',
    totpConfigured: person !== null && person.row.totpSecretSealed !== null,
    totpEnrollmentRequired: resolution.kind === 'principal' && resolution.mustEnroll,
    mustChangePassword: false,
    user: person && userView(person),
  }
}

type ShownMethod = Exclude<SignInMethod, 'invite' | 'recovery_code'>
type Method = ShownMethod | 'disabled' | 'local_bootstrap'

const getSubject = (resolution: Resolution): { person: Person | null; method: Method | null } => {
  if (resolution.kind === 'unauthenticated') return { person: null, method: null }
  if (resolution.kind === 'half') return { person: resolution.person, method: methodName(resolution.session.method) }
  const { principal } = resolution
  return principal.kind === 'account'
    ? { person: principal.person, method: methodName(principal.method) }
    : { person: null, method: principal.kind }
}

/** The contract has neither invites nor recovery codes: they count as password and as second factor. */
export const methodName = (method: SignInMethod): ShownMethod => {
  if (method === 'invite') return 'password'
  return method === 'recovery_code' ? 'totp' : method
}

const userView = ({ row: { id, username, displayName }, role }: Person) => ({
  id,
  username,
  displayName,
  role: roleReferenceView(role),
})

/** Hints for the sign-in page, without names. The interface spells one field in two ways; clients read either. */
const loginView = async ({ env: { db, env } }: Ctx, resolution: Resolution) => {
  const usernameField = (await passwordHolders(db)).length === 1 ? ('hidden' as const) : ('shown' as const)
  return {
    usernameField,
    username_field: usernameField,
    providers: (await activeProviders(db, env.DASHBOARD_AUTH_MODE)).map(({ kind, label }) => ({
      kind,
      providerKey: 'default',
      label,
      loginUrl: null,
    })),
    pendingIdentity:
      resolution.kind === 'unauthenticated' &&
      (resolution.error.code === 'identity_not_provisioned' || resolution.error.code === 'account_disabled'),
  }
}

/** Null unless the user confirmed within the last five minutes. */
const stepUpView = (principal: Principal | null, now: number) => {
  if (principal?.kind !== 'account') return null
  const until = confirmationEnd(principal.session, now)
  if (until === null) return null
  return { verifiedAt: iso(until - STEP_UP_MS), expiresAt: iso(until), methods: principal.stepUpMethods }
}

/** User counts, for those who manage users. */
const accessSummary = async ({ env: { db, env } }: Ctx) => {
  const people = (await listPeople(db)).map(({ row }) => row)
  const count = (status: string) => people.filter((row) => row.status === status).length
  return {
    usersTotal: people.length,
    usersActive: count('active'),
    usersInvited: count('invited'),
    usersDisabled: count('disabled'),
    pendingInvites: count('invited'),
    nonAdminUsers: people.filter(({ roleId }) => roleId !== ADMIN_ROLE_ID).length,
    customRoles: (await listRoles(db)).filter(({ kind }) => kind === 'custom').length,
    providersEnabled: (await activeProviders(db, env.DASHBOARD_AUTH_MODE)).map(({ kind }) => kind),
  }
}
