/**
 * What needs the attention of a user: each item with the action that fixes it, for users who are allowed to take it.
 * Alerts are sent when an item appears in this list and when it disappears.
 */

import type { RejectionReason } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { AccountView } from '../accounts/account-view.ts'
import type { AlertEvent, AlertSubject } from '../alerts/events.ts'
import type { FailingEndpoint } from '../egress/routes.ts'
import { isRunning } from '../keys/key-limits.ts'
import type { RejectedLately } from '../log/rejected-clients.ts'
import { type Grants, holds, mayWrite, type Permission } from '../users/permissions.ts'
import { type AlertThresholds, blocked, credits, type HeldCredit, meters, pool } from './account-matters.ts'
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

/** An item before the list is limited to what a user may see. */
export interface Matter extends Attention {
  /** Null if no alert is sent. */
  alert: { event: AlertEvent; subject: AlertSubject; part?: string; isInfo?: true } | null
  /** Whether the list leaves it out, because the page shows it elsewhere or it needs no action. */
  isElsewhere?: true
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
  /** Why the last backup failed. Null if it did not, undefined if the user may not see backups. */
  backupFailure: string | null | undefined
  /** Reset credits that can be used. */
  credits: readonly HeldCredit[]
  thresholds: AlertThresholds
  /** Whether the audit log was changed from outside. False for users who may not read it. */
  isAuditBroken: boolean
  /** Channels whose last alert could not be sent. Empty for users who may not see them. */
  failingChannels: readonly { id: string; name: string }[]
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
  const shown = matters(facts, grants).filter(({ isElsewhere }) => !isElsewhere)
  const groups = [...Map.groupBy(shown, ({ alert, id }) => alert?.event ?? id).values()]
  return groups
    .flatMap((items) => shorten(items))
    .map(({ id, tone, text, action }) => ({ id, tone, text, action }))
    .toSorted((a, b) => Number(a.tone === 'wait') - Number(b.tone === 'wait'))
}

/** All items, in the order of the list. */
export const matters = (facts: Facts, grants: Grants): Matter[] => {
  const offer = actionsFor(grants)
  return [
    ...database(facts, offer),
    ...ledger(facts, offer),
    ...pool(facts, offer),
    ...outage(facts, offer),
    ...rejectedClients(facts, offer),
    ...strategy(facts, mayWrite(grants)),
    ...overflow(facts, offer),
    ...proxies(facts, offer),
    ...exposure(facts, offer),
    ...auditLog(facts, offer),
    ...signIns(facts, offer),
    ...deactivated(facts, offer),
    ...blocked(facts, offer),
    ...meters(facts, offer),
    ...credits(facts, offer),
    ...(holds(grants, 'api_keys:read') ? [...keyLimits(facts, offer), ...expiring(facts, offer)] : []),
    ...backups(facts, offer),
    ...channels(facts, offer),
  ]
}

/** For events with many items: the text for the remaining ones, and the page that lists them. */
const MANY: Partial<Record<AlertEvent, readonly [what: string, href: string]>> = {
  'egress.down': ['outbound proxies can’t connect', '/settings/network#egress-endpoints'],
  'account.needs_sign_in': ['accounts need sign-in', '/accounts'],
  'account.deactivated': ['accounts were deactivated', '/accounts'],
  'account.blocked': ['accounts are blocked for too long', '/accounts'],
  'account.meter': ['accounts are near a limit', '/accounts'],
  'credit.expiring': ['reset credits expire soon', '/accounts'],
  'key.limit': ['keys are near a limit', '/keys'],
  'key.expiring': ['keys expire soon', '/keys'],
}

export type Offer = (permission: Permission, label: string, href: string) => Attention['action']

const actionsFor =
  (grants: Grants): Offer =>
  (permission, label, href) =>
    holds(grants, permission) ? { label, href } : null

