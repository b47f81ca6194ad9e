/** The roles: permissions of the built-in ones, and an editor for custom roles. */
import type { FC } from 'hono/jsx'
import type { permissionViews, RoleView } from '../../src/model/users/people-roles-view.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Field, Form } from '../ui/form.tsx'
import { ShareForm } from './shares.tsx'

type PermissionView = ReturnType<typeof permissionViews>[number]

export interface RolesProps {
  roles: readonly RoleView[]
  permissions: readonly PermissionView[]
  /** Permissions the signed-in user holds at scope `all`: only these can be granted (spec §5, delegation). */
  held: readonly string[]
  canEdit: boolean
  /** The role to copy; null or an unknown id: no copy form is open. */
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
          <summary class="button button-plain">Create role</summary>
          <RoleForm name="new-role" action="/api/dashboard-roles" submit="Create role" {...props} />
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
    <span class="muted">{role.slug === 'guest' ? 'not for users' : usersText(role.usersCount)}</span>
    <details class="role-more">
      <summary class="reveal">
        {role.locked || !props.canEdit ? 'Permissions' : 'Edit'}
        <span class="sr"> of {role.name}</span>
      </summary>
      {role.locked || !props.canEdit ? <GrantList role={role} {...props} /> : <RoleEditor role={role} {...props} />}
      {props.canEdit && role.assignableToUsers && (
        <ShareForm
          name={`share-${role.id}`}
          of={role.name}
          action={`/api/dashboard-roles/${role.id}`}
          share={role.share}
          hint="Each user with this role gets this share of the pool’s capacity, unless they have their own. Leave both empty for no share."
        />
      )}
      {role.locked && props.canEdit && (
        <div class="actions actions-below">
          <CloneLink role={role} />
        </div>
      )}
    </details>
  </li>
)

/** A new role with the permissions of another one, as far as the signed-in user holds them. */
const Clone: FC<RolesProps & { original: RoleView }> = ({ original, ...props }) => {
  const grants = original.grants.filter(({ permission }) => props.held.includes(permission))
  const name = `Copy of ${original.name}`.slice(0, MAX_NAME)
  return (
    <details class="fold fold-card" id="clone-role" open>
      <summary class="button button-plain">Copy of {original.name}</summary>
      <RoleForm
        name="clone-role"
        action="/api/dashboard-roles"
        submit="Create role"
        role={{ ...original, name, grants }}
        isFirst
        {...props}
      />
    </details>
  )
}

const usersText = (count: number): string => (count === 0 ? 'no users' : count === 1 ? '1 user' : `${count} users`)

const GrantList: FC<RolesProps & { role: RoleView }> = ({ role, permissions }) => {
  const scopes = new Map(role.grants.map(({ permission, scope }) => [permission as string, scope]))
  return (
    <ul class="bullets">
      {permissions
        .filter(({ permission }) => scopes.has(permission))
        .map(({ permission, description }) => (
          <li>
            {description}
            {scopes.get(permission) === 'own' && ' (only their own)'}
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
        label="Delete role"
        confirm={`Delete the role ${role.name}?`}
        isRisky
      />
    </div>
  </div>
)

const CloneLink: FC<{ role: RoleView }> = ({ role }) => (
  <ButtonLink href={`/settings/access?clone=${role.id}`}>Copy role</ButtonLink>
)

const MAX_NAME = 64

interface RoleFormProps extends RolesProps {
  name: string
  action: string
  method?: 'post' | 'patch'
  submit: string
  role?: RoleView
  /** Whether the page was opened for this form. */
  isFirst?: boolean
}

/** Forms omit unticked boxes: the hidden input sends the empty list. */
const RoleForm: FC<RoleFormProps> = ({ name, action, method, submit, role, permissions, held, isFirst }) => (
  <Form name={name} class="stack role-form" action={action} method={method}>
    {method === 'patch' && <input type="hidden" name="expectedVersion" value={role?.version} />}
    <div class="row-form">
      <Field label="Name" name="name" value={role?.name} maxlength={MAX_NAME} autofocus={isFirst} required />
      <Field label="Description" name="description" value={role?.description} maxlength={256} />
    </div>
    <fieldset class="permissions">
      <legend class="field-label">Permissions</legend>
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
        {view.privileged && <span class="tag">admin level</span>}
        {needs.length > 0 && (
          <span class="hint">Needs {needs.map(({ description }) => `“${description}”`).join(' and ')}.</span>
        )}
        {!isHeld && <span class="hint">You don’t have this permission yourself.</span>}
      </span>
    </label>
  )
}
