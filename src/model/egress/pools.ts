/** Pools of outbound proxies, their members, and which accounts use which pool. */
import { and, eq, isNotNull } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { egressMembers, egressPools } from '../../../db/schema/egress.ts'
import { oauthFlows } from '../../../db/schema/history.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { getAccount } from '../accounts/accounts.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { type EgressMemberRow, type EgressPoolRow, getEndpoint, listMembers } from './endpoints.ts'
import type { MemberEdit, NewMember, NewPool, PoolEdit } from './input.ts'
import { getDefaultPool, resumeRouted } from './unrouted.ts'

/** Throws `proxy_pool_not_found`. */
export const getPool = async (db: Db, id: string): Promise<EgressPoolRow> => {
  const row = await db.select().from(egressPools).where(eq(egressPools.id, id)).get()
  if (!row) throw new AppError('proxy_pool_not_found', { param: 'poolId' })
  return row
}

/** Account → pool, of all accounts that have one. */
export const listBindings = async (db: Db): Promise<{ accountId: string; poolId: string }[]> =>
  (
    await db
      .select({ accountId: accounts.id, poolId: accounts.egressPoolId })
      .from(accounts)
      .where(isNotNull(accounts.egressPoolId))
      .orderBy(accounts.createdAt)
      .all()
  ).flatMap(({ accountId, poolId }) => (poolId === null ? [] : [{ accountId, poolId }]))

/** Throws `name_taken`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const createPool = async (
  tx: Tx,
  { endpointIds, ...input }: NewPool,
  { actor, random }: { actor: Actor; random: Random },
): Promise<EgressPoolRow> => {
  await requireFreeName(tx, input.name, null)
  if (new Set(endpointIds).size < endpointIds.length) throw new AppError('proxy_pool_member_duplicate')
  const id = random.id('pool')
  await tx
    .insert(egressPools)
    .values({ id, ...input, createdAt: actor.at })
    .run()
  for (const [sortOrder, endpointId] of endpointIds.entries()) {
    await getEndpoint(tx, endpointId)
    await tx.insert(egressMembers).values({ poolId: id, endpointId, sortOrder }).run()
  }
  await append(tx, actor, 'proxy_pool_created', { target: id, details: { ...input, endpointIds } })
  notice(tx, 'egress')
  return getPool(tx, id)
}

/** Throws `proxy_pool_not_found`, `name_taken`. */
export const editPool = async (tx: Tx, id: string, edit: PoolEdit, actor: Actor): Promise<EgressPoolRow> => {
  const before = await getPool(tx, id)
  const change = getChanges(before, edit)
  if (Object.keys(change).length === 0) return before
  if (change.name !== undefined) await requireFreeName(tx, change.name, id)
  await tx.update(egressPools).set(change).where(eq(egressPools.id, id)).run()
  await append(tx, actor, 'proxy_pool_updated', { target: id, details: change })
  return changed(tx, id, actor)
}

/** Throws `proxy_pool_not_found`, and `proxy_pool_in_use` while an account, the settings or a sign-in need it. */
export const deletePool = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { name } = await getPool(tx, id)
  const isChosen = and(eq(oauthFlows.egressPoolId, id), eq(oauthFlows.status, 'pending'))
  const isInUse =
    (await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.egressPoolId, id)).get()) !== undefined
  const isAwaited = (await tx.select({ id: oauthFlows.id }).from(oauthFlows).where(isChosen).get()) !== undefined
  if (isInUse || isAwaited || (await getDefaultPool(tx)) === id) throw new AppError('proxy_pool_in_use')
  await tx.delete(egressPools).where(eq(egressPools.id, id)).run()
  await append(tx, actor, 'proxy_pool_deleted', { target: id, details: { name } })
  notice(tx, 'egress')
}

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const addMember = async (
  tx: Tx,
  poolId: string,
  { endpointId, sortOrder, isActive }: NewMember,
  actor: Actor,
) => {
  await getPool(tx, poolId)
  await getEndpoint(tx, endpointId)
  const own = await getMembers(tx, poolId)
  if (own.some((member) => member.endpointId === endpointId)) throw new AppError('proxy_pool_member_duplicate')
  const last = Math.max(-1, ...own.map((member) => member.sortOrder))
  const member = { poolId, endpointId, sortOrder: sortOrder ?? last + 1, isActive }
  await tx.insert(egressMembers).values(member).run()
  await append(tx, actor, 'proxy_pool_member_added', { target: poolId, details: member })
  return changed(tx, poolId, actor)
}

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found` for an endpoint that is no member. */
export const editMember = async (tx: Tx, { poolId, endpointId }: MemberName, edit: MemberEdit, actor: Actor) => {
  const before = await getMember(tx, poolId, endpointId)
  const change = getChanges(before, edit)
  if (Object.keys(change).length === 0) return getPool(tx, poolId)
  await tx.update(egressMembers).set(change).where(isMember(poolId, endpointId)).run()
  await append(tx, actor, 'proxy_pool_member_updated', { target: poolId, details: { endpointId, ...change } })
  return changed(tx, poolId, actor)
}

/** Throws as `editMember` does. */
export const removeMember = async (
  tx: Tx,
  { poolId, endpointId }: MemberName,
  actor: Actor,
): Promise<EgressPoolRow> => {
  await getMember(tx, poolId, endpointId)
  await tx.delete(egressMembers).where(isMember(poolId, endpointId)).run()
  await append(tx, actor, 'proxy_pool_member_removed', { target: poolId, details: { endpointId } })
  return changed(tx, poolId, actor)
}

/** Null: the account follows the settings again. Throws `account_not_found`, `proxy_pool_not_found`. */
export const bindAccount = async (tx: Tx, accountId: string, poolId: string | null, actor: Actor): Promise<void> => {
  const before = (await getAccount(tx, accountId)).egressPoolId
  if (poolId !== null) await getPool(tx, poolId)
  if (before === poolId) return
  await tx.update(accounts).set({ egressPoolId: poolId }).where(eq(accounts.id, accountId)).run()
  await append(tx, actor, 'account_egress_changed', { target: accountId, details: { from: before, to: poolId } })
  notice(tx, 'egress')
  notice(tx, 'accounts')
  await resumeRouted(tx, actor)
}

interface MemberName {
  poolId: string
  endpointId: string
}

const getMembers = async (db: Db, poolId: string): Promise<EgressMemberRow[]> =>
  (await listMembers(db)).filter((member) => member.poolId === poolId)

const getMember = async (db: Db, poolId: string, endpointId: string): Promise<EgressMemberRow> => {
  await getPool(db, poolId)
  const row = (await getMembers(db, poolId)).find((member) => member.endpointId === endpointId)
  if (!row) throw new AppError('proxy_endpoint_not_found')
  return row
}

const isMember = (poolId: string, endpointId: string) =>
  and(eq(egressMembers.poolId, poolId), eq(egressMembers.endpointId, endpointId))

const changed = async (tx: Tx, id: string, actor: Actor): Promise<EgressPoolRow> => {
  notice(tx, 'egress')
  await resumeRouted(tx, actor)
  return getPool(tx, id)
}

const requireFreeName = async (tx: Tx, name: string, own: string | null): Promise<void> => {
  const other = await tx.select().from(egressPools).where(eq(egressPools.name, name)).get()
  if (other && other.id !== own) throw new AppError('name_taken', { param: 'name' })
}
