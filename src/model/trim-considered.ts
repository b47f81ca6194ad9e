/** Lets go of the lists of candidates of old turns that went well; they are most of the request log, and nobody asks for them. */
import { sql } from 'drizzle-orm'
import type { Tx } from '../../db/commit.ts'
import { readFact, writeFact } from './facts.ts'

/** How far the log was trimmed: `startedAt id` of the newest turn that was looked at. */
const TRIMMED = 'considered_trimmed_through'

interface Turn {
  startedAt: number
  id: string
}

/**
 * Looks at up to `limit` turns behind the last one it looked at, none of them among the newest `keep`, and returns how
 * many. What failed keeps its list, the attempt and the whole turn alike.
 */
export const trimConsidered = (tx: Tx, { keep, limit }: { keep: number; limit: number }): number => {
  const [newestToTrim] = tx.all<Turn>(sql`
    SELECT started_at AS startedAt, id FROM requests ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${keep}`)
  if (!newestToTrim) return 0
  const from = trimmedThrough(tx)
  const turns = tx.all<Turn>(sql`
    SELECT started_at AS startedAt, id FROM requests
    WHERE (started_at, id) > (${from.startedAt}, ${from.id})
      AND (started_at, id) <= (${newestToTrim.startedAt}, ${newestToTrim.id})
    ORDER BY started_at, id LIMIT ${limit}`)
  const last = turns.at(-1)
  if (!last) return 0
  tx.run(sql`
    UPDATE attempts SET considered = NULL
    WHERE request_row_id IN (
      SELECT id FROM requests
      WHERE (started_at, id) > (${from.startedAt}, ${from.id}) AND (started_at, id) <= (${last.startedAt}, ${last.id})
        AND status <> 'error')
      AND outcome <> 'failed' AND considered IS NOT NULL`)
  writeFact(tx, TRIMMED, `${last.startedAt} ${last.id}`)
  return turns.length
}

const trimmedThrough = (tx: Tx): Turn => {
  const [, startedAt, id] = /^(\d+) (.*)$/.exec(readFact(tx, TRIMMED) ?? '') ?? []
  return { startedAt: Number(startedAt ?? 0), id: id ?? '' }
}
