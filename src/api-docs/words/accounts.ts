/** API descriptions of accounts. */
import type { WordsByRoute } from './words.ts'

const UPSTREAM = ['upstream_error', 'upstream_unreachable', 'upstream_timeout'] as const
const FILES = [
  'auth_json',
  '`auth.json` files of the Codex CLI, or ZIP archives of them, up to 32 MiB in total.',
] as const
const IMPORT_FILES = [
  'files',
  'Several files, up to 128 MiB in total: `store.db` and `encryption.key` of codex-lb, or exports of other tools. `passphrase` is a text field for Sluice exports.',
] as const
const BULK_EXAMPLE = { accountIds: ['acc_…'] }
const CONSUME = ['target_reset_credit_changed', 'reset_credit_redeem_in_progress', 'busy', ...UPSTREAM] as const

export const ACCOUNT_WORDS: WordsByRoute = {
  'GET /api/accounts': {
    does: 'All accounts with their state, quota, and whether they can be used now.',
    answer: '`{accounts: [Account]}`',
  },
  'POST /api/accounts/import': {
    does: 'Adds accounts from files, or updates their tokens.',
    answer:
      'For one file `{accountId, email, workspaceId, workspaceLabel, seatType, planType, status, tokensKept}`, `tokensKept` if the stored tokens were kept because the file is not known to be newer. For several files `{accounts, failures: [{file, message}]}`.',
    throws: ['invalid_auth_json', 'invalid_request_error', 'payload_too_large'],
    files: FILES,
  },
  'POST /api/accounts/import/preflight': {
    does: 'Previews an import and keeps the files for 15 minutes.',
    answer: '`{preflightId, expiresAt, generatedAt, files: [{id, file, verdict, reason, isWorthwhile, …}], accounts}`',
    throws: ['invalid_auth_json', 'invalid_request_error', 'payload_too_large'],
    files: FILES,
  },
  'POST /api/accounts/import/preflight/:id': {
    does: 'Imports the selected files of a preview. Works once.',
    answer: 'The preview, with the result in `accounts`.',
    throws: ['import_not_found'],
    example: { files: ['0'] },
  },
  'POST /api/import/preflight': {
    does: 'Plans an import from another tool and keeps the plan in memory for 24 hours. Writes nothing.',
    answer:
      '`{id, expiresAt, generatedAt, sources: [{kind, name, notes}], items: [{id, kind, label, verdict, reason, source, isSelected, canSelect, result}]}`. `kind`: `account`, `key`, `source`, `proxy`, `setting`, `firewall`. `verdict`: `new`, `newer`, `same`, `older`, `broken`.',
    throws: ['invalid_import', 'invalid_request_error', 'payload_too_large'],
    files: IMPORT_FILES,
  },
  'POST /api/import/:id': {
    does: 'Imports items of a plan. Each item is imported once. Settings, firewall addresses and outbound proxies are never part of `all`.',
    answer: 'The plan, with `result: {outcome, reason, accountId}` for each item: `imported`, `joined`, `left_out`.',
    throws: ['import_not_found', 'would_lock_out', 'read_only_access'],
    example: { items: 'all', paused: true },
  },
  'PATCH /api/accounts/:id': {
    does: 'Changes an account.',
    answer: '`{status: "updated"}`',
    throws: ['account_not_found', 'edit_conflict'],
    example: { maxUsedPercentSecondary: 80 },
  },
  'PUT /api/accounts/:id/alias': {
    does: 'Sets the alias of an account.',
    answer: '`{accountId, alias}`',
    throws: ['account_not_found'],
    example: { alias: 'Team' },
  },
  'POST /api/accounts/:id/release': {
    does: 'Lets the conversations of an account continue on other accounts. Its ciphertext is left out there; compacted conversations stay.',
    answer: '`{status: "released", releasedCount}`',
    throws: ['account_not_found'],
  },
  'PUT /api/accounts/:id/limit-warmup': {
    does: 'Sets whether Sluice starts the five-hour windows of an account (settings `windowStart…`).',
    answer: '`{status: "updated", enabled}`',
    throws: ['account_not_found', 'window_start_refused'],
    example: { enabled: true },
  },
  'PUT /api/accounts/:id/routing-policy': {
    does: 'Sets the routing policy of an account.',
    answer: '`{accountId, routingPolicy}`',
    throws: ['account_not_found'],
    example: { routingPolicy: 'preserve' },
  },
  'POST /api/accounts/:id/pause': {
    does: 'Pauses an account.',
    answer: '`{status: "paused"}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'POST /api/accounts/:id/reactivate': {
    does: 'Resumes an account, unless it needs sign-in.',
    answer: '`{status: "reactivated"}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'POST /api/accounts/:id/probe': {
    does: 'Sends one small real request through an account.',
    answer: '`{status, accountId, probeStatusCode, …}` with quota and state before and after.',
    throws: ['account_not_found', 'account_not_probable'],
  },
  'DELETE /api/accounts/:id': {
    does: 'Deletes an account.',
    answer: '`{status: "deleted"}`',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/pause': {
    does: 'Pauses several accounts.',
    answer: '`{status: "paused", changed: [accountId], refused: [{accountId, code, message}]}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
    example: BULK_EXAMPLE,
  },
  'POST /api/accounts/reactivate': {
    does: 'Resumes several accounts.',
    answer: '`{status: "reactivated", changed, refused}`',
    throws: ['account_not_found', 'account_state_transition_invalid'],
    example: BULK_EXAMPLE,
  },
  'POST /api/accounts/routing-policy': {
    does: 'Sets the routing policy of several accounts.',
    answer: '`{status: "updated", changed, refused}`',
    throws: ['account_not_found'],
    example: { ...BULK_EXAMPLE, routingPolicy: 'preserve' },
  },
  'POST /api/accounts/tags': {
    does: 'Adds tags to several accounts, or removes them.',
    answer: '`{status: "updated", changed, refused}`',
    throws: ['account_not_found'],
    example: { ...BULK_EXAMPLE, add: ['team-a'] },
  },
  'POST /api/accounts/probe': {
    does: 'Sends one small real request with each of several accounts.',
    answer: '`{status: "probed", probed: [{accountId, served, probeStatusCode, …}], refused}`',
    throws: ['account_not_found', 'account_not_probable'],
    example: BULK_EXAMPLE,
  },
  'POST /api/accounts/export': {
    does: 'Exports the credentials of several accounts.',
    answer: 'A ZIP archive with one file per account.',
    throws: ['account_not_found', 'account_state_transition_invalid'],
    example: BULK_EXAMPLE,
    type: 'application/zip',
  },
  'POST /api/accounts/delete': {
    does: 'Deletes several accounts.',
    answer: '`{status: "deleted", changed, refused}`',
    throws: ['account_not_found'],
    example: BULK_EXAMPLE,
  },
  'GET /api/accounts/:id/trends': {
    does: 'The last seven days of an account by the hour, as percent left.',
    answer: '`{accountId, primary, secondary, secondaryScheduled}`; gaps are left out.',
    throws: ['account_not_found'],
  },
  'GET /api/accounts/:id/statement': {
    does: 'How an account’s quota was used in a period: by requests through Sluice, by key and model, or elsewhere.',
    answer:
      '`{accountId, window, from, to, firstReadingAt, usedPercent, here: {percent, spread, requests, tokens, costUsd}, elsewherePercent, byKey, byModel, costPerPercentUsd: {value, spread, weeks}, oddities: [{at, kind, text}]}`. `here.spread` says how many percentage points the estimate can be off. `elsewherePercent` is null while requests are running, `byKey` for users who may not list keys. CSV: one line per reading.',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/:id/export/auth': {
    does: 'Exports the credentials of an account for another program.',
    answer: 'All formats, or a file for a browser.',
    throws: ['account_not_found', 'account_state_transition_invalid'],
  },
  'GET /api/accounts/:id/rate-limit-reset-credits': {
    does: 'The reset credits of an account, or null until they are known.',
    answer: '`{availableCount, credits: […], …} | null`',
    throws: ['account_not_found'],
  },
  'POST /api/accounts/:id/rate-limit-reset-credits/consume': {
    does: 'Uses a reset credit.',
    answer: '`{code, windowsReset, redeemedAt}`',
    throws: ['account_not_found', 'account_not_reset_credit_applicable', 'no_available_reset_credit', ...CONSUME],
  },
  'POST /api/oauth/start': {
    does: 'Starts a ChatGPT sign-in, to add an account or sign in to one again.',
    answer:
      '`SignIn`: `{flowId, method, status, errorMessage, authorizationUrl, callbackUrl, callback, verificationUrl, userCode, expiresAt, account, …}`',
    throws: ['account_not_found', 'device_auth_unavailable', 'device_auth_failed', 'upstream_unreachable'],
    example: { forceMethod: 'device' },
  },
  'GET /api/oauth/status': {
    does: 'The state of a sign-in that you started.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
  },
  'POST /api/oauth/complete': {
    does: 'The state of a sign-in, after checking whether its code was entered. Sign-ins also complete automatically.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
  },
  'POST /api/oauth/manual-callback': {
    does: 'Completes a sign-in with the URL where the browser ended, if it could not reach Sluice.',
    answer: '`SignIn`',
    throws: ['invalid_callback', 'oauth_flow_not_found'],
    example: { callbackUrl: 'http://localhost:1455/auth/callback?code=…&state=…' },
  },
  'POST /api/oauth/cancel': {
    does: 'Cancels a sign-in. A finished one is returned unchanged.',
    answer: '`SignIn`',
    throws: ['oauth_flow_not_found'],
    example: { flowId: 'flow_…' },
  },
}
