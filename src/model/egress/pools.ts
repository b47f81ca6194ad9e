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
export const getPool = (db: Db, id: string): EgressPoolRow => {
  const row = db.select().from(egressPools).where(eq(egressPools.id, id)).get()
  if (!row) throw new AppError('proxy_pool_not_found', { param: 'poolId' })
  return row
}

/** Account → pool, of all accounts that have one. */
export const listBindings = (db: Db): { accountId: string; poolId: string }[] =>
  db
    .select({ accountId: accounts.id, poolId: accounts.egressPoolId })
    .from(accounts)
    .where(isNotNull(accounts.egressPoolId))
    .orderBy(accounts.createdAt)
    .all()
    .flatMap(({ accountId, poolId }) => (poolId === null ? [] : [{ accountId, poolId }]))

/** Throws `name_taken`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const createPool = (
  tx: Tx,
  { endpointIds, ...input }: NewPool,
  { actor, random }: { actor: Actor; random: Random },
): EgressPoolRow => {
  requireFreeName(tx, input.name, null)
  if (new Set(endpointIds).size < endpointIds.length) throw new AppError('proxy_pool_member_duplicate')
  const id = random.id('pool')
  tx.insert(egressPools)
    .values({ id, ...input, createdAt: actor.at })
    .run()
  for (const [sortOrder, endpointId] of endpointIds.entries()) {
    getEndpoint(tx, endpointId)
    tx.insert(egressMembers).values({ poolId: id, endpointId, sortOrder }).run()
  }
  append(tx, actor, 'proxy_pool_created', { target: id, details: { ...input, endpointIds } })
  notice(tx, 'egress')
  return getPool(tx, id)
}

/** Throws `proxy_pool_not_found`, `name_taken`. */
export const editPool = (tx: Tx, id: string, edit: PoolEdit, actor: Actor): EgressPoolRow => {
  const before = getPool(tx, id)
  const change = getChanges(before, edit)
  if (Object.keys(change).length === 0) return before
  if (change.name !== undefined) requireFreeName(tx, change.name, id)
  tx.update(egressPools).set(change).where(eq(egressPools.id, id)).run()
  append(tx, actor, 'proxy_pool_updated', { target: id, details: change })
  return changed(tx, id, actor)
}

/** Throws `proxy_pool_not_found`, and `proxy_pool_in_use` while an account, the settings or a sign-in need it. */
export const deletePool = (tx: Tx, id: string, actor: Actor): void => {
  const { name } = getPool(tx, id)
  const isChosen = and(eq(oauthFlows.egressPoolId, id), eq(oauthFlows.status, 'pending'))
  const isInUse = tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.egressPoolId, id)).get() !== undefined
  const isAwaited = tx.select({ id: oauthFlows.id }).from(oauthFlows).where(isChosen).get() !== undefined
  if (isInUse || isAwaited || getDefaultPool(tx) === id) throw new AppError('proxy_pool_in_use')
  tx.delete(egressPools).where(eq(egressPools.id, id)).run()
  append(tx, actor, 'proxy_pool_deleted', { target: id, details: { name } })
  notice(tx, 'egress')
}

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const addMember = (tx: Tx, poolId: string, { endpointId, sortOrder, isActive }: NewMember, actor: Actor) => {
  getPool(tx, poolId)
  getEndpoint(tx, endpointId)
  const own = getMembers(tx, poolId)
  if (own.some((member) => member.endpointId === endpointId)) throw new AppError('proxy_pool_member_duplicate')
  const last = Math.max(-1, ...own.map((member) => member.sortOrder))
  const member = { poolId, endpointId, sortOrder: sortOrder ?? last + 1, isActive }
  tx.insert(egressMembers).values(member).run()
  append(tx, actor, 'proxy_pool_member_added', { target: poolId, details: member })
  return changed(tx, poolId, actor)
}

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found` for an endpoint that is no member. */
export const editMember = (tx: Tx, { poolId, endpointId }: MemberName, edit: MemberEdit, actor: Actor) => {
  const before = getMember(tx, poolId, endpointId)
  const change = getChanges(before, edit)
  if (Object.keys(change).length === 0) return getPool(tx, poolId)
  tx.update(egressMembers).set(change).where(isMember(poolId, endpointId)).run()
  append(tx, actor, 'proxy_pool_member_updated', { target: poolId, details: { endpointId, ...change } })
  return changed(tx, poolId, actor)
}

/** Throws as `editMember` does. */
export const removeMember = (tx: Tx, { poolId, endpointId }: MemberName, actor: Actor): EgressPoolRow => {
  getMember(tx, poolId, endpointId)
  tx.delete(egressMembers).where(isMember(poolId, endpointId)).run()
  append(tx, actor, 'proxy_pool_member_removed', { target: poolId, details: { endpointId } })
  return changed(tx, poolId, actor)
}

/** Null: the account follows the settings again. Throws `account_not_found`, `proxy_pool_not_found`. */
export const bindAccount = (tx: Tx, accountId: string, poolId: string | null, actor: Actor): void => {
  const before = getAccount(tx, accountId).egressPoolId
  if (poolId !== null) getPool(tx, poolId)
  if (before === poolId) return
  tx.update(accounts).set({ egressPoolId: poolId }).where(eq(accounts.id, accountId)).run()
  append(tx, actor, 'account_egress_changed', { target: accountId, details: { from: before, to: poolId } })
  notice(tx, 'egress')
  notice(tx, 'accounts')
  resumeRouted(tx, actor)
}

interface MemberName {
  poolId: string
  endpointId: string
}

const getMembers = (db: Db, poolId: string): EgressMemberRow[] =>
  listMembers(db).filter((member) => member.poolId === poolId)

const getMember = (db: Db, poolId: string, endpointId: string): EgressMemberRow => {
  getPool(db, poolId)
  const row = getMembers(db, poolId).find((member) => member.endpointId === endpointId)
  if (!row) throw new AppError('proxy_endpoint_not_found')
  return row
}

const isMember = (poolId: string, endpointId: string) =>
  and(eq(egressMembers.poolId, poolId), eq(egressMembers.endpointId, endpointId))

const changed = (tx: Tx, id: string, actor: Actor): EgressPoolRow => {
  notice(tx, 'egress')
  resumeRouted(tx, actor)
  return getPool(tx, id)
}

const requireFreeName = (tx: Tx, name: string, own: string | null): void => {
  const other = tx.select().from(egressPools).where(eq(egressPools.name, name)).get()
  if (other && other.id !== own) throw new AppError('name_taken', { param: 'name' })
}
