/** Writes down that a reset credit was redeemed: for auditors, and in the history of its account. */
import type { Tx } from '../../db/commit.ts'
import { noteAccountEvent } from './account-events.ts'
import { type Actor, append } from './audit.ts'
import type { Redemption } from './reset-credits.ts'

/** Only for answers that are not repeated: one redemption is one row. */
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
