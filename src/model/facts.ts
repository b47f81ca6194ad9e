/** Key-value facts about the database itself. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'

export const readFact = (db: Db, name: string): string | null =>
  db.select({ value: facts.value }).from(facts).where(eq(facts.name, name)).get()?.value ?? null

export const writeFact = (tx: Tx, name: string, value: string): void => {
  tx.insert(facts).values({ name, value }).onConflictDoUpdate({ target: facts.name, set: { value } }).run()
}

export const dropFact = (tx: Tx, name: string): void => {
  tx.delete(facts).where(eq(facts.name, name)).run()
}
