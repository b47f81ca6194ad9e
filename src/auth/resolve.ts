/** The only place that turns a request into a principal; permissions and session responses both use it. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { guestPasswordHash } from '../model/users/guest.ts'
import { isAnyPasskey } from '../model/users/passkeys.ts'
import {
  findPerson,
  hasPasskey,
  hasPasswordAccount,
  isEmptyInstall,
  type Person,
  passwordHolders,
} from '../model/users/people.ts'
import { isAdminLevel, PRESETS } from '../model/users/permissions.ts'
import { findSession, type SessionRow, type SignInMethod } from '../model/users/sessions.ts'
import type { Settings } from '../settings/schema.ts'
import { isLocal, isOwnHost, isServedHost } from './caller.ts'
import { identify, proxySubject, recordRefusal } from './identity.ts'
import { type AccountPrincipal, BOOTSTRAP, type Principal, type StepUpMethod, UNGUARDED } from './principal.ts'
import { readSessionToken } from './session-cookie.ts'

export type Resolution =
  | { kind: 'principal'; principal: Principal; mustEnroll: boolean }
  /** The password was correct and the second factor is missing. */
  | { kind: 'half'; session: SessionRow; person: Person }
  | { kind: 'unauthenticated'; error: AppError; isSessionOver: boolean }

/** Who is signed in. Checked in this order: mode, proxy identity, cookie, empty install, guest (§5). */
export const resolve = async (c: Ctx): Promise<Resolution> => {
  const { DASHBOARD_AUTH_MODE: mode, PUBLIC_URL } = c.env.env
  if (mode === 'disabled')
    return isServedHost(c) ? principal(UNGUARDED) : noPrincipal(new AppError('bad_host', { message: OPEN }))
  const cookie = await fromCookie(c)
  const local = isConfirmationOnly(cookie) ? null : cookie
  if (mode === 'standard') return local ?? (await withoutCookie(c))
  const subject = await proxySubject(c)
  if (subject === null) return local ?? (await fallback(c))
  // A page that points its own name here can set the header itself, from a browser on the proxy's machine.
  if (PUBLIC_URL && !isOwnHost(c)) return local ?? noPrincipal(new AppError('bad_host', { message: ANNOUNCED }))
  const identified = await identify(c, subject)
  if (identified instanceof AppError) return (isGuest(local) ? null : local) ?? (await refused(c, subject, identified))
  return resolveAccount(c, identified, { method: 'trusted_header', session: getConfirmation(cookie, identified) })
}

/**
 * The same for the second step of signing in: a proxy user who has entered their own Sluice password is still waiting
 * for the second factor, whatever else the proxy allows.
 */
export const resolveSecondStep = async (c: Ctx): Promise<Resolution> => {
  const resolution = await resolve(c)
  if (resolution.kind !== 'principal' || resolution.principal.kind !== 'account') return resolution
  const cookie = await fromCookie(c)
  return cookie?.kind === 'half' && cookie.person.row.id === resolution.principal.id ? cookie : resolution
}

/** The principal. Throws the 401 of the case, `totp_required` or `totp_enrollment_required`. */
export const resolvePrincipal = async (c: Ctx): Promise<Principal> => {
  const resolution = await resolve(c)
  if (resolution.kind === 'unauthenticated') throw resolution.error
  if (resolution.kind === 'half') throw new AppError('totp_required')
  if (resolution.mustEnroll) throw new AppError('totp_enrollment_required')
  return resolution.principal
}

const principal = (who: Principal): Resolution => ({ kind: 'principal', principal: who, mustEnroll: false })
const noPrincipal = (error: AppError, { isSessionOver = false } = {}): Resolution => ({
  kind: 'unauthenticated',
  error,
  isSessionOver,
})

const OPEN =
  'Sign-in is turned off, so Sluice only answers at known addresses. Set SLUICE_PUBLIC_URL to this address, trust the reverse proxy that forwards it, or use the IP address.'
const ANNOUNCED =
  'Sluice ignores the sign-in header under this host name. Make the reverse proxy forward the host name of SLUICE_PUBLIC_URL, or use the IP address.'

const refused = async (c: Ctx, subject: string, error: AppError): Promise<Resolution> => {
  await recordRefusal(c, subject, error)
  return noPrincipal(error)
}

