/** The five-hour windows as the window-start job last saw them, kept across restarts. */
import { z } from 'zod'
import { commit, type Db } from '../../../db/commit.ts'
import { readFact, writeFact } from '../facts.ts'
import type { UsageWindow } from './usage-windows.ts'

/** By account id; null: not reported. */
export type SeenWindows = ReadonlyMap<string, UsageWindow | null>

const FACT = 'five_hour_windows_seen'
const NONE = '{}'
const Stored = z.record(
  z.string(),
  z.object({ usedPercent: z.number(), windowMinutes: z.number(), resetAt: z.number().nullable() }).nullable(),
)

/** Empty before the first run. */
export const readSeenWindows = async (db: Db): Promise<SeenWindows> =>
  new Map(Object.entries(Stored.parse(JSON.parse((await readFact(db, FACT)) ?? NONE))))

/** Writes them if they have changed. */
export const saveSeenWindows = async (db: Db, windows: SeenWindows): Promise<void> => {
  const value = JSON.stringify(Object.fromEntries(windows))
  if (value !== ((await readFact(db, FACT)) ?? NONE)) await commit(db, (tx) => writeFact(tx, FACT, value))
}
