/** Automations as rows: scheduled requests on chosen accounts. */
import { asc, eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { automations } from '../../../db/schema/automations.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { namedZone, type Schedule } from './schedule.ts'

export type AutomationRow = typeof automations.$inferSelect
export type AutomationFields = Omit<AutomationRow, 'id' | 'createdAt' | 'updatedAt'>

/** Oldest first. */
export const listAutomations = (db: Db): Promise<AutomationRow[]> =>
  db.select().from(automations).orderBy(asc(automations.createdAt), asc(automations.id)).all()

/** Throws `automation_not_found`. */
export const getAutomation = async (db: Db, id: string): Promise<AutomationRow> => {
  const row = await db.select().from(automations).where(eq(automations.id, id)).get()
  if (!row) throw new AppError('automation_not_found')
  return row
}

/** False also for an automation that was deleted. */
export const isEnabled = async (db: Db, id: string): Promise<boolean> =>
  (await db.select({ enabled: automations.enabled }).from(automations).where(eq(automations.id, id)).get())?.enabled ??
  false

/** False for one that was edited or deleted since `row` was read. */
export const isUnchanged = async (db: Db, { id, updatedAt }: AutomationRow): Promise<boolean> =>
  (await db.select({ updatedAt: automations.updatedAt }).from(automations).where(eq(automations.id, id)).get())
    ?.updatedAt === updatedAt

export const getSchedule = ({ time, zone, days }: AutomationFields): Schedule => ({ time, zone: namedZone(zone), days })

export const createAutomation = async (
  tx: Tx,
  fields: AutomationFields,
  { actor, random }: { actor: Actor; random: Random },
): Promise<AutomationRow> => {
  const row = { ...fields, id: random.id('auto'), createdAt: actor.at, updatedAt: actor.at }
  await tx.insert(automations).values(row).run()
  await append(tx, actor, 'automation_created', { target: row.id, details: { name: row.name } })
  notice(tx, 'automations')
  return row
}

/** Times before a change are never run afterwards. Throws `automation_not_found`. */
export const updateAutomation = async (
  tx: Tx,
  id: string,
  fields: AutomationFields,
  actor: Actor,
): Promise<AutomationRow> => {
  const before = await getAutomation(tx, id)
  const changed = getChanges(before, fields)
  if (Object.keys(changed).length === 0) return before
  await tx
    .update(automations)
    .set({ ...fields, updatedAt: actor.at })
    .where(eq(automations.id, id))
    .run()
  await append(tx, actor, 'automation_updated', { target: id, details: { changed: Object.keys(changed) } })
  notice(tx, 'automations')
  return getAutomation(tx, id)
}

/** Its runs go too. Throws `automation_not_found`. */
export const deleteAutomation = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { name } = await getAutomation(tx, id)
  await tx.delete(automations).where(eq(automations.id, id)).run()
  await append(tx, actor, 'automation_deleted', { target: id, details: { name } })
  notice(tx, 'automations')
}
