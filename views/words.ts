/** Texts for errors and completed changes on pages. */

interface Problem {
  code: string
  /** The field concerned. */
  field?: string | null
  /** Until the next attempt. */
  waitSeconds?: number | null
}

const PROBLEMS: Readonly<Record<string, string>> = {
  'validation_error:password': 'The password needs at least 8 characters.',
  'validation_error:newPassword': 'The new password needs at least 8 characters.',
  'validation_error:currentPassword': 'Enter your current password.',
  'validation_error:username':
    'Use 1 to 64 letters, digits, dots, dashes or underscores. The name “admin” is reserved.',
  'validation_error:email': 'Enter a valid e-mail address.',
  'validation_error:code': 'Enter the six-digit code or a recovery code.',
  'validation_error:grants': 'Some permissions need others. Check the “Needs” notes below each permission.',
  'validation_error:name': 'Enter a name.',
  'validation_error:allowedModels': 'At least one of these is not a valid model name.',
  'validation_error:enforcedModel': 'The model that is always used must be one of the allowed models.',
  'validation_error:allowedReasoningEfforts':
    'Set either one reasoning effort under Routing or a list under Advanced, not both.',
  'validation_error:assignedAccountIds': 'One of the selected accounts was deleted. Reload the page and select again.',
  'validation_error:ownerUserId': 'The owner must be an active user.',
  'validation_error:limits': 'Two limits have the same unit, period and model. Remove one of them.',
  'validation_error:amount': 'Enter an amount for the limit, or turn on Unlimited.',
  'validation_error:singleAccountId': 'The strategy “Single account” needs an account: choose one.',
  'validation_error:isActive': 'The owner of this key is disabled. Enable the owner first.',
  'validation_error:timeZone': 'There is no such time zone. Use a name like Europe/Berlin, or leave it empty.',
  username_required: 'Enter your user name too. This Sluice has several users.',
  invalid_bootstrap_token: 'This bootstrap token is wrong or was already used.',
  bootstrap_required: 'You need the bootstrap token to set the first password from another machine.',
  invalid_credentials: 'Wrong user name or password.',
  invalid_totp_code: 'This code is wrong or was already used. Wait for the next code and try again.',
  invite_not_found: 'Invite links work once and expire after 24 hours. Ask the person who invited you for a new one.',
  proxy_auth_required:
    'Sluice signs you in through a reverse proxy, but this request came without a user name. Open Sluice at the address of the proxy.',
  step_up_unavailable: 'This change needs a confirmation. Set up two-factor authentication under My account first.',
  step_up_required: 'Confirm it’s you, then submit the form again.',
  other_users_exist: 'You can remove the password only while you are the only user and there are no open invites.',
  last_admin_protected: 'You need at least one active administrator. Make another user Admin first.',
  invalid_totp_config: 'Set up your own two-factor authentication first, then require it from others.',
}

/** One or two sentences; null for an unknown code. `fallback` is the error's own message. */
export const problemText = ({ code, field, waitSeconds }: Problem, fallback: string | null): string | null => {
  const tooMany = code === 'own_account_rate_limited' ? 'changes to your account' : 'attempts'
  if (code.endsWith('_rate_limited')) return `Too many ${tooMany}. Try again in ${waitSeconds ?? 60} seconds.`
  return PROBLEMS[`${code}:${field}`] ?? PROBLEMS[code] ?? fallback
}

/** The error of one form field. `message` is the schema's. */
export const fieldText = (name: string, message: string): string =>
  PROBLEMS[`validation_error:${name}`] ?? `${fieldName(name)}: ${message.replace(/\.?$/, '.')}`

