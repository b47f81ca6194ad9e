/** Words for `/api/dashboard-auth`. */
import type { Words, WordsByRoute } from './words.ts'

const OK = '`{status: "ok"}`'
const SESSION = 'The session, as `GET /api/dashboard-auth/session`.'
const PASSWORD: Words['throws'] = [
  'password_management_disabled',
  'password_not_configured',
  'invalid_credentials',
  'password_rate_limited',
]
const TOTP: Words['throws'] = ['password_management_disabled', 'totp_rate_limited']
const ASSERTION = {
  id: '…',
  rawId: '…',
  type: 'public-key',
  response: { clientDataJSON: '…', authenticatorData: '…', signature: '…' },
}
const ATTESTATION = {
  id: '…',
  rawId: '…',
  type: 'public-key',
  response: { clientDataJSON: '…', attestationObject: '…' },
}
const PASSWORD_EXAMPLE = { password: 'correct horse battery' }
const CODE_EXAMPLE = { code: '123456' }
const PASSKEY_SIGN_IN: Words['throws'] = [
  'password_management_disabled',
  'passkeys_unavailable',
  'password_rate_limited',
]

export const SIGN_IN_WORDS: WordsByRoute = {
  'GET /api/dashboard-auth/session': {
    does: 'Says who asks, what they may do, and what is still to come.',
    answer:
      '`authenticated`, `authMode`, `authMethod`, `user`, `role` (`admin` or `guest`), `permissions`, `stepUp`, `assignableRoleIds`, what is still to come (`totpRequiredOnLogin`, `totpEnrollmentRequired`, `bootstrapRequired`), what there is (`login`, `guestAccessEnabled`, …)',
    cookie: true,
  },
  'POST /api/dashboard-auth/password/setup': {
    does: 'Sets the first password and makes the account `admin`. Needs the bootstrap token from other machines, and once anybody has an account; behind a proxy `users:manage` and a confirmation instead.',
    answer: SESSION,
    throws: [
      'password_management_disabled',
      'password_already_configured',
      'bootstrap_required',
      'bootstrap_unavailable',
      'invalid_bootstrap_token',
      'password_rate_limited',
      'authentication_required',
      'proxy_auth_required',
      'permission_required',
      'user_account_required',
      'insufficient_delegation',
      'step_up_required',
      'step_up_unavailable',
    ],
    example: PASSWORD_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/password/login': {
    does: 'Signs in. With two-factor `totpRequiredOnLogin` is true and only `/totp/verify` goes on.',
    answer: SESSION,
    throws: [
      'password_management_disabled',
      'password_not_configured',
      'username_required',
      'invalid_credentials',
      'password_rate_limited',
    ],
    example: { username: 'admin', ...PASSWORD_EXAMPLE },
    cookie: true,
  },
  'POST /api/dashboard-auth/password/change': {
    does: 'Changes one’s own password; every other browser is signed out.',
    answer: OK,
    account: 'held',
    throws: [...PASSWORD, 'own_account_rate_limited'],
    example: { currentPassword: 'correct horse battery', newPassword: 'staple battery horse' },
  },
  'POST /api/dashboard-auth/password/remove': {
    does: 'Back to an install without a password: the only account goes.',
    answer: OK,
    account: 'settled',
    throws: [...PASSWORD, 'other_users_exist'],
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/totp/setup/start': {
    does: 'Offers a secret for an authenticator; nothing is stored.',
    answer: '`{secret, otpauthUri, qrSvgDataUri}`',
    account: 'held',
    throws: ['password_management_disabled', 'invalid_totp_setup'],
  },
  'POST /api/dashboard-auth/totp/setup/confirm': {
    does: 'Takes the offered secret into use, with its first code.',
    answer: OK,
    account: 'held',
    throws: [...TOTP, 'invalid_totp_setup', 'invalid_totp_code'],
    example: { secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', ...CODE_EXAMPLE },
  },
  'POST /api/dashboard-auth/totp/verify': {
    does: 'The second factor of a sign-in that waits for it.',
    answer: SESSION,
    account: 'held',
    throws: [...TOTP, 'invalid_totp_code', 'own_account_rate_limited'],
    example: CODE_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/totp/disable': {
    does: 'Does without the authenticator again.',
    answer: '`{status: "ok", stepUpAvailable}`',
    account: 'settled',
    throws: [...TOTP, 'invalid_totp_code'],
    example: CODE_EXAMPLE,
  },
  'POST /api/dashboard-auth/step-up': {
    does: 'Confirms for five minutes that it is you, with all of the two that the account holds.',
    answer: '`{verifiedAt, expiresAt}`',
    account: 'settled',
    throws: [
      'step_up_unavailable',
      'step_up_required',
      'invalid_credentials',
      'step_up_rate_limited',
      'own_account_rate_limited',
    ],
    example: PASSWORD_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/logout': { does: 'Signs this browser out.', answer: OK, cookie: true },
  'POST /api/dashboard-auth/logout-all': {
    does: 'Signs every browser of the account out.',
    answer: OK,
    account: 'held',
  },
  'GET /api/dashboard-auth/me': {
    does: 'The account that asks.',
    answer: '`{id, username, displayName, email, role, authMethod, totpConfigured, mustChangePassword, version}`',
    account: 'held',
  },
  'PATCH /api/dashboard-auth/me': {
    does: 'Changes one’s own name and address.',
    answer: 'The account, as `GET`.',
    account: 'held',
    throws: ['edit_conflict', 'email_taken', 'own_account_rate_limited'],
    example: { displayName: 'Anna' },
  },
  'POST /api/dashboard-auth/guest/login': {
    does: 'Comes in as a guest, where guests are let in.',
    answer: SESSION,
    throws: ['guest_access_disabled', 'invalid_credentials', 'guest_password_rate_limited'],
    example: PASSWORD_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/guest/password': {
    does: 'Sets the password all guests share; every guest is signed out.',
    answer: OK,
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/guest/password/remove': {
    does: 'From now on guests come in without a password; every guest is signed out.',
    answer: OK,
  },
  'POST /api/dashboard-auth/guest/logout-all': { does: 'Signs every guest out.', answer: OK },
  'GET /api/dashboard-auth/invite/:token': {
    does: 'What an invite offers. Looking does not use it up.',
    answer: '`{roleName, inviterDisplayName, suggestedUsername, usernameLocked, expiresAt}`',
    throws: ['invite_not_found', 'invite_rate_limited'],
  },
  'POST /api/dashboard-auth/invite/accept': {
    does: 'Takes an invite: sets the password and signs in.',
    answer: SESSION,
    throws: [
      'password_management_disabled',
      'already_signed_in',
      'invite_not_found',
      'invite_rate_limited',
      'username_locked',
      'username_taken',
    ],
    example: { token: '…', ...PASSWORD_EXAMPLE },
    cookie: true,
  },
  'GET /api/dashboard-auth/passkeys': {
    does: 'One’s own passkeys, and whether they can be used under this address.',
    answer: '`{items: [Passkey], isAvailable, unavailableReason, availableAt}`',
  },
  'POST /api/dashboard-auth/passkeys/register/start': {
    does: 'Begins to register a passkey.',
    answer: 'What `navigator.credentials.create` takes.',
    throws: ['passkeys_unavailable', 'own_account_rate_limited'],
  },
  'POST /api/dashboard-auth/passkeys/register/finish': {
    does: 'Keeps the passkey that was made.',
    answer: '`Passkey`',
    status: 201,
    throws: ['passkeys_unavailable', 'invalid_passkey', 'own_account_rate_limited'],
    example: { name: 'Phone', response: ATTESTATION },
  },
  'PATCH /api/dashboard-auth/passkeys/:id': {
    does: 'Renames a passkey.',
    answer: '`Passkey`',
    throws: ['not_found', 'own_account_rate_limited'],
    example: { name: 'Phone' },
  },
  'DELETE /api/dashboard-auth/passkeys/:id': {
    does: 'Removes a passkey, unless it is the only way in that is left.',
    status: 204,
    throws: ['not_found', 'credential_required'],
  },
  'POST /api/dashboard-auth/passkeys/sign-in/start': {
    does: 'Begins a sign-in with whichever passkey is picked.',
    answer: 'What `navigator.credentials.get` takes.',
    throws: PASSKEY_SIGN_IN,
  },
  'POST /api/dashboard-auth/passkeys/sign-in/finish': {
    does: 'Signs in; every factor counts as shown.',
    answer: SESSION,
    throws: [...PASSKEY_SIGN_IN, 'invalid_passkey'],
    example: { response: ASSERTION },
    cookie: true,
  },
  'POST /api/dashboard-auth/passkeys/step-up/start': {
    does: 'Begins a confirmation with one of one’s own passkeys.',
    answer: 'What `navigator.credentials.get` takes.',
    throws: ['passkeys_unavailable', 'step_up_unavailable', 'own_account_rate_limited'],
  },
  'POST /api/dashboard-auth/passkeys/step-up/finish': {
    does: 'Confirms for five minutes that it is you.',
    answer: '`{verifiedAt, expiresAt}`',
    throws: ['passkeys_unavailable', 'invalid_passkey', 'step_up_rate_limited', 'own_account_rate_limited'],
    example: { response: ASSERTION },
    cookie: true,
  },
  'GET /api/dashboard-auth/sessions': {
    does: 'The browsers one is signed in with.',
    answer: '`{items: [{id, method, device, address, createdAt, lastSeenAt, expiresAt, isCurrent}]}`',
  },
  'DELETE /api/dashboard-auth/sessions/:id': {
    does: 'Signs one of them out, from its next request on.',
    status: 204,
    throws: ['not_found'],
  },
  'DELETE /api/dashboard-auth/sessions': { does: 'Signs out every browser but this one.', answer: '`{ended}`' },
}
