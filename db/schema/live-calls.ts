/** The account of each live call. Later connections of the call must use the same account. */
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const liveCalls = sqliteTable(
  'live_calls',
  {
    /** SHA-256 of the key id, NUL and the call id: the call id itself grants access and is not stored. */
    hash: text().primaryKey(),
    accountId: text().notNull(),
    /** ms since epoch */
    createdAt: integer().notNull(),
  },
  (t) => [index('live_calls_created').on(t.createdAt)],
)
