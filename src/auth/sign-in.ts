/** Opens, completes and confirms this browser's session: row, cookie and audit row in one commit. */
import { eq } from 'drizzle-orm'
import { commit, notice, type Tx } from '../../db/commit.ts'
import { users } from '../../db/schema/people.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError, type Code } from '../errors.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import { type AuditEvent, append } from '../model/audit/audit.ts'
import { guestPasswordHash } from '../model/users/guest.ts'
import { getPerson, type Person } from '../model/users/people.ts'
import {
  createSession,
  endSession,
  findSession,
  type NewSession,
  rotateSession,
  type SessionRow,
  type SignInMethod,
  STEP_UP_MS,
} from '../model/users/sessions.ts'
import { budgetClient } from './failure-budget.ts'
import { countOwnChange } from './own-account.ts'
import { type AccountPrincipal, actorFor, getActor } from './principal.ts'
import { type Resolution, resolveAccount } from './resolve.ts'
import { requireSecondFactor, type SecondFactor } from './second-factor.ts'
import { readSessionToken, writeSessionToken } from './session-cookie.ts'

/** Time to find the phone; a password alone must not allow guessing codes for long. */
const HALF_SESSION_MS = 10 * MINUTE_MS

interface SignIn {
  person: Person
  method: SignInMethod
  /**
   * False while the second factor is missing. Otherwise all factors were checked, which counts as a confirmation (spec
   * §3, step-up).
   */
  isComplete: boolean
  /** Defaults to `login_success`. */
  event?: AuditEvent
  /** Runs first in the same commit; a throw rolls everything back. */
  first?: (tx: Tx) => Promise<unknown>
}

/**
 * Signs the user in on this browser and ends its previous session. Returns the new resolution, because the request
 * itself carries no cookie yet. Throws `password_rate_limited`.
 */
export const signIn = async (
  c: Ctx,
  { person, method, isComplete, event = 'login_success', first }: SignIn,
): Promise<Resolution> => {
  const { db, random } = c.env
  await countSignIn(c, person.row.id, 'password_rate_limited')
  const draft = { ...draftSession(c, isComplete), userId: person.row.id, method, isComplete }
  const { row, token } = await commit(db, async (tx) => {
    await first?.(tx)
    await dropSessionOfCookie(c, tx)
    const made = await createSession(tx, random, { ...draft, isConfirmed: isComplete })
    if (!isComplete) return made
    await recordSignIn(tx, person, draft)
    await append(tx, actorFor(c, person, method), event, { target: person.row.id, details: { method } })
    return made
  })
  writeSessionToken(c, token, row.expiresAt)
  const current = await getPerson(db, person.row.id)
  return isComplete
    ? await resolveAccount(c, current, { method, session: row })
    : { kind: 'half', session: row, person: current }
}

/**
 * Uses up the second factor of a half session and replaces it by a full session with a new token. Throws
 * `totp_required` when another request has completed it already, and `invalid_totp_code`.
 */
export const completeSession = async (
  c: Ctx,
  half: SessionRow,
  person: Person,
  factor: SecondFactor,
): Promise<Resolution> => {
  const { method } = factor
  const draft = { ...draftSession(c, true), userId: person.row.id, method, isComplete: true }
  const actor = actorFor(c, person, method)
  const { row, token } = await commit(c.env.db, async (tx) => {
    await requireSecondFactor(tx, person.row, factor, actor)
    if (!(await endSession(tx, half.id, person.row.id))) throw new AppError('totp_required')
    await recordSignIn(tx, person, draft)
    await append(tx, actor, 'login_success', { target: person.row.id, details: { method } })
    return createSession(tx, c.env.random, { ...draft, isConfirmed: true })
  })
  writeSessionToken(c, token, row.expiresAt)
  return resolveAccount(c, person, { method, session: row })
}

/**
 * Signs in a guest who knew the password of `hash`. Returns the session, whose cookie is written. Throws
 * `invalid_credentials` when the guest password has changed in the meantime, and `guest_password_rate_limited`.
 */
