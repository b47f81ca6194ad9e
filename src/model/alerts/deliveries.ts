/** Alert messages: which are due, the result of each, and their log. */
import { and, asc, desc, eq, inArray, lte } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { alertChannels, alertDeliveries, alertIncidents } from '../../../db/schema/alerts.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { recordLastDelivery } from './channels.ts'
import type { IncidentRow } from './incidents.ts'

export type DeliveryRow = typeof alertDeliveries.$inferSelect
export interface DueDelivery {
  delivery: DeliveryRow
  incident: IncidentRow
}

/** The pause after each failed attempt. When all are used up, the message has failed. */
export const RETRY_MS: readonly number[] = [5000, 30_000, 5 * MINUTE_MS, HOUR_MS]
/** At most this many messages are sent per round. The rest are sent in the next one. */
const MAX_DUE = 2000

/** The messages that are due, by channel, oldest first. */
export const dueDeliveries = async (db: Db, now: number): Promise<ReadonlyMap<string, DueDelivery[]>> => {
  const rows = await db
    .select({ delivery: alertDeliveries, incident: alertIncidents })
    .from(alertDeliveries)
    .innerJoin(alertIncidents, eq(alertIncidents.id, alertDeliveries.incidentId))
    .where(and(eq(alertDeliveries.status, 'pending'), lte(alertDeliveries.nextAt, now)))
    .orderBy(asc(alertDeliveries.at), asc(alertDeliveries.id))
    .limit(MAX_DUE)
    .all()
  return Map.groupBy(rows, ({ delivery }) => delivery.channelId)
}

/**
 * Stores the result: sent if `error` is null, otherwise to be tried again or failed. An error that is stored late does not
 * undo a later attempt of another node.
 */
export const recordOutcome = async (
  tx: Tx,
  channelId: string,
  { deliveries, error, now }: { deliveries: readonly DeliveryRow[]; error: string | null; now: number },
): Promise<void> => {
  for (const [tries, same] of Map.groupBy(deliveries, (delivery) => delivery.tries)) {
    const pause = RETRY_MS[tries]
    const outcome =
      error === null
        ? ({ status: 'sent', sentAt: now, lastError: null } as const)
        : pause === undefined
          ? ({ status: 'failed', lastError: error } as const)
          : ({ nextAt: now + pause, lastError: error } as const)
    const ids = same.map(({ id }) => id)
    await tx
      .update(alertDeliveries)
      .set({ ...outcome, tries: tries + 1 })
      .where(
        and(
          inArray(alertDeliveries.id, ids),
          eq(alertDeliveries.status, 'pending'),
          error === null ? undefined : eq(alertDeliveries.tries, tries),
        ),
      )
      .run()
  }
  await recordLastDelivery(tx, channelId, { at: now, ok: error === null, error })
}

/** Drops messages that can't be sent, for example because the channel was turned off. */
export const dropDeliveries = async (tx: Tx, deliveries: readonly DeliveryRow[], why: string): Promise<void> => {
  const ids = deliveries.map(({ id }) => id)
  await tx
    .update(alertDeliveries)
    .set({ status: 'dropped', lastError: why })
    .where(and(inArray(alertDeliveries.id, ids), eq(alertDeliveries.status, 'pending')))
    .run()
  notice(tx, 'alerts')
}

/** Postpones the messages to `nextAt` (ms since epoch). */
export const postpone = async (tx: Tx, deliveries: readonly DeliveryRow[], nextAt: number): Promise<void> => {
  const ids = deliveries.map(({ id }) => id)
  await tx.update(alertDeliveries).set({ nextAt }).where(inArray(alertDeliveries.id, ids)).run()
}

/** The log of messages, newest first, with the name of the channel. */
export const listDeliveries = (db: Db, { channelId, limit }: { channelId: string | null; limit: number }) =>
  db
    .select({ delivery: alertDeliveries, incident: alertIncidents, channelName: alertChannels.name })
    .from(alertDeliveries)
    .innerJoin(alertIncidents, eq(alertIncidents.id, alertDeliveries.incidentId))
    .innerJoin(alertChannels, eq(alertChannels.id, alertDeliveries.channelId))
    .where(channelId === null ? undefined : eq(alertDeliveries.channelId, channelId))
    .orderBy(desc(alertDeliveries.at), desc(alertDeliveries.id))
    .limit(limit)
    .all()
