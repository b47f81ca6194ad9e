/** Accounts that were added while no pool applied to them: they start paused, and resume once they have a route. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { settings } from '../../../db/schema/system.ts'
import { ACTIVE, type AccountState, nextState } from '../accounts/account-state.ts'
import { getState, listAccounts, reactivateAccount } from '../accounts/accounts.ts'
import type { Actor } from '../audit/audit.ts'
import { listEndpoints, listMembers, listPools } from './endpoints.ts'
import { EGRESS_REASONS, type EgressReason } from './route.ts'

const setting = async (db: Db, key: 'egressRouting' | 'egressDefaultPoolId'): Promise<unknown> =>
  (await db.select().from(settings).where(eq(settings.key, key)).get())?.value

/** The default pool in the settings; null: none. Read from its row, because `model` does not know the settings' store. */
export const getDefaultPool = async (db: Db): Promise<string | null> => {
  const id = await setting(db, 'egressDefaultPoolId')
  return typeof id === 'string' ? id : null
}

/** Why an account with this pool would have no route, as far as the rows say; null: it has one. */
export const getUnroutedReason = async (db: Db, accountPoolId: string | null): Promise<EgressReason | null> => {
  if (accountPoolId === null && (await setting(db, 'egressRouting')) !== true) return null
  const poolId = accountPoolId ?? (await getDefaultPool(db))
  if (poolId === null) return 'default_pool_unconfigured'
  if (!(await listPools(db)).some(({ id, isActive }) => id === poolId && isActive)) return 'pool_unavailable'
  const active = new Set((await listEndpoints(db)).flatMap(({ id, isActive }) => (isActive ? [id] : [])))
  const hasActive = (await listMembers(db)).some(
    (member) => member.poolId === poolId && member.isActive && active.has(member.endpointId),
  )
  return hasActive ? null : 'pool_has_no_active_endpoints'
}

const PREFIX = 'Paused because it was added without an outbound proxy'

/** How a new account starts that has no route. */
export const pausedWithout = (reason: EgressReason, at: number): AccountState => ({
  ...nextState(ACTIVE, { kind: 'pause', at }),
  evidence: `${PREFIX}: ${EGRESS_REASONS[reason]} (${reason}).`,
})

/** Resumes the accounts that were paused for having no route and have one now. */
export const resumeRouted = async (tx: Tx, actor: Actor): Promise<void> => {
  for (const row of await listAccounts(tx)) {
    const { status, evidence } = getState(row)
    const isWaiting = status === 'paused' && evidence?.startsWith(PREFIX)
    if (isWaiting && (await getUnroutedReason(tx, row.egressPoolId)) === null)
      await reactivateAccount(tx, row.id, actor)
  }
}