/** "Limits 1 max value" for `limits.0.maxValue`. */
const fieldName = (name: string): string => {
  const words = name.split('.').map((part) => (/^\d+$/.test(part) ? String(Number(part) + 1) : spaced(part)))
  const text = words.join(' ').trim()
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The words of a name in camelCase or snake_case. */
const spaced = (name: string): string =>
  name.replaceAll('_', ' ').replace(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)

const DONE: Readonly<Record<string, string>> = {
  password_changed: 'Password changed. Your other browsers were signed out.',
  password_removed: 'Password removed. Two-factor requirements were turned off.',
  totp_enabled: 'Two-factor authentication is on.',
  totp_disabled: 'Two-factor authentication is off.',
  passkey_added: 'Passkey added.',
  passkey_renamed: 'Passkey renamed.',
  passkey_removed: 'Passkey removed.',
  clock_saved: 'Time settings saved for this browser.',
  profile_updated: 'Profile saved.',
  session_ended: 'That browser was signed out.',
  sessions_ended: 'Your other browsers were signed out.',
  settings_updated: 'Settings saved.',
  alert_channel_created: 'Channel added. Send a test to see whether it works.',
  alert_channel_updated: 'Channel saved.',
  alert_channel_deleted: 'Channel deleted.',
  alert_channel_tested: 'Test sent. Check that it arrived.',
  alert_acknowledged: 'Alert acknowledged. It is silent until it is resolved.',
  automation_created: 'Automation created.',
  automation_updated: 'Automation saved.',
  automation_deleted: 'Automation deleted.',
  firewall_entry_added: 'Address added to the firewall.',
  firewall_entry_removed: 'Address removed from the firewall.',
  model_source_created: 'Source added. Test it, then add the models it should offer.',
  model_source_updated: 'Source saved.',
  model_source_deleted: 'Source deleted. Its requests stay in the log.',
  model_source_tested: 'The source works.',
  proxy_endpoint_created: 'Proxy added. Put it into a pool to use it.',
  proxy_endpoint_updated: 'Proxy saved.',
  proxy_endpoint_deleted: 'Proxy deleted.',
  proxy_endpoint_tested: 'Test finished. The result is shown with the proxy.',
  proxy_pool_created: 'Pool created.',
  proxy_pool_updated: 'Pool saved.',
  proxy_pool_deleted: 'Pool deleted.',
  proxy_pool_member_added: 'Proxy added to the pool.',
  proxy_pool_member_updated: 'Pool saved.',
  proxy_pool_member_removed: 'Proxy removed from the pool.',
  account_egress_changed: 'Outbound proxy changed. New connections use it.',
  backup_created: 'Backup created.',
  capture_started: 'Capture started.',
  capture_ended: 'Capture stopped.',
  captured_request_deleted: 'Captured request deleted.',
  captured_requests_deleted: 'Capture deleted, with everything it held.',
  guest_password_set: 'Guest password set. Guests must sign in again.',
  guest_password_removed: 'Guest password removed.',
  guest_sessions_revoked: 'All guests were signed out.',
  invite_revoked: 'Invite revoked.',
  user_updated: 'User saved.',
  user_disabled: 'The user was disabled, signed out everywhere, and their keys stopped working.',
  user_enabled: 'The user was enabled. Their keys stay off until you turn them on.',
  user_deleted: 'User deleted. Their keys are kept, but are inactive and have no owner.',
  user_totp_reset: 'Two-factor authentication and recovery codes of the user were removed.',
  user_sessions_revoked: 'The user was signed out of all browsers.',
  user_keys_reactivated: 'The keys that were turned off with the user are on again.',
  role_created: 'Role created.',
  role_updated: 'Role saved.',
  role_deleted: 'Role deleted.',
  provider_updated: 'Sign-in provider saved.',
  account_paused: 'Account paused. Running requests will finish; new ones use other accounts.',
  account_reactivated: 'Account resumed.',
  account_updated: 'Account saved.',
  account_deleted: 'Account deleted.',
  account_released: 'Conversations released. Their next requests can use any account.',
  quota_planner_canceled: 'The start was canceled.',
  quota_planner_started: 'Done. The list of starts shows the result.',
  sticky_sessions_deleted: 'Sessions deleted. Their next requests can use any account.',
  accounts_paused: 'Accounts paused.',
  accounts_paused_partly: 'Some accounts were paused. The others need sign-in or are deactivated.',
  accounts_reactivated: 'Accounts resumed.',
  accounts_reactivated_partly: 'Some accounts were resumed. The others need sign-in.',
  accounts_tagged: 'Tags changed.',
  accounts_tagged_partly:
    'The tags of some accounts were changed. The others no longer exist, or would have more than 20.',
  accounts_updated: 'Routing policy changed.',
  accounts_updated_partly: 'The routing policy of some accounts was changed. The others no longer exist.',
  accounts_probed: 'ChatGPT served all probes.',
  accounts_probed_partly: 'Some probes failed. Open those accounts to see why.',
  accounts_deleted: 'Accounts deleted.',
  accounts_deleted_partly: 'Some accounts were deleted. The others no longer exist.',
  reset_credit_redeemed: 'Reset credit used. The limits of the account have been reset.',
  reset_credit_not_needed: 'Nothing was reset. The limits were already reset, or the credit was already used.',
  api_key_updated: 'The key was saved.',
  api_key_deleted: 'The key was deleted. Its requests stay in the log.',
  signed_out: 'You are signed out.',
  signed_out_everywhere: 'You are signed out of all browsers.',
}

const UNDONE: Readonly<Record<string, string>> = {
  alert_channel_failed: 'The test could not be sent. The reason is shown below.',
  sticky_sessions_deleted_none: 'No session was deleted. They expired or were deleted already.',
  accounts_paused_none: 'No account was paused. They need sign-in or are deactivated.',
  accounts_reactivated_none: 'No account was resumed. They need sign-in.',
  accounts_tagged_none: 'No tags were changed. The accounts no longer exist, or would have more than 20.',
  accounts_updated_none: 'No routing policy was changed. The accounts no longer exist.',
  accounts_probed_none: 'All probes failed. Open the accounts to see why.',
  model_source_failed: 'The test failed. The reason is below.',
  accounts_deleted_none: 'No account was deleted. They no longer exist.',
}

/** The text for `?done=…` when nothing changed; null otherwise. */
export const undoneText = (name: string | undefined): string | null =>
  name !== undefined && Object.hasOwn(UNDONE, name) ? (UNDONE[name] ?? null) : null

/** The text for `?done=…`; null otherwise. */
export const doneText = (name: string | undefined): string | null =>
  name !== undefined && Object.hasOwn(DONE, name) ? (DONE[name] ?? null) : null
