/** The health line as data: one level, how many accounts can be asked, and what happens next. */
import { iso } from '../lib/iso.ts'
import type { AccountView } from '../model/account-view.ts'

export interface Health {
  /**
   * `failing`: turn after turn fails though accounts are eligible; `empty`: no accounts; `blocked`: none is eligible;
   * `faulty`: readiness is red; `draining`: shutting down.
   */
  level: 'serving' | 'failing' | 'empty' | 'blocked' | 'faulty' | 'draining'
  eligible: number
  total: number
  /** Accounts that only a person can bring back. */
  needAttention: number
  /** The next time an account has more to give: a reset, the end of a block, or a check. */
  next: { at: string; account: string; event: 'reset' | 'back' | 'check' } | null
  /** Median of the last day; null: nothing was answered. */
  firstEventMs: number | null
}

interface Circumstances {
  /** ms since epoch */
  now: number
  isDraining: boolean
  isLedgerHealthy: boolean
  isFailing: boolean
  firstEventMs: number | null
}

/** The readiness route is red exactly when this says `faulty` or `draining`. */
export const healthOf = (
  accounts: readonly AccountView[],
  { now, isDraining, isLedgerHealthy, isFailing, firstEventMs }: Circumstances,
): Health => {
  const eligible = accounts.filter((account) => account.eligible).length
  const level = isDraining
    ? 'draining'
    : !isLedgerHealthy
      ? 'faulty'
      : accounts.length === 0
        ? 'empty'
        : eligible === 0
          ? 'blocked'
          : isFailing
            ? 'failing'
            : 'serving'
  return {
    level,
    eligible,
    total: accounts.length,
    needAttention: accounts.filter(({ status }) => status === 'reauth_required' || status === 'deactivated').length,
    next: nextEvent(accounts, now),
    firstEventMs,
  }
}

const nextEvent = (accounts: readonly AccountView[], now: number): Health['next'] => {
  const events = accounts.flatMap((account) => eventsOf(account)).filter(({ at }) => at > now)
  const first = events.toSorted((a, b) => a.at - b.at)[0]
  return first ? { ...first, at: iso(first.at) } : null
}

/** A blocked account is back, or is asked again, at one moment; one that works gets more at each reset. */
const eventsOf = ({ displayName: account, until, nextCheckAt, status, windows }: AccountView): Event[] => {
  if (until !== null) return [{ at: until, account, event: 'back' }]
  if (nextCheckAt !== null) return [{ at: nextCheckAt, account, event: 'check' }]
  if (status !== 'active') return []
  return Object.values(windows).flatMap((window): Event[] =>
    window?.resetAt && window.usedPercent > 0 ? [{ at: window.resetAt, account, event: 'reset' }] : [],
  )
}

type Event = Omit<NonNullable<Health['next']>, 'at'> & { at: number }