const fromCookie = async (c: Ctx): Promise<Resolution | null> => {
  const { db, clock, settings } = c.env
  const token = readSessionToken(c)
  const session = token === null ? null : await findSession(db, token, clock.now())
  if (!session) return null
  if (session.userId === null) return settings.current().guestAccessEnabled ? principal(guest(session)) : null
  const person = await findPerson(db, session.userId)
  if (person?.row.status !== 'active') return null
  if (!session.isComplete) return { kind: 'half', session, person }
  return resolveAccount(c, person, { method: session.method, session })
}

interface SignedIn {
  method: SignInMethod
  session: SessionRow | null
}

/** A signed-in user. */
export const resolveAccount = async (c: Ctx, person: Person, { method, session }: SignedIn): Promise<Resolution> => ({
  kind: 'principal',
  principal: {
    kind: 'account',
    id: person.row.id,
    grants: person.role.grants,
    person,
    method,
    session,
    stepUpMethods: await getStepUpMethods(c, person),
  } satisfies AccountPrincipal,
  mustEnroll: isBound(person, c.env.settings.current()) && person.row.totpSecretSealed === null,
})

/** The shared guest password must not bypass a rejection. */
const isGuest = (cookie: Resolution | null): boolean =>
  cookie?.kind === 'principal' && cookie.principal.kind === 'guest'

/** A session that only holds a confirmation; without the proxy it signs no one in. */
const isConfirmationOnly = (cookie: Resolution | null): boolean =>
  cookie?.kind === 'principal' &&
  cookie.principal.kind === 'account' &&
  cookie.principal.session?.method === 'trusted_header'

/** A two-factor requirement applies to users with a password (spec §5 Signing in 6). */
export const isBound = ({ row, role }: Person, settings: Readonly<Settings>): boolean =>
  row.passwordHash !== null &&
  (settings.totpRequiredOnLogin || (settings.totpRequiredForAdminRole && isAdminLevel(role.grants)))

const getStepUpMethods = async (c: Ctx, { row }: Person): Promise<StepUpMethod[]> => [
  ...(row.passwordHash === null ? [] : (['password'] as const)),
  ...(row.totpSecretSealed === null ? [] : (['totp'] as const)),
  ...((await hasPasskey(c.env.db, row.id)) ? (['passkey'] as const) : []),
]

/** The proxy signs users in again with every request; a cookie of the same user holds their last confirmation. */
const getConfirmation = (cookie: Resolution | null, person: Person): SessionRow | null =>
  cookie?.kind === 'principal' && cookie.principal.kind === 'account' && cookie.principal.id === person.row.id
    ? cookie.principal.session
    : null

/** Someone who just entered as a guest; null: without a guest password. */
export const getGuest = (session: SessionRow | null): Resolution => principal(guest(session))

const guest = (session: SessionRow | null): Principal => ({
  kind: 'guest',
  id: 'guest',
  grants: PRESETS.guest,
  session,
})

/** Behind a proxy, everyone must be announced or sign in with a Sluice password (spec §5 Trusted-header 1). */
const fallback = async (c: Ctx): Promise<Resolution> =>
  noPrincipal(
    new AppError('proxy_auth_required', { details: { fallback: (await passwordHolders(c.env.db)).length > 0 } }),
  )

/** Only if they can sign in again: only they get a page that offers to continue as a guest. */
const wasSignedIn = async (c: Ctx): Promise<boolean> =>
  readSessionToken(c) !== null && ((await hasPasswordAccount(c.env.db)) || (await isAnyPasskey(c.env.db)))

/** A former user continues as a guest only when they choose to; otherwise pages would hide content without saying why. */
const withoutCookie = async (c: Ctx): Promise<Resolution> => {
  const { db, settings } = c.env
  const isEmpty = await isEmptyInstall(db)
  if (isEmpty && isLocal(c)) return principal(BOOTSTRAP)
  if (settings.current().guestAccessEnabled && (await guestPasswordHash(db)) === null)
    return (await wasSignedIn(c))
      ? noPrincipal(new AppError('authentication_required'), { isSessionOver: true })
      : getGuest(null)
  return noPrincipal(new AppError(isEmpty ? 'bootstrap_required' : 'authentication_required'))
}
