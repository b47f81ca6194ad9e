/** The errors a route can return, from its gates, input and description. */

import type { RefusalKind } from '../../views/docs/operation.tsx'
import type { Refusal } from '../../views/docs/text.tsx'
import { CODES, type Code } from '../errors.ts'
import type { AccessRule } from '../http/gates.ts'
import { isModelPath } from '../http/model-path.ts'
import type { RouteRow } from '../http/route-table.ts'
import type { Words } from './words/words.ts'

const NOBODY = [
  'authentication_required',
  'totp_required',
  'bootstrap_required',
  'proxy_auth_required',
  'identity_not_provisioned',
  'account_disabled',
] as const satisfies readonly Code[]

/** Errors shared by many routes because of the same check. */
export const KINDS = {
  session: { title: 'Not signed in', codes: [...NOBODY, 'totp_enrollment_required'] },
  account: { title: 'Not signed in as a user', codes: [...NOBODY, 'user_account_required'] },
  confirmation: { title: 'Not confirmed', codes: ['step_up_required', 'step_up_unavailable'] },
  client: { title: 'No key', codes: ['invalid_api_key', 'ip_forbidden', 'cross_site_request_rejected'] },
  capability: {
    title: 'Restricted pool',
    codes: ['unsupported_required_capability', 'required_capability_transport_unsupported'],
  },
  site: { title: 'Another site', codes: ['cross_site_request_rejected'] },
  body: {
    title: 'Body',
    codes: [
      'validation_error',
      'malformed_json',
      'unsupported_media_type',
      'payload_too_large',
      'invalid_request_error',
    ],
  },
  query: { title: 'Parameters', codes: ['validation_error'] },
  turn: {
    title: 'Failed requests',
    codes: [
      'invalid_request_error',
      'malformed_json',
      'unsupported_encoding',
      'previous_response_not_found',
      'rate_limit_exceeded',
      'share_used_up',
      'usage_limit_reached',
      'account_stream_cap',
      'no_accounts',
      'continuity_owner_unavailable',
      'continuity_owner_conflict',
      'file_owner_unavailable',
      'busy',
      'draining',
      'upstream_error',
      'upstream_unreachable',
      'upstream_timeout',
      'upstream_auth_failed',
      'stream_incomplete',
    ],
  },
} as const satisfies Record<string, { title: string; codes: readonly Code[] }>

export interface Refusals {
  kinds: RefusalKind[]
  /** Errors of this route only, with the status if unusual. */
  own: Refusal[]
  /** All errors, sorted by status. */
  all: Refusal[]
}

/** Leaves out what every route can return: a bad Host or an internal error. */
export const getRefusals = (row: RouteRow, words: Words): Refusals => {
  const kinds = getKinds(row, words)
  const enrollment = words.account === 'settled' ? (['totp_enrollment_required'] as const) : []
  const own = [...gateCodes(row), ...enrollment, ...(words.throws ?? [])].map(withStatus)
  const shared = kinds.flatMap((kind) => KINDS[kind].codes).map(withStatus)
  return { kinds, own: byStatus(own), all: byStatus([...shared, ...own]) }
}

type Pair = readonly [code: Code, status: number]

const withStatus = (code: Code | Pair): Pair => (typeof code === 'string' ? [code, CODES[code][0]] : code)

/** The errors of a kind. */
export const refusalsOfKind = (kind: RefusalKind): Refusal[] => byStatus(KINDS[kind].codes.map(withStatus))

const byStatus = (pairs: readonly Pair[]): Refusal[] =>
  [...Map.groupBy(pairs, ([, status]) => status)]
    .map(([status, some]) => ({ status, codes: [...new Set(some.map(([code]) => code))] }))
    .toSorted((a, b) => a.status - b.status)

const getKinds = (row: RouteRow, words: Words): RefusalKind[] => {
  const reads = (where: 'body' | 'query') => row.inputs.some((input) => input.in === where)
  const kinds: Record<RefusalKind, boolean> = {
    client: row.access.some(({ access }) => access === 'client-key'),
    capability: row.capability === 'refuse',
    session: row.access.some(({ access }) => isForPeople(access)),
    account: words.account !== undefined,
    confirmation: row.access.some(needsConfirmation),
    site: isDashboardChange(row),
    body: reads('body'),
    query: reads('query'),
    turn: words.isTurn === true,
  }
  return (Object.keys(kinds) as RefusalKind[]).filter((kind) => kinds[kind]) // as: Object.keys loses the literal types
}

const isForPeople = (access: AccessRule['access']): boolean => access !== 'client-key' && access !== 'open'

const needsConfirmation = (rule: AccessRule): boolean =>
  ('stepUp' in rule && rule.stepUp === true) || ('sometimes' in rule && rule.sometimes !== undefined)

const isDashboardChange = ({ method, path, access }: RouteRow): boolean =>
  method !== 'GET' && path.startsWith('/api/') && access.every((rule) => rule.access !== 'client-key')

const gateCodes = (row: RouteRow): Code[] => [
  ...row.access.flatMap(accessCodes),
  ...(row.capability === 'local' || row.capability === 'narrow' ? (['unsupported_required_capability'] as const) : []),
  ...(row.isPlanned ? (['not_found'] as const) : []),
]

const accessCodes = (rule: AccessRule): Code[] => {
  switch (rule.access) {
    case 'permission':
      return ['permission_required', ...(rule.account ? (['admin_account_required'] as const) : [])]
    case 'writes':
      return ['read_only_access', 'permission_required']
    case 'signed-in':
      return rule.account ? ['user_account_required'] : []
    default:
      return []
  }
}

/** The error envelope of a path. */
export const getEnvelope = (path: string): 'dashboard' | 'openai' => (isModelPath(path) ? 'openai' : 'dashboard')
