/** `/login`, `/totp`, `/setup`, `/auth/pending`, `/confirm`: the pages on the way in; each sends on whoever is past it. */
import { Confirm } from '../../../views/confirm.tsx'
import { LocalAdminPage, LoginPage, PendingPage, SetupPage, TotpPage } from '../../../views/sign-in.tsx'
import { asksBootstrapToken } from '../../auth/bootstrap.ts'
import { isProxyTrusted } from '../../auth/identity.ts'
import { demandLocalAdminRights } from '../../auth/local-admin.ts'
import { hasOwnSession } from '../../auth/own-account.ts'
import { mustConfirm } from '../../auth/principal.ts'
import { resolve, resolveHalf, resolvePrincipal } from '../../auth/resolve.ts'
import type { Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { open, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { reply } from '../../http/reply.tsx'
import { returnPath, withReturn } from '../../http/return-path.ts'
import { guestPasswordHash } from '../../model/guest.ts'
import { isAnyPasskey } from '../../model/passkeys.ts'
import { hasPasswordAccount, passwordHolders } from '../../model/people.ts'
import { said } from './said.ts'

/**
 * Without a password or passkey there is nothing to sign in with: the first page is then the setup, and behind a proxy that
 * signs people in the message that it is needed (spec §5 Trusted-header 1). Throws `proxy_auth_required` and the other 401s there.
 */
export const showLogin = createHandlers(open('sign-in page'), (c) => {
  const returnTo = returnPath(c)
  const resolution = resolveHalf(c)
  if (resolution.kind === 'half') return c.redirect(withReturn('/totp', returnTo))
  if (isSignedIn(resolution) && !mayGivePassword(resolution)) return c.redirect(returnTo)
  if (isOpenToAll(c, resolution)) return c.redirect(returnTo)
  if (isProxyTrusted(c)) demandLocalSignIn(c, resolution)
  if (!hasPasswordAccount(c.env.db) && !isAnyPasskey(c.env.db)) return c.redirect(withReturn('/setup', returnTo))
  const { code, problem, done } = said(c)
  return reply(c, { ...waysIn(c, code), returnTo, problem, isGuestProblem: isGuest(code), done }, LoginPage)
})

/** A guest password is none: it is shared, and the proxy decides who comes in. */
const demandLocalSignIn = ({ env: { db } }: Ctx, resolution: Resolved): void => {
  if (passwordHolders(db).length > 0 || isAnyPasskey(db)) return
  throw resolution.kind === 'nobody' ? resolution.error : new AppError('proxy_auth_required')
}

const waysIn = (c: Ctx, code: string | null) => ({
  usernameField:
    passwordHolders(c.env.db).length === 1 && code !== 'username_required' ? ('hidden' as const) : ('shown' as const),
  hasPasskeys: isAnyPasskey(c.env.db),
  guests: guestsWay(c),
})

/** Behind a proxy nobody comes in unannounced, guests without a password among them (spec §5 Trusted-header 1). */
const guestsWay = (c: Ctx): 'refused' | 'welcome' | 'with-password' => {
  if (!c.env.settings.current().guestAccessEnabled) return 'refused'
  if (guestPasswordHash(c.env.db) !== null) return 'with-password'
  return isProxyTrusted(c) ? 'refused' : 'welcome'
}

const isGuest = (code: string | null): boolean => code?.startsWith('guest_') ?? false

type Resolved = ReturnType<typeof resolve>

/** Whether authentication is off, so that there is nothing to sign in to. Throws `bad_host` under a name that is not ours. */
const isOpenToAll = ({ env: { env } }: Ctx, resolution: Resolved): boolean => {
  if (env.DASHBOARD_AUTH_MODE !== 'disabled') return false
  if (resolution.kind === 'nobody') throw resolution.error
  return true
}

/** A guest may still become somebody. */
const isSignedIn = (resolution: Resolved): boolean =>
  resolution.kind === 'principal' && resolution.principal.kind === 'account'

/** Whom the proxy announces may still have a password of ours to give, which managing it asks for (spec §5). */
const mayGivePassword = (resolution: Resolved): boolean =>
  resolution.kind === 'principal' &&
  resolution.principal.kind === 'account' &&
  resolution.principal.person.row.passwordHash !== null &&
  !hasOwnSession(resolution.principal)

export const showTotp = createHandlers(open('the second factor of signing in'), (c) => {
  const resolution = resolveHalf(c)
  const returnTo = returnPath(c)
  if (resolution.kind !== 'half') return c.redirect(isSignedIn(resolution) ? returnTo : withReturn('/login', returnTo))
  return reply(c, { username: resolution.person.row.username, returnTo, problem: said(c).problem }, TotpPage)
})

/** Without authentication there is nothing to set up, and the way on is where the visitor came from. */
export const showSetup = createHandlers(open('the first password'), (c) => {
  const { db } = c.env
  const returnTo = returnPath(c)
  if (isOpenToAll(c, resolve(c))) return c.redirect(returnTo)
  if (hasPasswordAccount(db)) return c.redirect(withReturn('/login', returnTo))
  if (isProxyTrusted(c)) return setUpBehindProxy(c, returnTo)
  return reply(c, { asksToken: asksBootstrapToken(c), returnTo, problem: said(c).problem }, SetupPage)
})

/**
 * For those who may create the local administrator. It takes a confirmation, and so a second factor: both come before the form,
 * so that no password is typed in vain. Throws the 401s of `resolvePrincipal` and what `demandLocalAdminRights` does.
 */
const setUpBehindProxy = (c: Ctx, returnTo: string) => {
  const principal = resolvePrincipal(c)
  demandLocalAdminRights(c, principal)
  const back = withReturn('/setup', returnTo)
  if (principal.kind === 'account' && principal.stepUpMethods.length === 0)
    return c.redirect(withReturn('/me/two-factor', back))
  if (mustConfirm(principal, c.env.clock.now())) return c.redirect(withReturn('/confirm', back))
  return reply(c, { returnTo, problem: said(c).problem }, LocalAdminPage)
}

/** Who was refused sees the name the proxy gives; who is not refused any more goes on. */
export const showPending = createHandlers(open('refused identities'), (c) => {
  const resolution = resolve(c)
  const returnTo = returnPath(c)
  if (resolution.kind !== 'nobody') return c.redirect(returnTo)
  const { code, extra } = resolution.error
  if (code !== 'identity_not_provisioned' && code !== 'account_disabled') throw resolution.error
  return reply(
    c,
    {
      reason: code === 'account_disabled' ? ('disabled' as const) : ('unknown' as const),
      subject: String(extra.details?.subject ?? ''),
      hasLocalLogin: passwordHolders(c.env.db).length > 0,
      returnTo,
    },
    PendingPage,
  )
})

/** For a browser without script, and for what a script does after it was refused. Throws `step_up_unavailable`. */
export const showConfirm = createHandlers(signedIn(), (c) => {
  const { principal } = c.var
  const returnTo = returnPath(c)
  if (principal.kind !== 'account') return c.redirect(returnTo)
  if (principal.stepUpMethods.length === 0) throw new AppError('step_up_unavailable')
  const { row } = principal.person
  return reply(
    c,
    { methods: principal.stepUpMethods, username: row.username, returnTo, problem: said(c).problem },
    Confirm,
  )
})
