/** Stores each account's last usage of every hour, for the trends on its page. */
import { sql } from 'drizzle-orm'
import { commit, type Db } from '../../db/commit.ts'
import { usageSamples } from '../../db/schema/history.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { type UsageSnapshot, usedNow } from '../model/accounts/usage-windows.ts'

/** Usage is polled every minute; the last minutes of an hour may be missing. */
export const SAMPLES_INTERVAL_MS = 300_000

export interface SamplesDeps {
  db: Db
  pool: { all(): readonly { readonly id: string; usage: UsageSnapshot | null }[] }
}

type Sample = typeof usageSamples.$inferInsert

/** `written` holds the time of each account's last stored sample, so that idle accounts add no rows. */
export const sampleUsage = async ({ db, pool }: SamplesDeps, written: Map<string, number>): Promise<void> => {
  const fresh = pool.all().flatMap(({ id, usage }) => (usage && usage.at !== written.get(id) ? [{ id, usage }] : []))
  const rows = fresh.map(({ id, usage }) => getSample(id, usage))
  await commit(db, async (tx) => {
    const known = new Set(
      // the pool may still contain a deleted one
      (await tx.all<{ id: string }>(sql`SELECT id FROM accounts`)).map(({ id }) => id),
    )
    const stored = rows.filter(({ accountId }) => known.has(accountId))
    if (stored.length === 0) return
    await tx
      .insert(usageSamples)
      .values(stored)
      .onConflictDoUpdate({
        target: [usageSamples.accountId, usageSamples.hour],
        set: {
          fiveHourUsed: sql`excluded.five_hour_used`,
          weeklyUsed: sql`excluded.weekly_used`,
          monthlyUsed: sql`excluded.monthly_used`,
        },
      })
      .run()
  })
  for (const { id, usage } of fresh) written.set(id, usage.at)
}

/** In the hour of the upstream's report, not of storing it. */
const getSample = (accountId: string, { at, windows }: UsageSnapshot): Sample => ({
  accountId,
  hour: at - (at % HOUR_MS),
  fiveHourUsed: usedNow(windows.fiveHour, at),
  weeklyUsed: usedNow(windows.weekly, at),
  monthlyUsed: usedNow(windows.monthly, at),
})
