/** Advances account states, so that no block outlasts its end. */
import type { JobPool } from './context.ts'

export const STATES_INTERVAL_MS = 5000

export const advanceStates = async ({ pool }: { pool: Pick<JobPool, 'tick'> }): Promise<void> => pool.tick()
