/** API descriptions of pages. Most answer the same values as JSON to clients that do not accept HTML. */
import type { WordsByRoute } from './words.ts'

const SOME_ACCOUNT = { throws: ['account_not_found'] } as const
const SOME_KEY = { throws: ['not_found'] } as const

export const PAGE_WORDS: WordsByRoute = {
  'GET /': { does: 'Redirects to the overview.', status: 302 },
  'GET /dashboard': { does: 'The overview: health, what needs attention, accounts, and figures for a period.' },
  'GET /footer': { does: 'The footer of every page: whether requests are answered, strategy, last usage sync.' },
  'GET /accounts': { does: 'The accounts.' },
  'GET /accounts/:id': { does: 'One account.', ...SOME_ACCOUNT },
  'GET /accounts/simulator': {
    does: 'The routing simulator: which account a request would use now.',
    throws: ['permission_required', 'not_found'],
  },
  'GET /accounts/new': {
    does: 'Add an account by signing in with the browser.',
    throws: ['account_not_found', 'oauth_flow_not_found'],
  },
  'GET /accounts/new/device': {
    does: 'Add an account, or sign in to one again, with a code.',
    throws: ['account_not_found', 'oauth_flow_not_found'],
  },
  'GET /accounts/import': {
    does: 'Import from another tool: the files, and with `plan` the plan or its result.',
    throws: ['import_not_found'],
  },
  'GET /accounts/new/import': { does: 'Add accounts from `auth.json` files.', throws: ['import_not_found'] },
  'GET /key': {
    does: 'The page of a key for its holder: limits, use and last requests.',
    throws: ['not_found', 'ip_forbidden'],
  },
  'GET /keys': { does: 'The keys.' },
  'GET /apis': { does: 'Redirects to the keys.', status: 301 },
  'GET /keys/new': { does: 'Create a key.' },
  'GET /keys/:id': { does: 'One key.', ...SOME_KEY },
  'GET /keys/:id/edit': { does: 'Edit a key.', ...SOME_KEY },
  'GET /logs': { does: 'The request log.', throws: ['permission_required', 'not_found'] },
  'GET /logs/tail': { does: 'New entries for the live log.', throws: ['permission_required'] },
  'GET /logs/export': {
    does: 'The filtered request log as a file, newest first, at most 100,000 rows.',
    throws: ['permission_required'],
  },
  'GET /logs/explain': { does: 'Redirects to the routing simulator.', status: 301 },
  'GET /logs/:id': { does: 'One request.', throws: ['not_found'] },
  'GET /logs/captures': { does: 'Captures, and the form that starts one.', throws: ['permission_required'] },
  'GET /logs/captures/:id': { does: 'The requests of one capture.', throws: ['permission_required', 'not_found'] },
  'GET /logs/:id/captured': {
    does: 'What a capture stored of one request. Each reading is written to the audit log.',
    throws: ['permission_required', 'not_found'],
  },
  'GET /bell': { does: 'The bell at the top of every page, with the active alerts that the user may see.' },
  'GET /settings/alerts': { does: 'Active alerts, channels and messages.', throws: ['permission_required'] },
  'GET /settings/alerts/new': { does: 'Add an alert channel.', throws: ['permission_required'] },
  'GET /settings/alerts/:id': { does: 'One alert channel.', throws: ['permission_required', 'not_found'] },
  'GET /capture-line': { does: 'The line at the top of every page while a capture runs.' },
  'GET /reports': {
    does: 'Usage over a range of days: a chart, and totals by model, key and account.',
    throws: ['permission_required'],
  },
  'GET /reports/strategies': { does: 'Compares routing strategies with the logged requests.', throws: ['busy'] },
  'GET /settings': { does: 'Access and key settings.', leadsOn: true },
  'GET /logs/conversations': { does: 'Conversations by their last request.', throws: ['busy'] },
  'GET /logs/conversations/:hash': { does: 'One conversation and its requests.', throws: ['not_found', 'busy'] },
  'GET /settings/access': { does: 'Users, invites, roles and guests.' },
  'GET /settings/routing': { does: 'Routing settings.' },
  'GET /settings/routing/sessions': { does: 'The account each conversation stays on.' },
  'GET /settings/sources': { does: 'The model sources.' },
  'GET /settings/sources/new': { does: 'Add a model source.' },
  'GET /settings/sources/:id': { does: 'One model source.', throws: ['not_found'] },
  'GET /settings/network': { does: 'The firewall and trusted addresses.' },
  'GET /settings/data': { does: 'Retention, sizes and backups.' },
  'GET /settings/data/sizes': { does: 'The size of each table.', throws: ['busy'] },
  'GET /settings/about': { does: 'Version, environment and licenses.' },
  'GET /settings/search': { does: 'Search all settings.' },
  'GET /search': {
    does: 'The command palette: finds pages, accounts, keys, users, settings, actions, and requests by ID.',
  },
  'GET /audit': { does: 'The audit log.' },
  'GET /doctor/checks': { does: 'The checks your browser runs when you test a key, as HTML.', type: 'text/html' },
  'GET /doctor/stream': {
    does: 'Events that let your browser check if a reverse proxy delays streams.',
    type: 'text/event-stream',
    throws: ['busy'],
  },
  'GET /doctor/socket': {
    does: 'A WebSocket that lets your browser check if a reverse proxy forwards WebSockets.',
    status: 101,
    throws: [['not_found', 426], 'cross_site_request_rejected'],
  },
  'POST /doctor/upload': {
    does:
      'Takes up to 8 MiB, so that your browser can check what a reverse proxy accepts. Nothing is stored. ' +
      '`underscore`: the header `x_sluice_probe` arrived.',
    answer: '`{bytes, underscore}`',
    throws: ['busy', 'payload_too_large', 'cross_site_request_rejected'],
  },
  'GET /docs': { does: 'The user guides.' },
  'GET /docs/api': { does: 'The API reference.' },
  'GET /docs/:guide': { does: 'One guide.', throws: ['not_found'] },
  'GET /login': { does: 'Sign in.', leadsOn: true },
  'GET /totp': { does: 'Enter a two-factor code.', leadsOn: true },
  'GET /setup': { does: 'Set the first password.', leadsOn: true },
  'GET /confirm': { does: 'Confirm that it is you.', leadsOn: true },
  'GET /auth/pending': { does: 'Shown to users of the reverse proxy who have no access yet.', leadsOn: true },
  'GET /invite/:token': { does: 'Accept an invite.', throws: ['invite_not_found', 'invite_rate_limited'] },
  'GET /me': { does: 'My account.', leadsOn: true },
  'GET /me/two-factor': { does: 'Set up two-factor authentication.', account: 'held', leadsOn: true },
  'GET /assets/:file': {
    does: 'Styles and scripts. Their names change with their content, so browsers cache them forever.',
    throws: ['not_found'],
  },
}
