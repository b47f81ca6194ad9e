/** Accepting an invite: who sent it, the role, and a new password. */
import type { FC } from 'hono/jsx'
import { Submit } from './ui/button.tsx'
import { CenteredCard } from './ui/centered-card.tsx'
import { Field, Form, NewPassword } from './ui/form.tsx'
import { Until } from './ui/time.tsx'

interface InviteProps {
  token: string
  roleName: string
  inviterDisplayName: string | null
  suggestedUsername: string
  usernameLocked: boolean
  /** ISO 8601 */
  expiresAt: string
  /** ISO 8601: when the page was rendered. */
  now: string
  problem: string | null
}

export const InvitePage: FC<InviteProps> = (props) => {
  const { token, roleName, inviterDisplayName, suggestedUsername, usernameLocked, expiresAt, now, problem } = props
  return (
    <CenteredCard title="Join Sluice">
      <p data-now={now}>
        {inviterDisplayName ? <strong>{inviterDisplayName}</strong> : 'An administrator'} invited you to this Sluice as{' '}
        <strong>{roleName}</strong>. The link works once and expires <Until at={expiresAt} now={now} />.
      </p>
      <Form name="invite" class="stack" action="/api/dashboard-auth/invite/accept" problem={problem}>
        <input type="hidden" name="token" value={token} />
        {usernameLocked ? (
          <Locked username={suggestedUsername} />
        ) : (
          <Field
            label="User name"
            name="username"
            value={suggestedUsername}
            autocomplete="username"
            maxlength={64}
            required
          />
        )}
        <NewPassword autofocus />
        <Submit isWide>Set password and sign in</Submit>
      </Form>
    </CenteredCard>
  )
}

const Locked: FC<{ username: string }> = ({ username }) => (
  <>
    <p class="fact">
      <span class="field-label">User name</span>
      <strong>{username}</strong>
    </p>
    <input type="text" value={username} autocomplete="username" hidden readonly />
  </>
)
