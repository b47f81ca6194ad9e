/** From where the proxy is called: what a first entry of the firewall would shut out. */
import { and, count, desc, gte, isNotNull } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'

/** At most `limit` addresses of requests since `since` (ms since epoch), the busiest first. Reads every row of that time. */
export const recentCallers = (db: Db, since: number, limit: number): string[] =>
  db
    .select({ clientIp: requests.clientIp })
    .from(requests)
    .where(and(gte(requests.startedAt, since), isNotNull(requests.clientIp)))
    .groupBy(requests.clientIp)
    .orderBy(desc(count()), requests.clientIp)
    .limit(limit)
    .all()
    .flatMap(({ clientIp }) => clientIp ?? [])
