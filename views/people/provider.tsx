/** The reverse proxy as a way to sign in: what becomes of people it announces first. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Check, Form } from '../ui/form.tsx'
import { keeping, optionsOf, Select } from '../ui/select.tsx'
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
  /** What strangers become now, also where it is not the visitor's to give: a form must not change what nobody touched. */
  current: RoleOption | undefined
  canEdit: boolean
}

export const ProviderCard: FC<ProviderProps> = ({ provider, roles, current, canEdit }) => (
  <TextCard id="providers" title="Sign-in through a reverse proxy" count={provider.active ? 'on' : 'off'}>
    {provider.active ? (
      <p class="muted">
        People are known by the header <code>{provider.config.identityHeader}</code> of your proxy.
      </p>
    ) : (
      <p class="muted">
        Off. <code>CODEX_LB_DASHBOARD_AUTH_MODE=trusted_header</code> switches it on; what is set here then applies.
      </p>
    )}
    {canEdit ? <ProviderForm provider={provider} roles={roles} current={current} /> : null}
  </TextCard>
)

const ProviderForm: FC<Omit<ProviderProps, 'canEdit'>> = ({ provider, roles, current }) => (
  <Form name="provider" class="stack" method="patch" action={`/api/auth-providers/${provider.id}`}>
    <Select
      label="Somebody new becomes"
      name="unknownIdentityRoleId"
      options={[
        ['', 'Nobody: refuse them until they are added'],
        ...keeping(optionsOf(roles), current?.id, current?.name),
      ]}
      value={provider.unknownIdentityRoleId ?? ''}
    />
    <Check
      name="linkByEmail"
      label="Link by e-mail"
      hint="Signs in as the user with this e-mail address. An address that users entered for themselves counts only if they may manage users."
      isOn={provider.linkByEmail}
    />
    <Check
      name="idpMfaEnforced"
      label="The proxy asks for a second factor"
      hint="Noted only; confirmations here stay as they are."
      isOn={provider.idpMfaEnforced}
    />
    <div class="actions">
      <Submit>Save</Submit>
    </div>
  </Form>
)
