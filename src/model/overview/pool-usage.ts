/** What is left in a pool of accounts: one weighted window of each length. */
import { type AccountState, isInUse } from '../accounts/account-state.ts'
import {
  capacityCredits,
  nextReset,
  type UsageSnapshot,
  usedNow,
  type WindowLength,
} from '../accounts/usage-windows.ts'
import { isInScope, type KeyScope } from '../keys/key-scope.ts'

export interface PooledAccount {
  id: string
  tags: readonly string[]
  planType: string
  state: Pick<AccountState, 'status'>
  usage: UsageSnapshot | null
}

export interface PoolWindow {
  window: '5h' | '7d' | 'monthly'
  capacityCredits: number
  usedCredits: number
  /** The next reset that gives quota back, or without any use the next reset (ms); null when unknown. */
  resetAt: number | null
}

const LENGTHS = [
  ['fiveHour', '5h'],
  ['weekly', '7d'],
  ['monthly', 'monthly'],
] as const satisfies readonly (readonly [WindowLength, PoolWindow['window']])[]

/**
 * The windows of the accounts in `scope` (null: all), without those that need an operator, weighted by their plans'
 * credits. Lengths without an account with both capacity and report are left out.
 */
export const poolWindows = (accounts: readonly PooledAccount[], scope: KeyScope, now: number): PoolWindow[] => {
  const inPool = accounts.filter((account) => isInScope(scope, account) && isInUse(account.state))
  return LENGTHS.flatMap(([length, window]) => {
    const shares = inPool.flatMap((account) => getShare(account, length, now) ?? [])
    return shares.length === 0 ? [] : { window, ...together(shares) }
  })
}

/** Percent left, two decimals; null without a window. */
export const remainingPercent = (window: PoolWindow | undefined): number | null =>
  window ? Math.round((1 - window.usedCredits / window.capacityCredits) * 10_000) / 100 : null

type Share = Omit<PoolWindow, 'window'>

/** An account with a monthly allowance has no other: its shorter windows only repeat it. */
const getShare = ({ planType, usage }: PooledAccount, length: WindowLength, now: number): Share | null => {
  const isMonthly = Boolean(usage?.windows.monthly) && capacityCredits(planType, 'monthly') > 0
  const window = usage?.windows[length] ?? null
  const usedPercent = usedNow(window, now)
  const capacity = capacityCredits(planType, length)
  if (usedPercent === null || capacity === 0 || isMonthly !== (length === 'monthly')) return null
  return {
    capacityCredits: capacity,
    usedCredits: (capacity * usedPercent) / 100,
    resetAt: nextReset(window, now),
  }
}

const together = (shares: readonly Share[]): Share => {
  const used = shares.filter(({ usedCredits }) => usedCredits > 0)
  const resets = (used.length > 0 ? used : shares).flatMap(({ resetAt }) => resetAt ?? [])
  return {
    capacityCredits: shares.reduce((sum, share) => sum + share.capacityCredits, 0),
    usedCredits: shares.reduce((sum, share) => sum + share.usedCredits, 0),
    resetAt: resets.length === 0 ? null : Math.min(...resets),
  }
}
