/** All periodic jobs with their names and intervals. */
import { onChange } from '../../db/commit.ts'
import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import type { Schedule } from '../lib/schedule.ts'
import { fetchUsage } from '../upstream/usage.ts'
import {
  ALERT_DELIVERIES_BEAT_MS,
  type AlertDeliveriesDeps,
  alertDeliveriesJob,
  sendUnstored,
} from './alert-deliveries.ts'
import { ALERTS_BEAT_MS, type AlertsDeps, AUDIT_CHECK_BEAT_MS, alertJobs } from './alerts.ts'
import { AUTOMATIONS_BEAT_MS, type AutomationDeps, automationsJob } from './automations.ts'
import { BACKUPS_BEAT_MS, type BackupJobDeps, backUp } from './backups.ts'
import { CATALOG_INTERVAL_MS, fetchCatalogs } from './catalog.ts'
import { type JobDeps, toAccountCallDeps } from './context.ts'
import { DATABASE_FILE_INTERVAL_MS, type DatabaseFileDeps, databaseFileJob } from './database-file.ts'
import { pollNewAccounts } from './first-poll.ts'
import { ODDITIES_INTERVAL_MS, type OdditiesDeps, odditiesJob } from './oddities.ts'
import { OVERVIEW_INTERVAL_MS, type OverviewDeps, readAhead } from './overview.ts'
import { QUOTA_PLANNER_BEAT_MS, type QuotaPlannerDeps, quotaPlannerJob } from './quota-planner.ts'
import { type RedeemByRuleDeps, redeemByRule } from './redeem-by-rule.ts'
import { RESET_CREDITS_INTERVAL_MS, type ResetCreditsDeps, resetCreditsJob } from './reset-credits.ts'
import { type CaptureRetentionDeps, purgeCaptures, type RetentionDeps, retain } from './retention.ts'
import { SAMPLES_INTERVAL_MS, type SamplesDeps, sampleUsage } from './samples.ts'
import { addUpCompletedHours, SUMS_INTERVAL_MS } from './sums.ts'
import { renewTokens, TOKENS_INTERVAL_MS } from './tokens.ts'
import { pollUsage, USAGE_BEAT_MS } from './usage.ts'
import { WINDOW_STARTS_BEAT_MS, type WindowStartDeps, windowStartsJob } from './window-starts.ts'

/** The part of `Bindings` that jobs use. */
type JobSources = Omit<JobDeps, 'polls' | 'upstream' | 'credentials'> &
  Pick<RetentionDeps, 'settings'> &
  Pick<CaptureRetentionDeps, 'settings' | 'captures'> &
  Pick<BackupJobDeps, 'settings'> &
  Pick<OverviewDeps, 'figures'> &
  Pick<WindowStartDeps, 'pool' | 'settings' | 'lifecycle' | 'turns'> &
  Pick<AutomationDeps, 'pool' | 'random'> &
  Pick<QuotaPlannerDeps, 'replayer' | 'random'> &
  Pick<OdditiesDeps, 'reader'> &
  Pick<RedeemByRuleDeps, 'pool' | 'settings' | 'resetCredits'> &
  Omit<AlertsDeps, 'sendUnstored'> &
  AlertDeliveriesDeps &
  SamplesDeps & { ops: Pick<BackupJobDeps, 'backups'> & DatabaseFileDeps['ops'] } & Pick<
    ResetCreditsDeps,
    'pool' | 'resetCredits' | 'random'
  > & {
    proxyDeps: Pick<JobDeps, 'upstream' | 'credentials'>
    responses: { sweep(): void }
    rates: { refresh(): Promise<void> }
    shares: { refresh(): Promise<void> }
  }

/** No block of an account outlasts its end by more. */
const STATES_INTERVAL_MS = 5000
/** How soon a process counts the requests of other processes. */
const SHARES_INTERVAL_MS = 5000

/** Registers what every process does for itself: it changes only memory. */
export const scheduleUpkeep = (
  schedule: Schedule,
  {
    db,
    pool,
    clock,
    figures,
    responses,
    rates,
    shares,
  }: Pick<JobSources, 'db' | 'pool' | 'clock' | 'figures' | 'responses' | 'rates' | 'shares'>,
): void => {
  schedule.add('states', STATES_INTERVAL_MS, async () => pool.tick())
  schedule.add('overview', OVERVIEW_INTERVAL_MS, () => readAhead({ db, clock, figures }), { runAtStart: true })
  // Only prices of moves and shares need them.
  const refreshRates = async () => (pool.all().length > 1 ? rates.refresh() : undefined)
  schedule.add('credit rates', HOUR_MS, refreshRates, { jitter: 0.1, runAtStart: true })
  schedule.add('shares', SHARES_INTERVAL_MS, () => shares.refresh(), { runAtStart: true })
  schedule.add('stored responses', MINUTE_MS, async () => responses.sweep())
}

