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
    does: 'Your session: who you are, your permissions, and the sign-in steps that are left.',
    answer:
      '`authenticated`, `authMode`, `authMethod`, `user`, `role` (`admin` or `guest`), `permissions`, `stepUp`, `assignableRoleIds`, sign-in steps that are left (`totpRequiredOnLogin`, `totpEnrollmentRequired`, `bootstrapRequired`), what is available (`login`, `guestAccessEnabled`, …)',
    cookie: true,
  },
  'POST /api/dashboard-auth/password/setup': {
    does: 'Sets the first password and creates the user `admin`. From other machines, or if users exist, it needs the bootstrap token. Behind a sign-in proxy it needs `users:manage` and a confirmation instead.',
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
    does: 'Signs in. With two-factor authentication, `totpRequiredOnLogin` is true and `/totp/verify` is the next step.',
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
    does: 'Changes your password and signs out your other browsers.',
    answer: OK,
    account: 'held',
    throws: [...PASSWORD, 'own_account_rate_limited'],
    example: { currentPassword: 'correct horse battery', newPassword: 'staple battery horse' },
  },
  'POST /api/dashboard-auth/password/remove': {
    does: 'Removes the password and deletes the only user.',
    answer: OK,
    account: 'settled',
    throws: [...PASSWORD, 'other_users_exist'],
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/totp/setup/start': {
    does: 'Returns a secret for an authenticator app. Nothing is stored yet.',
    answer: '`{secret, otpauthUri, qrSvgDataUri}`',
    account: 'held',
    throws: ['password_management_disabled', 'invalid_totp_setup'],
  },
  'POST /api/dashboard-auth/totp/setup/confirm': {
    does: 'Turns on two-factor authentication with the first code of the secret.',
    answer: OK,
    account: 'held',
    throws: [...TOTP, 'invalid_totp_setup', 'invalid_totp_code'],
    example: { secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', ...CODE_EXAMPLE },
  },
  'POST /api/dashboard-auth/totp/verify': {
    does: 'Completes a sign-in with a code.',
    answer: SESSION,
    account: 'held',
    throws: [...TOTP, 'invalid_totp_code', 'own_account_rate_limited'],
    example: CODE_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/totp/disable': {
    does: 'Turns off two-factor authentication.',
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
    does: 'Confirms that it is you, with your password and second factor. Lasts five minutes.',
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
    does: 'Signs the user out everywhere.',
    answer: OK,
    account: 'held',
  },
  'GET /api/dashboard-auth/me': {
    does: 'Your user.',
    answer: '`{id, username, displayName, email, role, authMethod, totpConfigured, mustChangePassword, version}`',
    account: 'held',
  },
  'PATCH /api/dashboard-auth/me': {
    does: 'Changes your name and e-mail address.',
    answer: 'Your user, as with `GET`.',
    account: 'held',
    throws: ['edit_conflict', 'email_taken', 'own_account_rate_limited'],
    example: { displayName: 'Anna' },
  },
  'POST /api/dashboard-auth/clock': {
    does: 'Sets the time zone and the 12- or 24-hour clock for pages in this browser. The API always uses UTC.',
    answer: '`{timeZone, hours}`',
    example: { timeZone: 'America/New_York', hours: '12' },
    cookie: true,
  },
  'POST /api/dashboard-auth/guest/login': {
    does: 'Signs in as a guest, if guests are allowed.',
    answer: SESSION,
    throws: ['guest_access_disabled', 'invalid_credentials', 'guest_password_rate_limited'],
    example: PASSWORD_EXAMPLE,
    cookie: true,
  },
  'POST /api/dashboard-auth/guest/password': {
    does: 'Sets the guest password and signs all guests out.',
    answer: OK,
    example: PASSWORD_EXAMPLE,
  },
  'POST /api/dashboard-auth/guest/password/remove': {
    does: 'Removes the guest password and signs all guests out.',
    answer: OK,
  },
  'POST /api/dashboard-auth/guest/logout-all': { does: 'Signs all guests out.', answer: OK },
  'GET /api/dashboard-auth/invite/:token': {
    does: 'Shows an invite without using it.',
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
    does: 'Your passkeys, and whether passkeys work at this address.',
    answer: '`{items: [Passkey], isAvailable, unavailableReason, availableAt}`',
  },
  'POST /api/dashboard-auth/passkeys/register/start': {
    does: 'Starts passkey registration.',
    answer: 'What `navigator.credentials.create` takes.',
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
    does: 'Deletes a passkey, unless it is your only way to sign in.',
    status: 204,
    throws: ['not_found', 'credential_required'],
  },
  'POST /api/dashboard-auth/passkeys/sign-in/start': {
    does: 'Starts a sign-in with a passkey.',
    answer: 'What `navigator.credentials.get` takes.',
    throws: PASSKEY_SIGN_IN,
  },
  'POST /api/dashboard-auth/passkeys/sign-in/finish': {
    does: 'Signs in with a passkey. It counts as both factors.',
    answer: SESSION,
    throws: [...PASSKEY_SIGN_IN, 'invalid_passkey'],
    example: { response: ASSERTION },
    cookie: true,
  },
  'POST /api/dashboard-auth/passkeys/step-up/start': {
    does: 'Starts a confirmation with one of your passkeys.',
    answer: 'What `navigator.credentials.get` takes.',
    throws: ['passkeys_unavailable', 'step_up_unavailable', 'own_account_rate_limited'],
  },
  'POST /api/dashboard-auth/passkeys/step-up/finish': {
    does: 'Confirms that it is you. Lasts five minutes.',
    answer: '`{verifiedAt, expiresAt}`',
    throws: ['passkeys_unavailable', 'invalid_passkey', 'step_up_rate_limited', 'own_account_rate_limited'],
    example: { response: ASSERTION },
    cookie: true,
  },
  'GET /api/dashboard-auth/sessions': {
    does: 'Your sessions.',
    answer: '`{items: [{id, method, device, address, createdAt, lastSeenAt, expiresAt, isCurrent}]}`',
  },
  'DELETE /api/dashboard-auth/sessions/:id': {
    does: 'Ends one of your sessions from its next request on.',
    status: 204,
    throws: ['not_found'],
  },
  'DELETE /api/dashboard-auth/sessions': { does: 'Signs out all your other browsers.', answer: '`{ended}`' },
}
