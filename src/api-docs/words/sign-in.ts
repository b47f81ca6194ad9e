/** API descriptions of `/api/dashboard-auth`. */
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
    does: 'Returns the current session: user, permissions and the next sign-in step.',
    answer:
      '`authenticated`, `authMode`, `authMethod`, `user`, `role` (`admin` or `guest`), `permissions`, `stepUp`, `assignableRoleIds`, the next step (`totpRequiredOnLogin`, `totpEnrollmentRequired`, `bootstrapRequired`), the available ways to sign in (`login`, `guestAccessEnabled`, …)',
    cookie: true,
  },
  'POST /api/dashboard-auth/password/setup': {
    does: 'Sets the first password and creates the user `admin`. From other machines, or if there are users already, it needs the bootstrap token. Behind a reverse proxy it needs `users:manage` and a confirmation instead.',
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
    does: 'Signs in. With two-factor, `totpRequiredOnLogin` is true: continue with `/totp/verify`.',
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
    does: 'Changes your password and signs you out of all other browsers.',
    answer: OK,
    account: 'held',
    throws: [...PASSWORD, 'own_account_rate_limited'],
    example: { currentPassword: 'correct horse battery', newPassword: 'staple battery horse' },
  },
  'POST /api/dashboard-auth/password/remove': {
    does: 'Removes the password and the only user. Sluice then works without signing in on its own machine.',
    answer: OK,
    account: 'settled',
    throws: [...PASSWORD, 'other_users_exist'],
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/totp/setup/start': {
    does: 'Returns a new secret for an authenticator app. Nothing is stored yet.',
    answer: '`{secret, otpauthUri, qrSvgDataUri}`',
    account: 'held',
    throws: ['password_management_disabled', 'invalid_totp_setup'],
  },
  'POST /api/dashboard-auth/totp/setup/confirm': {
    does: 'Turns on two-factor with the secret and its first code.',
    answer: '`{status: "ok", recoveryCodes}`: ten codes, shown only here.',
    account: 'held',
    throws: [...TOTP, 'invalid_totp_setup', 'invalid_totp_code'],
    example: { secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', ...CODE_EXAMPLE },
  },
  'POST /api/dashboard-auth/totp/verify': {
    does: 'Completes a sign-in with the second factor: a code from the authenticator app or a recovery code.',
    answer: SESSION,
    account: 'held',
    throws: [...TOTP, 'invalid_totp_code', 'own_account_rate_limited'],
    example: CODE_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/totp/disable': {
    does: 'Turns off two-factor and deletes the recovery codes.',
    answer: '`{status: "ok", stepUpAvailable}`',
    account: 'settled',
    throws: [...TOTP, 'invalid_totp_code'],
    example: CODE_EXAMPLE,
  },
  'POST /api/dashboard-auth/totp/recovery-codes': {
    does: 'Replaces your recovery codes. The previous ones stop working.',
    answer: '`{status: "ok", recoveryCodes}`: ten codes, shown only here.',
    throws: [
      'password_management_disabled',
      'authentication_required',
      'invalid_totp_config',
      'own_account_rate_limited',
    ],
  },
  'POST /api/dashboard-auth/step-up': {
    does: 'Confirms for five minutes that it is you. Send every factor you have: password, and code or recovery code.',
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
  'POST /api/dashboard-auth/logout': { does: 'Signs out of this browser.', answer: OK, cookie: true },
  'POST /api/dashboard-auth/logout-all': {
    does: 'Signs you out of all browsers.',
    answer: OK,
    account: 'held',
  },
  'GET /api/dashboard-auth/me': {
    does: 'Returns your user.',
    answer:
      '`{id, username, displayName, email, role, authMethod, totpConfigured, recoveryCodesLeft, mustChangePassword, version}`',
    account: 'held',
  },
  'PATCH /api/dashboard-auth/me': {
    does: 'Changes your display name and e-mail.',
    answer: 'Your user, as `GET`.',
    account: 'held',
    throws: ['edit_conflict', 'email_taken', 'own_account_rate_limited'],
    example: { displayName: 'Anna' },
  },
  'POST /api/dashboard-auth/guest/login': {
    does: 'Signs in as a guest if guest access is on.',
    answer: SESSION,
    throws: ['guest_access_disabled', 'invalid_credentials', 'guest_password_rate_limited'],
    example: PASSWORD_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/guest/password': {
    does: 'Sets the password that all guests share and signs out all guests.',
    answer: OK,
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/guest/password/remove': {
    does: 'Removes the guest password and signs out all guests. Guests then need no password.',
    answer: OK,
  },
  'POST /api/dashboard-auth/guest/logout-all': { does: 'Signs out all guests.', answer: OK },
  'GET /api/dashboard-auth/invite/:token': {
    does: 'Returns the details of an invite without using it up.',
    answer: '`{roleName, inviterDisplayName, suggestedUsername, usernameLocked, expiresAt}`',
    throws: ['invite_not_found', 'invite_rate_limited'],
  },
  'POST /api/dashboard-auth/invite/accept': {
    does: 'Accepts an invite: sets the password and signs in.',
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
    does: 'Lists your passkeys and says whether passkeys work at this address.',
    answer: '`{items: [Passkey], isAvailable, unavailableReason, availableAt}`',
  },
  'POST /api/dashboard-auth/passkeys/register/start': {
    does: 'Starts registering a passkey.',
    answer: 'Options for `navigator.credentials.create`.',
    throws: ['passkeys_unavailable', 'own_account_rate_limited'],
  },
  'POST /api/dashboard-auth/passkeys/register/finish': {
    does: 'Stores the new passkey.',
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
    does: 'Removes a passkey, unless it is your only way to sign in.',
    status: 204,
    throws: ['not_found', 'credential_required'],
  },
  'POST /api/dashboard-auth/passkeys/sign-in/start': {
    does: 'Starts a sign-in with a passkey.',
    answer: 'Options for `navigator.credentials.get`.',
    throws: PASSKEY_SIGN_IN,
  },
  'POST /api/dashboard-auth/passkeys/sign-in/finish': {
    does: 'Signs in. A passkey counts as all factors.',
    answer: SESSION,
    throws: [...PASSKEY_SIGN_IN, 'invalid_passkey'],
    example: { response: ASSERTION },
    cookie: true,
  },
  'POST /api/dashboard-auth/passkeys/step-up/start': {
    does: 'Starts a confirmation with a passkey.',
    answer: 'Options for `navigator.credentials.get`.',
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
    does: 'Lists the browsers you are signed in with.',
    answer: '`{items: [{id, method, device, address, createdAt, lastSeenAt, expiresAt, isCurrent}]}`',
  },
  'DELETE /api/dashboard-auth/sessions/:id': {
    does: 'Signs you out of one browser, from its next request.',
    status: 204,
    throws: ['not_found'],
  },
  'DELETE /api/dashboard-auth/sessions': { does: 'Signs you out of all other browsers.', answer: '`{ended}`' },
}
