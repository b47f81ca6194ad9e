/** How much users have used, from the request log, in units of `log/request-units.ts`. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requests } from '../../../db/schema/requests.ts'
import { DEMAND, UNITS } from '../log/request-units.ts'

export interface Used {
  userId: string
  /** When the request arrived (ms since epoch). For sums, the start of the step. */
  at: number
  units: number
}

const ENDED = sql`${requests.startedAt} + ${requests.totalMs}`
const OWNED = sql`${apiKeys} ON ${apiKeys.id} = ${requests.keyId} AND ${apiKeys.ownerUserId} IS NOT NULL`
const COUNTED = sql`${DEMAND} AND ${requests.inputTokens} IS NOT NULL`

/** Requests since `from` that ended before `until`, summed in steps. Requests of deleted keys have no owner. */
export const summedUse = (
  db: Db,
  { from, until, stepMs }: { from: number; until: number; stepMs: number },
): Promise<Used[]> =>
  db.all<Used>(sql`
    SELECT ${apiKeys.ownerUserId} AS "userId", ${requests.startedAt} / ${stepMs} * ${stepMs} AS at, sum(${UNITS}) AS units
    FROM ${requests} JOIN ${OWNED}
    WHERE ${requests.startedAt} >= ${from} AND ${ENDED} < ${until} AND ${COUNTED}
    GROUP BY 1, 2`)

/** Requests that ended at `since` or later, one by one. */
export const recentUse = (db: Db, since: number): Promise<(Used & { id: string })[]> =>
  db.all<Used & { id: string }>(sql`
    SELECT ${requests.id} AS id, ${apiKeys.ownerUserId} AS "userId", ${requests.startedAt} AS at, ${UNITS} AS units
    FROM ${requests} JOIN ${OWNED}
    WHERE ${ENDED} >= ${since} AND ${COUNTED}`)
