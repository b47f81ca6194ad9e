/** The reverse proxy as a way to sign in: what becomes of people it announces first. */
import type { FC } from 'hono/jsx'
import { Check, Form } from '../ui/form.tsx'
import { type RoleOption, withCurrent } from './list.tsx'

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
  <section class="card" aria-labelledby="provider-title" id="providers">
    <header class="card-head">
      <h2 id="provider-title">Sign-in through a reverse proxy</h2>
      <span class="count">{provider.active ? 'on' : 'off'}</span>
    </header>
    <div class="card-body">
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
    </div>
  </section>
)

const ProviderForm: FC<Omit<ProviderProps, 'canEdit'>> = ({ provider, roles, current }) => (
  <Form name="provider" class="stack" method="patch" action={`/api/auth-providers/${provider.id}`}>
    <label class="field field-short">
      <span class="field-label">Somebody new becomes</span>
      <select name="unknownIdentityRoleId">
        <option value="" selected={provider.unknownIdentityRoleId === null}>
          Nobody: refuse them until they are added
        </option>
        {withCurrent(roles, current).map(({ id, name }) => (
          <option value={id} selected={id === provider.unknownIdentityRoleId}>
            {name}
          </option>
        ))}
      </select>
    </label>
    <Check
      name="linkByEmail"
      label="Link by e-mail"
      hint="A name that is the e-mail address of an account here signs in as that account, if an administrator entered it."
      isOn={provider.linkByEmail}
    />
    <Check
      name="idpMfaEnforced"
      label="The proxy asks for a second factor"
      hint="Noted only; confirmations here stay as they are."
      isOn={provider.idpMfaEnforced}
    />
    <div class="actions">
      <button class="button" type="submit">
        Save
      </button>
    </div>
  </Form>
)
