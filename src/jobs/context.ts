/** The dependencies of jobs. */
import type { Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { AccountEvent, AccountState } from '../model/accounts/account-state.ts'
import type { UsageSnapshot } from '../model/accounts/usage-windows.ts'
import type { Catalog } from '../model/catalog/catalog.ts'
import type { AccountCallDeps } from '../upstream/account-call.ts'
import type { Credentials } from '../upstream/credentials.ts'

/** The part of the live pool that jobs use. */
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
  upstream: Omit<AccountCallDeps, 'credentials'>
  credentials: Credentials
  clock: Clock
  log: Log
  /** When each account was polled, shared by all pollers. */
  polls: Map<string, Poll>
}

export interface Poll {
  /** Monotonic time of the last poll; null: never. */
  at: number | null
  /** Monotonic time before which it is not polled again. */
  holdUntil: number
  /** When the last seen block ends; ms since epoch. */
  blockEndsAt: number | null
  /** The last poll failed; logged once, not every minute. */
  isFailing: boolean
}

export const toAccountCallDeps = ({
  upstream,
  credentials,
}: Pick<JobDeps, 'upstream' | 'credentials'>): AccountCallDeps => ({
  ...upstream,
  credentials,
})
