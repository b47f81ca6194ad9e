/** Import plans that were not carried out yet. They are kept in memory only. */
import type { Clock } from '../../lib/clock.ts'
import { Drafts } from '../../lib/drafts.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import type { ImportPlan } from './plan.ts'

/** A plan holds all tokens of its accounts: 30 MB for 5,000 accounts. */
export const importPlans = (clock: Clock, random: Random): Drafts<ImportPlan> =>
  new Drafts(clock, random, { prefix: 'imp', ttlMs: DAY_MS, max: 3 })
