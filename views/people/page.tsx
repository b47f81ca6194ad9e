/** The Users page: every user, the roles, and sign-in through a reverse proxy. */
import type { FC } from 'hono/jsx'
import { Card } from '../ui/card.tsx'
import { NeedsScript, Outcome } from '../ui/form.tsx'
import { InviteForm } from './invite.tsx'
import { type ListedUser, PeopleList, type RoleOption } from './list.tsx'
import { LocalAdminOffer } from './local-admin.tsx'
import { ProviderCard, type ProviderProps } from './provider.tsx'
import { Roles, type RolesProps } from './roles.tsx'

export interface AccessProps extends RolesProps {
  users: readonly ListedUser[]
  /** The roles the signed-in user may assign. */
  grantable: readonly RoleOption[]
  /** null: the signed-in user may not see it. */
  provider: ProviderProps['provider'] | null
  isProxyTrusted: boolean
  /** Whether the local administrator behind the proxy is missing and the signed-in user may create it. */
  mayCreateLocalAdmin: boolean
  /** Managing users needs a user of your own (spec §5 Signing in 8). */
  hasAccount: boolean
  /** Whether the next change needs a confirmation. */
  mustConfirm: boolean
  /** ISO 8601: when the page was rendered. */
  now: string
  done: string | null
  problem: string | null
}

export const AccessPage: FC<AccessProps> = (props) => {
  const { users, grantable, provider, isProxyTrusted, hasAccount, mustConfirm, now, done, problem } = props
  return (
    <div class="page" data-now={now}>
      <header class="page-head">
        <h1>Users</h1>
        <a href="/settings">All settings</a>
      </header>
      <Outcome done={done} problem={problem} />
      <NeedsScript />
      {mustConfirm && <ConfirmFirst />}
      <Card id="people" title="Users" count={users.length}>
        {users.length > 0 && <PeopleList users={users} roles={grantable} now={now} />}
        {props.mayCreateLocalAdmin && (
          <div class="card-body">
            <LocalAdminOffer returnTo="/settings/access" />
          </div>
        )}
        {hasAccount ? (
          <InviteForm roles={grantable} isProxyTrusted={isProxyTrusted} defaultRoleId={getLeast(grantable)} />
        ) : (
          <NoAccount />
        )}
      </Card>
      <Roles {...props} />
      {provider && (
        <ProviderCard
          provider={provider}
          roles={grantable}
          current={props.roles.find(({ id }) => id === provider.unknownIdentityRoleId)}
          canEdit={hasAccount}
        />
      )}
    </div>
  )
}

const getLeast = (roles: readonly RoleOption[]): string | undefined =>
  (roles.find(({ id }) => id === 'role_viewer') ?? roles.at(-1))?.id

const ConfirmFirst: FC = () => (
  <noscript>
    <p class="note">
      Changes on this page need a confirmation. <a href="/confirm?return=%2Fsettings%2Faccess">Confirm it’s you</a>{' '}
      first.
    </p>
  </noscript>
)

export const NoAccount: FC = () => (
  <div class="card-body">
    <p>
      There are no users yet. Anyone who uses this machine has full access. To add users,{' '}
      <a href="/setup?return=%2Fsettings%2Faccess">set a password</a> first.
    </p>
  </div>
)
