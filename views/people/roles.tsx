/** The roles: what the built-in ones may, and an editor for those of one's own. */
import type { FC } from 'hono/jsx'
import type { permissionViews, RoleView } from '../../src/model/people-roles-view.ts'
import { Field, Form } from '../ui/form.tsx'
import { Action } from './list.tsx'

export type PermissionView = ReturnType<typeof permissionViews>[number]

export interface RolesProps {
  roles: readonly RoleView[]
  permissions: readonly PermissionView[]
  /** Those the visitor holds for all, the only ones that can be given (spec §5, delegation). */
  held: readonly string[]
  canEdit: boolean
}

export const Roles: FC<RolesProps> = (props) => {
  const { roles, canEdit } = props
  return (
    <section class="card" aria-labelledby="roles-title" id="roles">
      <header class="card-head">
        <h2 id="roles-title">Roles</h2>
        <span class="count">{roles.length}</span>
      </header>
      <ul class="roles">
        {roles.map((role) => (
          <RoleRow role={role} {...props} />
        ))}
      </ul>
      {canEdit && (
        <details class="fold fold-card">
          <summary class="button button-plain">New role</summary>
          <RoleForm name="new-role" action="/api/dashboard-roles" submit="Create" {...props} />
        </details>
      )}
    </section>
  )
}

const RoleRow: FC<RolesProps & { role: RoleView }> = ({ role, ...props }) => (
  <li class="role">
    <div class="role-name">
      <strong>{role.name}</strong>
      {role.kind === 'custom' && <span class="tag">custom</span>}
      <p class="muted">{role.description}</p>
    </div>
    <span class="muted">{role.slug === 'guest' ? 'nobody’s' : people(role.usersCount)}</span>
    <details class="role-more">
      <summary class="reveal">
        {role.locked || !props.canEdit ? 'Permissions' : 'Edit'}
        <span class="sr"> of {role.name}</span>
      </summary>
      {role.locked || !props.canEdit ? <GrantList role={role} {...props} /> : <RoleEditor role={role} {...props} />}
    </details>
  </li>
)

const people = (count: number): string => (count === 0 ? 'nobody yet' : count === 1 ? '1 account' : `${count} accounts`)

const GrantList: FC<RolesProps & { role: RoleView }> = ({ role, permissions }) => {
  const scopes = new Map(role.grants.map(({ permission, scope }) => [permission as string, scope]))
  return (
    <ul class="bullets grants">
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

interface RoleFormProps extends RolesProps {
  name: string
  action: string
  method?: 'post' | 'patch'
  submit: string
  role?: RoleView
}

const RoleForm: FC<RoleFormProps> = ({ name, action, method, submit, role, permissions, held }) => (
  <Form name={name} class="stack role-form" action={action} method={method}>
    <div class="row-form">
      <Field label="Name" name="name" value={role?.name} maxlength={64} required />
      <Field label="What it is for" name="description" value={role?.description} maxlength={256} />
    </div>
    <fieldset class="permissions">
      <legend class="field-label">May</legend>
      {permissions.map((view) => (
        <PermissionCheck view={view} role={role} isHeld={held.includes(view.permission)} />
      ))}
    </fieldset>
    <div class="actions">
      <button class="button" type="submit">
        {submit}
      </button>
    </div>
  </Form>
)

interface CheckProps {
  view: PermissionView
  role: RoleView | undefined
  isHeld: boolean
}

const PermissionCheck: FC<CheckProps> = ({ view, role, isHeld }) => {
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
        {view.implies.length > 0 && <span class="hint">Needs {view.implies.join(', ')}.</span>}
        {!isHeld && <span class="hint">You do not hold this yourself.</span>}
      </span>
    </label>
  )
}
