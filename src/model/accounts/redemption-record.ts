/** Records the redemption of a reset credit in the audit log and the account's history. */
import { and, eq } from 'drizzle-orm'
import { isOutcomeUnknown } from '../../../db/busy.ts'
import type { Db, Tx } from '../../../db/commit.ts'
import { commitResult } from '../../../db/commit-again.ts'
import type { ResetPolicy } from '../../../db/schema/accounts.ts'
import { auditLogs } from '../../../db/schema/system.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Actor, append } from '../audit/audit.ts'
import { recordAccountEvent } from './account-events.ts'
import type { Redemption } from './reset-credits.ts'

interface Recorded extends Redemption {
  accountId: string
  requestId: string
  /** Absent: requested by a user or a client. */
  rule?: ResetPolicy
}

/** Call it once for each redemption. */
export const recordRedemption = async (
  tx: Tx,
  actor: Actor,
  { accountId, requestId, code, windowsReset, creditId, rule }: Recorded,
): Promise<void> => {
  const details = { creditId, code, windowsReset, requestId, ...(rule && { rule }) }
  await append(tx, actor, 'reset_credit_redeemed', { target: accountId, details })
  const parts = [...(code === 'reset' ? [`Windows reset: ${windowsReset}.`] : []), ...(rule ? ['Used by rule.'] : [])]
  const detail = parts.join(' ') || null
  await recordAccountEvent(tx, { accountId, at: actor.at, kind: 'reset', result: code, detail })
}

/**
 * Records a redemption once, however often it is called with it. The credit is used already, so a failed commit is repeated,
 * and so must be the call when a client repeats its request.
 */
export const storeRedemption = async (
  db: Db,
  clock: Clock,
  actor: Omit<Actor, 'at'>,
  recorded: Recorded,
): Promise<void> => {
  try {
    await commitResult({ db, clock }, async (tx) => {
      if (!(await isRecorded(tx, recorded))) await recordRedemption(tx, { ...actor, at: recorded.at }, recorded)
    })
  } catch (cause) {
    if (recorded.code !== 'reset' || !isOutcomeUnknown(cause)) throw cause
    throw new AppError('database_unavailable', { message: USED, cause })
  }
}

const USED = 'The reset credit was used, but the connection to the database was lost while this was being recorded.'

const isRecorded = async (tx: Tx, { accountId, requestId, at }: Recorded): Promise<boolean> => {
  const ofRedemption = and(
    eq(auditLogs.at, at),
    eq(auditLogs.event, 'reset_credit_redeemed'),
    eq(auditLogs.target, accountId),
  )
  const rows = await tx.select({ details: auditLogs.details }).from(auditLogs).where(ofRedemption).all()
  return rows.some(({ details }) => details?.requestId === requestId)
}
