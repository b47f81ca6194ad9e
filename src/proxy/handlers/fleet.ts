/** `/api/fleet`: the accounts of a key and how busy they are, for companion tools such as menu bar apps. */

import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { inLanes } from '../../lib/lanes.ts'
import { getUniqueNames } from '../../model/accounts/account-names.ts'
import { isInUse, nextState } from '../../model/accounts/account-state.ts'
import { maskEmails } from '../../model/accounts/account-summary.ts'
import { nextReset, type UsageWindow, usedNow } from '../../model/accounts/usage-windows.ts'
import { getKey } from '../../model/keys/api-keys.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import type { ActivitySums, FleetActivity } from '../../model/overview/fleet-activity.ts'
import { findPerson } from '../../model/users/people.ts'
import { holds } from '../../model/users/permissions.ts'
import { getWhy } from '../../upstream/account-call.ts'
import { fetchUsage, judgeUsageFailure } from '../../upstream/usage.ts'
import type { LiveAccount } from '../pool/live-account.ts'
import { requireOpen } from '../turn/admit.ts'

const REFRESH_INTERVAL_MS = 10_000
const LANES = 4

/** `GET /api/fleet/summary`. */
export const showFleet = createHandlers(clientKey('always'), restricted('refuse'), async (c) => {
  const { clientLimits, clock } = c.env
  const key = toKey(c)
  const now = clock.now()
  const names = await namesFor(c, key)
  const sections = key.usageSections
  const showsUsage =
    sections.has('upstream_limits') && sections.has('account_pool_usage') && !clientLimits.hidesPool(key)
  return c.json({
    accounts: getAccounts(c, key).map(({ id, row, state, planType, usage }) => ({
      accountId: id,
      displayName: names.get(id)?.label,
      email: names.get(id)?.email,
      status: nextState(state, { kind: 'tick', at: now }).status,
      planType,
      primary: showsUsage ? getWindow(usage?.windows.fiveHour ?? null, now) : null,
      secondary: showsUsage ? getWindow(usage?.windows.weekly ?? usage?.windows.monthly ?? null, now) : null,
      lastRefreshAt: iso(row.lastRefreshAt),
      usageRefreshedAt: showsUsage ? isoOrNull(usage?.at) : null,
    })),
  })
})

/** `GET /api/fleet/observability`. Its parts are marked unavailable while the log cannot be read in time. */
export const showFleetActivity = createHandlers(clientKey('always'), restricted('refuse'), async (c) => {
  const { clock, reader, settings } = c.env
  const key = toKey(c)
  const now = clock.now()
  const staleSeconds = (settings.current().conversationAffinityMaxAgeDays * DAY_MS) / 1000
  const question = { now, accountIds: key.scope && getAccounts(c, key).map(({ id }) => id), staleSeconds }
  const activity = await reader.for(`key ${key.id}`).fleetActivity(question).catch(unlessBusy)
  return c.json({
    available: activity !== null,
    generatedAt: iso(now),
    source: 'request_log',
    ...(await parts(c, activity)),
  })
})

/** `POST /api/fleet/refresh`: reads the usage of the key's accounts from ChatGPT now. */
export const refreshFleet = createHandlers(clientKey('always'), restricted('refuse'), async (c) => {
  requireOpen(c.env)
  const key = toKey(c)
  requirePause(c, key)
  const accounts = getAccounts(c, key)
  const attempted = accounts.filter(({ state }) => isInUse(state))
  let written = 0
  await inLanes(attempted, LANES, async ({ id }) => {
    if (await refreshUsage(c, id)) written++
  })
  return c.json({
    ok: written === attempted.length,
    usageWritten: written > 0,
    accountCount: accounts.length,
    attemptedCount: attempted.length,
    generatedAt: iso(c.env.clock.now()),
  })
})

const toKey = (c: Ctx): KeyPolicy => {
  const { key } = c.get('client')
  if (!key) throw new AppError('invalid_api_key')
  return key
}

const getAccounts = (c: Ctx, { scope }: KeyPolicy): LiveAccount[] =>
  c.env.pool.all().filter((account) => isInScope(scope, account))

