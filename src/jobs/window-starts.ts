/** Starts the five-hour windows of accounts that ask for it, at a confirmed reset or at set hours. */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { inLanes } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Work } from '../lib/schedule.ts'
import { type AccountState, isInUse } from '../model/account-state.ts'
import type { AccountRow } from '../model/accounts.ts'
import type { Catalog } from '../model/catalog.ts'
import { pingModel } from '../model/ping-model.ts'
import { windowStartRefusal } from '../model/preserve-floors.ts'
import type { UsageSnapshot, UsageWindow } from '../model/usage-windows.ts'
import { confirmedReset, dueHour } from '../model/window-due.ts'
import { claimWindowStart, endWindowStart } from '../model/window-starts.ts'
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

export interface WindowStartDeps {
  db: Db
  clock: Clock
  log: Log
  pool: { all(): readonly WindowAccount[] }
  catalog: Pick<Catalog, 'cheapest' | 'effortsOf'>
  settings: { current(): Readonly<Settings> }
  /** Sends the request and waits for its end, at most 30 s. Throws an `AppError`. */
  ping: (wanted: { accountId: string; model: string; effort: string | null }, signal: AbortSignal) => Promise<void>
}

/** The job. It compares each report with the one before; after a restart the stored report is the first. */
export const windowStartsJob = (deps: WindowStartDeps): Work => {
  const seen = new Map<string, UsageWindow | null>()
  return async (signal) => {
    const due = dueAccounts(deps, seen)
    await inLanes(due, LANES, (start) => startOne(deps, start, signal))
  }
}

interface Due {
  account: WindowAccount
  resetAt: number
}

const dueAccounts = (deps: WindowStartDeps, seen: Map<string, UsageWindow | null>): Due[] => {
  const now = deps.clock.now()
  const settings = deps.settings.current()
  const all = deps.pool.all()
  const due = all.flatMap((account) => {
    const window = account.usage?.windows.fiveHour ?? null
    const reset = confirmedReset(seen.get(account.id) ?? null, window, now)
    seen.set(account.id, window)
    if (!account.row.windowStartEnabled || !isInUse(account.state)) return []
    const isAllowed = windowStartRefusal(account, all, now) === null
    const resetAt = isAllowed ? dueAt(account, { settings, reset, now }) : null
    return resetAt === null ? [] : [{ account, resetAt }]
  })
  const ids = new Set(all.map(({ id }) => id))
  for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
  return due
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
  signal.throwIfAborted()
  const { db, clock, catalog, settings, log } = deps
  const chosen = settings.current().windowStartModel
  const accountId = account.id
  const { model, effort } = chosen
    ? { model: chosen, effort: catalog.effortsOf(chosen)[0] ?? null }
    : pingModel(catalog, accountId, null)
  if (!commit<boolean>(db, (tx) => claimWindowStart(tx, { accountId, resetAt, model, at: clock.now() }))) return
  const error = await deps.ping({ accountId, model, effort }, signal).then(
    () => null,
    (err: unknown) => AppError.from(err),
  )
  if (error) log.warn('a window could not be started', { account: accountId, code: error.code })
  commit(db, (tx) => endWindowStart(tx, { accountId, resetAt, at: clock.now() }, error))
}
