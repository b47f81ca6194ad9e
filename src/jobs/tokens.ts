/** Refreshes tokens of idle accounts before their refresh tokens expire; busy accounts refresh during requests. */
import { HOUR_MS } from '../lib/durations.ts'
import { getStatusUnderPause } from '../model/accounts/account-state.ts'
import type { JobDeps } from './context.ts'

export const TOKENS_INTERVAL_MS = HOUR_MS

/** One after another, because nothing waits for it. Failures are logged and charged to the account where they happen. */
export const renewTokens = async (deps: JobDeps, signal: AbortSignal): Promise<void> => {
  const status = new Map(deps.pool.all().map(({ id, state }) => [id, getStatusUnderPause(state)]))
  for (const id of deps.credentials.due()) {
    signal.throwIfAborted()
    if (!BEYOND_REPAIR.includes(status.get(id) ?? '')) await Promise.resolve(deps.credentials.fresh(id)).catch(() => {})
  }
}

const BEYOND_REPAIR: readonly string[] = ['reauth_required', 'deactivated']
