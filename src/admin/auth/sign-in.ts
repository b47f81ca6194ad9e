/** `/login`, `/totp`, `/setup`, `/auth/pending`, `/confirm`: the sign-in pages; users who are past a step are redirected. */
import { Confirm } from '../../../views/confirm.tsx'
import { LocalAdminPage, LoginPage, PendingPage, SetupPage, TotpPage } from '../../../views/sign-in.tsx'
import { needsBootstrapToken } from '../../auth/bootstrap.ts'
import { isProxyTrusted } from '../../auth/identity.ts'
import { requireLocalAdminRights } from '../../auth/local-admin.ts'
import { hasOwnSession } from '../../auth/own-account.ts'
import { mustConfirm } from '../../auth/principal.ts'
import { resolve, resolvePrincipal, resolveSecondStep } from '../../auth/resolve.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { open, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { reply } from '../../http/reply.tsx'
import { returnPath, withReturn } from '../../http/return-path.ts'
import { guestPasswordHash } from '../../model/users/guest.ts'
import { isAnyPasskey } from '../../model/users/passkeys.ts'
import { hasPasswordAccount, passwordHolders } from '../../model/users/people.ts'
import { getFormFeedback } from '../form-feedback.ts'

/**
 * Without a password or passkey, redirects to setup, or behind a proxy shows that signing in there is required (spec §5
 * Trusted-header 1). Throws `proxy_auth_required` and the other 401s.
 */
export const showLogin = createHandlers(open('sign-in page'), async (c) => {
  const returnTo = returnPath(c)
  const resolution = await resolveSecondStep(c)
  if (resolution.kind === 'half') return c.redirect(withReturn('/totp', returnTo))
  if (isSignedIn(resolution) && !mayGivePassword(resolution)) return c.redirect(returnTo)
  if (isOpenToAll(c, resolution)) return c.redirect(returnTo)
  if (isProxyTrusted(c)) await requireLocalSignIn(c, resolution)
  if (!(await hasPasswordAccount(c.env.db)) && !(await isAnyPasskey(c.env.db)))
    return c.redirect(withReturn('/setup', returnTo))
  const { code, problem, done } = getFormFeedback(c)
  return reply(c, { ...(await waysIn(c, code)), returnTo, problem, isGuestProblem: isGuest(code), done }, LoginPage)
})

/** A guest password does not count, because the proxy decides who enters. */
const requireLocalSignIn = async ({ env: { db } }: Ctx, resolution: Resolved): Promise<void> => {
  if ((await passwordHolders(db)).length > 0 || (await isAnyPasskey(db))) return
  throw resolution.kind === 'unauthenticated' ? resolution.error : new AppError('proxy_auth_required')
}

const waysIn = async (c: Ctx, code: string | null) => ({
  usernameField:
    (await passwordHolders(c.env.db)).length === 1 && code !== 'username_required'
      ? ('hidden' as const)
      : ('shown' as const),
  hasPasskeys: await isAnyPasskey(c.env.db),
  guests: await guestsWay(c),
})

/** Behind a proxy, guests need a password unless the proxy announces them (spec §5 Trusted-header 1). */
const guestsWay = async (c: Ctx): Promise<'refused' | 'welcome' | 'with-password'> => {
  if (!c.env.settings.current().guestAccessEnabled) return 'refused'
  if ((await guestPasswordHash(c.env.db)) !== null) return 'with-password'
  return isProxyTrusted(c) ? 'refused' : 'welcome'
}

const isGuest = (code: string | null): boolean => code?.startsWith('guest_') ?? false

type Resolved = Awaited<ReturnType<typeof resolve>>

/** Whether authentication is off, so that there is no sign-in. Throws `bad_host` under a foreign name. */
const isOpenToAll = ({ env: { env } }: Ctx, resolution: Resolved): boolean => {
  if (env.DASHBOARD_AUTH_MODE !== 'disabled') return false
  if (resolution.kind === 'unauthenticated') throw resolution.error
  return true
}

/** A guest can still sign in as a user. */
const isSignedIn = (resolution: Resolved): boolean =>
  resolution.kind === 'principal' && resolution.principal.kind === 'account'

/** A proxy user may also have a Sluice password, which managing it requires (spec §5). */
const mayGivePassword = (resolution: Resolved): boolean =>
  resolution.kind === 'principal' &&
  resolution.principal.kind === 'account' &&
  resolution.principal.person.row.passwordHash !== null &&
  !hasOwnSession(resolution.principal)

export const showTotp = createHandlers(open('the second factor of signing in'), async (c) => {
  const resolution = await resolveSecondStep(c)
  const returnTo = returnPath(c)
  if (resolution.kind !== 'half') return c.redirect(isSignedIn(resolution) ? returnTo : withReturn('/login', returnTo))
  return reply(c, { username: resolution.person.row.username, returnTo, problem: getFormFeedback(c).problem }, TotpPage)
})

/** Without authentication there is nothing to set up, so this redirects back. */
export const showSetup = createHandlers(open('the first password'), async (c) => {
  const { db } = c.env
  const returnTo = returnPath(c)
  if (isOpenToAll(c, await resolve(c))) return c.redirect(returnTo)
  if (await hasPasswordAccount(db)) return c.redirect(withReturn('/login', returnTo))
  if (isProxyTrusted(c)) return setUpBehindProxy(c, returnTo)
  return reply(c, { asksToken: await needsBootstrapToken(c), returnTo, problem: getFormFeedback(c).problem }, SetupPage)
})

/**
 * For users who may create the local administrator. Confirmation, and therefore a second factor, comes before the form,
 * so that no password is typed for nothing. Throws the 401s of `resolvePrincipal` and what `requireLocalAdminRights`
 * does.
 */
const setUpBehindProxy = async (c: Ctx, returnTo: string) => {
  const principal = await resolvePrincipal(c)
  await requireLocalAdminRights(c, principal)
  const back = withReturn('/setup', returnTo)
  if (principal.kind === 'account' && principal.stepUpMethods.length === 0)
    return c.redirect(withReturn('/me/two-factor', back))
  if (mustConfirm(principal, c.env.clock.now())) return c.redirect(withReturn('/confirm', back))
  return reply(c, { returnTo, problem: getFormFeedback(c).problem }, LocalAdminPage)
}

/** Shows a rejected user the name from the proxy; redirects users who are admitted by now. */
export const showPending = createHandlers(open('refused identities'), async (c) => {
  const resolution = await resolve(c)
  const returnTo = returnPath(c)
  if (resolution.kind !== 'unauthenticated') return c.redirect(returnTo)
  const { code, extra } = resolution.error
  if (code !== 'identity_not_provisioned' && code !== 'account_disabled') throw resolution.error
  return reply(
    c,
    {
      reason: code === 'account_disabled' ? ('disabled' as const) : ('unknown' as const),
      subject: String(extra.details?.subject ?? ''),
      hasLocalLogin: (await passwordHolders(c.env.db)).length > 0,
      returnTo,
    },
    PendingPage,
  )
})

/** For browsers without scripts, and for scripts after a rejection. Throws `step_up_unavailable`. */
export const showConfirm = createHandlers(signedIn(), (c) => {
  const { principal } = c.var
  const returnTo = returnPath(c)
  if (principal.kind !== 'account') return c.redirect(returnTo)
  if (principal.stepUpMethods.length === 0) throw new AppError('step_up_unavailable')
  const { row } = principal.person
  return reply(
    c,
    { methods: principal.stepUpMethods, username: row.username, returnTo, problem: getFormFeedback(c).problem },
    Confirm,
  )
})