/** Names and addresses as the key's owner may see them. */
const namesFor = async (c: Ctx, key: KeyPolicy): Promise<ReadonlyMap<string, { label: string; email: string }>> => {
  const { ownerUserId } = await getKey(c.env.db, key.id, 'all')
  const owner = ownerUserId === null ? null : await findPerson(c.env.db, ownerUserId)
  const seesAddresses = owner !== null && holds(owner.role.grants, 'accounts:write')
  const shown = (text: string) => (seesAddresses ? text : maskEmails(text))
  const accounts = getAccounts(c, key)
  const labels = getUniqueNames(
    accounts.map(({ id, displayName, planType }) => ({ id, name: shown(displayName), planType })),
  )
  return new Map(accounts.map(({ id, row }) => [id, { label: labels.get(id) ?? '', email: shown(row.email) }]))
}

const getWindow = (window: UsageWindow | null, now: number) => {
  const used = usedNow(window, now)
  return window && used !== null
    ? {
        remainingPercent: 100 - used,
        resetAt: isoOrNull(nextReset(window, now)),
        windowMinutes: window.windowMinutes,
      }
    : null
}

const unlessBusy = (err: unknown): null => {
  if (err instanceof AppError && err.code === 'busy') return null
  throw err
}

const parts = async (c: Ctx, activity: FleetActivity | null) => {
  if (activity === null) return { pressure: { available: false, windows: [] }, sticky: { available: false } }
  const names = await namesFor(c, toKey(c))
  const called = (accountId: string) => ({
    accountId,
    email: names.get(accountId)?.email ?? null,
    label: names.get(accountId)?.label ?? null,
  })
  const { windows, sticky } = activity
  return {
    pressure: {
      available: true,
      windows: windows.map(({ byAccount, byKind, byClient, ...window }) => ({
        ...window,
        byAccount: byAccount.flatMap(({ name, ...sums }) =>
          name === ''
            ? []
            : [{ ...called(name), lastSelectedAt: isoOrNull(c.env.pool.get(name)?.lastSelectedAt || null), ...sums }],
        ),
        byKind: byKind.map(({ name, ...sums }): ByKind => ({ name, requestKind: name, ...sums })),
        byClient: byClient.map(({ name, ...sums }): ByClient => {
          const client = name === '' ? 'unknown' : name
          return { name: client, clientGroup: client, ...sums }
        }),
      })),
    },
    sticky: {
      available: true,
      ...sticky,
      byAccount: sticky.byAccount.map(({ accountId, lastUpdatedAt, ...counts }) => ({
        ...called(accountId),
        ...counts,
        lastUpdatedAt: iso(lastUpdatedAt),
      })),
    },
  }
}

type ByKind = ActivitySums & { name: string; requestKind: string }
type ByClient = ActivitySums & { name: string; clientGroup: string }

/** Throws `rate_limit_exceeded` when the key refreshed less than ten seconds ago. */
const requirePause = ({ env }: Ctx, { id }: KeyPolicy): void => {
  const now = env.clock.monotonic()
  const last = env.fleetRefreshes.get(id)
  const waitMs = last === undefined ? 0 : last + REFRESH_INTERVAL_MS - now
  if (waitMs > 0)
    throw new AppError('rate_limit_exceeded', {
      message: 'This key has just refreshed the usage. Try again in a few seconds.',
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    })
  env.fleetRefreshes.set(id, now)
}

/** As the job does it. False when ChatGPT gave no usage. */
const refreshUsage = async ({ env: { pool, proxyDeps, clock, log } }: Ctx, id: string): Promise<boolean> => {
  try {
    pool.observe(id, await fetchUsage({ ...proxyDeps.upstream, credentials: proxyDeps.credentials }, id))
    return true
  } catch (err) {
    const verdict = judgeUsageFailure(err)
    if (verdict.kind === 'auth_failed') pool.apply(id, { ...verdict, at: clock.now() })
    log.info('no usage for a client that asked for a refresh', { account: id, ...getWhy(err) })
    return false
  }
}
