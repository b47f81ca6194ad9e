/** API descriptions of users, roles and sign-in providers. */
import type { Words, WordsByRoute } from './words.ts'

const OK = '`{status: "ok"}`'
const REACHED = ['user_not_found', 'insufficient_delegation'] as const
const ROLE: Words['throws'] = ['role_not_found', 'role_locked', 'insufficient_delegation']

export const PEOPLE_WORDS: WordsByRoute = {
  'GET /api/dashboard-users': { does: 'All users, oldest first.', answer: '`[User]`' },
  'POST /api/dashboard-users': {
    does: 'Invites a user. With `ssoOnly`, creates a user for sign-in by the reverse proxy.',
    answer: '`{user, invite: {token, expiresAt} | null}`: the token is shown only once.',
    status: 201,
    throws: [
      'sso_not_available',
      'role_not_found',
      'role_not_assignable',
      'insufficient_delegation',
      'username_taken',
      'email_taken',
      'identity_taken',
    ],
    example: { username: 'anna', role: 'viewer' },
  },
  'GET /api/dashboard-users/invites': {
    does: 'Open invites. Expired ones are removed.',
    answer: '`[{userId, username, roleId, expiresAt, ssoOnly, createdByUserId}]`',
  },
  'PATCH /api/dashboard-users/:id': {
    does: 'Changes a user. A new role or state ends the user’s sessions.',
    answer: '`User`',
    throws: [
      ...REACHED,
      'edit_conflict',
      'role_not_found',
      'self_modification_forbidden',
      'invite_pending',
      'role_not_assignable',
      'last_admin_protected',
      'credential_required',
      'username_taken',
      'email_taken',
    ],
    example: { status: 'disabled' },
  },
  'DELETE /api/dashboard-users/:id': {
    does: 'Deletes a user. Their keys stay, inactive and without an owner. A user who signs in through the reverse proxy is created again at the next visit: disable the user to prevent that.',
    status: 204,
    throws: [...REACHED, 'self_modification_forbidden', 'last_admin_protected'],
  },
  'POST /api/dashboard-users/:id/invite': {
    does: 'Creates a new invite link, valid for 24 hours. The previous one stops working.',
    answer: '`{token, expiresAt}`: shown only once.',
    throws: [...REACHED, 'invite_not_pending', 'sso_only_invite'],
  },
  'DELETE /api/dashboard-users/:id/invite': {
    does: 'Revokes an invite and deletes the invited user.',
    status: 204,
    throws: [...REACHED, 'invite_not_pending'],
  },
  'POST /api/dashboard-users/:id/reset-totp': {
    does: 'Removes the authenticator of a user who lost it.',
    answer: OK,
    throws: [...REACHED, 'self_modification_forbidden'],
  },
  'POST /api/dashboard-users/:id/revoke-sessions': {
    does: 'Signs the user out everywhere.',
    answer: OK,
    throws: REACHED,
  },
  'POST /api/dashboard-users/:id/reactivate-keys': {
    does: 'Enables exactly the keys that were disabled together with the user.',
    answer: '`{reactivated}`',
    throws: REACHED,
  },
  'GET /api/dashboard-users/:id/sessions': {
    does: 'The sessions of a user.',
    answer: 'The same fields as for your own sessions.',
    throws: ['user_not_found'],
  },
  'DELETE /api/dashboard-users/:id/sessions/:sessionId': {
    does: 'Ends one of these sessions.',
    status: 204,
    throws: [...REACHED, 'not_found'],
  },
  'GET /api/shares': {
    does: 'Shares of the pool’s capacity and how they are used: of every user with `users:manage`, otherwise your own.',
    answer:
      '`{items: [{userId, username, window, share, used, borrowed, lent}]}`: percent of the pool’s capacity. `window`: `five_hour` or `weekly`, counted over the last five hours and seven days. `borrowed`: used beyond the share. `lent`: used by others out of this share.',
  },
  'GET /api/dashboard-roles': {
    does: 'All roles, built-in and custom.',
    answer:
      '`[Role]`: `{id, slug, name, description, kind, locked, assignableToUsers, grants: [{permission, scope}], usersCount, share, version}`',
  },
  'GET /api/dashboard-roles/permissions': {
    does: 'All permissions.',
    answer: '`[{permission, description, implies, ownSupported, privileged}]`',
  },
  'POST /api/dashboard-roles': {
    does: 'Creates a custom role, with no more permissions than you have.',
    answer: '`Role`',
    status: 201,
    throws: ['insufficient_delegation', 'role_taken'],
    example: { name: 'Night shift', grants: [{ permission: 'dashboard:read' }, { permission: 'accounts:read' }] },
  },
  'PATCH /api/dashboard-roles/:id': {
    does: 'Changes a custom role.',
    answer: '`Role`',
    throws: [...ROLE, 'edit_conflict', 'self_modification_forbidden', 'role_taken'],
    example: { name: 'Day shift' },
  },
  'DELETE /api/dashboard-roles/:id': {
    does: 'Deletes a custom role that is not assigned to a user.',
    status: 204,
    throws: [...ROLE, 'role_in_use'],
  },
  'POST /api/dashboard-roles/:id/clone': {
    does: 'Creates a custom role with the permissions of another.',
    answer: '`Role`',
    status: 201,
    throws: ['role_not_found', 'insufficient_delegation', 'role_taken'],
    example: { name: 'Copy' },
  },
  'GET /api/auth-providers': {
    does: 'The sign-in methods, and what happens with new users.',
    answer:
      '`[Provider]`: `{id, kind, label, enabled, active, unknownIdentityRoleId, linkByEmail, idpMfaEnforced, config, …}`',
  },
  'PATCH /api/auth-providers/:id': {
    does: 'Changes what happens when the reverse proxy sends a new user name.',
    answer: '`Provider`',
    throws: ['provider_not_found', 'role_not_found', 'role_not_assignable', 'insufficient_delegation'],
    example: { linkByEmail: true },
  },
}
