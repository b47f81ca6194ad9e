/** Words for people, roles and the ways to sign in. */
import type { Words, WordsByRoute } from './words.ts'

const OK = '`{status: "ok"}`'
const REACHED = ['user_not_found', 'insufficient_delegation'] as const
const ROLE: Words['throws'] = ['role_not_found', 'role_locked', 'insufficient_delegation']

export const PEOPLE_WORDS: WordsByRoute = {
  'GET /api/dashboard-users': { does: 'Everybody who has an account, the oldest first.', answer: '`[User]`' },
  'POST /api/dashboard-users': {
    does: 'Invites somebody, or with `ssoOnly` keeps a place for an identity of the proxy.',
    answer: '`{user, invite: {token, expiresAt} | null}`: the token is shown here only.',
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
    does: 'Invites that were not taken yet; those whose day is over go.',
    answer: '`[{userId, username, roleId, expiresAt, ssoOnly, createdByUserId}]`',
  },
  'PATCH /api/dashboard-users/:id': {
    does: 'Changes an account; another role or state ends its sessions.',
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
    does: 'Deletes a user. Their keys stay, inactive and without an owner. A user whom the reverse proxy signs in is created again at the next visit, with the role for new identities: disable them to keep them out.',
    status: 204,
    throws: [...REACHED, 'self_modification_forbidden', 'last_admin_protected'],
  },
  'POST /api/dashboard-users/:id/invite': {
    does: 'Makes a new link for another day; the one before is dead.',
    answer: '`{token, expiresAt}`: shown here only.',
    throws: [...REACHED, 'invite_not_pending', 'sso_only_invite'],
  },
  'DELETE /api/dashboard-users/:id/invite': {
    does: 'Takes an invite back; the invited account goes with it.',
    status: 204,
    throws: [...REACHED, 'invite_not_pending'],
  },
  'POST /api/dashboard-users/:id/reset-totp': {
    does: 'Removes the authenticator of somebody who lost it.',
    answer: OK,
    throws: [...REACHED, 'self_modification_forbidden'],
  },
  'POST /api/dashboard-users/:id/revoke-sessions': {
    does: 'Signs every browser of the account out.',
    answer: OK,
    throws: REACHED,
  },
  'POST /api/dashboard-users/:id/reactivate-keys': {
    does: 'Switches on exactly the keys that went off when the account was disabled.',
    answer: '`{reactivated}`',
    throws: REACHED,
  },
  'GET /api/dashboard-users/:id/sessions': {
    does: 'The browsers somebody is signed in with.',
    answer: 'As one’s own.',
    throws: ['user_not_found'],
  },
  'DELETE /api/dashboard-users/:id/sessions/:sessionId': {
    does: 'Signs one of them out.',
    status: 204,
    throws: [...REACHED, 'not_found'],
  },
  'GET /api/dashboard-roles': {
    does: 'All roles, built in and custom.',
    answer:
      '`[Role]`: `{id, slug, name, description, kind, locked, assignableToUsers, grants: [{permission, scope}], usersCount, version}`',
  },
  'GET /api/dashboard-roles/permissions': {
    does: 'The vocabulary of permissions.',
    answer: '`[{permission, description, implies, ownSupported, privileged}]`',
  },
  'POST /api/dashboard-roles': {
    does: 'Makes a custom role, with no more than the caller holds.',
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
    does: 'Deletes a custom role that nobody holds.',
    status: 204,
    throws: [...ROLE, 'role_in_use'],
  },
  'POST /api/dashboard-roles/:id/clone': {
    does: 'Makes a custom role with the grants of another.',
    answer: '`Role`',
    status: 201,
    throws: ['role_not_found', 'insufficient_delegation', 'role_taken'],
    example: { name: 'Copy' },
  },
  'GET /api/auth-providers': {
    does: 'The ways to sign in, and what becomes of newcomers.',
    answer:
      '`[Provider]`: `{id, kind, label, enabled, active, unknownIdentityRoleId, linkByEmail, idpMfaEnforced, config, …}`',
  },
  'PATCH /api/auth-providers/:id': {
    does: 'Changes what becomes of people the proxy announces first.',
    answer: '`Provider`',
    throws: ['provider_not_found', 'role_not_found', 'role_not_assignable', 'insufficient_delegation'],
    example: { linkByEmail: true },
  },
}
