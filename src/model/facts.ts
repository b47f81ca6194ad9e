/** Key-value facts about the database itself. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'

export const readFact = async (db: Db, name: string): Promise<string | null> =>
  (await db.select({ value: facts.value }).from(facts).where(eq(facts.name, name)).get())?.value ?? null

export const writeFact = async (tx: Tx, name: string, value: string): Promise<void> => {
  await tx.insert(facts).values({ name, value }).onConflictDoUpdate({ target: facts.name, set: { value } }).run()
}

export const dropFact = async (tx: Tx, name: string): Promise<void> => {
  await tx.delete(facts).where(eq(facts.name, name)).run()
}
