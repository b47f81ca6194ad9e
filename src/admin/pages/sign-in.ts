/** `/login`, `/totp`, `/setup`, `/auth/pending`, `/confirm`: the pages on the way in; each sends on whoever is past it. */
import { Confirm } from '../../../views/confirm.tsx'
import { LoginPage, PendingPage, SetupPage, TotpPage } from '../../../views/sign-in.tsx'
import { asksBootstrapToken } from '../../auth/bootstrap.ts'
import { isProxyTrusted } from '../../auth/identity.ts'
import { hasOwnSession } from '../../auth/own-account.ts'
import { resolve, resolveHalf } from '../../auth/resolve.ts'
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

/** An install without a password or passkey has nothing to sign in with: its first page is the setup. */
export const showLogin = createHandlers(open('the way in'), (c) => {
  const returnTo = returnPath(c)
  const resolution = resolveHalf(c)
  if (resolution.kind === 'half') return c.redirect(withReturn('/totp', returnTo))
  if (isSignedIn(resolution) && !mayGivePassword(resolution)) return c.redirect(returnTo)
  if (!hasPasswordAccount(c.env.db) && !isAnyPasskey(c.env.db)) return c.redirect(withReturn('/setup', returnTo))
  const { code, problem, done } = said(c)
  return reply(c, { ...waysIn(c, code), returnTo, problem, isGuestProblem: isGuest(code), done }, LoginPage)
})

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

/** Behind a proxy the first password is the fallback, and set by somebody the proxy has let in (spec §5 Trusted-header 6). */
export const showSetup = createHandlers(open('the first password'), (c) => {
  const { db, env } = c.env
  const returnTo = returnPath(c)
  if (hasPasswordAccount(db)) return c.redirect(withReturn('/login', returnTo))
  if (env.DASHBOARD_AUTH_MODE === 'disabled') throw new AppError('password_management_disabled')
  const asksToken = env.DASHBOARD_AUTH_MODE === 'standard' && asksBootstrapToken(c)
  return reply(c, { asksToken, returnTo, problem: said(c).problem }, SetupPage)
})

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
