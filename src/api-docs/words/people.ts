/** API descriptions of users, roles and sign-in providers. */
import type { Words, WordsByRoute } from './words.ts'

const OK = '`{status: "ok"}`'
const REACHED = ['user_not_found', 'insufficient_delegation'] as const
const ROLE: Words['throws'] = ['role_not_found', 'role_locked', 'insufficient_delegation']

export const PEOPLE_WORDS: WordsByRoute = {
  'GET /api/dashboard-users': { does: 'Lists all users, oldest first.', answer: '`[User]`' },
  'POST /api/dashboard-users': {
    does: 'Invites a user. With `ssoOnly`, adds a user who signs in through the reverse proxy.',
    answer: '`{user, invite: {token, expiresAt} | null}`: the token is shown only here.',
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
    does: 'Lists open invites. Expired ones are removed.',
    answer: '`[{userId, username, roleId, expiresAt, ssoOnly, createdByUserId}]`',
  },
  'PATCH /api/dashboard-users/:id': {
    does: 'Changes a user. A new role or status signs them out.',
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
    does: 'Deletes a user. Their keys stay, turned off and without an owner. The reverse proxy recreates its users at their next visit with the role of new users: disable them instead to keep them out.',
    status: 204,
    throws: [...REACHED, 'self_modification_forbidden', 'last_admin_protected'],
  },
  'POST /api/dashboard-users/:id/invite': {
    does: 'Creates a new link, valid for 24 hours. The previous link stops working.',
    answer: '`{token, expiresAt}`, shown only here.',
    throws: [...REACHED, 'invite_not_pending', 'sso_only_invite'],
  },
  'DELETE /api/dashboard-users/:id/invite': {
    does: 'Revokes an invite and deletes the invited user.',
    status: 204,
    throws: [...REACHED, 'invite_not_pending'],
  },
  'POST /api/dashboard-users/:id/reset-totp': {
    does: 'Removes the authenticator and the recovery codes of a user who lost them.',
    answer: OK,
    throws: [...REACHED, 'self_modification_forbidden'],
  },
  'POST /api/dashboard-users/:id/revoke-sessions': {
    does: 'Signs the user out of all browsers.',
    answer: OK,
    throws: REACHED,
  },
  'POST /api/dashboard-users/:id/reactivate-keys': {
    does: 'Turns on exactly the keys that were turned off when the user was disabled.',
    answer: '`{reactivated}`',
    throws: REACHED,
  },
  'GET /api/dashboard-users/:id/sessions': {
    does: 'Lists the browsers the user is signed in with.',
    answer: 'As `GET /api/dashboard-auth/sessions`.',
    throws: ['user_not_found'],
  },
  'DELETE /api/dashboard-users/:id/sessions/:sessionId': {
    does: 'Signs the user out of one browser.',
    status: 204,
    throws: [...REACHED, 'not_found'],
  },
  'GET /api/dashboard-roles': {
    does: 'Lists all roles, built-in and custom.',
    answer:
      '`[Role]`: `{id, slug, name, description, kind, locked, assignableToUsers, grants: [{permission, scope}], usersCount, version}`',
  },
  'GET /api/dashboard-roles/permissions': {
    does: 'Lists all permissions.',
    answer: '`[{permission, description, implies, ownSupported, privileged}]`',
  },
  'POST /api/dashboard-roles': {
    does: 'Creates a custom role. You can grant only permissions you have.',
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
    does: 'Deletes a custom role that no user has.',
    status: 204,
    throws: [...ROLE, 'role_in_use'],
  },
  'POST /api/dashboard-roles/:id/clone': {
    does: 'Creates a custom role with the permissions of another role.',
    answer: '`Role`',
    status: 201,
    throws: ['role_not_found', 'insufficient_delegation', 'role_taken'],
    example: { name: 'Copy' },
  },
  'GET /api/auth-providers': {
    does: 'Lists the ways to sign in and the role of new users.',
    answer:
      '`[Provider]`: `{id, kind, label, enabled, active, unknownIdentityRoleId, linkByEmail, idpMfaEnforced, config, …}`',
  },
  'PATCH /api/auth-providers/:id': {
    does: 'Changes what happens when a new user comes through the reverse proxy.',
    answer: '`Provider`',
    throws: ['provider_not_found', 'role_not_found', 'role_not_assignable', 'insufficient_delegation'],
    example: { linkByEmail: true },
  },
}
