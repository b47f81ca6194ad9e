/** Route descriptions that cannot be derived from code. Text between backticks is code. */
import type { Code } from '../../errors.ts'
import { ACCOUNT_WORDS } from './accounts.ts'
import { ALERT_WORDS } from './alerts.ts'
import { AUTOMATION_WORDS } from './automations.ts'
import { EGRESS_WORDS } from './egress.ts'
import { KEY_WORDS } from './keys.ts'
import { LOG_WORDS } from './logs.ts'
import { MODEL_WORDS } from './models.ts'
import { PAGE_WORDS } from './pages.ts'
import { PEOPLE_WORDS } from './people.ts'
import { SERVICE_WORDS } from './service.ts'
import { SIGN_IN_WORDS } from './sign-in.ts'
import { SOURCE_WORDS } from './sources.ts'

export interface Words {
  /** A sentence. */
  does: string
  /** The successful answer; absent: a page, or nothing. */
  answer?: string
  /** Success status other than 200. */
  status?: 101 | 201 | 202 | 204 | 301 | 302
  /** May redirect a browser with 302. */
  leadsOn?: true
  /** Content type other than JSON, or HTML for a page. */
  type?: string
  /** The handler requires a user itself: `held` also accepts users who must set up two-factor first. */
  account?: 'settled' | 'held'
  /** May use an account and call the upstream, with all possible errors. */
  isTurn?: true
  /** Errors of the handler itself, besides its gates and input checks. */
  throws?: readonly (Code | readonly [code: Code, status: number])[]
  /** Open to everyone, but reads or sets the session cookie. */
  cookie?: true
  /** An example body, where the smallest valid one says too little. */
  example?: Readonly<Record<string, unknown>>
  /** Query parameters without a schema. */
  query?: Readonly<Record<string, string>>
  /** A form with files: the field's name, and what the files are. */
  files?: readonly [field: string, meaning: string]
  /** A document passed on without schema validation. */
  document?: string
}

/** `METHOD /path` as in the route table. Rows with the same handler share one description. */
export type WordsByRoute = Readonly<Record<string, Words>>

export const WORDS: WordsByRoute = {
  ...MODEL_WORDS,
  ...SIGN_IN_WORDS,
  ...PEOPLE_WORDS,
  ...ACCOUNT_WORDS,
  ...KEY_WORDS,
  ...SOURCE_WORDS,
  ...LOG_WORDS,
  ...AUTOMATION_WORDS,
  ...ALERT_WORDS,
  ...SERVICE_WORDS,
  ...EGRESS_WORDS,
  ...PAGE_WORDS,
}

/** Path parameters, by the path up to and including them; the longest match applies. */
export const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  '/docs/:guide':
    '`clients`, `claude-code`, `operating`, `codex-lb`, `alerts`, `reverse-proxies`, `scaling`, `postgresql` or `security`.',
  '/v1/models/:id': 'Name of the model.',
  '/v1/responses/:id': 'ID of the response.',
  '/v1/warmup/:mode': 'Warm-up mode.',
  '/v1/live/:callId': 'ID of the call.',
  '/backend-api/files/:id': 'ID of the file.',
  '/backend-api/codex/:callId': 'ID of the call.',
  '/api/accounts/import/preflight/:id': '`preflightId`.',
  '/api/import/:id': '`id` of the plan.',
  '/api/accounts/:id': '`accountId`.',
  '/api/api-keys/:id': 'ID of the key.',
  '/api/backups/:name': 'Name of the backup.',
  '/api/model-sources/:id': 'ID of the source.',
  '/api/dashboard-auth/invite/:token': 'The last part of the invite link.',
  '/api/dashboard-auth/passkeys/:id': 'ID of the passkey.',
  '/api/dashboard-auth/sessions/:id': 'ID of the session.',
  '/api/dashboard-users/:id': 'ID of the user.',
  '/api/dashboard-users/:id/sessions/:sessionId': 'ID of the session.',
  '/api/dashboard-roles/:id': 'ID of the role.',
  '/api/auth-providers/:id': 'ID of the provider.',
  '/api/quota-planner/decisions/:id': 'ID of the decision.',
  '/api/alerts/:key': 'Key of the alert. Percent-encode it.',
  '/api/alerts/channels/:id': 'ID of the channel.',
  '/settings/alerts/:id': 'ID of the channel.',
  '/api/automations/:id': 'ID of the automation.',
  '/api/automations/runs/:id': 'ID of the run.',
  '/settings/automations/:id': 'ID of the automation.',
  '/settings/automations/runs/:id': 'ID of the run.',
  '/api/settings/upstream-proxy/endpoints/:id': 'ID of the proxy.',
  '/api/settings/upstream-proxy/pools/:id': 'ID of the pool.',
  '/api/settings/upstream-proxy/pools/:id/members/:endpointId': 'ID of the proxy.',
  '/api/settings/upstream-proxy/accounts/:id': '`accountId`.',
  '/api/firewall/ips/:ip': 'The entry. Percent-encode a range: `10.0.0.0%2F8`.',
  '/api/sticky-sessions/:kind': '`conversation` or `ciphertext`.',
  '/api/sticky-sessions/:kind/:key': 'The key as listed.',
  '/api/captures/:id': 'ID of the capture.',
  '/api/conversation-archive/:id': 'ID of the request log entry.',
  '/api/conversations/:hash': '`conversationId`.',
  '/logs/conversations/:hash': '`conversationId`.',
  '/api/request-logs/:id': 'ID of the request log entry.',
  '/assets/:file': 'Name with the hash of the content.',
  '/accounts/:id': '`accountId`.',
  '/keys/:id': 'ID of the key.',
  '/logs/:id': 'ID of the request log entry.',
  '/invite/:token': 'The last part of the invite link.',
}
