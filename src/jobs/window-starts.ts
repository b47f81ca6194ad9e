/** Starts five-hour windows at a confirmed reset or at set hours, for accounts with this turned on. */
import type { CommitAgainDeps } from '../../db/commit-again.ts'
import { inLanes } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Work } from '../lib/schedule.ts'
import { type AccountState, isInUse } from '../model/accounts/account-state.ts'
import type { AccountRow } from '../model/accounts/accounts.ts'
import { windowStartRefusal } from '../model/accounts/preserve-floors.ts'
import { readSeenWindows, type SeenWindows, saveSeenWindows } from '../model/accounts/seen-windows.ts'
import { type Ping, startWindow } from '../model/accounts/start-window.ts'
import type { UsageSnapshot } from '../model/accounts/usage-windows.ts'
import { confirmedReset, dueHour } from '../model/accounts/window-due.ts'
import type { Catalog } from '../model/catalog/catalog.ts'
import type { Settings } from '../settings/schema.ts'

export const WINDOW_STARTS_BEAT_MS = 20_000
const LANES = 4

interface WindowAccount {
  readonly id: string
  readonly row: Pick<AccountRow, 'windowStartEnabled'>
  readonly routingPolicy: AccountRow['routingPolicy']
  readonly state: AccountState
  readonly usage: UsageSnapshot | null
  readonly lastForegroundAt: number
}

export interface WindowStartDeps extends CommitAgainDeps {
  log: Log
  pool: { all(): readonly WindowAccount[] }
  catalog: Pick<Catalog, 'cheapest' | 'getEfforts'>
  settings: { current(): Readonly<Settings> }
  lifecycle: { readonly draining: boolean; readonly maxTurns: number }
  /** The running requests. */
  turns: { readonly size: number }
  ping: Ping
}

/**
 * The job. It compares each window with the one of its last run, which is stored, so that a reset around a restart is not
 * missed. What it cannot start now, because Sluice is stopping or busy, is due again at the next run.
 */
export const windowStartsJob = (deps: WindowStartDeps): Work => {
  let seen: SeenWindows | null = null
  return async (signal) => {
    const before: SeenWindows = seen ?? (await readSeenWindows(deps.db))
    const now = windowsNow(deps)
    await inLanes(dueAccounts(deps, before), LANES, async (start) => {
      signal.throwIfAborted()
      if (isOpen(deps)) await startOne(deps, start, signal)
      else now.set(start.account.id, before.get(start.account.id) ?? null)
    })
    await saveSeenWindows(deps.db, watched(deps, now))
    seen = now
  }
}

const windowsNow = ({ pool }: WindowStartDeps) =>
  new Map(pool.all().map(({ id, usage }) => [id, usage?.windows.fiveHour ?? null]))

/** The windows whose reset would start them. */
const watched = ({ pool, settings }: WindowStartDeps, windows: SeenWindows): SeenWindows => {
  const accounts =
    settings.current().windowStart === 'at_reset' ? pool.all().filter(({ row }) => row.windowStartEnabled) : []
  return new Map(accounts.map(({ id }) => [id, windows.get(id) ?? null]))
}

/** Whether a request would be admitted. */
export const isOpen = ({ lifecycle, turns }: Pick<WindowStartDeps, 'lifecycle' | 'turns'>): boolean =>
  !lifecycle.draining && turns.size < lifecycle.maxTurns

/** A start that is claimed is made even if another node leads by then, because that node will not make it. */
export const untilStopped = ({ stopping }: WindowStartDeps, signal: AbortSignal): AbortSignal => stopping ?? signal

interface Due {
  account: WindowAccount
  resetAt: number
}

const dueAccounts = (deps: WindowStartDeps, before: SeenWindows): Due[] => {
  const now = deps.clock.now()
  const settings = deps.settings.current()
  const all = deps.pool.all()
  return all.flatMap((account) => {
    const reset = confirmedReset(before.get(account.id) ?? null, account.usage?.windows.fiveHour ?? null, now)
    if (!account.row.windowStartEnabled || !isInUse(account.state)) return []
    const isAllowed = windowStartRefusal(account, all, now) === null
    const resetAt = isAllowed ? dueAt(account, { settings, reset, now }) : null
    return resetAt === null ? [] : [{ account, resetAt }]
  })
}

const dueAt = (
  { usage }: WindowAccount,
  { settings, reset, now }: { settings: Readonly<Settings>; reset: number | null; now: number },
): number | null => {
  switch (settings.windowStart) {
    case 'off':
      return null
    case 'at_reset':
      return reset
    case 'at_hours':
      return dueHour(usage, { hours: settings.windowStartHours.split(' '), zone: settings.windowStartZone }, now)
  }
}

const startOne = async (deps: WindowStartDeps, { account, resetAt }: Due, signal: AbortSignal): Promise<void> => {
  const model = deps.settings.current().windowStartModel
  await startWindow(deps, { accountId: account.id, resetAt, model }, untilStopped(deps, signal))
}
