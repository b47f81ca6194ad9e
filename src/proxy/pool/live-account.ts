/** One account in memory: its row, its live state, and the lease of a slot on it. */
import { HEALTHY, type Health } from '../../model/accounts/account-health.ts'
import type { AccountState } from '../../model/accounts/account-state.ts'
import { type AccountRow, displayName } from '../../model/accounts/accounts.ts'
import { METER_DELAY_MS } from '../../model/accounts/meter-readings.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import type { Considered, Selection } from '../../model/log/skip-reasons.ts'
import { accountTag } from '../../upstream/headers.ts'
import type { Candidate } from './policies.ts'

export interface LiveAccount extends Candidate {
  readonly id: string
  row: AccountRow
  /** For `x-codex-turn-state`. */
  tag: string
  displayName: string
  /** The last rate headers and when they were seen, so that equal ones are not processed again. */
  ratePrint: string
  rateSeenAt: number
  /** When a request of this process last ended (ms since epoch). */
  lastEndedAt: number
  /** Sockets were rejected: use HTTP until then (ms since epoch). */
  httpUntil: number
  /** Failed handshakes and socket turns since the last successful turn. */
  socketFailures: number
  limitedModels: Map<string, AccountState>
  rejectedModels: Map<string, number>
  missingRoutes: Map<string, number>
}

type FromRow = Pick<
  LiveAccount,
  | 'row'
  | 'routingPolicy'
  | 'securityWorkAuthorized'
  | 'maxUsedPercentPrimary'
  | 'maxUsedPercentSecondary'
  | 'exemptOwnerId'
  | 'tags'
  | 'egressPoolId'
  | 'position'
  | 'displayName'
>
type Seen = FromRow & Pick<LiveAccount, 'state' | 'planType'>

/** What comes from the row. */
export const fromRow = (row: AccountRow, tags: readonly string[]): FromRow => ({
  row,
  routingPolicy: row.routingPolicy,
  securityWorkAuthorized: row.securityWorkAuthorized,
  maxUsedPercentPrimary: row.maxUsedPercentPrimary,
  maxUsedPercentSecondary: row.maxUsedPercentSecondary,
  exemptOwnerId: row.reserveForOwner ? row.ownerUserId : null,
  tags,
  egressPoolId: row.egressPoolId,
  position: row.position,
  displayName: displayName(row),
})

/** Initial values of what depends on the time. */
export const untimed = () => ({
  health: HEALTHY satisfies Health,
  lastSelectedAt: 0,
  lastForegroundAt: 0,
  rateSeenAt: 0,
  lastEndedAt: 0,
  httpUntil: 0,
  socketFailures: 0,
  limitedModels: new Map(),
  rejectedModels: new Map(),
  missingRoutes: new Map(),
})

/** The account at start, or right after it was added. */
export const newAccount = (id: string, { seen, usage }: { seen: Seen; usage: UsageSnapshot | null }): LiveAccount => ({
  id,
  ...seen,
  ...untimed(),
  tag: accountTag(id),
  usage,
  inFlight: 0,
  models: null,
  ratePrint: '',
})

/** Clients can send made-up names, so the number is limited; the oldest are dropped. */
const MAX_REJECTED_MODELS = 100

/** Until `until`, in ms since epoch. */
export const rejectModel = ({ rejectedModels }: LiveAccount, model: string, until: number): void => {
  rejectedModels.delete(model) // the newest is last
  rejectedModels.set(model, until)
  if (rejectedModels.size > MAX_REJECTED_MODELS) rejectedModels.delete(rejectedModels.keys().next().value!) // it is not empty
}

/**
 * The number of this process's requests that the account's meter may not fully include yet. Other processes' requests
 * are unknown.
 */
export const countRunning = ({ inFlight, lastEndedAt }: LiveAccount, now: number): number =>
  inFlight || (now >= lastEndedAt && now - lastEndedAt < METER_DELAY_MS ? 1 : 0)

export type Granted = Pick<Extract<Selection, { kind: 'chosen' }>, 'considered' | 'moveAvoidable'>

interface Slots {
  give(account: LiveAccount): void
}

/** The slot of an account that a turn holds while it runs there. */
export class Lease {
  readonly account: LiveAccount
  readonly considered: readonly Considered[]
  /** The previous account could have served the request, and the move costs more than staying. */
  readonly moveAvoidable: boolean
  #pool: Slots | null

  constructor(account: LiveAccount, { considered, moveAvoidable }: Granted, pool: Slots) {
    this.account = account
    this.considered = considered
    this.moveAvoidable = moveAvoidable
    this.#pool = pool
  }

  /** Releases the slot; repeated calls do nothing. */
  release(): void {
    this.#pool?.give(this.account)
    this.#pool = null
  }
}
