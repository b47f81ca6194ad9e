/** A user's sessions for lists, and ending one with its audit row. */
import type { Db, Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import { iso } from '../../lib/iso.ts'
import { describeAgent } from '../../lib/user-agent.ts'
import { type Actor, append } from '../audit/audit.ts'
import { endSession, listSessions, type SessionRow } from './sessions.ts'

const toSession = (row: SessionRow, currentId: string | null) => ({
  id: row.id,
  method: row.method,
  device: describeAgent(row.userAgent),
  address: row.address,
  createdAt: iso(row.createdAt),
  lastSeenAt: iso(row.lastSeenAt),
  expiresAt: iso(row.expiresAt),
  isCurrent: row.id === currentId,
})

/** Most recently used first, without sessions that still need a second factor. */
export const sessionList = async (
  db: Db,
  userId: string,
  { currentId, now }: { currentId: string | null; now: number },
) => ({
  items: (await listSessions(db, userId, now))
    .filter(({ isComplete }) => isComplete)
    .map((row) => toSession(row, currentId)),
})
export type SessionList = Awaited<ReturnType<typeof sessionList>>

/** Effective on the session's next request. Throws `not_found`, also for another user's session. */
export const endOneSession = async (
  tx: Tx,
  id: string,
  { userId, actor }: { userId: string; actor: Actor },
): Promise<void> => {
  if (!(await endSession(tx, id, userId))) throw new AppError('not_found', { message: 'Session not found.' })
  await append(tx, actor, 'session_ended', { target: userId, details: { session: id } })
}
