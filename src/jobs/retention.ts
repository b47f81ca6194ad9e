/** Deletes what is older than the settings allow, in small slices so that no request waits. */
import { inArray, lt, sql } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../db/commit.ts'
import { affinity } from '../../db/schema/accounts.ts'
import { rejectedClients } from '../../db/schema/rejections.ts'
import { requests } from '../../db/schema/requests.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { purgeAccountEvents } from '../model/accounts/account-events.ts'
import { clearLeftovers } from '../model/accounts/account-leftovers.ts'
import { thinReadings } from '../model/accounts/meter-read.ts'
import { purgeIncidents } from '../model/alerts/incidents.ts'
import { purgeAuditLog } from '../model/audit/audit-purge.ts'
import { purgeRuns } from '../model/automations/runs.ts'
import { dropExpiredCalls } from '../model/conversations/live-calls.ts'
import { FILE_LIFE_MS } from '../model/conversations/uploaded-files.ts'
import { dropExpiredKeySessions } from '../model/keys/key-sessions.ts'
import { trimConsidered } from '../model/log/trim-candidates.ts'
import { dropExpiredInvites } from '../model/users/expired-invites.ts'
import { dropExpiredChallenges } from '../model/users/passkeys.ts'
import { dropExpiredSessions } from '../model/users/sessions.ts'
import type { Settings } from '../settings/schema.ts'

export interface RetentionDeps {
  db: Db
  clock: Clock
  settings: { current(): Pick<Settings, Ages> }
}

type Ages = 'requestLogRetentionDays' | 'auditRetentionDays' | 'conversationAffinityMaxAgeDays'

export interface CaptureRetentionDeps extends Pick<RetentionDeps, 'clock'> {
  settings: { current(): Pick<Settings, 'captureRetentionDays'> }
  captures: { purge(before: number): Promise<number> }
}

/** Captures are files, and are deleted some days after they ended. */
export const purgeCaptures = async ({ captures, clock, settings }: CaptureRetentionDeps): Promise<void> => {
  await captures.purge(clock.now() - settings.current().captureRetentionDays * DAY_MS)
}

/** Rows per transaction, a few milliseconds, and the pause after it, which leaves the database to others. */
const SLICE = 500
/** Fewer request rows, because each is in eight indexes. */
const TURNS = 100
const PAUSE_MS = 50
/** The trends of an account, plus a week. */
const SAMPLE_DAYS = 35
const RUN_DAYS = 90
const ALERT_DAYS = 30
/** Requests that keep their routing explanation, in addition to all failed ones. */
const EXPLAINED_TURNS = 10_000
/** Per transaction: each frees a page or more. */
const EXPLANATIONS = 20

/** Keeps the hourly totals. Rejects with the reason of `signal` when it aborts between slices. */
export const retain = async ({ db, clock, settings }: RetentionDeps, signal: AbortSignal): Promise<void> => {
  const { requestLogRetentionDays, auditRetentionDays, conversationAffinityMaxAgeDays } = settings.current()
  const now = clock.now()
  const pause = () => clock.sleep(PAUSE_MS, signal)
  const inSlices = async (forget: (tx: Tx) => Promise<number>, slice = SLICE): Promise<void> => {
    let gone: number
    do {
      gone = await commit(db, forget)
      await pause()
    } while (gone === slice)
  }
  if (requestLogRetentionDays > 0) {
    const before = now - requestLogRetentionDays * DAY_MS
    await inSlices((tx) => deleteRequests(tx, { before, limit: TURNS }), TURNS)
    await inSlices((tx) => deleteRejected(tx, before))
    await inSlices((tx) => purgeAccountEvents(tx, { before, limit: SLICE }))
  }
  await inSlices((tx) => trimConsidered(tx, { keep: EXPLAINED_TURNS, limit: EXPLANATIONS }), EXPLANATIONS)
  await inSlices((tx) => deleteOwners(tx, now - conversationAffinityMaxAgeDays * DAY_MS))
  await inSlices((tx) => deleteFiles(tx, now - FILE_LIFE_MS))
  await inSlices((tx) => purgeRuns(tx, { before: now - RUN_DAYS * DAY_MS, limit: SLICE }))
  await inSlices((tx) => purgeIncidents(tx, { before: now - ALERT_DAYS * DAY_MS, limit: SLICE }))
  if (auditRetentionDays > 0) {
    const before = startOfDay(now) - auditRetentionDays * DAY_MS
    await inSlices((tx) => purgeAuditLog(tx, { before, limit: SLICE, now }))
  }
  await commit(db, (tx) => deleteExpiredRows(tx, now))
  await pause()
  await commit(db, (tx) => deleteSamples(tx, now - SAMPLE_DAYS * DAY_MS))
  await pause()
  while (await commit(db, (tx) => thinReadings(tx, now))) await pause()
  await clearLeftovers({ db, clock }, signal)
}

/** Each purge adds a row to the log it purges, so it runs once a day instead of hourly. */
const startOfDay = (now: number): number => now - (now % DAY_MS)

/** Expired rows are rejected anyway; few enough for one commit. */
const deleteExpiredRows = async (tx: Tx, now: number): Promise<void> => {
  await dropExpiredSessions(tx, now)
  await dropExpiredKeySessions(tx, now)
  await dropExpiredChallenges(tx, now)
  await dropExpiredInvites(tx, now)
  await dropExpiredCalls(tx, now)
}

/** Attempts are deleted with their request. Returns the number of requests. */
const deleteRequests = async (tx: Tx, { before, limit }: { before: number; limit: number }): Promise<number> => {
  const old = tx.select({ id: requests.id }).from(requests).where(lt(requests.startedAt, before)).limit(limit)
  return (await tx.delete(requests).where(inArray(requests.id, old)).run()).changes
}

const deleteRejected = async (tx: Tx, before: number): Promise<number> => {
  const old = tx
    .select({ id: rejectedClients.id })
    .from(rejectedClients)
    .where(lt(rejectedClients.minute, before))
    .limit(SLICE)
  return (await tx.delete(rejectedClients).where(inArray(rejectedClients.id, old)).run()).changes
}

/** Deletes one hour of samples per run, by account, to use the index. */
const deleteSamples = async (tx: Tx, before: number): Promise<void> => {
  await tx.run(sql`DELETE FROM usage_samples WHERE account_id IN (SELECT id FROM accounts) AND hour < ${before}`)
}

/** The in-memory map checks the age itself and needs no update. */
const deleteOwners = async (tx: Tx, before: number): Promise<number> =>
  (
    await tx
      .delete(affinity)
      .where(
        sql`(${affinity.kind}, ${affinity.keyHash}) IN (
        SELECT kind, key_hash FROM affinity WHERE used_at < ${before} LIMIT ${SLICE})`,
      )
      .run()
  ).changes

/** By kind, which the primary key begins with. */
const deleteFiles = async (tx: Tx, before: number): Promise<number> =>
  (
    await tx
      .delete(affinity)
      .where(
        sql`(${affinity.kind}, ${affinity.keyHash}) IN (
        SELECT kind, key_hash FROM affinity WHERE kind = 'file' AND used_at < ${before} LIMIT ${SLICE})`,
      )
      .run()
  ).changes
