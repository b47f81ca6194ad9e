/** Sums in SQL, of which no rows make zero. */
import { type SQLWrapper, sql } from 'drizzle-orm'

export const total = (of: SQLWrapper) => sql<number>`coalesce(sum(${of}), 0)`
