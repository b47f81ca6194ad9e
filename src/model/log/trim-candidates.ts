/** Deletes the candidate lists of old successful requests: they are most of the log's size and rarely read. */
import { sql } from 'drizzle-orm'
import type { Tx } from '../../../db/commit.ts'
import { readFact, writeFact } from '../facts.ts'

/** Progress: `startedAt id` of the newest request checked. */
const TRIMMED = 'considered_trimmed_through'

interface Turn {
  startedAt: number
  id: string
}

/**
 * Checks up to `limit` requests after the last one, except the newest `keep`, and returns how many. Failed requests and
 * attempts keep their lists.
 */
export const trimConsidered = async (tx: Tx, { keep, limit }: { keep: number; limit: number }): Promise<number> => {
  const [newestToTrim] = await tx.all<Turn>(sql`
    SELECT started_at AS "startedAt", id FROM requests ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${keep}`)
  if (!newestToTrim) return 0
  const from = await trimmedThrough(tx)
  const turns = await tx.all<Turn>(sql`
    SELECT started_at AS "startedAt", id FROM requests
    WHERE (started_at, id) > (${from.startedAt}, ${from.id})
      AND (started_at, id) <= (${newestToTrim.startedAt}, ${newestToTrim.id})
    ORDER BY started_at, id LIMIT ${limit}`)
  const last = turns.at(-1)
  if (!last) return 0
  await tx.run(sql`
    UPDATE attempts SET considered = NULL
    WHERE request_row_id IN (
      SELECT id FROM requests
      WHERE (started_at, id) > (${from.startedAt}, ${from.id}) AND (started_at, id) <= (${last.startedAt}, ${last.id})
        AND status <> 'error')
      AND outcome <> 'failed' AND considered IS NOT NULL`)
  await writeFact(tx, TRIMMED, `${last.startedAt} ${last.id}`)
  return turns.length
}

const trimmedThrough = async (tx: Tx): Promise<Turn> => {
  const [, startedAt, id] = /^(\d+) (.*)$/.exec((await readFact(tx, TRIMMED)) ?? '') ?? []
  return { startedAt: Number(startedAt ?? 0), id: id ?? '' }
}
