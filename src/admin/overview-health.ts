/** The health line as data: one level, how many accounts are available, what happens next, and what you can do. */

import type { Advice, Health, NamedAccount } from '../../views/overview/now.tsx'
import { iso } from '../lib/iso.ts'
import type { AccountView } from '../model/accounts/account-view.ts'
import { serviceLevel } from '../model/overview/service-level.ts'

interface Circumstances {
  /** ms since epoch */
  now: number
  isDraining: boolean
  isLedgerHealthy: boolean
  isFailing: boolean
  firstEventMs: number | null
  hasResetCredit: (accountId: string) => boolean
  /** Whether this user may change accounts. */
  mayWrite: boolean
}

export const getHealth = (accounts: readonly AccountView[], circumstances: Circumstances): Health => {
  const { now, isDraining, isLedgerHealthy, isFailing, firstEventMs } = circumstances
  const eligible = accounts.filter((account) => account.eligible).length
  const level = serviceLevel({ isDraining, isLedgerHealthy, accounts, isFailing })
  return {
    level,
    eligible,
    total: accounts.length,
    needAttention: accounts.filter(({ status }) => status === 'reauth_required' || status === 'deactivated').length,
    next: nextEvent(accounts, now),
    firstEventMs,
    advice: level === 'blocked' ? getAdvice(accounts, circumstances) : null,
  }
}

const getAdvice = (accounts: readonly AccountView[], { now, hasResetCredit, mayWrite }: Circumstances): Advice => {
  const first = (is: (account: AccountView) => boolean): NamedAccount | null => {
    const found = mayWrite ? accounts.find(is) : undefined
    return found ? { id: found.accountId, name: found.displayName } : null
  }
  const isAtLimit = ({ status }: AccountView) => status === 'rate_limited' || status === 'quota_exceeded'
  const ends = accounts.flatMap(({ until }) => (until !== null && until > now ? [until] : []))
  return {
    resetCredit: first((account) => isAtLimit(account) && hasResetCredit(account.accountId)),
    signIn: first(({ status }) => status === 'reauth_required'),
    resume: first(({ status }) => status === 'paused'),
    mayAdd: mayWrite,
    until: ends.length === 0 ? null : iso(Math.min(...ends)),
  }
}

const nextEvent = (accounts: readonly AccountView[], now: number): Health['next'] => {
  const events = accounts.flatMap((account) => getEvents(account)).filter(({ at }) => at > now)
  const first = events.toSorted((a, b) => a.at - b.at)[0]
  return first ? { ...first, at: iso(first.at) } : null
}

/** A blocked account has one event: available again, or checked again. An active one has its resets. */
const getEvents = ({ displayName: account, until, nextCheckAt, status, windows }: AccountView): Event[] => {
  if (until !== null) return [{ at: until, account, event: 'back' }]
  if (nextCheckAt !== null) return [{ at: nextCheckAt, account, event: 'check' }]
  if (status !== 'active') return []
  return Object.values(windows).flatMap((window): Event[] =>
    window?.resetAt && window.usedPercent > 0 ? [{ at: window.resetAt, account, event: 'reset' }] : [],
  )
}

type Event = Omit<NonNullable<Health['next']>, 'at'> & { at: number }
