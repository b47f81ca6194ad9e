/** What needs the attention of a user: each item with the action that fixes it, for users who are allowed to take it. */

import type { RejectionReason } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { AccountView } from '../accounts/account-view.ts'
import type { FailingEndpoint } from '../egress/routes.ts'
import { isRunning } from '../keys/key-limits.ts'
import type { RejectedLately } from '../log/rejected-clients.ts'
import { type Grants, holds, mayWrite, type Permission } from '../users/permissions.ts'
import type { KeyFact } from './overview.ts'

export interface Attention {
  /** Stays the same while the item is shown. */
  id: string
  /** `bad`: an error; `wait`: a warning. */
  tone: 'bad' | 'wait'
  text: string
  /** null: this user may not act on it. */
  action: { label: string; href: string } | null
}

export interface Facts {
  /** Masked where this user may not see them. */
  accounts: readonly AccountView[]
  keys: readonly KeyFact[]
  isLedgerHealthy: boolean
  /** Its file was removed or replaced. */
  isDatabaseLost: boolean
  /**
   * Consecutive failed requests although accounts were available, and the newest error message; empty if hidden from
   * this user.
   */
  outage: { turns: number; message: string } | null
  /** Rejected clients of the last hour, most requests first; addresses only where the user may see them. */
  rejected: readonly RejectedLately[]
  /** The strategy “Single account” is set to an account that was deleted. */
  isChosenAccountGone: boolean
  /** What a model source served within the last hour because the pool was used up; null: nothing. */
  overflow: { sourceName: string; count: number; overBudget: number } | null
  /** Outbound proxies that have failed for five minutes; empty for users who may not see proxies. */
  failingProxies: readonly FailingEndpoint[]
  /** Ended requests that are only in memory. */
  unwritten: number
  isDashboardOpen: boolean
  /** Clients from some networks need no key. */
  isKeyless: boolean
  /** ms since epoch; null: never, undefined: this user may not see backups. */
  lastBackupAt: number | null | undefined
  /** The server started a moment ago and makes the first backup by itself. */
  isFirstBackupComing: boolean
  /** ms since epoch */
  now: number
}

/** Items per kind; further ones are counted. */
const MAX_OF_A_KIND = 3
const NEAR = 0.9
const EXPIRES_SOON_MS = 7 * DAY_MS
const BACKUP_IS_OLD_MS = 7 * DAY_MS

/** Errors first. Keys are included only for users who may list them. */
export const attention = (facts: Facts, grants: Grants): Attention[] => {
  const offer = actionsFor(grants)
  const items = [
    ...database(facts, offer),
    ...ledger(facts, offer),
    ...outage(facts, offer),
    ...rejectedClients(facts, offer),
    ...strategy(facts, mayWrite(grants)),
    ...overflow(facts, offer),
    ...shorten(proxies(facts, offer), 'outbound proxies do not connect', '/settings/network#egress-endpoints'),
    ...exposure(facts, offer),
    ...shorten(signIns(facts, offer), 'accounts need sign-in', '/accounts'),
    ...shorten(deactivated(facts, offer), 'accounts were deactivated', '/accounts'),
    ...(holds(grants, 'api_keys:read') ? shorten(keyLimits(facts, offer), 'keys are near a limit', '/keys') : []),
    ...(holds(grants, 'api_keys:read') ? shorten(expiring(facts, offer), 'keys expire soon', '/keys') : []),
    ...backups(facts, offer),
  ]
  return items.toSorted((a, b) => Number(a.tone === 'wait') - Number(b.tone === 'wait'))
}

type Offer = (permission: Permission, label: string, href: string) => Attention['action']

const actionsFor =
  (grants: Grants): Offer =>
  (permission, label, href) =>
    holds(grants, permission) ? { label, href } : null

const shorten = (items: Attention[], what: string, href: string): Attention[] => {
  const rest = items.length - MAX_OF_A_KIND
  const [first] = items
  if (rest < 2 || !first) return items
  const more: Attention = {
    id: `more-${first.id}`,
    tone: first.tone,
    text: `${rest} more ${what}`,
    action: { label: 'Show', href },
  }
  return [...items.slice(0, MAX_OF_A_KIND), more]
}

