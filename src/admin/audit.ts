/** `/api/audit-logs`: who changed what, when and from where. */
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { AuditQuery } from '../model/audit/audit-log.ts'
import { toReader } from './reader-for-caller.ts'

export const listAuditLog = createHandlers(requires('audit:read'), query(AuditQuery), async (c) =>
  c.json(await toReader(c).auditLog(c.req.valid('query'))),
)
