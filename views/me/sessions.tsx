/** The browsers a user is signed in with. */
import type { FC } from 'hono/jsx'
import { Card } from '../ui/card.tsx'
import { Action } from '../ui/form.tsx'
import { Since } from '../ui/time.tsx'

export interface Session {
  id: string
  method: string
  /** In words: "Firefox on Linux". */
  device: string
  address: string | null
  createdAt: string
  lastSeenAt: string
  isCurrent: boolean
}

const METHODS: Readonly<Record<string, string>> = {
  password: 'with a password',
  totp: 'with a password and a code',
  recovery_code: 'with a recovery code',
  passkey: 'with a passkey',
  invite: 'with an invite link',
  trusted_header: 'through the reverse proxy',
}

export const SessionsCard: FC<{ sessions: readonly Session[]; now: string }> = ({ sessions, now }) => (
  <Card id="sessions" title="Signed-in browsers" count={sessions.length}>
    {sessions.length > 0 && (
      <ul class="rows">
        {sessions.map((session) => (
          <SessionRow session={session} now={now} path="/api/dashboard-auth/sessions" />
        ))}
      </ul>
    )}
    <div class="card-body actions">
      {sessions.some(({ isCurrent }) => !isCurrent) && (
        <Action
          name="end-others"
          action="/api/dashboard-auth/sessions"
          method="delete"
          label="Sign out other browsers"
          confirm="Sign out of all other browsers?"
        />
      )}
      <Action
        name="logout-all"
        action="/api/dashboard-auth/logout-all"
        label="Sign out everywhere"
        confirm="Sign out of all browsers, including this one?"
      />
    </div>
  </Card>
)

/** `path` is the route of the session list. */
export const SessionRow: FC<{ session: Session; now: string; path: string }> = ({ session, now, path }) => (
  <li class="row">
    <div class="row-main">
      <strong>{session.device}</strong>
      {session.isCurrent && <span class="tag">this browser</span>}
      <p class="muted">
        Signed in <Since at={session.createdAt} now={now} /> {METHODS[session.method] ?? ''}
        {session.address && ` from ${session.address}`}, last seen <Since at={session.lastSeenAt} now={now} />
      </p>
    </div>
    {!session.isCurrent && (
      <Action name={`end-${session.id}`} action={`${path}/${session.id}`} method="delete" label="Sign out" />
    )}
  </li>
)
