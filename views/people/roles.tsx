/** The roles: what the built-in ones may, and an editor for those of one's own. */
import type { FC } from 'hono/jsx'
import type { permissionViews, RoleView } from '../../src/model/people-roles-view.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Field, Form } from '../ui/form.tsx'

type PermissionView = ReturnType<typeof permissionViews>[number]

export interface RolesProps {
  roles: readonly RoleView[]
  permissions: readonly PermissionView[]
  /** Those the visitor holds for all, the only ones that can be given (spec §5, delegation). */
  held: readonly string[]
  canEdit: boolean
  /** The role that a new one is to be like; null, or the id of none: no such form is open. */
  cloneOf: string | null
}

export const Roles: FC<RolesProps> = (props) => {
  const { roles, canEdit, cloneOf } = props
  const original = canEdit && roles.find(({ id }) => id === cloneOf)
  return (
    <Card id="roles" title="Roles" count={roles.length}>
      <ul class="roles">
        {roles.map((role) => (
          <RoleRow role={role} {...props} />
        ))}
      </ul>
      {original && <Clone original={original} {...props} />}
      {canEdit && (
        <details class="fold fold-card" id="new-role">
          <summary class="button button-plain">New role</summary>
          <RoleForm name="new-role" action="/api/dashboard-roles" submit="Create" {...props} />
        </details>
      )}
    </Card>
  )
}

const RoleRow: FC<RolesProps & { role: RoleView }> = ({ role, ...props }) => (
  <li class="role">
    <div class="role-name">
      <strong>{role.name}</strong>
      {role.kind === 'custom' && <span class="tag">custom</span>}
      <p class="muted">{role.description}</p>
    </div>
    <span class="muted">{role.slug === 'guest' ? 'no accounts' : people(role.usersCount)}</span>
    <details class="role-more">
      <summary class="reveal">
        {role.locked || !props.canEdit ? 'Permissions' : 'Edit'}
        <span class="sr"> of {role.name}</span>
      </summary>
      {role.locked || !props.canEdit ? <GrantList role={role} {...props} /> : <RoleEditor role={role} {...props} />}
      {role.locked && props.canEdit && (
        <div class="actions actions-below">
          <CloneLink role={role} />
        </div>
      )}
    </details>
  </li>
)

/** A new role with what another one may: as far as the visitor holds it, since nobody gives more. */
const Clone: FC<RolesProps & { original: RoleView }> = ({ original, ...props }) => {
  const grants = original.grants.filter(({ permission }) => props.held.includes(permission))
  const name = `Copy of ${original.name}`.slice(0, MAX_NAME)
  return (
    <details class="fold fold-card" id="clone-role" open>
      <summary class="button button-plain">New role like {original.name}</summary>
      <RoleForm
        name="clone-role"
        action="/api/dashboard-roles"
        submit="Create"
        role={{ ...original, name, grants }}
        isFirst
        {...props}
      />
    </details>
  )
}

const people = (count: number): string => (count === 0 ? 'nobody yet' : count === 1 ? '1 account' : `${count} accounts`)

const GrantList: FC<RolesProps & { role: RoleView }> = ({ role, permissions }) => {
  const scopes = new Map(role.grants.map(({ permission, scope }) => [permission as string, scope]))
  return (
    <ul class="bullets">
      {permissions
        .filter(({ permission }) => scopes.has(permission))
        .map(({ permission, description }) => (
          <li>
            {description}
            {scopes.get(permission) === 'own' && ' (their own)'}
          </li>
        ))}
    </ul>
  )
}

const RoleEditor: FC<RolesProps & { role: RoleView }> = ({ role, ...props }) => (
  <div>
    <RoleForm
      name={`role-${role.id}`}
      action={`/api/dashboard-roles/${role.id}`}
      method="patch"
      submit="Save"
      role={role}
      {...props}
    />
    <div class="actions actions-below">
      <CloneLink role={role} />
      <Action
        name={`delete-role-${role.id}`}
        action={`/api/dashboard-roles/${role.id}`}
        method="delete"
        label="Delete the role"
        confirm={`Delete the role ${role.name}?`}
        isRisky
      />
    </div>
  </div>
)

const CloneLink: FC<{ role: RoleView }> = ({ role }) => (
  <ButtonLink href={`/settings/access?clone=${role.id}`}>Clone the role</ButtonLink>
)

const MAX_NAME = 64

interface RoleFormProps extends RolesProps {
  name: string
  action: string
  method?: 'post' | 'patch'
  submit: string
  role?: RoleView
  /** The page is opened for it. */
  isFirst?: boolean
}

/** No permission ticked is said, too: a form leaves unchecked boxes out. */
const RoleForm: FC<RoleFormProps> = ({ name, action, method, submit, role, permissions, held, isFirst }) => (
  <Form name={name} class="stack role-form" action={action} method={method}>
    {method === 'patch' && <input type="hidden" name="expectedVersion" value={role?.version} />}
    <div class="row-form">
      <Field label="Name" name="name" value={role?.name} maxlength={MAX_NAME} autofocus={isFirst} required />
      <Field label="What it is for" name="description" value={role?.description} maxlength={256} />
    </div>
    <fieldset class="permissions">
      <legend class="field-label">May</legend>
      <input type="hidden" name="grants" value="" />
      {permissions.map((view) => (
        <PermissionCheck
          view={view}
          needs={permissions.filter(({ permission }) => view.implies.includes(permission))}
          role={role}
          isHeld={held.includes(view.permission)}
        />
      ))}
    </fieldset>
    <div class="actions">
      <Submit>{submit}</Submit>
    </div>
  </Form>
)

interface CheckProps {
  view: PermissionView
  needs: readonly PermissionView[]
  role: RoleView | undefined
  isHeld: boolean
}

const PermissionCheck: FC<CheckProps> = ({ view, needs, role, isHeld }) => {
  const given = role?.grants.find(({ permission }) => permission === view.permission)
  return (
    <label class="check">
      <input
        type="checkbox"
        name="grants"
        value={`${view.permission}:${given?.scope ?? 'all'}`}
        checked={given !== undefined}
        disabled={!isHeld}
      />
      <span>
        {view.description}
        {view.privileged && <span class="tag">administrator-level</span>}
        {needs.length > 0 && (
          <span class="hint">Needs {needs.map(({ description }) => `“${description}”`).join(' and ')}.</span>
        )}
        {!isHeld && <span class="hint">You do not hold this yourself.</span>}
      </span>
    </label>
  )
}
