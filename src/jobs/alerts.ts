/** Compares the current problems with the active alerts, and raises, repeats and ends alerts. */
import { commit, type Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Work } from '../lib/schedule.ts'
import { withUniqueNames } from '../model/accounts/account-names.ts'
import type { AccountView } from '../model/accounts/account-view.ts'
import { alertKey, wordsOf } from '../model/alerts/events.ts'
import { applyPlan, DWELL_MS, planChanges, raiseOccurrence, type SeenAlert, toSeen } from '../model/alerts/incidents.ts'
import { newOccurrences, storeCursor } from '../model/alerts/occurrences.ts'
import { type RejectedLately, rejectedLately } from '../model/log/rejected-clients.ts'
import { matters } from '../model/overview/attention.ts'
import { collectFacts, type FactSources } from '../model/overview/attention-facts.ts'
import { type KeyFact, keyFacts } from '../model/overview/overview.ts'
import { PRESETS } from '../model/users/permissions.ts'
import type { UnstoredAlert } from './alert-deliveries.ts'

export const ALERTS_BEAT_MS = 5000
export const AUDIT_CHECK_BEAT_MS = 5 * MINUTE_MS
/** Facts read from the database, and therefore not at every beat. */
const SLOW_MS = MINUTE_MS
/** How long after a start the state in memory is incomplete. */
const FORGOTTEN_MS = 10 * MINUTE_MS

export interface AlertsDeps extends Omit<FactSources, 'ops' | 'pool'> {
  db: Db
  clock: Clock
  random: Random
  log: Log
  pool: FactSources['pool'] & { describe(): AccountView[] }
  ops: Omit<FactSources['ops'], 'backups'> & {
    backups: FactSources['ops']['backups'] & { readonly newestAt: number | null; list(): Promise<unknown> }
  }
  reader: { auditVerdict(): Promise<{ isWhole: boolean }> }
  /** Sends alerts while they cannot be stored. */
  sendUnstored: (alerts: readonly UnstoredAlert[]) => Promise<void>
}

interface SlowFacts {
  /** Monotonic time. */
  at: number
  keys: KeyFact[]
  rejected: RejectedLately[]
}

/** The two jobs, which share their state. */
export const alertJobs = (deps: AlertsDeps): { evaluate: Work; checkAuditLog: Work } => {
  const { db, clock, random } = deps
  const startedAt = clock.monotonic()
  const audit = { isBroken: false, checkedAt: Number.NEGATIVE_INFINITY }
  const unstored = new Unstored(deps)
  let slow: SlowFacts | null = null

  const evaluate = async (): Promise<void> => {
    const now = clock.now()
    if (slow === null || clock.monotonic() - slow.at >= SLOW_MS) slow = await readSlowFacts(deps)
    const seen = seenNow(deps, { slow, now, isAuditBroken: audit.isBroken })
    const isEarly = clock.monotonic() - startedAt < FORGOTTEN_MS
    const isUnknown = (event: string) => isEarly && wordsOf(event)?.isForgotten === true
    const plan = await planChanges(db, seen, { now, isUnknown })
    const news = await newOccurrences(db)
    if (plan === null && news === null) return unstored.settle(seen, [])
    await commit(db, async (tx) => {
      if (plan) await applyPlan(tx, plan, { now, random, alreadySent: unstored.keys })
      for (const occurrence of news?.occurrences ?? []) await raiseOccurrence(tx, occurrence, random)
      if (news) await storeCursor(tx, news.cursor)
    }).catch(async (err: unknown) => {
      await unstored.send(seen)
      throw err
    })
    await unstored.settle(seen, plan?.recover.map(({ key }) => key) ?? [])
  }

  const checkAuditLog = async (): Promise<void> => {
    if (clock.monotonic() - audit.checkedAt < HOUR_MS) return
    audit.isBroken = !(await deps.reader.auditVerdict()).isWhole
    audit.checkedAt = clock.monotonic()
  }
  return { evaluate, checkAuditLog }
}

const readSlowFacts = async ({ db, clock, ops }: AlertsDeps): Promise<SlowFacts> => {
  await ops.backups.list().catch(() => []) // updates `newestAt`; the backups page shows why it fails
  return {
    at: clock.monotonic(),
    keys: await keyFacts(db),
    rejected: await rejectedLately(db, clock.now()),
  }
}

interface Now {
  slow: SlowFacts
  now: number
  isAuditBroken: boolean
}

/** Removes texts from ChatGPT and client addresses, which must not be in messages. */
const seenNow = (deps: AlertsDeps, { slow, now, isAuditBroken }: Now): SeenAlert[] => {
  const facts = collectFacts(deps, {
    accounts: withUniqueNames(deps.pool.describe()),
    keys: slow.keys,
    rejected: slow.rejected.map((group) => ({ ...group, client: null })),
    lastBackupAt: deps.ops.backups.newestAt,
    now,
  })
  const outage = facts.outage && { ...facts.outage, message: '' }
  const backupFailure = facts.backupFailure && 'see Settings › Data.'
  return matters({ ...facts, outage, backupFailure, isAuditBroken }, PRESETS.admin).flatMap(
    ({ alert, tone, text, action }) => {
      if (alert === null) return []
      const { event, subject, part, isInfo } = alert
      const severity = isInfo ? 'info' : tone === 'bad' ? 'bad' : 'warning'
      return toSeen({
        key: alertKey(event, subject, part),
        event,
        severity,
        subject,
        text,
        path: action?.href ?? '/dashboard',
      })
    },
  )
}

/** Alerts about the database itself are sent even when it cannot be written. */
class Unstored {
  readonly #deps: Pick<AlertsDeps, 'clock' | 'sendUnstored'>
  /** Alerts by key, since the database failed. `since` is in ms since epoch. */
  readonly #alerts = new Map<string, { alert: SeenAlert; since: number; isSent: boolean }>()

  constructor(deps: Pick<AlertsDeps, 'clock' | 'sendUnstored'>) {
    this.#deps = deps
  }

  /** The keys of the alerts that were sent. */
  get keys(): ReadonlySet<string> {
    return new Set([...this.#alerts].flatMap(([key, { isSent }]) => (isSent ? [key] : [])))
  }

  /** Called when the database could not be written. */
  async send(seen: readonly SeenAlert[]): Promise<void> {
    const now = this.#deps.clock.now()
    const due = seen
      .filter(({ event }) => event === 'ledger.failing')
      .map((alert) => this.#alerts.getOrInsertComputed(alert.key, () => ({ alert, since: now, isSent: false })))
      .filter(({ isSent, since }) => !isSent && now - since >= DWELL_MS)
    for (const one of due) one.isSent = true
    if (due.length > 0) await this.#deps.sendUnstored(due.map((one) => ({ ...one, edge: 'raised' })))
  }

  /**
   * Called when the database could be written again. Ends alerts that are over, unless a stored incident already sent
   * the recovery.
   */
  async settle(seen: readonly SeenAlert[], recovered: readonly string[]): Promise<void> {
    const over = [...this.#alerts].filter(([key]) => !seen.some((alert) => alert.key === key))
    for (const [key] of over) this.#alerts.delete(key)
    const untold = over.filter(([key, { isSent }]) => isSent && !recovered.includes(key))
    if (untold.length > 0) await this.#deps.sendUnstored(untold.map(([, one]) => ({ ...one, edge: 'recovered' })))
  }
}
