/** Addresses that use the proxy: those a first firewall entry would exclude. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'

/** Reading these takes about ten milliseconds. */
const MAX_READ = 15_000

/** At most `limit` addresses from the newest 15,000 requests since `since` (ms since epoch), most requests first. */
export const recentCallers = async (db: Db, since: number, limit: number): Promise<string[]> =>
  (
    await db.all<{ clientIp: string }>(sql`
      SELECT client_ip AS "clientIp" FROM (
        SELECT client_ip FROM ${requests} WHERE started_at >= ${since} ORDER BY started_at DESC LIMIT ${MAX_READ}) AS recent
      WHERE client_ip IS NOT NULL GROUP BY client_ip ORDER BY count(*) DESC, client_ip LIMIT ${limit}`)
  ).map(({ clientIp }) => clientIp)
