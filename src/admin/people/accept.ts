/**
 * `/invite/:token` and `/api/dashboard-auth/invite`: shows and accepts an invite by its link. Showing it does not use up
 * the link, because link previews open it too.
 */
import { z } from 'zod'
import { InvitePage } from '../../../views/invite.tsx'
import { budgetClient } from '../../auth/failure-budget.ts'
import { requireManaged } from '../../auth/own-account.ts'
import { type Resolution, resolve } from '../../auth/resolve.ts'
import { sessionView } from '../../auth/session-view.ts'
import { signIn } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { iso } from '../../lib/iso.ts'
import { acceptInvite, lookUpInvite, type OpenInvite, requireAcceptable } from '../../model/users/invites.ts'
import { NewPassword } from '../../model/users/passwords.ts'
import type { Person } from '../../model/users/people.ts'
import { DisplayName } from '../../model/users/people-input.ts'
import { invitationView } from '../../model/users/people-view.ts'
import { Username } from '../../model/users/usernames.ts'
import { getFormFeedback } from '../form-feedback.ts'

const MAX_TOKEN = 256

/** Throws `invite_not_found` for every invalid link, `invite_rate_limited`. */
export const showInvitation = createHandlers(open('anyone with an invite link'), async (c) =>
  c.json(invitationView(await openInvitation(c, c.req.param('token') ?? ''))),
)

const Acceptance = z.strictObject({
  token: z.string().max(MAX_TOKEN).describe('The last part of the invite link.'),
  username: Username.optional(),
  password: NewPassword,
  displayName: DisplayName.optional(),
})

/**
 * Sets the password and signs in. Throws `password_management_disabled`, `already_signed_in`, `invite_rate_limited`,
 * `invite_not_found`, `username_locked`, `username_taken`.
 */
export const acceptInvitation = createHandlers(
  open('anyone with an invite link', { audit: 'invite_accepted' }),
  body(Acceptance),
  async (c) => {
    const acceptance = c.req.valid('json')
    requireManaged(c)
    await requireSignedOut(c)
    const { invitation, giveBack } = await tryLink(c, acceptance.token)
    const resolution = await join(c, invitation, acceptance).finally(giveBack)
    return proceed(c, await sessionView(c, resolution), '/dashboard')
  },
)

/** The invite of a link. A wrong token costs the client an attempt. */
const openInvitation = async (c: Ctx, token: string): Promise<OpenInvite> => {
  const { invitation, giveBack } = await tryLink(c, token)
  await giveBack()
  return invitation
}

/**
 * A wrong token costs the client an attempt, so that tokens cannot be guessed (spec §8). A correct one is refunded
 * after use, so that only a few parallel requests get to hash a password.
 */
const tryLink = async (
  c: Ctx,
  token: string,
): Promise<{ invitation: OpenInvite; giveBack: () => Promise<unknown> }> => {
  const { failures, db, clock } = c.env
  const giveBack = await failures.take(budgetClient(c), 'invite_rate_limited')
  return { invitation: await lookUpInvite(db, token.slice(0, MAX_TOKEN), clock.now()), giveBack }
}

const join = async (c: Ctx, invitation: OpenInvite, acceptance: z.output<typeof Acceptance>): Promise<Resolution> => {
  const { password, ...given } = acceptance
  const username = given.username ?? invitation.person.row.username
  await requireAcceptable(c.env.db, invitation, username)
  const passwordHash = await c.env.passwords.hash(password)
  const now = c.env.clock.now()
  return signIn(c, {
    person: named(invitation.person, username),
    method: 'invite',
    isComplete: true,
    event: 'invite_accepted',
    first: (tx) => acceptInvite(tx, { ...given, username, passwordHash, now }),
  })
}

/** Throws `already_signed_in`: the link is for another user, or was just accepted in this browser. */
const requireSignedOut = async (c: Ctx): Promise<void> => {
  const resolution = await resolve(c)
  const isSomebody =
    resolution.kind === 'half' || (resolution.kind === 'principal' && resolution.principal.kind === 'account')
  if (isSomebody) throw new AppError('already_signed_in')
}

/** The user with the new name, for the audit log. */
const named = (person: Person, username: string): Person => ({ ...person, row: { ...person.row, username } })

/** Throws `invite_not_found` for every invalid link, `invite_rate_limited`. */
export const showInvitePage = createHandlers(open('anyone with an invite link'), async (c) => {
  const token = c.req.param('token') ?? ''
  const now = iso(c.env.clock.now())
  return reply(
    c,
    { ...invitationView(await openInvitation(c, token)), token, now, problem: getFormFeedback(c).problem },
    InvitePage,
  )
})
