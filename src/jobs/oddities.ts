/** Records oddities of usage meters as account events, and raises alerts. */
import type { Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { Oddity } from '../model/accounts/oddities.ts'
import { type MeterPeriod, recordOddities } from '../model/accounts/oddity-events.ts'

export const ODDITIES_INTERVAL_MS = 300_000

export interface OdditiesDeps {
  db: Db
  clock: Pick<Clock, 'now'>
  random: Random
  /** Runs in another thread, because thousands of readings would delay streams. */
  reader: { for(name: string): { meterOddities(period: MeterPeriod): Promise<readonly Oddity[]> } }
}

/** Remembers the last reading, so that only meters with new readings are read. */
export const odditiesJob = ({ db, clock, random, reader }: OdditiesDeps): (() => Promise<void>) => {
  const read = (period: MeterPeriod) => reader.for('jobs').meterOddities(period)
  let after = 0
  return async () => {
    after = await recordOddities(db, { after, now: clock.now(), read, random })
  }
}
