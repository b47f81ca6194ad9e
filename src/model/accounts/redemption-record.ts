/** Records the redemption of a reset credit in the audit log and the account's history. */
import { and, eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { commitResult } from '../../../db/commit-again.ts'
import type { ResetPolicy } from '../../../db/schema/accounts.ts'
import { accountEvents } from '../../../db/schema/history.ts'
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

/** Not for repeated answers: one redemption is one row. */
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

/** Commits `recordRedemption`. The credit is used already, so this is repeated after an error, but stored once. */
export const storeRedemption = (db: Db, clock: Clock, actor: Actor, recorded: Recorded): Promise<void> =>
  commitResult(db, clock, async (tx, mayBeStored) => {
    if (!(mayBeStored && (await isRecorded(tx, recorded.accountId, actor.at))))
      await recordRedemption(tx, actor, recorded)
  })

const isRecorded = async (tx: Tx, accountId: string, at: number): Promise<boolean> => {
  const { accountId: ofAccount, kind, at: time } = accountEvents
  const event = and(eq(ofAccount, accountId), eq(kind, 'reset'), eq(time, at))
  return (await tx.select({ id: accountEvents.id }).from(accountEvents).where(event).get()) !== undefined
}
