/** Upstream accounts as rows: state, usage and edits. Every change is one commit with its audit row. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts, accountUsage } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { requireVersion } from '../edit-version.ts'
import { unassignAccount } from '../keys/api-keys.ts'
import { findPerson } from '../users/people.ts'
import { recordAccountEvent } from './account-events.ts'
import { recordDeletion } from './account-leftovers.ts'
import { closeGaps, moveAccount } from './account-order.ts'
import { type AccountState, nextState } from './account-state.ts'
import { getTags, replaceTags } from './account-tags.ts'
import { accountVersion } from './account-view.ts'
import type { UsageSnapshot } from './usage-windows.ts'

export type AccountRow = typeof accounts.$inferSelect

export const listAccounts = (db: Db): Promise<AccountRow[]> =>
  db.select().from(accounts).orderBy(accounts.createdAt).all()

/** Throws `account_not_found`. */
export const getAccount = async (db: Db, id: string): Promise<AccountRow> =>
  (await db.select().from(accounts).where(eq(accounts.id, id)).get()) ?? notFound()

export const displayName = (row: Pick<AccountRow, 'alias' | 'email'>): string => row.alias ?? row.email

export const getState = (row: AccountRow): AccountState => ({
  status: row.status,
  cause: row.cause,
  evidence: row.evidence,
  since: row.since,
  until: row.until,
  nextCheckAt: row.nextCheckAt,
  attempts: row.attempts,
})

export const getUsage = async (db: Db): Promise<Map<string, UsageSnapshot>> =>
  new Map(
    (await db.select().from(accountUsage).all()).map((row) => [row.accountId, row.snapshot as UsageSnapshot]), // as: only the ledger writes it
  )

export const saveState = async (tx: Tx, id: string, state: AccountState): Promise<void> => {
  await tx.update(accounts).set(state).where(eq(accounts.id, id)).run()
  notice(tx, 'accounts')
}

export const savePlan = async (tx: Tx, id: string, planType: string): Promise<void> => {
  await tx.update(accounts).set({ planType }).where(eq(accounts.id, id)).run()
  notice(tx, 'accounts')
}

export const pauseAccount = (tx: Tx, id: string, actor: Actor): Promise<AccountState> =>
  transition(tx, id, actor, 'pause')

export const reactivateAccount = (tx: Tx, id: string, actor: Actor): Promise<AccountState> =>
  transition(tx, id, actor, 'reactivate')

const transition = async (tx: Tx, id: string, actor: Actor, kind: 'pause' | 'reactivate'): Promise<AccountState> => {
  const before = getState(await getAccount(tx, id))
  const state = nextState(before, { kind, at: actor.at })
  if (state === before) return state
  await saveState(tx, id, state)
  await append(tx, actor, kind === 'pause' ? 'account_paused' : 'account_reactivated', { target: id })
  await recordAccountEvent(tx, {
    accountId: id,
    at: actor.at,
    kind: 'state',
    result: state.status,
    detail: kind === 'pause' ? 'Paused by a user.' : 'Resumed by a user.',
  })
  return state
}

type Editable =
  | 'alias'
  | 'routingPolicy'
  | 'securityWorkAuthorized'
  | 'resetPolicy'
  | 'keepCredits'
  | 'minBlockedMinutes'
  | 'percent'
  | 'maxUsedPercentPrimary'
  | 'maxUsedPercentSecondary'
  | 'ownerUserId'
  | 'reserveForOwner'
  | 'position'

export type AccountEdit = Partial<Pick<AccountRow, Editable>> & { tags?: string[]; expectedVersion?: string }

/**
 * Unchanged values are ignored. Throws `account_not_found`, `edit_conflict`, and `validation_error` for an owner who is
 * not an active user, or for an exemption without an owner.
 */
export const editAccount = async (tx: Tx, id: string, input: AccountEdit, actor: Actor): Promise<AccountRow> => {
  const { expectedVersion, ...edit } = input
  const before = { ...(await getAccount(tx, id)), tags: await getTags(tx, id) }
  requireVersion(expectedVersion, accountVersion(before))
  const change = getChanges(before, edit)
  if (Object.keys(change).length === 0) return before
  await requireOwner(tx, change, { ...before, ...change })
  const { tags, position, ...columns } = change
  if (Object.keys(columns).length > 0) await tx.update(accounts).set(columns).where(eq(accounts.id, id)).run()
  if (tags) await replaceTags(tx, id, tags)
  if (position !== undefined) await moveAccount(tx, id, position)
  await append(tx, actor, 'account_updated', { target: id, details: change })
  notice(tx, 'accounts')
  return getAccount(tx, id)
}

const requireOwner = async (tx: Tx, { ownerUserId }: AccountEdit, after: AccountRow): Promise<void> => {
  if (ownerUserId && (await findPerson(tx, ownerUserId))?.row.status !== 'active')
    throw invalidEdit('ownerUserId', 'There is no active user with this ID.')
  if (after.reserveForOwner && after.ownerUserId === null)
    throw invalidEdit('reserveForOwner', 'Choose an owner first.')
}

const invalidEdit = (field: keyof AccountEdit, message: string): AppError =>
  new AppError('validation_error', { param: field, details: { fields: { [field]: [message] } } })

/** Call before deleting the user: its accounts stay, without an owner. */
export const disownAccounts = async (tx: Tx, userId: string): Promise<void> => {
  const owned = { ownerUserId: null, reserveForOwner: false }
  const { changes } = await tx.update(accounts).set(owned).where(eq(accounts.ownerUserId, userId)).run()
  if (changes > 0) notice(tx, 'accounts')
}

/** Removes it from all keys. Its log rows stay with its id, unless deleted `withHistory`. */
export const deleteAccount = async (tx: Tx, id: string, actor: Actor, { withHistory = false } = {}): Promise<void> => {
  const { email } = await getAccount(tx, id)
  await tx.delete(accounts).where(eq(accounts.id, id)).run()
  await unassignAccount(tx, id)
  await closeGaps(tx)
  await recordDeletion(tx, id, { at: actor.at, withHistory })
  await append(tx, actor, 'account_deleted', { target: id, details: { email } })
  for (const topic of ['accounts', 'affinity', 'catalog'] as const) notice(tx, topic)
}

const notFound = (): never => {
  throw new AppError('account_not_found')
}
