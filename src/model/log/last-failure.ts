/** Finds the newest failed request of a key. */
import { desc, eq } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { iso } from '../../lib/iso.ts'

/** The fields are in snake case, as clients expect. */
export interface LastFailure extends Record<string, unknown> {
  /** Null if none of the checked requests failed. */
  request: FailedRequest | null
  /** The number of successful requests since then. */
  succeeded_since: number
}

interface FailedRequest {
  /** `x-request-id` of the response. */
  request_id: string
  started_at: string
  model: string | null
  http_status: number
  error_code: string | null
  /** The error message that the client got. */
  error_message: string | null
  /** The phase in which it failed: `select`, `connect`, … */
  phase: string | null
  accounts_tried: number
  duration_ms: number
}

const LOOKED_AT = 1000

/** Requests cancelled by the client do not count as failed. */
export const lastFailure = async (db: Db, keyId: string): Promise<LastFailure> => {
  const recent = await db
    .select({ id: requests.id, status: requests.status })
    .from(requests)
    .where(eq(requests.keyId, keyId))
    .orderBy(desc(requests.startedAt), desc(requests.id))
    .limit(LOOKED_AT)
    .all()
  const place = recent.findIndex(({ status }) => status === 'error')
  const row =
    place === -1
      ? undefined
      : await db
          .select()
          .from(requests)
          .where(eq(requests.id, recent[place]?.id ?? ''))
          .get()
  return {
    request: row
      ? {
          request_id: row.requestId,
          started_at: iso(row.startedAt),
          model: row.model,
          http_status: row.httpStatus,
          error_code: row.errorCode,
          error_message: row.errorMessage,
          phase: row.phase,
          accounts_tried: row.attempts,
          duration_ms: row.totalMs,
        }
      : null,
    succeeded_since: recent.slice(0, row ? place : undefined).filter(({ status }) => status === 'ok').length,
  }
}
