/** Records the redemption of a reset credit in the audit log and the account's history. */
import type { Tx } from '../../db/commit.ts'
import { noteAccountEvent } from './account-events.ts'
import { type Actor, append } from './audit.ts'
import type { Redemption } from './reset-credits.ts'

/** Not for repeated answers: one redemption is one row. */
export const recordRedemption = (
  tx: Tx,
  actor: Actor,
  { accountId, requestId, code, windowsReset, creditId }: Redemption & { accountId: string; requestId: string },
): void => {
  const details = { creditId, code, windowsReset, requestId }
  append(tx, actor, 'reset_credit_redeemed', { target: accountId, details })
  const detail = code === 'reset' ? `Windows reset: ${windowsReset}.` : null
  noteAccountEvent(tx, { accountId, at: actor.at, kind: 'reset', result: code, detail })
}