const database = ({ isDatabaseLost }: Facts, offer: Offer): Attention[] =>
  isDatabaseLost
    ? [
        {
          id: 'database',
          tone: 'bad',
          text: 'The database file was removed or replaced. Changes are lost when the server stops unless you back up now.',
          action: offer('ops:write', 'Back up now', '/settings/data'),
        },
      ]
    : []

const ledger = ({ isLedgerHealthy, unwritten }: Facts, offer: Offer): Attention[] =>
  isLedgerHealthy
    ? []
    : [
        {
          id: 'ledger',
          tone: 'bad',
          text: `The request log cannot be written. ${unwritten} finished ${unwritten === 1 ? 'request is' : 'requests are'} kept in memory.`,
          action: offer('security:write', 'Open health check', '/doctor'),
        },
      ]

const outage = ({ outage }: Facts, offer: Offer): Attention[] =>
  outage
    ? [
        {
          id: 'outage',
          tone: 'bad',
          text: `The last ${outage.turns} requests failed${outage.message && `. Last error: “${outage.message}”`}`,
          action: offer('dashboard:read', 'Show errors', '/logs?status=failed'),
        },
      ]
    : []

/** A few are probably typing errors. */
const MAX_IGNORED = 10

const rejectedClients = ({ rejected }: Facts, offer: Offer): Attention[] => {
  const all = rejected.reduce((sum, { count }) => sum + count, 0)
  const [most] = rejected
  if (!most || all <= MAX_IGNORED) return []
  const others = all - most.count
  const from = most.client === null ? '' : ` from ${most.client}`
  const rest = others === 0 ? '' : `, and ${others} other rejected ${others === 1 ? 'request' : 'requests'}`
  return [
    {
      id: 'rejected',
      tone: 'wait',
      text: `${most.count} ${most.count === 1 ? 'request' : 'requests'} ${REJECTED[most.reason]}${from} in the last hour${rest}`,
      action: offer('dashboard:read', 'Show rejected', '/logs?status=rejected&range=1h'),
    },
  ]
}

const REJECTED: Record<RejectionReason, string> = {
  unknown_key: 'with an unknown key',
  inactive_key: 'with a disabled key',
  expired_key: 'with an expired key',
  missing_key: 'without a key',
  remote_client: 'while remote access is off',
  firewall: 'blocked by the firewall',
  model_not_allowed: 'for a model their key may not use',
}

const strategy = ({ isChosenAccountGone }: Facts, isWriter: boolean): Attention[] =>
  isChosenAccountGone
    ? [
        {
          id: 'strategy',
          tone: 'bad',
          text: 'No new conversations are served. The account chosen for the “Single account” strategy was deleted.',
          action: isWriter ? { label: 'Choose another account', href: '/settings/routing' } : null,
        },
      ]
    : []

const overflow = ({ overflow: use }: Facts, offer: Offer): Attention[] => {
  if (!use) return []
  const requests = (count: number) => `${count} ${count === 1 ? 'request' : 'requests'}`
  const served =
    use.count === 0
      ? 'Overflow has used up its budget for today'
      : `${use.sourceName} served ${requests(use.count)} in the last hour, because every account was at its usage limit`
  const left = use.overBudget === 0 ? '' : `. ${requests(use.overBudget)} did not fit into the budget`
  return [
    {
      id: 'overflow',
      tone: 'wait',
      text: served + left,
      action: offer('dashboard:read', 'Show sources', '/settings/sources'),
    },
  ]
}
const proxies = ({ failingProxies }: Facts, offer: Offer): Attention[] =>
  failingProxies.map(({ id, name }) => ({
    id: `proxy-${id}`,
    tone: 'bad',
    text: `The outbound proxy ${name} has not connected for more than 5 minutes`,
    action: offer('ops:write', 'Open proxies', '/settings/network#egress-endpoints'),
  }))

