/** What happens to API keys when their owner is disabled, enabled or deleted (spec §2 API key, §3 Dashboard account). */
import { and, eq, inArray } from 'drizzle-orm'
import { notice, type Tx } from '../../../db/commit.ts'
import { apiKeys, keySessions } from '../../../db/schema/keys.ts'
import { type Actor, append } from '../audit/audit.ts'

/** Disables the user's active keys and ends the sessions of their pages. Manually revoked ones stay unchanged. */
export const deactivateKeysOf = async (tx: Tx, userId: string, actor: Actor): Promise<void> => {
  const owned = tx.select({ keyHash: apiKeys.keyHash }).from(apiKeys).where(eq(apiKeys.ownerUserId, userId))
  await tx.delete(keySessions).where(inArray(keySessions.keyHash, owned)).run()
  const { changes } = await tx
    .update(apiKeys)
    .set({ isActive: false, deactivatedReason: 'owner_disabled' })
    .where(and(eq(apiKeys.ownerUserId, userId), eq(apiKeys.isActive, true)))
    .run()
  if (changes > 0) await append(tx, actor, 'user_keys_deactivated', { target: userId, details: { count: changes } })
  notice(tx, 'keys')
}

/** Enables those keys again. Returns how many; they are rejected while the owner is disabled. */
export const reactivateKeysOf = async (tx: Tx, userId: string, actor: Actor): Promise<number> => {
  const { changes } = await tx
    .update(apiKeys)
    .set({ isActive: true, deactivatedReason: null })
    .where(and(eq(apiKeys.ownerUserId, userId), eq(apiKeys.deactivatedReason, 'owner_disabled')))
    .run()
  await append(tx, actor, 'user_keys_reactivated', { target: userId, details: { count: changes } })
  notice(tx, 'keys')
  return changes
}

/** Call before deleting the user: its keys stay, disabled and without owner. */
export const abandonKeysOf = async (tx: Tx, userId: string, actor: Actor): Promise<void> => {
  await deactivateKeysOf(tx, userId, actor)
  await tx.update(apiKeys).set({ ownerUserId: null }).where(eq(apiKeys.ownerUserId, userId)).run()
}