const shorten = (items: readonly Matter[]): readonly Attention[] => {
  const rest = items.length - MAX_OF_A_KIND
  const [first] = items
  const many = first?.alert && MANY[first.alert.event]
  if (rest < 2 || !first || !many) return items
  const [what, href] = many
  const more: Attention = {
    id: `more-${first.id}`,
    tone: first.tone,
    text: `${rest} more ${what}`,
    action: { label: 'Show', href },
  }
  return [...items.slice(0, MAX_OF_A_KIND), more]
}

const SERVER = { kind: 'server', name: 'Sluice' } as const

const database = ({ isDatabaseLost }: Facts, offer: Offer): Matter[] =>
  isDatabaseLost
    ? [
        {
          id: 'database',
          tone: 'bad',
          text: 'The database file was removed or replaced. Changes are lost when the server stops unless you back up now.',
          action: offer('ops:write', 'Back up now', '/settings/data'),
          alert: { event: 'ledger.failing', subject: { ...SERVER, id: 'database' } },
        },
      ]
    : []

const ledger = ({ isLedgerHealthy, unwritten }: Facts, offer: Offer): Matter[] =>
  isLedgerHealthy
    ? []
    : [
        {
          id: 'ledger',
          tone: 'bad',
          text: `The request log cannot be written. ${unwritten} finished ${unwritten === 1 ? 'request is' : 'requests are'} kept in memory.`,
          action: offer('security:write', 'Open health check', '/doctor'),
          alert: { event: 'ledger.failing', subject: { ...SERVER, id: 'ledger' } },
        },
      ]

const outage = ({ outage }: Facts, offer: Offer): Matter[] =>
  outage
    ? [
        {
          id: 'outage',
          tone: 'bad',
          text: `The last ${outage.turns} requests failed${outage.message && `. Last error: “${outage.message}”`}`,
          action: offer('dashboard:read', 'Show errors', '/logs?status=failed'),
          alert: { event: 'requests.failing', subject: { ...SERVER, id: 'requests' } },
        },
      ]
    : []

/** A few are probably typing errors. */
const MAX_IGNORED = 10

const rejectedClients = ({ rejected }: Facts, offer: Offer): Matter[] => {
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
      alert: { event: 'requests.rejected', subject: { ...SERVER, id: 'requests' } },
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

const strategy = ({ isChosenAccountGone }: Facts, isWriter: boolean): Matter[] =>
  isChosenAccountGone
    ? [
        {
          id: 'strategy',
          tone: 'bad',
          text: 'No new conversations are served. The account chosen for the “Single account” strategy was deleted.',
          action: isWriter ? { label: 'Choose another account', href: '/settings/routing' } : null,
          alert: { event: 'pool.exhausted', subject: { kind: 'pool', id: 'strategy', name: 'Single account' } },
        },
      ]
    : []

const overflow = ({ overflow: use }: Facts, offer: Offer): Matter[] => {
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
      alert: { event: 'source.overflow', subject: { kind: 'source', id: 'overflow', name: use.sourceName } },
    },
  ]
}
const proxies = ({ failingProxies }: Facts, offer: Offer): Matter[] =>
  failingProxies.map(({ id, name }) => ({
    id: `proxy-${id}`,
    tone: 'bad',
    text: `The outbound proxy ${name} has not connected for more than 5 minutes`,
    action: offer('ops:write', 'Open proxies', '/settings/network#egress-endpoints'),
    alert: { event: 'egress.down', subject: { kind: 'proxy', id, name } },
  }))

const exposure = ({ isDashboardOpen, isKeyless }: Facts, offer: Offer): Matter[] => [
  ...(isDashboardOpen
    ? [
        {
          id: 'open-dashboard',
          tone: 'bad',
          text: 'Anyone who can reach this dashboard has full control. Sign-in is disabled in the environment.',
          action: null,
          alert: null,
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
          alert: null,
        } as const,
      ]
    : []),
]

