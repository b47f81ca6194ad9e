/** Runs of automations as rows. Each step is committed before its request, so that no request is ever repeated. */
import { and, eq, inArray, lt } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { automationRuns, type RunAccount, type RunStatus } from '../../../db/schema/automations.ts'
import type { Random } from '../../lib/random.ts'
import { type AutomationRow, isUnchanged } from './automations.ts'
import { planAccounts } from './schedule.ts'

export type RunRow = typeof automationRuns.$inferSelect

/** What happened to a run or to an account of it, where that was not an error of a request. */
export interface Note {
  code: string
  /** Null: the code says it. */
  message: string | null
}

interface NewRun {
  automation: AutomationRow
  /** The accounts, fixed from now on. */
  accountIds: readonly string[]
  now: number
  random: Random
}

/** Null when this time was used before, or the automation has changed. `slot` is ms since epoch. */
export const claimSlot = async (
  tx: Tx,
  slot: number,
  { automation, accountIds, now, random }: NewRun,
): Promise<RunRow | null> => {
  const { id, spreadMinutes } = automation
  const accounts = planAccounts(accountIds, { seed: `${id} ${slot}`, start: slot, spreadMinutes })
  return insertRun(tx, automation, { slot, trigger: 'scheduled', accounts, now, random })
}

/** A scheduled time that has passed too long ago: a failed run says so. Null as for `claimSlot`. */
export const recordMissedSlot = async (
  tx: Tx,
  slot: number,
  run: Omit<NewRun, 'accountIds'>,
): Promise<RunRow | null> => {
  const missed = { status: 'failed', finishedAt: run.now, errorCode: 'missed' } as const
  return insertRun(tx, run.automation, { slot, trigger: 'scheduled', accounts: [], ...run, ...missed })
}

/** All accounts immediately, without regard to the schedule. */
export const startManualRun = async (tx: Tx, { automation, accountIds, now, random }: NewRun): Promise<RunRow> => {
  const accounts = planAccounts(accountIds, { seed: '', start: now, spreadMinutes: 0 })
  const run = await insertRun(tx, automation, { slot: null, trigger: 'manual', accounts, now, random })
  if (!run) throw new Error('A run without a scheduled time cannot have been claimed.')
  return run
}

type Inserted = Pick<RunRow, 'slot' | 'trigger' | 'accounts'> &
  Partial<Pick<RunRow, 'status' | 'finishedAt' | 'errorCode'>> &
  Pick<NewRun, 'now' | 'random'>

const insertRun = async (
  tx: Tx,
  automation: AutomationRow,
  { now, random, ...run }: Inserted,
): Promise<RunRow | null> => {
  if (run.trigger === 'scheduled' && !(await isUnchanged(tx, automation))) return null
  const { id: automationId, kind, model, effort, prompt, includePaused } = automation
  const begun = { status: 'running', finishedAt: null, errorCode: null } as const
  const state = run.accounts.length === 0 ? getEnd([], now) : begun
  const [row] = await tx
    .insert(automationRuns)
    .values({
      ...{ id: random.orderedId('run', now), automationId, startedAt: now },
      ...{ kind, model, effort, prompt, includePaused },
      ...state,
      ...run,
    })
    .onConflictDoNothing()
    .returning()
    .all()
  if (row) notice(tx, 'automations')
  return row ?? null
}

export const runningRuns = (db: Db): Promise<RunRow[]> =>
  db.select().from(automationRuns).where(eq(automationRuns.status, 'running')).orderBy(automationRuns.startedAt).all()

export const hasSlot = async (db: Db, automationId: string, slot: number): Promise<boolean> =>
  (await db
    .select({ id: automationRuns.id })
    .from(automationRuns)
    .where(and(eq(automationRuns.automationId, automationId), eq(automationRuns.slot, slot)))
    .get()) !== undefined

