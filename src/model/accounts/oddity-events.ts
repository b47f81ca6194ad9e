/** Records oddities of usage meters as account events, each once. */
import { and, eq, sql } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { accountEvents } from '../../../db/schema/history.ts'
import type { MeterWindow } from '../../../db/schema/meter.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import { type Occurrence, raiseOccurrence } from '../alerts/incidents.ts'
import { recordAccountEvent } from './account-events.ts'
import { accountNames } from './account-names.ts'
import { changedMeters, readMeter, readResets } from './meter-read.ts'
import { toSpans, toSteps } from './meter-spans.ts'
import { findOddities, type Oddity } from './oddities.ts'
import { getResolution } from './percent-price.ts'
import { startOfWeek, WEEK_MS } from './statement.ts'

/** Oddities older than this are not recorded, for example after an update. */
const FRESH_MS = DAY_MS

export interface MeterPeriod {
  accountId: string
  window: MeterWindow
  /** ms since epoch */
  from: number
  to: number
}

interface RecordDeps {
  after: number
  /** ms since epoch */
  now: number
  read: (period: MeterPeriod) => Promise<readonly Oddity[]>
  random: Random
}

/**
 * Records the last day's oddities of all meters that have readings with an ID above `after`, and raises an alert for
 * each. Returns the ID of the last reading. `read` runs `meterOddities` in another thread.
 */
export const recordOddities = async (db: Db, { after, now, read, random }: RecordDeps): Promise<number> => {
  let last = after
  for (const { accountId, window, id } of await changedMeters(db, { after, since: now - FRESH_MS })) {
    const found = await read({ accountId, window, from: now - FRESH_MS, to: now })
    if (found.length > 0) await commit(db, (tx) => record(tx, accountId, found, random))
    last = Math.max(last, id)
  }
  return last
}

/** The oddities from `from` to `to`. Also reads the week before, to compare prices. */
export const meterOddities = async (db: Db, { accountId, window, from, to }: MeterPeriod): Promise<Oddity[]> => {
  const readings = await readMeter(db, { accountId, window, from: startOfWeek(from) - WEEK_MS, to })
  const resolution = getResolution(readings.map(({ usedPercent }) => usedPercent))
  const resets = await readResets(db, accountId, from)
  const found = findOddities({ window, spans: toSpans(toSteps(readings)), resolution, resets })
  return found.filter(({ at }) => at > from)
}

const record = async (tx: Tx, accountId: string, found: readonly Oddity[], random: Random): Promise<void> => {
  for (const { at, kind, text } of found) {
    const known = await tx
      .select({ id: accountEvents.id })
      .from(accountEvents)
      .where(
        and(
          eq(accountEvents.kind, 'statement'),
          eq(accountEvents.at, at),
          eq(accountEvents.accountId, accountId),
          sql`${accountEvents.result} = ${kind}`,
          eq(accountEvents.detail, text),
        ),
      )
      .get()
    if (known) continue
    await recordAccountEvent(tx, { accountId, at, kind: 'statement', result: kind, detail: text })
    await raiseOccurrence(tx, await toOccurrence(tx, accountId, { at, text }), random)
  }
}

const toOccurrence = async (db: Db, id: string, { at, text }: Pick<Oddity, 'at' | 'text'>): Promise<Occurrence> => {
  const name = (await accountNames(db, { hidesAccounts: false })).get(id) ?? id
  return {
    event: 'statement.odd',
    subject: { kind: 'account', id, name },
    severity: 'warning',
    text: `${name}: ${text}`,
    path: `/accounts/${id}?tab=statement`,
    at,
  }
}
