/** Words for upstream accounts: adding, looking at, changing and removing them. */
import type { WordsByRoute } from './words.ts'

const UPSTREAM = ['upstream_error', 'upstream_unreachable', 'upstream_timeout'] as const
const FILES = [
  'auth_json',
  '`auth.json` files of the native client, or zip archives of them; 32 MiB together.',
] as const
const BULK_EXAMPLE = { accountIds: ['acc_…'] }
const CONSUME = ['target_reset_credit_changed', 'reset_credit_redeem_in_progress', 'busy', ...UPSTREAM] as const

export const ACCOUNT_WORDS: WordsByRoute = {
  'GET /api/accounts': {
    does: 'Every account with what is known of it, and whether it would be chosen now.',
    answer: '`{accounts: [Account]}`',
  },
  'POST /api/accounts/import': {
    does: 'Adds accounts from files, or renews their tokens.',
    answer:
      'Of one file `{accountId, email, workspaceId, workspaceLabel, seatType, planType, status, tokensKept}`, `tokensKept` when the stored tokens stay, as nothing says that the file’s are newer; of several `{accounts, failures: [{file, message}]}`.',
    throws: ['invalid_auth_json', 'invalid_request_error', 'payload_too_large'],
    files: FILES,
  },
  'POST /api/accounts/import/preflight': {
    does: 'Says what an import of the files would do, and holds them for a quarter of an hour.',
    answer: '`{preflightId, expiresAt, generatedAt, files: [{id, file, verdict, reason, isWorthwhile, …}], accounts}`',
    throws: ['invalid_auth_json', 'invalid_request_error', 'payload_too_large'],
    files: FILES,
  },
  'POST /api/accounts/import/preflight/:id': {
    does: 'Imports the chosen files of a preflight, once.',
    answer: 'The preflight, with what came of it in `accounts`.',
    throws: ['import_not_found'],
    example: { files: ['0'] },
  },
  'PATCH /api/accounts/:id': {
    does: 'Changes what people decide about an account.',
    answer: '`{status: "updated"}`',
    throws: ['account_not_found', 'edit_conflict'],
    example: { securityWorkAuthorized: true },
  },
  'PUT /api/accounts/:id/alias': {
    does: 'Names an account.',
    answer: '`{accountId, alias}`',
    throws: ['account_not_found'],
    example: { alias: 'Team' },
  },
  'PUT /api/accounts/:id/routing-policy': {
    does: 'Says when an account’s turn comes.',
    answer: '`{accountId, routingPolicy}`',
    throws: ['account_not_found'],
    example: { routingPolicy: 'preserve' },
  },
  'POST /api/accounts/:id/pause': {
    does: 'Sets an account aside.',
    answer: '`{status: "paused"}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'POST /api/accounts/:id/reactivate': {
    does: 'Takes an account into use again, unless it has to sign in.',
    answer: '`{status: "reactivated"}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'POST /api/accounts/:id/probe': {
    does: 'Sends one small real turn through an account.',
    answer: '`{status, accountId, probeStatusCode, …}` with used percents and state before and after.',
    throws: ['account_not_found', 'account_not_probable'],
  },
  'DELETE /api/accounts/:id': {
    does: 'Removes an account.',
    answer: '`{status: "deleted"}`',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/pause': {
    does: 'Sets several accounts aside at once.',
    answer: '`{status: "paused", changed: [accountId], refused: [{accountId, code, message}]}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
    example: BULK_EXAMPLE,
  },
  'POST /api/accounts/reactivate': {
    does: 'Takes several accounts into use again.',
    answer: '`{status: "reactivated", changed, refused}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
    example: BULK_EXAMPLE,
  },
  'POST /api/accounts/delete': {
    does: 'Removes several accounts at once.',
    answer: '`{status: "deleted", changed, refused}`',
    throws: ['account_not_found'],
    example: BULK_EXAMPLE,
  },
  'GET /api/accounts/:id/trends': {
    does: 'Seven days of an account, hour by hour, as percent left.',
    answer: '`{accountId, primary, secondary, secondaryScheduled}`; a gap is left out.',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/:id/export/auth': {
    does: 'The credentials of an account for use in another program.',
    answer: 'All formats at once; to a browser the file.',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'GET /api/accounts/:id/rate-limit-reset-credits': {
    does: 'The reset credits of an account; null until the upstream was asked.',
    answer: '`{availableCount, credits: […], …} | null`',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/:id/rate-limit-reset-credits/consume': {
    does: 'Redeems a reset credit.',
    answer: '`{code, windowsReset, redeemedAt}`',
    throws: ['account_not_found', 'account_not_reset_credit_applicable', 'no_available_reset_credit', ...CONSUME],
  },
  'POST /api/oauth/start': {
    does: 'Begins a sign-in at the upstream, to add an account or to sign one in again.',
    answer:
      '`SignIn`: `{flowId, method, status, errorMessage, authorizationUrl, callbackUrl, callback, verificationUrl, userCode, expiresAt, account, …}`',
    throws: ['account_not_found', 'device_auth_unavailable', 'device_auth_failed', 'upstream_unreachable'],
    example: { forceMethod: 'device' },
  },
  'GET /api/oauth/status': {
    does: 'How a sign-in stands that the caller began.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
  },
  'POST /api/oauth/complete': {
    does: 'The same, and makes sure that a device is being asked about. A sign-in completes by itself.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
  },
  'POST /api/oauth/manual-callback': {
    does: 'Takes the address the browser ended on, where it could not reach this service by itself.',
    answer: '`SignIn`',
    throws: ['invalid_callback', 'oauth_flow_not_found'],
    example: { callbackUrl: 'http://localhost:1455/auth/callback?code=…&state=…' },
  },
  'POST /api/oauth/cancel': {
    does: 'Ends a sign-in that waits; one that has ended is told as it stands.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
    example: { flowId: 'flow_…' },
  },
}