const exposure = ({ isDashboardOpen, isKeyless }: Facts, offer: Offer): Attention[] => [
  ...(isDashboardOpen
    ? [
        {
          id: 'open-dashboard',
          tone: 'bad',
          text: 'Anyone who can reach this dashboard has full control. Sign-in is disabled in the environment.',
          action: null,
        } as const,
      ]
    : []),
  ...(isKeyless
    ? [
        {
          id: 'keyless',
          tone: 'wait',
          text: 'Clients from the networks set in the environment need no API key',
          action: offer('security:write', 'Require keys', '/settings'),
        } as const,
      ]
    : []),
]

const signIns = ({ accounts }: Facts, offer: Offer): Attention[] =>
  accounts
    .filter(({ status }) => status === 'reauth_required')
    .map(({ accountId, displayName }) => ({
      id: `sign-in-${accountId}`,
      tone: 'bad',
      text: `${displayName} needs sign-in. It is not used until you sign in again.`,
      action: offer('accounts:write', 'Sign in again', `/accounts/new/browser?account=${accountId}`),
    }))

const deactivated = ({ accounts }: Facts, offer: Offer): Attention[] =>
  accounts
    .filter(({ status }) => status === 'deactivated')
    .map(({ accountId, displayName }) => ({
      id: `deactivated-${accountId}`,
      tone: 'bad',
      text: `${displayName} was deactivated by OpenAI`,
      action: offer('accounts:read', 'Open account', `/accounts/${accountId}`),
    }))

const LIMITS: Record<KeyFact['limits'][number]['type'], string> = {
  requests: 'request',
  total_tokens: 'token',
  input_tokens: 'input token',
  output_tokens: 'output token',
  cost_usd: 'cost',
}
const WINDOWS: Record<KeyFact['limits'][number]['window'], string> = {
  '5h': '5-hour',
  daily: 'daily',
  '7d': '7-day',
  weekly: 'weekly',
  monthly: 'monthly',
}

/** Only the limit of each key that is closest to its maximum. */
const keyLimits = ({ keys, now }: Facts, offer: Offer): Attention[] =>
  keys.flatMap(({ id, name, isActive, limits }) => {
    const running = limits.filter(({ resetAt, window, max }) => isRunning(now, resetAt, window) && max > 0)
    const fullest = running.toSorted((a, b) => b.used / b.max - a.used / a.max)[0]
    if (!isActive || !fullest || fullest.used / fullest.max < NEAR) return []
    const percent = Math.floor((fullest.used / fullest.max) * 100)
    return {
      id: `limit-${id}`,
      tone: percent >= 100 ? 'bad' : 'wait',
      text: `Key ${name} is at ${percent} % of its ${WINDOWS[fullest.window]} ${LIMITS[fullest.type]} limit`,
      action: offer('api_keys:write', 'Raise limit', `/keys/${id}`),
    } as const
  })

const expiring = ({ keys, now }: Facts, offer: Offer): Attention[] =>
  keys.flatMap(({ id, name, isActive, expiresAt }) => {
    const leftMs = (expiresAt ?? Number.POSITIVE_INFINITY) - now
    if (!isActive || leftMs <= 0 || leftMs > EXPIRES_SOON_MS) return []
    const days = Math.floor(leftMs / DAY_MS)
    const when = days === 0 ? 'within a day' : days === 1 ? 'in 1 day' : `in ${days} days`
    return {
      id: `expires-${id}`,
      tone: 'wait',
      text: `Key ${name} expires ${when}`,
      action: offer('api_keys:write', 'Change expiry', `/keys/${id}`),
    } as const
  })

const backups = ({ lastBackupAt, isFirstBackupComing, now, accounts }: Facts, offer: Offer): Attention[] => {
  if (lastBackupAt === undefined || accounts.length === 0) return []
  if (lastBackupAt === null && isFirstBackupComing) return []
  if (lastBackupAt !== null && now - lastBackupAt < BACKUP_IS_OLD_MS) return []
  return [
    {
      id: 'backup',
      tone: 'wait',
      text:
        lastBackupAt === null
          ? 'No backup yet'
          : `The last backup is ${Math.floor((now - lastBackupAt) / DAY_MS)} days old`,
      action: offer('ops:write', 'Back up now', '/settings/data'),
    },
  ]
}