export const admitGuest = async (c: Ctx, hash: string): Promise<SessionRow> => {
  await countSignIn(c, 'guest', 'guest_password_rate_limited')
  const draft = { ...draftSession(c, true), userId: null, method: 'guest' as const, isComplete: true }
  const { row, token } = await commit(c.env.db, async (tx) => {
    if ((await guestPasswordHash(tx)) !== hash) throw new AppError('invalid_credentials')
    await dropSessionOfCookie(c, tx)
    const actor = { id: 'guest', method: 'guest', address: draft.address, at: draft.now }
    await append(tx, actor, 'login_success', { details: { method: 'guest' } })
    return createSession(tx, c.env.random, { ...draft, isConfirmed: false })
  })
  writeSessionToken(c, token, row.expiresAt)
  return row
}

/**
 * Each sign-in adds a session and a permanent audit row. Limited per client, so that one user cannot lock out another
 * (spec §5).
 */
const countSignIn = async (c: Ctx, who: string, code: Code): Promise<void> => {
  await c.env.ownChanges.take(`${who} ${budgetClient(c)}`, code)
}

const draftSession = (c: Ctx, isComplete: boolean): Pick<NewSession, 'now' | 'expiresAt' | 'address' | 'userAgent'> => {
  const now = c.env.clock.now()
  const ttlMs = isComplete ? c.env.settings.current().dashboardSessionTtlSeconds * 1000 : HALF_SESSION_MS
  return { now, expiresAt: now + ttlMs, address: c.var.clientIp, userAgent: c.req.header('user-agent') ?? null }
}

/** Ends the session of this browser's cookie. Returns it, or null when there was none. */
export const dropSessionOfCookie = async (c: Ctx, tx: Tx): Promise<SessionRow | null> => {
  const token = readSessionToken(c)
  const session = token === null ? null : await findSession(tx, token, c.env.clock.now())
  if (session) await endSession(tx, session.id, session.userId)
  return session
}

/**
 * Runs `end`, which ends all of the user's sessions except the given one, in one commit. The remaining session gets a
 * new token, because a copied cookie belongs to another browser. Returns what `end` does.
 */
export const endOthers = async <T>(
  c: Ctx,
  { session }: AccountPrincipal,
  end: (tx: Tx, exceptSession: string | null) => Promise<T>,
): Promise<T> => {
  const { ended, token } = await commit(c.env.db, async (tx) => ({
    ended: await end(tx, session?.id ?? null),
    token: session && (await rotateSession(tx, c.env.random, session.id, {})),
  }))
  if (session && token !== null) writeSessionToken(c, token, session.expiresAt)
  return ended
}

/**
 * Stores a confirmation (spec §5, step-up). Users announced by the proxy get a session to hold it. Returns until when
 * it is valid, in ms since epoch. Throws `own_account_rate_limited`.
 */
export const confirm = async (
  c: Ctx,
  principal: AccountPrincipal,
  { methods, first }: Confirmation,
): Promise<number> => {
  const { db, random, clock } = c.env
  await countOwnChange(c, principal, 'step_up_verified')
  const now = clock.now()
  const confirmedUntil = now + STEP_UP_MS
  const { token, expiresAt } = await commit(db, async (tx) => {
    await first?.(tx)
    await append(tx, getActor(principal, c), 'step_up_verified', {
      target: principal.id,
      details: { methods },
    })
    if (principal.session) {
      const { id, method, expiresAt: endsAt } = principal.session
      // A session that only holds a confirmation lasts as long as the confirmation, also when it is renewed.
      const expiresAt = method === 'trusted_header' ? confirmedUntil : endsAt
      return { token: await rotateSession(tx, random, id, { confirmedUntil, expiresAt }), expiresAt }
    }
    const { row, token } = await createSession(tx, random, {
      ...draftSession(c, true),
      userId: principal.id,
      method: 'trusted_header',
      isComplete: true,
      isConfirmed: true,
      expiresAt: confirmedUntil,
    })
    return { token, expiresAt: row.expiresAt }
  })
  writeSessionToken(c, token, expiresAt)
  return confirmedUntil
}

interface Confirmation {
  methods: readonly string[]
  /** Runs first in the same commit. */
  first?: (tx: Tx) => Promise<unknown>
}

const recordSignIn = async (
  tx: Tx,
  { row }: Person,
  { method, now }: Pick<NewSession, 'method' | 'now'>,
): Promise<void> => {
  await tx.update(users).set({ lastLoginAt: now, lastLoginMethod: method }).where(eq(users.id, row.id)).run()
  notice(tx, 'people')
}
