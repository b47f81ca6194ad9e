/** What the periodic work is done with. */
import type { Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { AccountEvent, AccountState } from '../model/account-state.ts'
import type { Catalog } from '../model/catalog.ts'
import type { UsageSnapshot } from '../model/usage-windows.ts'
import type { AskDeps } from '../upstream/ask.ts'
import type { Credentials } from '../upstream/credentials.ts'

/** Of the live pool, what jobs need. */
export interface JobPool {
  all(): readonly { readonly id: string; state: AccountState }[]
  apply(id: string, event: AccountEvent): void
  observe(id: string, snapshot: UsageSnapshot): void
  tick(): void
}

export interface JobDeps {
  db: Db
  pool: JobPool
  catalog: Catalog
  upstream: Omit<AskDeps, 'credentials'>
  credentials: Credentials
  clock: Clock
  log: Log
  /** When each account was asked, shared by all who ask. */
  polls: Map<string, Poll>
}

export interface Poll {
  /** When the last question was asked, by the clock that never goes back; null: never. */
  at: number | null
  /** Not again before this, by the same clock. */
  holdUntil: number
  /** When the block seen last was to end; ms since epoch. */
  blockEndsAt: number | null
  /** The last question failed: told once, not every minute. */
  isFailing: boolean
}

export const askDeps = ({ upstream, credentials }: Pick<JobDeps, 'upstream' | 'credentials'>): AskDeps => ({
  ...upstream,
  credentials,
})
