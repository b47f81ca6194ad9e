/** Reads the audit log: filters and pages. */
import { and, desc, eq, gte, like, lt, notLike, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { auditLogs } from '../../../db/schema/system.ts'
import { iso } from '../../lib/iso.ts'
import { Moment } from '../log/request-log-query.ts'
import type { AuditRow } from './audit-chain.ts'

/** Target types by id prefix; firewall entries and backups are named by themselves. */
const TARGET_PREFIXES = {
  user: 'usr_',
  role: 'role_',
  provider: 'idp_',
  passkey: 'pky_',
  session: 'ses_',
  account: 'acc_',
  api_key: 'key_',
  automation: 'auto_',
  backup: 'sluice-',
} as const
export const TARGET_TYPES = [...(Object.keys(TARGET_PREFIXES) as (keyof typeof TARGET_PREFIXES)[]), 'address'] as const // as: Object.keys forgets the literal types
type TargetType = (typeof TARGET_TYPES)[number]

/** Opaque to clients: the id of the last row shown. */
const Cursor = z.string().transform((text, context) => {
  const [, id] = /^a(\d{1,15})$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (id !== undefined) return Number(id)
  context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
  return z.NEVER
})

const getCursor = ({ id }: AuditRow): string => Buffer.from(`a${id}`).toString('base64url')

/** The query string of the log. `since` is included, `until` is not. */
export const AuditQuery = z.object({
  action: z.string().max(64).optional().describe('Name of the event.'),
  actor_user_id: z.string().max(64).optional().describe('ID of the user who made the change.'),
  target_type: z.enum(TARGET_TYPES).optional().describe('Type of what was changed.'),
  target_id: z.string().max(255).optional().describe('ID of what was changed.'),
  severity: z.enum(['info', 'notice', 'warning']).optional().describe('Severity of the event.'),
  reason: z
    .string()
    .regex(/^[a-z_]{1,32}$/)
    .optional()
    .describe('`reason` in the details.'),
  since: Moment.optional().describe('ISO 8601, inclusive. UTC if it has no zone.'),
  until: Moment.optional().describe('ISO 8601, exclusive. UTC if it has no zone.'),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Rows per page.'),
  cursor: Cursor.optional().describe('`nextCursor` of the previous page.'),
})
export type AuditQuery = z.output<typeof AuditQuery>

/** Newest first. `nextCursor` is null on the last page; new rows do not shift pages. */
export const auditLog = async (db: Db, query: AuditQuery) => {
  const rows = await db
    .select()
    .from(auditLogs)
    .where(getWhere(query))
    .orderBy(desc(auditLogs.id))
    .limit(query.limit + 1)
    .all()
  const shown = rows.slice(0, query.limit)
  const last = shown.at(-1)
  return { items: shown.map(toEntry), nextCursor: last && rows.length > shown.length ? getCursor(last) : null }
}
export type AuditPage = Awaited<ReturnType<typeof auditLog>>
export type AuditEntry = AuditPage['items'][number]

const toEntry = (row: AuditRow) => ({
  id: row.id,
  timestamp: iso(row.at),
  action: row.event,
  severity: row.severity,
  actor: { userId: row.actor, username: row.actorName, roleSlug: row.actorRole, authMethod: row.method },
  target: row.target === null ? null : { type: typeOf(row.target), id: row.target },
  actorIp: row.address,
  details: row.details,
})

const typeOf = (target: string): TargetType =>
  TARGET_TYPES.find((type) => type !== 'address' && target.startsWith(TARGET_PREFIXES[type])) ?? 'address'

const getWhere = (query: AuditQuery): SQL | undefined =>
  and(
    given(query.cursor, (id) => lt(auditLogs.id, id)),
    given(query.action, (event) => eq(auditLogs.event, event)),
    given(query.actor_user_id, (id) => eq(auditLogs.actor, id)),
    given(query.target_type, ofType),
    given(query.target_id, (id) => eq(auditLogs.target, id)),
    given(query.severity, (severity) => eq(auditLogs.severity, severity)),
    given(query.reason, (reason) => sql`json_extract(${auditLogs.details}, '$.reason') = ${reason}`),
    given(query.since, (since) => gte(auditLogs.at, since)),
    given(query.until, (until) => lt(auditLogs.at, until)),
  )

const given = <T>(value: T | undefined, where: (value: T) => SQL | undefined): SQL | undefined =>
  value === undefined ? undefined : where(value)

const ofType = (type: TargetType): SQL | undefined =>
  type === 'address'
    ? and(...Object.values(TARGET_PREFIXES).map((prefix) => notLike(auditLogs.target, `${prefix}%`)))
    : like(auditLogs.target, `${TARGET_PREFIXES[type]}%`)
