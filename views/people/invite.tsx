/** Inviting a user: the form, and the link that is shown once. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Command, Submit } from '../ui/button.tsx'
import { CenteredCard } from '../ui/centered-card.tsx'
import { Check, Field, Form } from '../ui/form.tsx'
import { type RoleOption, RoleSelect } from './list.tsx'

interface InviteFormProps {
  roles: readonly RoleOption[]
  /** Whether users can sign in through a reverse proxy. */
  isProxyTrusted: boolean
  /** Preselected: the role with the fewest permissions. */
  defaultRoleId: string | undefined
}

export const InviteForm: FC<InviteFormProps> = ({ roles, isProxyTrusted, defaultRoleId }) => (
  <details class="fold fold-card" id="invite">
    <summary class="button button-plain">Invite user</summary>
    <Form name="invite" class="row-form" action="/api/dashboard-users" target="#dialog">
      <Field label="User name" name="username" maxlength={64} required />
      <Field label="Display name" name="displayName" maxlength={128} />
      <Field label="E-mail" name="email" type="email" maxlength={320} />
      <RoleSelect roles={roles} value={defaultRoleId} />
      <Check label="They cannot change the user name" name="usernameLocked" isOn={false} />
      <Submit>Create invite link</Submit>
    </Form>
    {isProxyTrusted && <WaitingForm roles={roles} defaultRoleId={defaultRoleId} />}
  </details>
)

const WaitingForm: FC<Omit<InviteFormProps, 'isProxyTrusted'>> = ({ roles, defaultRoleId }) => (
  <Form name="await" class="row-form" action="/api/dashboard-users" target="#dialog">
    <p class="form-intro">Or add a user who signs in through the reverse proxy. They need no link and no password.</p>
    <input type="hidden" name="ssoOnly" value="true" />
    <input type="hidden" name="expectedIdentity.provider" value="trusted_header" />
    <Field label="Name sent by the proxy" name="expectedIdentity.subject" maxlength={512} required />
    <Field label="User name in Sluice" name="username" maxlength={64} required />
    <RoleSelect roles={roles} value={defaultRoleId} />
    <Submit>Add user</Submit>
  </Form>
)

interface Invite {
  token: string
}

/** The answer to an invite; `origin` is the public address of the dashboard. */
export const invitedPage =
  (origin: string): FC<{ user: { username: string }; invite: Invite | null }> =>
  ({ user, invite }) =>
    invite ? <LinkCard url={getUrl(origin, invite)} username={user.username} /> : <WaitsCard />

/** A new link for a user who was invited before. */
export const newLinkAt =
  (origin: string): FC<Invite> =>
  (invite) => <LinkCard url={getUrl(origin, invite)} username={null} />

const getUrl = (origin: string, { token }: Invite): string => `${origin}/invite/${token}`

const LinkCard: FC<{ url: string; username: string | null }> = (props) => (
  <CenteredCard title="Send this link">
    <Link {...props} />
    <DoneLink />
  </CenteredCard>
)

const WaitsCard: FC = () => (
  <CenteredCard title="User added">
    <p>The user becomes active at their first visit through the proxy under exactly this name.</p>
    <DoneLink />
  </CenteredCard>
)

/** Closing reloads the list behind the dialog. */
const DoneLink: FC = () => (
  <div class="actions" data-reload>
    <ButtonLink isMain href="/settings/access" data-action="close">
      Done
    </ButtonLink>
  </div>
)

const Link: FC<{ url: string; username: string | null }> = ({ url, username }) => (
  <>
    <p>
      {username ? <strong>{username}</strong> : 'The invited user'} can set a password with it. It works once and
      expires in 24 hours. <strong>Copy it now. You cannot see it again.</strong>
    </p>
    <Command text={url} />
  </>
)