const signIns = ({ accounts }: Facts, offer: Offer): Matter[] =>
  accounts
    .filter(({ status }) => status === 'reauth_required')
    .map(({ accountId, displayName }) => ({
      id: `sign-in-${accountId}`,
      tone: 'bad',
      text: `${displayName} needs sign-in. It is not used until you sign in again.`,
      action: offer('accounts:write', 'Sign in again', `/accounts/new/browser?account=${accountId}`),
      alert: { event: 'account.needs_sign_in', subject: { kind: 'account', id: accountId, name: displayName } },
    }))

const deactivated = ({ accounts }: Facts, offer: Offer): Matter[] =>
  accounts
    .filter(({ status }) => status === 'deactivated')
    .map(({ accountId, displayName }) => ({
      id: `deactivated-${accountId}`,
      tone: 'bad',
      text: `${displayName} was deactivated by OpenAI`,
      action: offer('accounts:read', 'Open account', `/accounts/${accountId}`),
      alert: { event: 'account.deactivated', subject: { kind: 'account', id: accountId, name: displayName } },
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
const keyLimits = ({ keys, now }: Facts, offer: Offer): Matter[] =>
  keys.flatMap(({ id, name, isActive, limits }) => {
    const running = limits.filter(({ resetAt, window, max }) => isRunning(now, resetAt, window) && max > 0)
    const fullest = running.toSorted((a, b) => b.used / b.max - a.used / a.max)[0]
    if (!isActive || !fullest || fullest.used / fullest.max < NEAR) return []
    const percent = Math.floor((fullest.used / fullest.max) * 100)
    const near: Matter = {
      id: `limit-${id}`,
      tone: percent >= 100 ? 'bad' : 'wait',
      text: `Key ${name} is at ${percent} % of its ${WINDOWS[fullest.window]} ${LIMITS[fullest.type]} limit`,
      action: offer('api_keys:write', 'Raise limit', `/keys/${id}`),
      alert: { event: 'key.limit', subject: { kind: 'key', id, name } },
    }
    if (percent < 100) return [near]
    // The alert at 90 % stays active, because the key is still above 90 %.
    const full: Matter = { ...near, alert: { event: 'key.limit', subject: { kind: 'key', id, name }, part: 'full' } }
    return [full, { ...near, tone: 'wait', isElsewhere: true }]
  })

const expiring = ({ keys, now }: Facts, offer: Offer): Matter[] =>
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
      alert: { event: 'key.expiring', subject: { kind: 'key', id, name } },
    } as const
  })

const backups = (facts: Facts, offer: Offer): Matter[] => {
  const text = backupProblem(facts)
  if (text === null) return []
  const action = offer('ops:write', 'Back up now', '/settings/data')
  const alert = { event: 'backup.failed', subject: { ...SERVER, id: 'backup' } } as const
  return [{ id: 'backup', tone: 'wait', text, action, alert }]
}

const backupProblem = ({ lastBackupAt, isFirstBackupComing, backupFailure, now, accounts }: Facts): string | null => {
  if (lastBackupAt === undefined || accounts.length === 0) return null
  if (backupFailure) return `The last backup failed: ${backupFailure}`
  if (lastBackupAt === null) return isFirstBackupComing ? null : 'No backup yet'
  return now - lastBackupAt < BACKUP_IS_OLD_MS
    ? null
    : `The last backup is ${Math.floor((now - lastBackupAt) / DAY_MS)} days old`
}

const auditLog = ({ isAuditBroken }: Facts, offer: Offer): Matter[] =>
  isAuditBroken
    ? [
        {
          id: 'audit',
          tone: 'bad',
          text: 'The audit log was changed from outside: its chain is broken.',
          action: offer('audit:read', 'Open audit log', '/audit'),
          alert: { event: 'security.audit', subject: { ...SERVER, id: 'audit' } },
        },
      ]
    : []

const channels = ({ failingChannels }: Facts, offer: Offer): Matter[] =>
  failingChannels.map(({ id, name }) => ({
    id: `channel-${id}`,
    tone: 'wait',
    text: `Alerts to ${name} could not be sent`,
    action: offer('ops:write', 'Open channel', `/settings/alerts/${id}`),
    alert: null,
  }))
