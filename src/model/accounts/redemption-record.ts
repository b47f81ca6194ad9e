/** Records the redemption of a reset credit in the audit log and the account's history. */
import type { Tx } from '../../../db/commit.ts'
import type { ResetPolicy } from '../../../db/schema/accounts.ts'
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
