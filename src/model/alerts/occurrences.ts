/** Alerts about what the audit log records: sign-ins, roles, and used reset credits. Each row is read once. */
import { and, asc, eq, gt, inArray, lt, max } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { auditLogs, facts } from '../../../db/schema/system.ts'
import { formatCidr, parseCidr } from '../../lib/cidr.ts'
import { accountNames } from '../accounts/account-names.ts'
import type { AuditEvent } from '../audit/audit.ts'
import type { Occurrence } from './incidents.ts'

type AuditRow = typeof auditLogs.$inferSelect

const READ: Partial<Record<AuditEvent, (db: Db, row: AuditRow) => Promise<Occurrence | null>>> = {
  login_success: (db, row) => newPlace(db, row),
  user_created: (db, row) => newUser(db, row),
  user_role_changed: (db, row) => newRole(db, row),
  role_updated: async (_db, row) => changedRole(row),
  reset_credit_redeemed: (db, row) => redeemedCredit(db, row),
}

const CURSOR = 'alerts_audit_cursor'
const MAX_ROWS = 500

/**
 * The alerts for rows added since the last call, and the cursor to store with them. Null if there are no new rows. The
 * first call returns no alerts, so old rows are not reported.
 */
export const newOccurrences = async (db: Db): Promise<{ occurrences: Occurrence[]; cursor: number } | null> => {
  const newest =
    (
      await db
        .select({ id: max(auditLogs.id) })
        .from(auditLogs)
        .get()
    )?.id ?? 0
  const stored = await db.select().from(facts).where(eq(facts.name, CURSOR)).get()
  const last = stored === undefined ? null : Number(stored.value)
  if (last === newest) return null
  if (last === null || last > newest) return { occurrences: [], cursor: newest } // larger after a restore
  const rows = await db
    .select()
    .from(auditLogs)
    .where(and(gt(auditLogs.id, last), inArray(auditLogs.event, Object.keys(READ))))
    .orderBy(asc(auditLogs.id))
    .limit(MAX_ROWS)
    .all()
  const occurrences: Occurrence[] = []
  for (const row of rows) {
    const found = await READ[row.event as AuditEvent]?.(db, row) // as: one of the keys, by the query
    if (found) occurrences.push(found)
  }
  return { occurrences, cursor: rows.length === MAX_ROWS ? (rows.at(-1)?.id ?? newest) : newest }
}

export const storeCursor = async (tx: Tx, cursor: number): Promise<void> => {
  const value = String(cursor)
  await tx
    .insert(facts)
    .values({ name: CURSOR, value })
    .onConflictDoUpdate({ target: facts.name, set: { value } })
    .run()
}

/** An alert for a sign-in from a network that is new for this user. Null for the user's first sign-in. */
const newPlace = async (db: Db, row: AuditRow): Promise<Occurrence | null> => {
  if (row.address === null || row.target === null) return null
  const earlier = await db
    .selectDistinct({ address: auditLogs.address })
    .from(auditLogs)
    .where(and(eq(auditLogs.actor, row.actor), lt(auditLogs.id, row.id), eq(auditLogs.event, 'login_success')))
    .limit(MAX_ROWS)
    .all()
  const place = networkOf(row.address)
  if (earlier.length === 0 || earlier.some(({ address }) => address !== null && networkOf(address) === place))
    return null
  const name = row.actorName ?? row.actor
  return {
    event: 'security.sign_in',
    subject: { kind: 'user', id: row.actor, name },
    severity: 'warning',
    text: `${name} signed in from ${row.address}, a network they have not used before`,
    path: `/audit?actor_user_id=${encodeURIComponent(row.actor)}`,
    at: row.at,
  }
}

/** The network of an address (/24, or /48 for IPv6). Internet providers often change a client's address within it. */
const networkOf = (address: string): string => {
  const found = parseCidr(`${address}/${address.includes(':') ? 48 : 24}`)
  return found ? formatCidr(found) : address
}

const newUser = async (db: Db, row: AuditRow): Promise<Occurrence | null> => {
  const name = await userName(db, row.target)
  return security(row, name, `The user ${name} was created`)
}

const newRole = async (db: Db, row: AuditRow): Promise<Occurrence | null> => {
  const name = await userName(db, row.target)
  const { from, to } = row.details ?? {}
  return security(row, name, `${row.actorName ?? row.actor} changed the role of ${name} from ${from} to ${to}`)
}

const changedRole = (row: AuditRow): Occurrence => {
  const name = row.target ?? 'a role'
  return security(row, name, `${row.actorName ?? row.actor} changed the role ${name}`)
}

const security = (row: AuditRow, name: string, text: string): Occurrence => ({
  event: 'security.role',
  subject: { kind: 'user', id: row.target ?? row.actor, name },
  severity: 'warning',
  text,
  path: `/audit?target_id=${encodeURIComponent(row.target ?? '')}`,
  at: row.at,
})

const redeemedCredit = async (db: Db, row: AuditRow): Promise<Occurrence | null> => {
  const accountId = row.target
  if (accountId === null || row.details?.code !== 'reset') return null
  const name = (await accountNames(db, { hidesAccounts: false })).get(accountId) ?? accountId
  return {
    event: 'credit.redeemed',
    subject: { kind: 'account', id: accountId, name },
    severity: 'info',
    text: `A reset credit of ${name} was used${row.details.rule ? ' by its reset rule' : ''}`,
    path: `/accounts/${accountId}`,
    at: row.at,
  }
}

const userName = async (db: Db, id: string | null): Promise<string> => {
  if (id === null) return 'a user'
  const row = await db.select({ username: users.username }).from(users).where(eq(users.id, id)).get()
  return row?.username ?? id
}
