/** What the retry loop has tried for a turn, which limits apply, and which account is next. */
import type { AppError } from '../../errors.ts'
import type { Owner } from '../pool/selection-needs.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import type { Turn } from './turn.ts'

export const MAX_ACCOUNTS = 10
/** Limit on accounts that failed slowly: each may use up as long as a client waits. */
const MAX_SLOW_ACCOUNTS = 3
export const MAX_SAME_ACCOUNT_RETRIES = 2

/** State of the loop: what has been tried and how the next attempt differs. */
export interface Progress {
  /** `clock.monotonic()` at which the time before the commit point runs out. */
  deadline: number
  tried: Set<string>
  sameAccountRetries: number
  /** Accounts whose sockets failed in this turn: their last attempt uses HTTP. */
  byHttp: Set<string>
  /** Accounts that failed after a possibly long wait, as opposed to rejecting the turn. */
  slow: Set<string>
  /** Accounts whose last attempt before this turn failed: they are not retried. */
  wereFailing: Set<string>
  /** The subset of those where no account has served a request since: the upstream itself may be down. */
  stillFailing: Set<string>
  /** Earlier requests found the upstream failing, so one attempt is enough. Null before the first lease. */
  isUpstreamFailing: boolean | null
  /** An account reported that the model is overloaded. */
  isOverloaded: boolean
  /** One account's request was blocked on its way. */
  isBlocked: boolean
  /** How many accounts may be tried. */
  maxAccounts: number
  /** Accounts whose token was refreshed for this turn. */
  refreshed: Set<string>
  /** The account of the next attempt: the ciphertext's owner, or the same account again. Null: the pool chooses. */
  next: Owner | null
  dropReasoning: boolean
  /** Account → evidence of an unexplained rejection. */
  rejectedBy: Map<string, string>
  /** The account that could not read the ciphertext. Retried without reasoning if the ciphertext's owner cannot serve. */
  unread: string | null
  /** The last failure, with the shortest wait seen. Never a usage limit: the pool reports those for all accounts. */
  last: AppError | null
  /** Account → the wait it last requested, in seconds. */
  waits: Map<string, number>
}

/** The initial state. A route that tries two endpoints passes it on, so that both share the limits. */
export const newProgress = ({ clock }: Pick<ProxyDeps, 'clock'>, turn: Turn): Progress => ({
  deadline: clock.monotonic() + budgetMs(turn),
  tried: new Set(),
  sameAccountRetries: 0,
  byHttp: new Set(),
  slow: new Set(),
  wereFailing: new Set(),
  stillFailing: new Set(),
  isUpstreamFailing: null,
  isOverloaded: false,
  isBlocked: false,
  maxAccounts: turn.relay?.maxAccounts ?? MAX_ACCOUNTS,
  refreshed: new Set(),
  next: null,
  dropReasoning: false,
  rejectedBy: new Map(),
  unread: null,
  last: null,
  waits: new Map(),
})

const budgetMs = ({ kind, relay, settings }: Turn): number =>
  relay?.timeoutMs ?? (kind === 'compaction' ? settings.compactTimeoutSeconds : settings.commitTimeoutSeconds) * 1000

/** Retries the same account. */
export const onSameAccount = (id: string): Owner => ({ id, hard: true, isRetried: true })

/** Excludes an account that failed or became unavailable. False when no other may be tried. */
export const excludeAccount = (progress: Progress, id: string): boolean => {
  progress.next = null
  progress.tried.add(id)
  return hasAttemptsLeft(progress)
}

export const hasAttemptsLeft = ({
  tried,
  slow,
  maxAccounts,
}: Pick<Progress, 'tried' | 'slow' | 'maxAccounts'>): boolean =>
  tried.size < maxAccounts && slow.size < MAX_SLOW_ACCOUNTS

/** Retries the account that could not read the ciphertext, without reasoning. False when there is none. */
export const retryWithoutReasoning = (progress: Progress): boolean => {
  const { unread } = progress
  if (unread === null) return false
  progress.unread = null
  progress.tried.delete(unread)
  progress.next = onSameAccount(unread)
  progress.dropReasoning = true
  return true
}

/** 200 ms before the first retry, 400 ms before later ones, ±10 %, but never past the deadline. */
export const waitBeforeRetry = ({ clock, random }: ProxyDeps, turn: Turn, progress: Progress): Promise<void> => {
  const pauseMs = 200 * 2 ** Math.min(progress.sameAccountRetries++, 1) * (0.9 + 0.2 * random())
  return clock.sleep(Math.min(pauseMs, Math.max(0, progress.deadline - clock.monotonic())), turn.signal)
}