interface JobRequests {
  startWindow: WindowStartDeps['ping']
  ping: AutomationDeps['ping']
  /** Aborts at shutdown, but not when another process gets the jobs. */
  stopping?: AbortSignal
}

/**
 * Registers the jobs, which run in one process of the folder at a time. A new or reactivated account is polled as soon
 * as its commit is announced, so the pool must learn of `accounts` changes first. Returns the function that ends this.
 */
export const scheduleJobs = (
  schedule: Schedule,
  workplace: JobSources,
  { startWindow, ping, stopping }: JobRequests,
): (() => void) => {
  const { db, pool, catalog, clock, log, settings, resetCredits, random, ops, reader } = workplace
  const { captures } = workplace
  const { upstream, credentials } = workplace.proxyDeps
  const deps: JobDeps = { db, pool, catalog, clock, log, upstream, credentials, polls: new Map() }
  const met = new Set<string>()
  const rules = { ...deps, pool, resetCredits, settings, stopping }
  schedule.add('newcomers', MINUTE_MS, (signal) => pollNewAccounts(deps, met, signal), { runAtStart: true })
  schedule.add('usage', USAGE_BEAT_MS, (signal) => pollUsage(deps, signal))
  schedule.add(
    'reset credits',
    RESET_CREDITS_INTERVAL_MS,
    resetCreditsJob({ ...deps, pool, resetCredits, random, redeemByRule: (id) => redeemByRule(rules, id) }),
    {
      jitter: 0.1,
      runAtStart: true,
    },
  )
  schedule.add('window starts', WINDOW_STARTS_BEAT_MS, windowStartsJob({ ...workplace, ping: startWindow, stopping }), {
    runAtStart: true,
  })
  const readUsage = async (id: string) => pool.observe(id, await fetchUsage(toAccountCallDeps(deps), id))
  schedule.add('automations', AUTOMATIONS_BEAT_MS, automationsJob({ ...workplace, ping, readUsage, stopping }), {
    runAtStart: true,
  })
  schedule.add('quota planner', QUOTA_PLANNER_BEAT_MS, quotaPlannerJob({ ...workplace, ping: startWindow, stopping }), {
    runAtStart: true,
  })
  schedule.add('catalog', CATALOG_INTERVAL_MS, (signal) => fetchCatalogs(deps, signal), { jitter: 0.1 })
  schedule.add('tokens', TOKENS_INTERVAL_MS, (signal) => renewTokens(deps, signal), { jitter: 0.1, runAtStart: true })
  const forget = async (signal: AbortSignal) => {
    await purgeCaptures({ captures, clock, settings })
    await retain({ db, clock, settings }, signal)
  }
  schedule.add('retention', HOUR_MS, forget, { jitter: 0.1 })
  const written = new Map<string, number>()
  schedule.add('usage samples', SAMPLES_INTERVAL_MS, () => sampleUsage({ db, pool }, written))
  schedule.add('oddities', ODDITIES_INTERVAL_MS, odditiesJob({ db, clock, random, reader }))
  schedule.add('sums', SUMS_INTERVAL_MS, (signal) => addUpCompletedHours({ db, clock }, signal), { runAtStart: true })
  const { backups } = ops
  schedule.add('backups', BACKUPS_BEAT_MS, (signal) => backUp({ backups, settings, clock, log }, signal))
  schedule.add('database file', DATABASE_FILE_INTERVAL_MS, databaseFileJob({ ops, log }))
  scheduleAlerts(schedule, workplace, stopping)
  return onChange(db, async (topics) => {
    if (!schedule.isRunning) return
    if (topics.has('accounts')) void schedule.runNow('newcomers')
    if (topics.has('automations')) void schedule.runAgain('automations')
    if (topics.has('alerts')) void schedule.runAgain('alert deliveries')
  })
}

const scheduleAlerts = (schedule: Schedule, workplace: JobSources, stopping: AbortSignal | undefined): void => {
  const { evaluate, checkAuditLog } = alertJobs({ ...workplace, sendUnstored: sendUnstored(workplace) })
  schedule.add('alerts', ALERTS_BEAT_MS, evaluate)
  schedule.add('alert deliveries', ALERT_DELIVERIES_BEAT_MS, alertDeliveriesJob({ ...workplace, stopping }))
  schedule.add('audit check', AUDIT_CHECK_BEAT_MS, checkAuditLog)
}
