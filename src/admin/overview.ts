/** `/dashboard`: how the service is, what each account can do now, and the last requests. */

import type { Context } from 'hono'
import { OverviewPage } from '../../views/overview.tsx'
import type { AppEnv } from '../bindings.ts'
import { open, requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { iso, isoOrNull } from '../lib/iso.ts'
import { maskedView } from '../model/account-summary.ts'
import type { AccountView } from '../model/account-view.ts'
import { blindedRow, type RecentRequest } from '../model/request-view.ts'
import type { UsageWindow } from '../model/usage-windows.ts'
import { blindersOf } from './requests.ts'

/** Times are ISO 8601. */
export interface Overview {
  generatedAt: string
  /** Where a client on this machine reaches the service. */
  baseUrl: string
  isKeyRequired: boolean
  health: Health
  accounts: OverviewAccount[]
  requests: OverviewRequest[]
}

export interface Health {
  /** `empty`: no accounts; `blocked`: none is eligible; `faulty`: readiness is red; `draining`: shutting down. */
  level: 'serving' | 'empty' | 'blocked' | 'faulty' | 'draining'
  eligible: number
  total: number
  /** Accounts that only a person can bring back. */
  needAttention: number
  /** The next time an account has more to give: a reset, the end of a block, or a check. */
  next: { at: string; account: string; event: 'reset' | 'back' | 'check' } | null
  /** Median over the listed requests; null: none was answered. */
  firstEventMs: number | null
}

export interface OverviewAccount
  extends Omit<AccountView, 'since' | 'until' | 'nextCheckAt' | 'windows' | 'lastRefreshAt' | 'usageAt'> {
  since: string | null
  until: string | null
  nextCheckAt: string | null
  windows: Record<'fiveHour' | 'weekly' | 'monthly', OverviewWindow | null>
  lastRefreshAt: string
  usageAt: string | null
}

interface OverviewWindow extends Omit<UsageWindow, 'resetAt'> {
  resetAt: string | null
}

export interface OverviewRequest extends Omit<RecentRequest, 'startedAt'> {
  startedAt: string
}

const REQUESTS_SHOWN = 20

export const showOverview = createHandlers(requires('accounts:read'), async (c) =>
  reply(c, await overview(c), OverviewPage),
)

/** `/` leads to the dashboard; who may see it is decided there. */
export const goToDashboard = createHandlers(open('redirect to the dashboard'), (c) => c.redirect('/dashboard'))

const overview = async (c: Context<AppEnv>): Promise<Overview> => {
  const { pool, reader, settings, clock } = c.env
  const now = clock.now()
  const blinders = blindersOf(c.var.principal)
  const accounts = blinders.hidesAccounts ? pool.describe().map(maskedView) : pool.describe()
  const recent = await reader.recentRequests(REQUESTS_SHOWN)
  const requests = recent.map((request) => blindedRow(request, blinders))
  return {
    generatedAt: iso(now),
    baseUrl: new URL(c.req.url).origin,
    isKeyRequired: settings.current().apiKeyAuthEnabled,
    health: healthOf(accounts, requests, {
      now,
      isDraining: c.env.lifecycle.draining,
      isLedgerHealthy: c.env.ledger.healthy,
    }),
    accounts: accounts.map(wireAccount),
    requests: requests.map((request) => ({ ...request, startedAt: iso(request.startedAt) })),
  }
}

interface Circumstances {
  /** ms since epoch */
  now: number
  isDraining: boolean
  isLedgerHealthy: boolean
}

/** The health line as data. The readiness route is red exactly when this says `faulty` or `draining`. */
export const healthOf = (
  accounts: readonly AccountView[],
  requests: readonly RecentRequest[],
  { now, isDraining, isLedgerHealthy }: Circumstances,
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
          : 'serving'
  return {
    level,
    eligible,
    total: accounts.length,
    needAttention: accounts.filter(({ status }) => status === 'reauth_required' || status === 'deactivated').length,
    next: nextEvent(accounts, now),
    firstEventMs: median(requests.flatMap(({ firstEventMs }) => firstEventMs ?? [])),
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
  return [windows.fiveHour, windows.weekly, windows.monthly].flatMap((window): Event[] =>
    window?.resetAt && window.usedPercent > 0 ? [{ at: window.resetAt, account, event: 'reset' }] : [],
  )
}

type Event = Omit<NonNullable<Health['next']>, 'at'> & { at: number }

const median = (values: readonly number[]): number | null => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle]
  if (upper === undefined) return null
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2
}

const wireAccount = (account: AccountView): OverviewAccount => ({
  ...account,
  since: isoOrNull(account.since),
  until: isoOrNull(account.until),
  nextCheckAt: isoOrNull(account.nextCheckAt),
  lastRefreshAt: iso(account.lastRefreshAt),
  usageAt: isoOrNull(account.usageAt),
  windows: {
    fiveHour: wireWindow(account.windows.fiveHour),
    weekly: wireWindow(account.windows.weekly),
    monthly: wireWindow(account.windows.monthly),
  },
})

const wireWindow = (window: UsageWindow | null): OverviewWindow | null =>
  window && { ...window, resetAt: isoOrNull(window.resetAt) }