/**
 * False when the account has been started before, or the run was deleted. Commit it before the request. `mayBeStored`: it
 * may have been started by the same call, with the same `now`.
 */
export const beginAccount = async (
  tx: Tx,
  runId: string,
  { accountId, now, mayBeStored = false }: { accountId: string; now: number; mayBeStored?: boolean },
): Promise<boolean> => {
  const run = await runOf(tx, runId)
  const account = run?.accounts.find((one) => one.accountId === accountId)
  if (mayBeStored && account?.status === 'running' && account.startedAt === now) return true
  if (!run || account?.status !== 'pending') return false
  await changeAccount(tx, run, accountId, { status: 'running', startedAt: now })
  return true
}

/**
 * `ended` is null for success. The run ends with its last account. False when an end is already stored, perhaps by another
 * node that leads now, or the run was deleted.
 */
export const endAccount = async (
  tx: Tx,
  runId: string,
  { accountId, now, status, ended }: { accountId: string; now: number; status: AccountEnd; ended: Note | null },
): Promise<boolean> => {
  const run = await runOf(tx, runId)
  if (!run || run.accounts.some((one) => one.accountId === accountId && one.finishedAt !== null)) return false
  const error = { errorCode: ended?.code ?? null, errorMessage: ended?.message ?? null }
  await changeAccount(tx, run, accountId, { status, finishedAt: now, ...error })
  return true
}

type AccountEnd = Extract<RunAccount['status'], 'success' | 'failed' | 'skipped'>

const runOf = (db: Db, id: string): Promise<RunRow | undefined> =>
  db.select().from(automationRuns).where(eq(automationRuns.id, id)).get()

const changeAccount = async (tx: Tx, run: RunRow, accountId: string, change: Partial<RunAccount>): Promise<void> => {
  const accounts = run.accounts.map((one) => (one.accountId === accountId ? { ...one, ...change } : one))
  const isOver = accounts.every(({ status }) => status !== 'pending' && status !== 'running')
  const end = isOver ? getEnd(accounts, change.finishedAt ?? run.startedAt) : {}
  await tx
    .update(automationRuns)
    .set({ accounts, ...end })
    .where(eq(automationRuns.id, run.id))
    .run()
  notice(tx, 'automations')
}

/** Skipped accounts do not count, unless all were. */
const getEnd = (accounts: readonly RunAccount[], now: number): Pick<RunRow, 'status' | 'finishedAt' | 'errorCode'> => {
  const has = (status: RunAccount['status']) => accounts.some((one) => one.status === status)
  const status: RunStatus = !has('success') ? 'failed' : has('failed') ? 'partial' : 'success'
  const errorCode = has('success') || has('failed') ? null : 'no_accounts'
  return { status, finishedAt: now, errorCode }
}

/** Whether a request is running, or was when its process ended or lost the database. */
export const hasRunningRequest = async (db: Db): Promise<boolean> =>
  (await runningRuns(db)).some(({ accounts }) => accounts.some(({ status }) => status === 'running'))

/** Ends requests that were running when their process ended or lost the database. They are not repeated. */
export const endInterrupted = async (tx: Tx, now: number): Promise<void> => {
  for (const { id, accounts } of await runningRuns(tx))
    for (const { accountId, status } of accounts)
      if (status === 'running') await endAccount(tx, id, { accountId, now, status: 'failed', ended: INTERRUPTED })
}

export const INTERRUPTED: Note = { code: 'interrupted', message: null }

/** Oldest runs from before `before` (ms since epoch), at most `limit`. Returns how many. */
export const purgeRuns = async (tx: Tx, { before, limit }: { before: number; limit: number }): Promise<number> => {
  const old = tx
    .select({ id: automationRuns.id })
    .from(automationRuns)
    .where(lt(automationRuns.startedAt, before))
    .limit(limit)
  return (await tx.delete(automationRuns).where(inArray(automationRuns.id, old)).run()).changes
}
