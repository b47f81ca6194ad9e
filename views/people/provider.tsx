/** Sign-in through a reverse proxy: the role that new users get. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Check, Form } from '../ui/form.tsx'
import { getOptions, Select, withChosenOption } from '../ui/select.tsx'
import type { RoleOption } from './list.tsx'

export interface ProviderProps {
  provider: {
    id: string
    label: string
    active: boolean
    unknownIdentityRoleId: string | null
    linkByEmail: boolean
    idpMfaEnforced: boolean
    config: { identityHeader?: string }
  }
  roles: readonly RoleOption[]
  /** The current role of new users, even if the signed-in user may not assign it: saving must keep unedited values. */
  current: RoleOption | undefined
  canEdit: boolean
}

export const ProviderCard: FC<ProviderProps> = ({ provider, roles, current, canEdit }) => (
  <TextCard id="providers" title="Sign-in through a reverse proxy" count={provider.active ? 'on' : 'off'}>
    {provider.active ? (
      <p class="muted">
        Your proxy names the user in the header <code>{provider.config.identityHeader}</code>.
      </p>
    ) : (
      <p class="muted">
        Off. Turn it on with <code>SLUICE_DASHBOARD_AUTH_MODE=trusted_header</code>. The settings below apply then.
      </p>
    )}
    {canEdit ? <ProviderForm provider={provider} roles={roles} current={current} /> : null}
  </TextCard>
)

const ProviderForm: FC<Omit<ProviderProps, 'canEdit'>> = ({ provider, roles, current }) => (
  <Form name="provider" class="stack" method="patch" action={`/api/auth-providers/${provider.id}`}>
    <Select
      label="Role of new users"
      name="unknownIdentityRoleId"
      options={[
        ['', 'None: reject them until you add them'],
        ...withChosenOption(getOptions(roles), current?.id, current?.name),
      ]}
      value={provider.unknownIdentityRoleId ?? ''}
    />
    <Check
      name="linkByEmail"
      label="Link by e-mail"
      hint="A new name from the proxy signs in as the user with that e-mail address. An address that a user entered themselves counts only if they may manage users."
      isOn={provider.linkByEmail}
    />
    <Check
      name="idpMfaEnforced"
      label="The proxy requires two-factor"
      hint="For your records. Sluice still asks for confirmations."
      isOn={provider.idpMfaEnforced}
    />
    <div class="actions">
      <Submit>Save</Submit>
    </div>
  </Form>
)
