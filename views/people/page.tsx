/** Settings, Access, in full: every account, the roles, and the proxy as a way to sign in. */
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
  /** What the visitor may give. */
  grantable: readonly RoleOption[]
  /** null: not for this visitor. */
  provider: ProviderProps['provider'] | null
  isProxyTrusted: boolean
  /** Whether there is no local administrator behind the proxy yet, and the visitor may create it. */
  mayCreateLocalAdmin: boolean
  /** People are managed by somebody with an account (spec §5 Signing in 8). */
  hasAccount: boolean
  /** Whether the next change asks for a confirmation. */
  mustConfirm: boolean
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

export const AccessPage: FC<AccessProps> = (props) => {
  const { users, grantable, provider, isProxyTrusted, hasAccount, mustConfirm, now, done, problem } = props
  return (
    <div class="page" data-now={now}>
      <header class="page-head">
        <h1>People and access</h1>
        <a href="/settings">All settings</a>
      </header>
      <Outcome done={done} problem={problem} />
      <NeedsScript />
      {mustConfirm && <ConfirmFirst />}
      <Card id="people" title="Accounts" count={users.length}>
        {users.length > 0 && <PeopleList users={users} roles={grantable} now={now} />}
        {props.mayCreateLocalAdmin && (
          <div class="card-body">
            <LocalAdminOffer returnTo="/settings/access" />
          </div>
        )}
        {hasAccount ? (
          <InviteForm roles={grantable} isProxyTrusted={isProxyTrusted} defaultRoleId={leastOf(grantable)} />
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

const leastOf = (roles: readonly RoleOption[]): string | undefined =>
  (roles.find(({ id }) => id === 'role_viewer') ?? roles.at(-1))?.id

const ConfirmFirst: FC = () => (
  <noscript>
    <p class="note">
      Changes here need a confirmation: <a href="/confirm?return=%2Fsettings%2Faccess">confirm that it is you</a> first.
    </p>
  </noscript>
)

export const NoAccount: FC = () => (
  <div class="card-body">
    <p>
      Nobody has an account yet: whoever uses this machine may do everything. To add people,{' '}
      <a href="/setup?return=%2Fsettings%2Faccess">set a password</a> first.
    </p>
  </div>
)
