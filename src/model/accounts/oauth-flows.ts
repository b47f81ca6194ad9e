/** ChatGPT sign-ins as rows: started, superseded, expired, finished, and the account they add, in one commit. */
import { createHash } from 'node:crypto'
import { and, desc, eq, lte, ne, notInArray } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { oauthFlows } from '../../../db/schema/history.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { findPerson } from '../users/people.ts'
import { holds } from '../users/permissions.ts'
import { recordAccountEvent } from './account-events.ts'
import { importAccount, isSameSeat, renewAccount, type TakingIn } from './account-intake.ts'
import { displayName, getAccount } from './accounts.ts'
import type { ImportedAccount } from './auth-json.ts'

export type FlowRow = typeof oauthFlows.$inferSelect

/** Finished sign-ins kept for pages that still poll them. */
const KEPT_FLOWS = 16
/** Pending browser sign-ins per user; one more ends the oldest. */
const MAX_PENDING = 16

const EXPIRED = 'The sign-in expired. Start a new one.'
const SUPERSEDED = 'You started a newer sign-in.'
const CANCELLED = 'The sign-in was cancelled.'

/** The encryption context of a flow's secret. */
export const flowContext = (id: string): string => `oauth_flows/secret/${id}`

export const getStateHash = (state: string): string => createHash('sha256').update(state).digest('hex')

/** The flow at `now`: a pending one past its time counts as expired even if not yet stored. */
export const flowAt = (row: FlowRow, now: number): FlowRow =>
  row.status === 'pending' && row.expiresAt <= now ? { ...row, status: 'error', errorMessage: EXPIRED } : row

/**
 * Throws `oauth_flow_not_found`, also for other users' flows: the user who completes a sign-in decides which tokens are
 * stored.
 */
export const getFlowOf = async (db: Db, createdBy: string, id: string): Promise<FlowRow> => {
  const row = await findFlow(db, id)
  return row?.createdBy === createdBy ? row : notFound()
}

/** Throws `oauth_flow_not_found`. */
export const getFlow = async (db: Db, id: string): Promise<FlowRow> => (await findFlow(db, id)) ?? notFound()

const findFlow = (db: Db, id: string): Promise<FlowRow | undefined> =>
  db.select().from(oauthFlows).where(eq(oauthFlows.id, id)).get()

/** The user's latest flow. Throws `oauth_flow_not_found`. */
export const getLatestFlow = async (db: Db, createdBy: string): Promise<FlowRow> =>
  (await db
    .select()
    .from(oauthFlows)
    .where(eq(oauthFlows.createdBy, createdBy))
    .orderBy(desc(oauthFlows.createdAt), desc(oauthFlows.id))
    .limit(1)
    .get()) ?? notFound()

/** The flow a callback belongs to. Throws `invalid_callback`. */
export const flowOfState = async (db: Db, state: string): Promise<FlowRow> => {
  const row = await db
    .select()
    .from(oauthFlows)
    .where(eq(oauthFlows.stateHash, getStateHash(state)))
    .get()
  if (!row) throw new AppError('invalid_callback', { param: 'callbackUrl' })
  return row
}

/** Oldest first. */
export const pendingFlows = (db: Db): Promise<FlowRow[]> =>
  db
    .select()
    .from(oauthFlows)
    .where(eq(oauthFlows.status, 'pending'))
    .orderBy(oauthFlows.createdAt, oauthFlows.id)
    .all()

export type NewFlow = Omit<FlowRow, 'status' | 'errorMessage' | 'resultAccountId' | 'createdBy' | 'createdAt'>

/**
 * Only a user's newest device flow stays pending, because users look at one code. Throws `account_not_found` for a
 * deleted target.
 */
export const beginFlow = async (tx: Tx, flow: NewFlow, actor: Actor): Promise<FlowRow> => {
  if (flow.accountId !== null) await getAccount(tx, flow.accountId)
  const waiting = (await pendingFlows(tx)).filter(
    ({ method, createdBy }) => method === flow.method && createdBy === actor.id,
  )
  const superseded =
    flow.method === 'device' ? waiting : waiting.slice(0, Math.max(0, waiting.length + 1 - MAX_PENDING))
  for (const { id } of superseded) await end(tx, id, SUPERSEDED)
  await tx
    .insert(oauthFlows)
    .values({ ...flow, status: 'pending', createdBy: actor.id, createdAt: actor.at })
    .run()
  await append(tx, actor, 'account_sign_in_started', {
    target: flow.accountId,
    details: { flowId: flow.id, method: flow.method },
  })
  await deleteOldFlows(tx)
  return getFlow(tx, flow.id)
}

