/** The query parameters of the request log. */
import { z } from 'zod'
import { REQUEST_KINDS } from '../../../db/schema/requests.ts'
import { filled, oneOrMany } from '../form-query.ts'

/** How a request ended: `rate_limit` and `quota` are errors with certain codes. */
export const LOG_STATUSES = ['ok', 'cancelled', 'rate_limit', 'quota', 'error'] as const
export type LogStatus = (typeof LOG_STATUSES)[number]

/** ISO 8601, UTC without a zone. */
export const Moment = z.iso
  .datetime({ offset: true, local: true })
  .transform((text) => Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`))

const SEPARATOR = ':::'

const ModelOption = z.string().transform((text) => {
  const [model = '', effort = ''] = text.split(SEPARATOR)
  return { model, reasoningEffort: effort === '' ? null : effort }
})

/** A position in the log, opaque to clients. */
export const Cursor = z.string().transform((text, context) => {
  const [, startedAt, id] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (startedAt !== undefined && id !== undefined) return { startedAt: Number(startedAt), id }
  context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
  return z.NEVER
})
export type Cursor = z.output<typeof Cursor>

export const getCursor = ({ startedAt, id }: Cursor): string => Buffer.from(`${startedAt}.${id}`).toString('base64url')

/** Filters shared by the list and its options. */
export const LogFilters = z.object({
  conversation_id: filled(z.string().max(200)).describe('The hash shown as `conversationId`.'),
  accountId: oneOrMany(z.string()).describe('Only requests on one of these accounts.'),
  apiKeyId: oneOrMany(z.string()).describe('Only requests with one of these keys (IDs).'),
  model: oneOrMany(z.string()).describe('Only requests for one of these models.'),
  reasoningEffort: oneOrMany(z.string()).describe('Only requests with one of these reasoning efforts.'),
  modelOption: oneOrMany(ModelOption).describe('`model:::effort`: one model with one effort.'),
  kind: oneOrMany(z.enum(REQUEST_KINDS)).describe('Only requests of these kinds.'),
  code: oneOrMany(z.string().trim().max(100)).describe('Only requests with one of these error codes.'),
  client: oneOrMany(
    z
      .string()
      .max(100)
      .regex(/^[^\s/]*$/, 'is not the name of a client'),
  ).describe('Only requests by one of these clients: the user agent without its version.'),
  since: filled(Moment).describe('ISO 8601, inclusive. UTC if it has no zone.'),
  until: filled(Moment).describe('ISO 8601, inclusive. UTC if it has no zone.'),
})
export type LogFilters = z.output<typeof LogFilters>

/** A request is slow when its first token, or its end without one, took longer. */
export const SLOW_MS = 10_000

/** `failed` is any error, whatever its code. */
export const STATUS_FILTERS = [...LOG_STATUSES, 'failed', 'all'] as const
export type StatusFilter = (typeof STATUS_FILTERS)[number]

export const LogQuery = LogFilters.extend({
  search: z
    .string()
    .trim()
    .max(200)
    .default('')
    .describe('Searches IDs, route, model, errors, account, key, client address and user agent.'),
  status: oneOrMany(z.enum(STATUS_FILTERS)).describe('How the request ended. `failed` is any error.'),
  slow: filled(z.stringbool()).describe(`Only requests whose first token took more than ${SLOW_MS / 1000} s.`),
  limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Rows per page.'),
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .describe('Rows to skip. Rows repeat when new ones arrive; `cursor` avoids that.'),
  cursor: filled(Cursor).describe('`nextCursor` of the previous page: older rows, without repeats.'),
  newer: filled(Cursor).describe('`prevCursor`: the page of newer rows. Ignored with `cursor`.'),
})
/** `since` and `until` are ms since epoch. */
export type LogQuery = z.output<typeof LogQuery>

export const RATE_LIMIT_CODES = ['rate_limit_exceeded', 'usage_limit_reached']
export const QUOTA_CODES = [
  'insufficient_quota',
  'usage_not_included',
  'quota_exceeded',
  'workspace_owner_credits_depleted',
  'workspace_member_credits_depleted',
  'workspace_owner_usage_limit_reached',
  'workspace_member_usage_limit_reached',
]

export const logStatus = (row: { status: 'ok' | 'error' | 'cancelled'; errorCode: string | null }): LogStatus => {
  if (row.status !== 'error') return row.status
  if (RATE_LIMIT_CODES.includes(row.errorCode ?? '')) return 'rate_limit'
  return QUOTA_CODES.includes(row.errorCode ?? '') ? 'quota' : 'error'
}
