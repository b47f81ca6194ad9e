/** Renews the tokens of idle accounts before they are too old to be renewed; busy ones renew theirs on the way. */
import { HOUR_MS } from '../lib/durations.ts'
import { statusBeneath } from '../model/account-state.ts'
import type { JobDeps } from './context.ts'

export const TOKENS_INTERVAL_MS = HOUR_MS

/** One after the other: nobody waits. A failure is logged, and charged to its account, where it happens. */
export const renewTokens = async (deps: JobDeps, signal: AbortSignal): Promise<void> => {
  const status = new Map(deps.pool.all().map(({ id, state }) => [id, statusBeneath(state)]))
  for (const id of deps.credentials.due()) {
    signal.throwIfAborted()
    if (!BEYOND_REPAIR.includes(status.get(id) ?? '')) await Promise.resolve(deps.credentials.fresh(id)).catch(() => {})
  }
}

const BEYOND_REPAIR: readonly string[] = ['reauth_required', 'deactivated']
