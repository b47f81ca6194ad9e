/** The users: name, role, ways to sign in, and the actions on each. */
import type { FC } from 'hono/jsx'
import type { ShareUse } from '../../src/model/shares/shares.ts'
import type { User } from '../../src/model/users/people-view.ts'
import { type Session, SessionRow } from '../me/sessions.tsx'
import { Badge, type Tone } from '../ui/badge.tsx'
import { Submit } from '../ui/button.tsx'
import { Action, Field, Form } from '../ui/form.tsx'
import { getOptions, Options, withChosenOption } from '../ui/select.tsx'
import { Since, Until } from '../ui/time.tsx'
import { DeleteProxyUser, returnText } from './delete.tsx'
import { ShareForm, ShareLine } from './shares.tsx'

export interface ListedUser extends User {
  isSelf: boolean
  /** Whether the signed-in user's role covers this one (spec §5, delegation). */
  isManageable: boolean
  /** The use of their share of the pool. Empty if they have none. */
  shareUses: readonly ShareUse[]
  /** Where they are signed in; empty for users who are not manageable. */
  sessions: readonly Session[]
  /**
   * For proxy users: the role with which their next visit recreates them after deletion, null if it is rejected. null:
   * not a proxy user.
   */
  afterDeletion: { roleName: string | null } | null
}

export interface RoleOption {
  id: string
  name: string
}

interface ListProps {
  users: readonly ListedUser[]
  /** The roles the signed-in user may assign. */
  roles: readonly RoleOption[]
  /** ISO 8601: when the page was rendered. */
  now: string
  /** The short list of the settings page has no controls. */
  isShort?: boolean
}

export const PeopleList: FC<ListProps> = ({ users, ...shown }) => (
  <ul class="people">
    {users.map((user) => (
      <PersonRow user={user} {...shown} />
    ))}
  </ul>
)

const PersonRow: FC<Omit<ListProps, 'users'> & { user: ListedUser }> = ({ user, roles, now, isShort }) => (
  <li class="person" id={isShort ? undefined : `person-${user.id}`}>
    <div class="person-name">
      <p class="person-title">
        <strong title={user.username}>{user.username}</strong>
        {user.isSelf && <span class="muted">you</span>}
      </p>
      <span class="muted small">{[user.displayName, user.email].filter(Boolean).join(' · ')}</span>
    </div>
    <span class="person-role">{user.role.name}</span>
    <StatusBadge user={user} now={now} />
    <div class="person-ways muted">
      <span class="small">{getWays(user).join(' · ') || inviteText(user.pendingInvite)}</span>
      {user.pendingInvite?.voidReason && <VoidNote invite={user.pendingInvite} />}
      {user.lastLoginAt && (
        <span class="small">
          Last sign-in <Since at={user.lastLoginAt} now={now} />
          {user.lastLoginMethod && `, ${METHODS[user.lastLoginMethod] ?? user.lastLoginMethod}`}
        </span>
      )}
      <ShareLine uses={user.shareUses} />
    </div>
    {!isShort && <Manage user={user} roles={roles} now={now} />}
  </li>
)

type Invite = NonNullable<User['pendingInvite']>

const inviteText = (invite: Invite | null): string => {
  if (invite === null) return 'No way to sign in'
  return invite.voidReason ? 'Link no longer valid' : 'Link not used yet'
}

/** Why an invite is void, and what to do. */
const VoidNote: FC<{ invite: Invite }> = ({ invite: { voidReason, ssoOnly } }) => (
  <span class="small">
    {voidReason === 'role_changed'
      ? 'The role changed after the invite.'
      : `The user who ${ssoOnly ? 'added them' : 'sent it'} can no longer assign this role.`}{' '}
    {ssoOnly ? 'Confirm them before they can sign in.' : 'Create a new link.'}
  </span>
)

const METHODS: Readonly<Record<string, string>> = {
  password: 'password',
  totp: 'password and code',
  recovery_code: 'recovery code',
  passkey: 'passkey',
  invite: 'invite link',
  trusted_header: 'reverse proxy',
}

const getWays = (user: User): string[] => [
  ...(user.hasPassword ? ['Password'] : []),
  ...(user.totpConfigured ? ['Two-factor'] : []),
  ...(user.passkeyCount > 0 ? [user.passkeyCount === 1 ? 'Passkey' : `${user.passkeyCount} passkeys`] : []),
  ...user.identities.map((subject) => `Proxy: ${subject}`),
  ...(user.pendingInvite?.ssoOnly ? [`Waiting for ${user.pendingInvite.expectedSubject} from the proxy`] : []),
]

const STATES: Record<User['status'], [label: string, tone: Tone]> = {
  active: ['Active', 'good'],
  invited: ['Invited', 'wait'],
  disabled: ['Disabled', 'idle'],
}

const StatusBadge: FC<{ user: User; now: string }> = ({ user, now }) => {
  const [label, tone] = getState(user)
  const endsAt = user.pendingInvite?.expiresAt
  return (
    <span class="person-status">
      <Badge tone={tone}>{label}</Badge>
      {endsAt && (
        <span class="muted small">
          {user.pendingInvite?.voidReason ? 'removed' : 'link expires'} <Until at={endsAt} now={now} />
        </span>
      )}
    </span>
  )
}

const getState = ({ status, pendingInvite }: User): [label: string, tone: Tone] => {
  if (pendingInvite?.voidReason) return [pendingInvite.ssoOnly ? 'Not confirmed' : 'Link void', 'bad']
  return pendingInvite?.ssoOnly ? ['Waiting', 'wait'] : STATES[status]
}

