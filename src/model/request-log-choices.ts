/** What the accounts and API keys of the log are called, and keys found again by id. */
import { eq } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { displayName } from './accounts.ts'

/** Of every account there is, by id. */
export const accountNames = (db: Db): ReadonlyMap<string, string> => {
  const rows = db.select({ id: accounts.id, email: accounts.email, alias: accounts.alias }).from(accounts).all()
  return new Map(rows.map((row) => [row.id, displayName(row)]))
}

export const keyNames = (db: Db): { id: string; name: string }[] =>
  db.select({ id: apiKeys.id, name: apiKeys.name }).from(apiKeys).all()

/** What the key ring finds it by; null: there is no such key. */
export const keyHashOf = (db: Db, id: string): string | null =>
  db.select({ keyHash: apiKeys.keyHash }).from(apiKeys).where(eq(apiKeys.id, id)).get()?.keyHash ?? null
