/** Items of the attention list about accounts, their quotas and reset credits. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { AccountView } from '../accounts/account-view.ts'
import { windowName } from '../accounts/account-words.ts'
import type { WindowLength } from '../accounts/usage-windows.ts'
import type { Facts, Matter, Offer } from './attention.ts'
import { poolMeters } from './pool-meters.ts'

/** The thresholds. 0 means off. */
export interface AlertThresholds {
  /** Alert if fewer accounts than this are available. */
  minAccounts: number
  /** Alert if an account has used this percentage of a window. */
  accountPercent: number
  /** Alert if an account stays blocked for longer than this from now. */
  blockedHours: number
}

/** A reset credit that can be used. */
export interface HeldCredit {
  id: string
  accountId: string
  /** ms since epoch. Null if it does not expire. */
  expiresAt: number | null
}

/** No forecast this early in a window, because the pace is not reliable yet. */
const MIN_FORECAST_PERCENT = 50

/** Whether the pool can serve, for how long, and with how many accounts. */
export const pool = (facts: Facts, offer: Offer): Matter[] => {
  const { accounts, thresholds, now } = facts
  if (accounts.length === 0) return []
  const eligible = accounts.filter((account) => account.eligible).length
  const action = offer('accounts:read', 'Show accounts', '/accounts')
  const subject = { kind: 'pool', name: 'All accounts' } as const
  if (eligible === 0) {
    const text = 'No account can serve requests.' // on the page, the health line shows this
    const alert = { event: 'pool.exhausted', subject: { ...subject, id: 'pool' } } as const
    return [{ id: 'pool-exhausted', tone: 'bad', text, action, alert, isElsewhere: true }]
  }
  const few: Matter = {
    id: 'pool-low',
    tone: 'wait',
    text: `Only ${eligible} of ${accounts.length} ${accounts.length === 1 ? 'account is' : 'accounts are'} available`,
    action,
    alert: { event: 'pool.low', subject: { ...subject, id: 'pool' } },
  }
  const ends = poolMeters(accounts, now).flatMap((meter): Matter[] => {
    const { window, usedPercent, usedUpAt } = meter
    if (usedUpAt === null || usedUpAt <= now || usedPercent < MIN_FORECAST_PERCENT) return []
    return [
      {
        id: `forecast-${window}`,
        tone: 'wait',
        text: `The ${windowName(window)} quota of all accounts is on pace to run out in ${spanText(usedUpAt - now)}, before it resets`,
        action,
        alert: { event: 'pool.forecast', subject: { ...subject, id: window } },
      },
    ]
  })
  return [...(eligible < thresholds.minAccounts ? [few] : []), ...ends]
}

/** Blocked for longer than the window that caused it lasts, or for longer than the threshold from now on. */
export const blocked = ({ accounts, thresholds, now }: Facts, offer: Offer): Matter[] =>
  accounts.flatMap((account) => {
    const { accountId, displayName, status, since, until } = account
    if (status !== 'rate_limited' && status !== 'quota_exceeded') return []
    const isOverdue = since !== null && now - since > ownWindowMs(account)
    const leftMs = (until ?? now) - now
    const isLong = thresholds.blockedHours > 0 && leftMs > thresholds.blockedHours * HOUR_MS
    if (!isOverdue && !isLong) return []
    const text = isOverdue
      ? `${displayName} has been blocked for ${spanText(now - (since ?? now))}, longer than its own window`
      : `${displayName} is blocked for another ${spanText(leftMs)}`
    return [
      {
        id: `blocked-${accountId}`,
        tone: 'wait',
        text,
        action: offer('accounts:read', 'Open account', `/accounts/${accountId}`),
        alert: { event: 'account.blocked', subject: { kind: 'account', id: accountId, name: displayName } },
      },
    ]
  })

/** The length of the longest used-up window, or else of the longest window. A week if none was reported. */
const ownWindowMs = ({ windows }: AccountView): number => {
  const known = Object.values(windows).filter((window) => window !== null)
  const full = known.filter(({ usedPercent }) => usedPercent >= 100)
  const minutes = (full.length > 0 ? full : known).map(({ windowMinutes }) => windowMinutes)
  return minutes.length === 0 ? 7 * DAY_MS : Math.max(...minutes) * MINUTE_MS
}

/** The fullest window of each account over the threshold. */
export const meters = ({ accounts, thresholds }: Facts, offer: Offer): Matter[] =>
  thresholds.accountPercent === 0
    ? []
    : accounts.flatMap(({ accountId, displayName, status, windows }) => {
        const used = (Object.entries(windows) as [WindowLength, AccountView['windows'][WindowLength]][]) // as: its keys
          .map(([length, window]) => ({ length, percent: window?.usedPercent ?? 0 }))
          .toSorted((a, b) => b.percent - a.percent)[0]
        if (!used || used.percent < thresholds.accountPercent || status === 'paused' || status === 'deactivated')
          return []
        return [
          {
            id: `meter-${accountId}`,
            tone: 'wait',
            text: `${displayName} has used ${Math.floor(used.percent)} % of its ${windowName(used.length)} quota`,
            action: offer('accounts:read', 'Open account', `/accounts/${accountId}`),
            alert: { event: 'account.meter', subject: { kind: 'account', id: accountId, name: displayName } },
          },
        ]
      })

export const credits = ({ accounts, credits: held, now }: Facts, offer: Offer): Matter[] => {
  const names = new Map(accounts.map(({ accountId, displayName }) => [accountId, displayName]))
  return held.flatMap(({ id, accountId, expiresAt }): Matter[] => {
    const name = names.get(accountId)
    if (name === undefined) return []
    const action = offer('accounts:read', 'Open account', `/accounts/${accountId}`)
    const subject = { kind: 'credit', id, name } as const
    const appeared: Matter = {
      id: `credit-${id}`,
      tone: 'wait',
      text: `${name} has a reset credit`,
      action,
      alert: { event: 'credit.appeared', subject, isInfo: true },
      isElsewhere: true,
    }
    const leftMs = (expiresAt ?? Number.POSITIVE_INFINITY) - now
    if (leftMs <= 0 || leftMs > DAY_MS) return [appeared]
    const text = `A reset credit of ${name} expires in ${spanText(leftMs)}`
    const alert = { event: 'credit.expiring', subject } as const
    return [appeared, { id: `credit-expires-${id}`, tone: 'wait', text, action, alert }]
  })
}

/** `3 days`, `5 hours`, `12 minutes`. */
export const spanText = (ms: number): string => {
  const [count, unit] =
    ms >= 2 * DAY_MS
      ? [Math.floor(ms / DAY_MS), 'day']
      : ms >= 2 * HOUR_MS
        ? [Math.floor(ms / HOUR_MS), 'hour']
        : ms >= MINUTE_MS
          ? [Math.floor(ms / MINUTE_MS), 'minute']
          : [Math.max(1, Math.floor(ms / 1000)), 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
