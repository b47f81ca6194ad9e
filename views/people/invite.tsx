/** Adding somebody: the form, and the link that is shown once. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Command, Submit } from '../ui/button.tsx'
import { Entrance } from '../ui/entrance.tsx'
import { Check, Field, Form } from '../ui/form.tsx'
import { type RoleOption, RoleSelect } from './list.tsx'

interface InviteFormProps {
  roles: readonly RoleOption[]
  /** Whether a reverse proxy may announce people. */
  isProxyTrusted: boolean
  /** Offered first: the role that can do least. */
  defaultRoleId: string | undefined
}

export const InviteForm: FC<InviteFormProps> = ({ roles, isProxyTrusted, defaultRoleId }) => (
  <details class="fold fold-card" id="invite">
    <summary class="button button-plain">Invite somebody</summary>
    <Form name="invite" class="row-form" action="/api/dashboard-users" target="#dialog">
      <Field label="User name" name="username" maxlength={64} required />
      <Field label="Display name" name="displayName" maxlength={128} />
      <Field label="E-mail" name="email" type="email" maxlength={320} />
      <RoleSelect roles={roles} value={defaultRoleId} />
      <Check label="They keep this user name" name="usernameLocked" isOn={false} />
      <Submit>Make a link</Submit>
    </Form>
    {isProxyTrusted && <WaitingForm roles={roles} defaultRoleId={defaultRoleId} />}
  </details>
)

const WaitingForm: FC<Omit<InviteFormProps, 'isProxyTrusted'>> = ({ roles, defaultRoleId }) => (
  <Form name="await" class="row-form" action="/api/dashboard-users" target="#dialog">
    <p class="form-intro">Or somebody the reverse proxy will announce: no link, no password.</p>
    <input type="hidden" name="ssoOnly" value="true" />
    <input type="hidden" name="expectedIdentity.provider" value="trusted_header" />
    <Field label="As the proxy names them" name="expectedIdentity.subject" maxlength={512} required />
    <Field label="User name here" name="username" maxlength={64} required />
    <RoleSelect roles={roles} value={defaultRoleId} />
    <Submit>Add</Submit>
  </Form>
)

interface Invite {
  token: string
}

/** What comes of adding somebody; `origin` is the one people open the dashboard under. */
export const invitedAt =
  (origin: string): FC<{ user: { username: string }; invite: Invite | null }> =>
  ({ user, invite }) =>
    invite ? <LinkCard url={urlOf(origin, invite)} username={user.username} /> : <WaitsCard />

/** A new link for somebody who was invited before. */
export const newLinkAt =
  (origin: string): FC<Invite> =>
  (invite) => <LinkCard url={urlOf(origin, invite)} username={null} />

const urlOf = (origin: string, { token }: Invite): string => `${origin}/invite/${token}`

const LinkCard: FC<{ url: string; username: string | null }> = (props) => (
  <Entrance title="Send this link">
    <Link {...props} />
    <Leave />
  </Entrance>
)

const WaitsCard: FC = () => (
  <Entrance title="Added">
    <p>The account becomes active when the proxy first announces exactly that name.</p>
    <Leave />
  </Entrance>
)

/** The list behind the dialog is out of date by now. */
const Leave: FC = () => (
  <div class="actions" data-reload>
    <ButtonLink isMain href="/settings/access" data-action="close">
      Done
    </ButtonLink>
  </div>
)

const Link: FC<{ url: string; username: string | null }> = ({ url, username }) => (
  <>
    <p>
      It lets {username ? <strong>{username}</strong> : 'the invited person'} choose a password, works once and for 24
      hours. <strong>It is shown only now.</strong>
    </p>
    <Command text={url} />
  </>
)
