/** Runs automations: one small request on each of their accounts, at set times or when a user starts it. */
import { commit } from '../../db/commit.ts'
import { type CommitAgainDeps, commitClaim, commitResult } from '../../db/commit-again.ts'
import type { RunAccount } from '../../db/schema/automations.ts'
import { AppError } from '../errors.ts'
import { inLanes } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Work } from '../lib/schedule.ts'
import { recordAccountEvent } from '../model/accounts/account-events.ts'
import {
  type AccountState,
  type AccountStatus,
  getStatusUnderPause,
  isBlocked,
  nextState,
} from '../model/accounts/account-state.ts'
import { pingModel } from '../model/accounts/ping-model.ts'
import { getSchedule, isEnabled, listAutomations } from '../model/automations/automations.ts'
import {
  beginAccount,
  claimSlot,
  endAccount,
  endInterrupted,
  hasRunningRequest,
  hasSlot,
  INTERRUPTED,
  type Note,
  type RunRow,
  recordMissedSlot,
  runningRuns,
} from '../model/automations/runs.ts'
import { LATE_MS, latestSlot } from '../model/automations/schedule.ts'
import type { Catalog } from '../model/catalog/catalog.ts'

export const AUTOMATIONS_BEAT_MS = 30_000
const LANES = 4

export interface AutomationPing {
  accountId: string
  model: string
  /** Null: the model's default. */
  effort: string | null
  prompt: string
  includePaused: boolean
}

export interface AutomationDeps extends CommitAgainDeps {
  log: Log
  random: Random
  pool: { all(): readonly { readonly id: string }[]; get(id: string): { readonly state: AccountState } | null }
  catalog: Pick<Catalog, 'cheapest' | 'getEfforts'>
  lifecycle: { readonly draining: boolean; readonly maxTurns: number }
  /** The running requests. */
  turns: { readonly size: number }
  /** Sends the request and waits for its end, at most 30 s. Throws an `AppError`. */
  ping: (wanted: AutomationPing, signal: AbortSignal) => Promise<void>
  /** Fetches the usage of an account. */
  readUsage: (accountId: string) => Promise<void>
}

/** The job. It ends when no account is due any more. */
export const automationsJob = (deps: AutomationDeps): Work => {
  const { db, clock } = deps
  return async (signal) => {
    // None of this process's requests is running. A node that led before may still run some, whose results are then dropped.
    if (await hasRunningRequest(db)) await commit(db, (tx) => endInterrupted(tx, clock.now()))
    for (;;) {
      await claimDue(deps)
      const due = isOpen(deps) ? await dueAccounts(deps) : []
      if (due.length === 0) return
      await inLanes(due, LANES, (one) => startOne(deps, one, signal))
      signal.throwIfAborted()
    }
  }
}

/** Whether a request would be admitted. */
const isOpen = ({ lifecycle, turns }: AutomationDeps): boolean => !lifecycle.draining && turns.size < lifecycle.maxTurns

/** Only the latest time of each automation, and none from before it was created or changed. */
const claimDue = async ({ db, clock, pool, random, log }: AutomationDeps): Promise<void> => {
  const now = clock.now()
  for (const automation of await listAutomations(db)) {
    const slot = automation.enabled ? latestSlot(getSchedule(automation), now) : null
    if (slot === null || slot < automation.updatedAt || (await hasSlot(db, automation.id, slot))) continue
    if (now - slot > LATE_MS) {
      if (await commit(db, (tx) => recordMissedSlot(tx, slot, { automation, now, random })))
        log.warn('an automation was skipped because its time had passed', { automation: automation.id })
      continue
    }
    const accountIds = automation.accountIds ?? pool.all().map(({ id }) => id)
    await commit(db, (tx) => claimSlot(tx, slot, { automation, accountIds, now, random }))
  }
}

interface Due {
  run: RunRow
  account: RunAccount
}

const dueAccounts = async ({ db, clock }: AutomationDeps): Promise<Due[]> => {
  const now = clock.now()
  return (await runningRuns(db)).flatMap((run) =>
    run.accounts
      .filter(({ status, scheduledFor }) => status === 'pending' && scheduledFor <= now)
      .map((account) => ({ run, account })),
  )
}

const startOne = async (deps: AutomationDeps, { run, account }: Due, signal: AbortSignal): Promise<void> => {
  signal.throwIfAborted()
  if (!isOpen(deps)) return
  const { db, clock } = deps
  const { accountId, scheduledFor } = account
  const now = clock.now()
  const skipped = now - scheduledFor > LATE_MS ? 'missed' : await skipReason(deps, run, accountId)
  if (skipped !== null) {
    const ended = { code: skipped, message: null }
    await commit<boolean>(db, (tx) => endAccount(tx, run.id, { accountId, now, status: 'skipped', ended }))
    return
  }
  const begin = { accountId, now }
  if (!(await commitClaim(deps, (tx, mayBeStored) => beginAccount(tx, run.id, { ...begin, mayBeStored })))) return
  const failure = await request(deps, run, accountId, signal)
  if (run.kind === 'probe' && !signal.aborted) await readUsage(deps, accountId)
  const at = clock.now()
  await commitResult(deps, async (tx) => {
    const end = { accountId, now: at, status: failure ? 'failed' : 'success', ended: failure } as const
    if ((await endAccount(tx, run.id, end)) && run.kind === 'probe')
      await recordAccountEvent(tx, {
        accountId,
        at,
        kind: 'probe',
        result: failure ? 'failed' : 'served',
        detail: failure ? (failure.message ?? failure.code) : 'ChatGPT answered 200.',
      })
  })
}

/** Null: it was answered. */
const request = async (
  { ping, catalog }: AutomationDeps,
  { model, effort, prompt, includePaused }: RunRow,
  accountId: string,
  signal: AbortSignal,
): Promise<Note | null> => {
  const chosen =
    model === null ? pingModel(catalog, accountId, null) : { model, effort: catalog.getEfforts(model)[0] ?? null }
  try {
    await ping({ accountId, model: chosen.model, effort: effort ?? chosen.effort, prompt, includePaused }, signal)
    return null
  } catch (err) {
    if (signal.aborted) return INTERRUPTED
    const { code, message, extra } = AppError.from(err)
    return { code: extra.upstream?.code ?? code, message }
  }
}

const readUsage = ({ readUsage: read, log }: AutomationDeps, accountId: string): Promise<void> =>
  read(accountId).catch((err: unknown) => log.info('no usage after an automation', { account: accountId, err }))

/** Null: it is sent. The codes have their texts in `model/automations/view.ts`. */
const skipReason = async (
  { db, pool, clock }: AutomationDeps,
  run: RunRow,
  accountId: string,
): Promise<string | null> => {
  if (run.trigger === 'scheduled' && !(await isEnabled(db, run.automationId))) return 'automation_disabled'
  const account = pool.get(accountId)
  if (!account) return 'account_not_found'
  // An expired block must not depend on the timer.
  const state = isBlocked(account.state) ? nextState(account.state, { kind: 'tick', at: clock.now() }) : account.state
  const isPaused = state.status === 'paused'
  const status = isPaused && run.includePaused ? getStatusUnderPause(state) : state.status
  return status === 'paused' && run.includePaused ? null : SKIPPED[status]
}

const SKIPPED: Record<AccountStatus, string | null> = {
  active: null,
  rate_limited: 'account_rate_limited',
  quota_exceeded: 'account_quota_exceeded',
  paused: 'account_paused',
  reauth_required: 'account_needs_sign_in',
  deactivated: 'account_deactivated',
}
