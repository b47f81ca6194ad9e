/** One account in memory: what its row says, and what is live about it. */
import { HEALTHY, type Health } from '../model/account-health.ts'
import type { AccountState } from '../model/account-state.ts'
import { type AccountRow, displayName } from '../model/accounts.ts'
import type { UsageSnapshot } from '../model/usage-windows.ts'
import { accountTag } from '../upstream/headers.ts'
import type { Candidate } from './policies.ts'

export interface LiveAccount extends Candidate {
  readonly id: string
  row: AccountRow
  /** Of `x-codex-turn-state`. */
  tag: string
  displayName: string
  /** The rate headers seen last, and when: the same numbers are not taken in over and over. */
  ratePrint: string
  rateSeenAt: number
  /** Its sockets were refused: until then (ms since epoch) it is asked over HTTP. */
  httpUntil: number
  /** Handshakes and turns on sockets that died since the last turn that ended well. */
  socketFailures: number
  limitedModels: Map<string, AccountState>
  rejectedModels: Map<string, number>
}

type FromRow = Pick<LiveAccount, 'row' | 'routingPolicy' | 'securityWorkAuthorized' | 'displayName'>
type Seen = FromRow & Pick<LiveAccount, 'state' | 'planType'>

/** What its row says of it, but for what is live. */
export const fromRow = (row: AccountRow): FromRow => ({
  row,
  routingPolicy: row.routingPolicy,
  securityWorkAuthorized: row.securityWorkAuthorized,
  displayName: displayName(row),
})

/** What is known of an account by the time at which it happened, in memory only, before anything has. */
export const UNTIMED = {
  health: HEALTHY satisfies Health,
  lastSelectedAt: 0,
  rateSeenAt: 0,
  httpUntil: 0,
  socketFailures: 0,
}

/** As it is at a start, or right after it was added. */
export const newAccount = (id: string, { seen, usage }: { seen: Seen; usage: UsageSnapshot | null }): LiveAccount => ({
  id,
  ...seen,
  ...UNTIMED,
  tag: accountTag(id),
  usage,
  inFlight: 0,
  models: null,
  limitedModels: new Map(),
  rejectedModels: new Map(),
  ratePrint: '',
})