const Manage: FC<{ user: ListedUser; roles: readonly RoleOption[]; now: string }> = ({ user, roles, now }) => {
  if (!user.isManageable)
    return (
      <span class="person-manage muted" title="This user has permissions that your role does not have">
        Needs a higher role
      </span>
    )
  return (
    <details class="person-manage">
      <summary class="reveal">
        Manage<span class="sr"> {user.username}</span>
      </summary>
      <div class="person-controls">
        <EditForm user={user} roles={roles} />
        <ShareForm
          name={`share-${user.id}`}
          of={user.username}
          action={`/api/dashboard-users/${user.id}`}
          share={user.share}
          hint="Share of the pool’s capacity, for all keys of this user together. Leave both empty to use the share of the role."
        />
        <div class="actions">
          {user.status === 'invited' ? <InviteActions user={user} roles={roles} /> : <UserActions user={user} />}
        </div>
        {user.sessions.length > 0 && (
          <ul class="rows" aria-label={`Signed-in browsers of ${user.username}`}>
            {user.sessions.map((session) => (
              <SessionRow session={session} now={now} path={`/api/dashboard-users/${user.id}/sessions`} />
            ))}
          </ul>
        )}
      </div>
    </details>
  )
}

const EditForm: FC<{ user: ListedUser; roles: readonly RoleOption[] }> = ({ user, roles }) => (
  <Form name={`edit-${user.id}`} class="row-form" method="patch" action={`/api/dashboard-users/${user.id}`}>
    <input type="hidden" name="expectedVersion" value={user.version} />
    <Field label="User name" name="username" value={user.username} maxlength={64} required />
    <Field label="Display name" name="displayName" value={user.displayName} maxlength={128} />
    <Field label="E-mail" name="email" type="email" value={user.email} maxlength={320} />
    {!user.isSelf && <RoleSelect roles={roles} value={user.role.id} current={user.role} />}
    <Submit>Save</Submit>
  </Form>
)

interface SelectProps {
  roles: readonly RoleOption[]
  value?: string
  /** Shown even if it can no longer be assigned. */
  current?: RoleOption
}

export const RoleSelect: FC<SelectProps> = ({ roles, value, current }) => (
  <label class="field">
    <span class="field-label">Role</span>
    <select name="roleId">
      <Options of={withChosenOption(getOptions(roles), current?.id, current?.name)} chosen={value} />
    </select>
  </label>
)

const InviteActions: FC<{ user: ListedUser; roles: readonly RoleOption[] }> = ({ user, roles }) => {
  const path = `/api/dashboard-users/${user.id}/invite`
  const isToConfirm = user.pendingInvite?.ssoOnly && user.pendingInvite.voidReason
  return (
    <>
      {isToConfirm && roles.some(({ id }) => id === user.role.id) && (
        <Action
          name={`confirm-${user.id}`}
          action={`/api/dashboard-users/${user.id}`}
          method="patch"
          values={{ roleId: user.role.id, expectedVersion: user.version }}
          label={`Confirm as ${user.role.name}`}
        />
      )}
      {!user.pendingInvite?.ssoOnly && (
        <Action name={`resend-${user.id}`} action={path} label="New link" target="#dialog" />
      )}
      <Action
        name={`revoke-${user.id}`}
        action={path}
        method="delete"
        label="Revoke invite"
        confirm={[
          `Revoke the invite of ${user.username}? This also deletes the user.`,
          ...(user.afterDeletion ? [returnText(user.afterDeletion)] : []),
        ].join(' ')}
        isRisky
      />
    </>
  )
}

const UserActions: FC<{ user: ListedUser }> = ({ user }) => {
  const path = `/api/dashboard-users/${user.id}`
  const { id, username } = user
  return (
    <>
      <Action
        name={`sessions-${id}`}
        action={`${path}/revoke-sessions`}
        label="Sign out everywhere"
        confirm={`Sign ${username} out of every browser?`}
      />
      {user.totpConfigured && !user.isSelf && (
        <Action
          name={`totp-${id}`}
          action={`${path}/reset-totp`}
          label="Reset two-factor"
          confirm={`Remove the authenticator and the recovery codes of ${username}? They sign in without a code until they set it up again.`}
        />
      )}
      {user.deactivatedKeyCount > 0 && (
        <Action name={`keys-${id}`} action={`${path}/reactivate-keys`} label={restoreLabel(user.deactivatedKeyCount)} />
      )}
      {!user.isSelf && <StatusAction user={user} path={path} />}
      {!user.isSelf && user.afterDeletion && <DeleteProxyUser user={user} path={path} after={user.afterDeletion} />}
      {!user.isSelf && !user.afterDeletion && (
        <Action
          name={`delete-${id}`}
          action={path}
          method="delete"
          label="Delete"
          confirm={`Delete ${username}? Their keys stay, turned off and without an owner.`}
          isRisky
        />
      )}
    </>
  )
}

const restoreLabel = (count: number): string => `Turn ${count === 1 ? 'a key' : `${count} keys`} back on`

const StatusAction: FC<{ user: User; path: string }> = ({ user, path }) =>
  user.status === 'active' ? (
    <Action
      name={`disable-${user.id}`}
      action={path}
      method="patch"
      values={{ status: 'disabled' }}
      label="Disable"
      confirm={`Disable ${user.username}? Their sessions end and their keys stop working.`}
      isRisky
    />
  ) : (
    <Action name={`enable-${user.id}`} action={path} method="patch" values={{ status: 'active' }} label="Enable" />
  )
