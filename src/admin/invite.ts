/** `/invite/:token`: shows the invite. Does not use up the link, because link previews open it too. */
import { InvitePage } from '../../views/invite.tsx'
import { open } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { invitationView } from '../model/users/people-view.ts'
import { getFormFeedback } from './form-feedback.ts'
import { openInvitation } from './people/accept.ts'

/** Throws `invite_not_found` for every invalid link, `invite_rate_limited`. */
export const showInvitePage = createHandlers(open('anyone with an invite link'), (c) => {
  const token = c.req.param('token') ?? ''
  const now = iso(c.env.clock.now())
  return reply(
    c,
    { ...invitationView(openInvitation(c, token)), token, now, problem: getFormFeedback(c).problem },
    InvitePage,
  )
})
