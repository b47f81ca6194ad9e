/** `/audit` and `/api/audit-logs`: who changed what, when and from where, and the result of the log's verification. */

import { z } from 'zod'
import {
  type Audit,
  type AuditFilters,
  AuditLogPage,
  type Chain,
  type NamedEntry,
} from '../../views/settings/audit.tsx'
import type { Choice } from '../../views/ui/select.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { EVENTS } from '../model/audit/audit.ts'
import { readHead } from '../model/audit/audit-chain.ts'
import { type AuditEntry, type AuditPage, AuditQuery, TARGET_TYPES } from '../model/audit/audit-log.ts'
import { filled } from '../model/form-query.ts'
import { listPeople } from '../model/users/people.ts'
import { listRoles } from '../model/users/roles.ts'
import { getOptions } from './logs/logs.ts'
import { toReader } from './reader-for-caller.ts'
import { getFrame } from './settings/frame.ts'

export const listAuditLog = createHandlers(requires('audit:read'), query(AuditQuery), async (c) =>
  c.json(await toReader(c).auditLog(c.req.valid('query'))),
)

/** The query of the list, with fewer rows per page than the API. Empty form fields are ignored. */
const PageQuery = AuditQuery.extend({
  action: filled(AuditQuery.shape.action),
  actor_user_id: filled(AuditQuery.shape.actor_user_id),
  target_type: filled(AuditQuery.shape.target_type),
  target_id: filled(AuditQuery.shape.target_id),
  severity: filled(AuditQuery.shape.severity),
  since: filled(AuditQuery.shape.since),
  until: filled(AuditQuery.shape.until),
  limit: AuditQuery.shape.limit.unwrap().default(30),
  verify: z.literal('1').optional(),
})

/** Throws `validation_error` for an unknown filter, `busy` when verification takes too long. */
export const showAuditLog = createHandlers(requires('audit:read'), query(PageQuery), async (c) => {
  const { verify, ...asked } = c.req.valid('query')
  const page = await toReader(c).auditLog(asked)
  const people = (await listPeople(c.env.db)).map(({ row }) => ({ id: row.id, name: row.username }))
  const value: Audit = {
    ...page,
    items: await named(c, page.items, people),
    frame: getFrame(c, 'audit'),
    now: iso(c.env.clock.now()),
    filters: getFilters(asked),
    options: { actions: Object.keys(EVENTS), targetTypes: TARGET_TYPES, people: [...WITHOUT_ACCOUNT, ...people] },
    chain: await getChain(c, verify === '1'),
    links: getLinks(c, page),
  }
  return reply(c, value, AuditLogPage)
})

/** Verifies the log with every page. It takes the reader about four milliseconds. */
const CHECKED_ROWS = 1000

const getChain = async (c: Ctx, isAsked: boolean): Promise<Chain> => {
  const rows = (await readHead(c.env.db))?.count ?? 0
  return isAsked || rows <= CHECKED_ROWS ? toReader(c).auditVerdict() : { isWhole: null, rows }
}

/** Actors that are not users. */
const ACTOR_NAMES: Readonly<Record<string, string>> = {
  bootstrap: 'First setup',
  cli: 'Command line',
  system: 'Sluice',
  guest: 'Guest',
  disabled: 'Anyone (sign-in is off)',
}
const WITHOUT_ACCOUNT = Object.entries(ACTOR_NAMES).map(([id, name]) => ({ id, name }))

const named = async (c: Ctx, items: readonly AuditEntry[], people: readonly Choice[]): Promise<NamedEntry[]> => {
  const { accounts, keys } = await getOptions(c)
  const names = new Map(
    [...people, ...(await listRoles(c.env.db)), ...accounts, ...(keys ?? [])].map(({ id, name }) => [id, name]),
  )
  return items.map((entry) => ({
    ...entry,
    actorName: entry.actor.username ?? ACTOR_NAMES[entry.actor.userId] ?? entry.actor.userId,
    targetName: (entry.target && names.get(entry.target.id)) ?? null,
  }))
}

const getFilters = (asked: AuditQuery): AuditFilters => ({
  action: asked.action ?? '',
  actor: asked.actor_user_id ?? '',
  targetType: asked.target_type ?? '',
  targetId: asked.target_id ?? '',
  severity: asked.severity ?? '',
  since: asked.since === undefined ? '' : iso(asked.since),
  until: asked.until === undefined ? '' : iso(asked.until),
})

const FILTERS = ['action', 'actor_user_id', 'target_type', 'target_id', 'severity', 'reason', 'since', 'until']

const getLinks = (c: Ctx, { nextCursor }: AuditPage): Audit['links'] => {
  const link = (drop: readonly string[], add: Record<string, string> = {}) =>
    linkFrom(c, '/audit', { drop: [...drop, 'verify'], add })
  const has = (names: readonly string[]) => names.some((name) => c.req.query(name))
  return {
    older: nextCursor && link(['cursor'], { cursor: nextCursor }),
    newest: has(['cursor']) ? link(['cursor']) : null,
    clear: has(FILTERS) ? link([...FILTERS, 'cursor']) : null,
    verify: link([], { verify: '1' }),
  }
}
