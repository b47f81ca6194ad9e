/** What becomes of API keys when their owner is disabled, comes back, or is deleted (spec §2 API key, §3 Dashboard account). */
import { and, eq } from 'drizzle-orm'
import { notice, type Tx } from '../../db/commit.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { type Actor, append } from './audit.ts'

/** Switches the working keys of the person off. Those that were revoked by hand stay as they are. */
export const deactivateKeysOf = (tx: Tx, userId: string, actor: Actor): void => {
  const { changes } = tx
    .update(apiKeys)
    .set({ isActive: false, deactivatedReason: 'owner_disabled' })
    .where(and(eq(apiKeys.ownerUserId, userId), eq(apiKeys.isActive, true)))
    .run()
  if (changes > 0) append(tx, actor, 'user_keys_deactivated', { target: userId, details: { count: changes } })
  notice(tx, 'keys')
}

/** Switches exactly those on again. Returns how many; while the owner is disabled they are still refused. */
export const reactivateKeysOf = (tx: Tx, userId: string, actor: Actor): number => {
  const { changes } = tx
    .update(apiKeys)
    .set({ isActive: true, deactivatedReason: null })
    .where(and(eq(apiKeys.ownerUserId, userId), eq(apiKeys.deactivatedReason, 'owner_disabled')))
    .run()
  append(tx, actor, 'user_keys_reactivated', { target: userId, details: { count: changes } })
  notice(tx, 'keys')
  return changes
}

/** To be called before the account goes: its keys stay, switched off and without an owner. */
export const abandonKeysOf = (tx: Tx, userId: string, actor: Actor): void => {
  deactivateKeysOf(tx, userId, actor)
  tx.update(apiKeys).set({ ownerUserId: null }).where(eq(apiKeys.ownerUserId, userId)).run()
}