const deleteOldFlows = async (tx: Tx): Promise<void> => {
  const kept = (
    await tx
      .select({ id: oauthFlows.id })
      .from(oauthFlows)
      .where(ne(oauthFlows.status, 'pending'))
      .orderBy(desc(oauthFlows.createdAt), desc(oauthFlows.id))
      .limit(KEPT_FLOWS)
      .all()
  ).map(({ id }) => id)
  await tx
    .delete(oauthFlows)
    .where(and(ne(oauthFlows.status, 'pending'), notInArray(oauthFlows.id, kept)))
    .run()
}

/** Ends expired flows except those in `except`, which are being exchanged. */
export const expireFlows = async (tx: Tx, now: number, except: readonly string[]): Promise<void> => {
  await tx
    .update(oauthFlows)
    .set({ status: 'error', errorMessage: EXPIRED })
    .where(
      and(eq(oauthFlows.status, 'pending'), lte(oauthFlows.expiresAt, now), notInArray(oauthFlows.id, [...except])),
    )
    .run()
}

/** False when it had already ended. */
const end = async (tx: Tx, id: string, errorMessage: string): Promise<boolean> =>
  (
    await tx
      .update(oauthFlows)
      .set({ status: 'error', errorMessage })
      .where(and(eq(oauthFlows.id, id), eq(oauthFlows.status, 'pending')))
      .run()
  ).changes > 0

/** Cancels a flow. Throws `oauth_flow_not_found`. */
export const cancelFlow = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { accountId, method } = await getFlowOf(tx, actor.id, id)
  if (!(await end(tx, id, CANCELLED))) return
  await append(tx, actor, 'account_sign_in_cancelled', { target: accountId, details: { flowId: id, method } })
}

export const wasCancelled = ({ errorMessage }: FlowRow): boolean => errorMessage === CANCELLED

/** Ends a flow with a message for the user; an ended flow stays unchanged. */
export const failFlow = async (
  tx: Tx,
  { id, accountId, method }: FlowRow,
  errorMessage: string,
  actor: Actor,
): Promise<void> => {
  if (!(await end(tx, id, errorMessage))) return
  await append(tx, actor, 'account_sign_in_failed', {
    target: accountId,
    details: { flowId: id, method, reason: errorMessage },
  })
  if (accountId !== null)
    await recordAccountEvent(tx, {
      accountId,
      at: actor.at,
      kind: 'import',
      result: 'sign-in failed',
      detail: errorMessage,
    })
}

/**
 * Stores the signed-in account and ends the flow, unless it has ended in the meantime. With a target, another account
 * is rejected and nothing is stored. Throws `oauth_flow_not_found`.
 */
export const completeFlow = async (tx: Tx, id: string, imported: ImportedAccount, doing: TakingIn): Promise<void> => {
  const flow = await getFlow(tx, id)
  if (flow.status !== 'pending') return
  const refusal = await getRefusal(tx, flow, imported)
  if (refusal !== null) {
    await failFlow(tx, flow, refusal, doing.actor)
    return
  }
  const accountId =
    flow.accountId === null
      ? (await importAccount(tx, imported, { ...doing, event: 'account_signed_in', egressPoolId: flow.egressPoolId }))
          .id
      : await reauthenticate(tx, flow.accountId, imported, doing)
  await tx.update(oauthFlows).set({ status: 'success', resultAccountId: accountId }).where(eq(oauthFlows.id, id)).run()
}

const reauthenticate = async (
  tx: Tx,
  accountId: string,
  imported: ImportedAccount,
  doing: TakingIn,
): Promise<string> => {
  await renewAccount(tx, await getAccount(tx, accountId), imported, doing)
  const { actor } = doing
  await append(tx, actor, 'account_reauthenticated', { target: accountId, details: { email: imported.identity.email } })
  await recordAccountEvent(tx, {
    accountId,
    at: actor.at,
    kind: 'import',
    result: 'signed in again',
    detail: byActor(actor),
  })
  return accountId
}

/** null: an actor without a user. */
const byActor = ({ name }: Actor): string | null => (name ? `By ${name}.` : null)

const getRefusal = async (tx: Tx, flow: FlowRow, { identity }: ImportedAccount): Promise<string | null> => {
  if (!(await mayStillAdd(tx, flow.createdBy))) return 'You no longer have permission to add accounts.'
  if (flow.accountId === null) return null
  const row = await getAccount(tx, flow.accountId)
  if (isSameSeat(row, identity)) return null
  const who =
    row.email.toLowerCase() === identity.email.toLowerCase()
      ? `${identity.email} signed in with a different workspace or user than ${displayName(row)}`
      : `You signed in as ${identity.email}, not as ${displayName(row)}`
  return `${who}. Nothing was changed.`
}

/** A sign-in takes minutes, in which its user may be disabled. Actors without a user are the local administrator. */
const mayStillAdd = async (db: Db, createdBy: string): Promise<boolean> => {
  if (!createdBy.startsWith('usr_')) return true
  const person = await findPerson(db, createdBy)
  return person?.row.status === 'active' && holds(person.role.grants, 'accounts:write')
}

const notFound = (): never => {
  throw new AppError('oauth_flow_not_found')
}
