/** `/accounts`, `/accounts/:id` and its trend, limited to what the user may see. */
import { z } from 'zod'
import { AccountPage, type AccountProps, type Tab, type TabName } from '../../views/accounts/detail.tsx'
import { AccountsPage, type AccountsProps } from '../../views/accounts/list.tsx'
import type { ResetRuleProps } from '../../views/accounts/reset-rule.tsx'
import type { WindowProps } from '../../views/accounts/window-card.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { HOUR_MS } from '../lib/durations.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import { offeredActions, READ_ONLY } from '../model/accounts/account-actions.ts'
import { lastProbe, maskedHistory } from '../model/accounts/account-events-read.ts'
import { tokenHealth } from '../model/accounts/account-export.ts'
import {
  AccountQuery,
  filterAccounts,
  getDistinctTags,
  type ListedAccount,
  planTotals,
} from '../model/accounts/account-filter.ts'
import { withUniqueNames } from '../model/accounts/account-names.ts'
import { listByPosition } from '../model/accounts/account-order.ts'
import { isInUse } from '../model/accounts/account-state.ts'
import { ACCOUNT_STATUSES, maskedView, remainingCredits } from '../model/accounts/account-summary.ts'
import { openTokens } from '../model/accounts/account-tokens.ts'
import { getLastUses, getUses, NO_USE } from '../model/accounts/account-totals.ts'
import { TREND_HOURS, trendPoints, withCurrentUsage } from '../model/accounts/account-trends.ts'
import { type AccountView, wireAccount } from '../model/accounts/account-view.ts'
import { type AccountRow, getAccount } from '../model/accounts/accounts.ts'
import { getResetAttempts } from '../model/accounts/reset-attempts.ts'
import { resetCreditsView } from '../model/accounts/reset-credits.ts'
import { planReset, ruleFor } from '../model/accounts/reset-rule.ts'
import { capacityCredits, perWindow, type WindowLength } from '../model/accounts/usage-windows.ts'
import { lastWindowStart } from '../model/accounts/window-starts.ts'
import { holds, mayWrite as holdsWrite } from '../model/users/permissions.ts'
import { REFRESH_AFTER_MS } from '../upstream/credentials.ts'
import { getStartObstacle } from './account-window.ts'
import { routeView } from './egress.ts'
import { getFormFeedback } from './form-feedback.ts'
import { ownerChoices } from './owner-choices.ts'
import { toReader } from './reader-for-caller.ts'
import { getHiddenFields } from './requests.ts'
import { stickyLink } from './sticky-sessions.ts'

/** Masked before filtering, so that users cannot search for hidden values. */
export const showAccounts = createHandlers(requires('accounts:read'), query(AccountQuery), (c) => {
  const asked = c.req.valid('query')
  const all = listedAccounts(c)
  const found = filterAccounts(all, asked)
  const pages = Math.max(1, Math.ceil(found.length / asked.per))
  const page = Math.min(asked.page, pages)
  const counted = ACCOUNT_STATUSES.map((status) => [status, all.filter((one) => one.status === status).length] as const)
  const value: AccountsProps = {
    accounts: found.slice((page - 1) * asked.per, page * asked.per),
    found: found.length,
    total: all.length,
    pages,
    query: { ...asked, page },
    plans: planTotals(all),
    tags: getDistinctTags(all),
    states: Object.fromEntries(counted.filter(([status, count]) => count > 0 || status === asked.state)),
    mayWrite: mayWrite(c),
    mayExport: holds(c.var.principal.grants, 'accounts:export'),
    now: iso(c.env.clock.now()),
    ...getFormFeedback(c),
  }
  return reply(c, value, AccountsPage)
})

const listedAccounts = (c: Ctx): ListedAccount[] => {
  const uses = getUses(c.env.db)
  const lastUses = getLastUses(c.env.db)
  return viewsFor(c).map((view) => {
    const { requestCount, totalCostUsd } = uses.get(view.accountId) ?? NO_USE
    const lastUsedAt = isoOrNull(lastUses.get(view.accountId))
    return { ...wireAccount(view), requests: requestCount, costUsd: totalCostUsd, lastUsedAt }
  })
}

/** 7 days, hourly, as percent left. Throws `account_not_found`. */
export const showAccountTrends = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), async (c) => {
  const view = getView(c)
  return c.json({ accountId: view.accountId, ...trendPoints(await getTrend(c, view), view.windows.weekly) })
})

const getTrend = async (c: Ctx, { accountId, windows, usageAt }: AccountView) =>
  withCurrentUsage(await toReader(c).accountTrend(accountId, c.env.clock.now()), windows, usageAt)

const TABS = ['usage', 'routing', 'events', 'credentials'] as const satisfies readonly TabName[]

const TabQuery = z.object({
  tab: z.enum(TABS).default('usage').catch('usage'),
  before: z.coerce.number().int().min(1).nullable().default(null).catch(null),
})

/** A tab the user may not open becomes the first one. Throws `account_not_found`. */
export const showAccount = createHandlers(requires('accounts:read'), query(TabQuery), async (c) => {
  const asked = c.req.valid('query')
  const view = getView(c)
  const tabs = TABS.filter((tab) => tab !== 'credentials' || mayWrite(c))
  const tab = tabs.includes(asked.tab) ? asked.tab : 'usage'
  const row = getAccount(c.env.db, view.accountId)
  const { done, problem } = getFormFeedback(c)
  const value: AccountProps = {
    account: wireAccount(view),
    workspace: mayWrite(c) ? row.workspaceLabel : null,
    actions: offeredActions(view, mayWrite(c)),
    tabs,
    content: await getContent(c, { tab, before: asked.before, view, row }),
    mayWrite: mayWrite(c),
    now: iso(c.env.clock.now()),
    done,
    problem,
    probe: mayWrite(c) ? lastProbe(c.env.db, view.accountId, c.env.clock.now() - HOUR_MS) : null,
  }
  return reply(c, value, AccountPage)
})

interface Shown {
  tab: TabName
  before: number | null
  view: AccountView
  row: AccountRow
}

const getContent = async (c: Ctx, { tab, before, view, row }: Shown): Promise<Tab> => {
  switch (tab) {
    case 'usage':
      return getUsage(c, view)
    case 'routing':
      return getRouting(c, view)
    case 'events': {
      const page = await toReader(c).accountHistory(view.accountId, before)
      return { tab, before, ...(mayWrite(c) ? page : maskedHistory(page)) }
    }
    case 'credentials':
      return getCredentials(c, row)
  }
}

const getUsage = async (c: Ctx, view: AccountView): Promise<Tab> => {
  const { clock, resetCredits, random } = c.env
  const now = clock.now()
  const since = Math.floor(now / HOUR_MS) * HOUR_MS - (TREND_HOURS - 1) * HOUR_MS
  const [trend, spend] = await Promise.all([getTrend(c, view), toReader(c).accountSpend(view.accountId, since)])
  const credits = resetCredits.of(view.accountId)
  const resets = credits && resetCreditsView(credits, now)
  return {
    tab: 'usage',
    credits: perWindow((length) => creditsIn(view, length)),
    trend,
    spend: { ...spend, byKey: getHiddenFields(c.var.principal).hidesKeys ? null : spend.byKey },
    resetCredits: resets,
    resetRefusal: resetRefusal(c, view, resets?.availableCount ?? null),
    redeemRequestId: random.id('rdm'),
    window: getWindow(c, view),
    resetRule: getResetRule(c, view),
  }
}

const getResetRule = (c: Ctx, { accountId }: AccountView): ResetRuleProps => {
  const { db, pool, settings, clock, resetCredits } = c.env
  const now = clock.now()
  const current = settings.current()
  const account = pool.get(accountId)
  const credits = resetCredits.of(accountId)
  const row = getAccount(db, accountId)
  const attempts = getResetAttempts(db, accountId)
  const plan =
    account && credits
      ? planReset(ruleFor(row, current), { credits, attempts, usage: account.usage, state: account.state }, now)
      : null
  return {
    rule: ruleFor(row, current),
    defaults: ruleFor(NO_RULE, current),
    plan: plan?.kind === 'planned' ? { at: iso(plan.at), left: plan.left, isDue: plan.at <= now } : null,
    waitingFor: plan?.kind === 'waiting' ? plan.for : null,
    refusal: mayWrite(c) ? null : READ_ONLY,
  }
}

const NO_RULE = { resetPolicy: null, keepCredits: null, minBlockedMinutes: null, percent: null }

const getWindow = (c: Ctx, { accountId }: AccountView): WindowProps => {
  const { db, settings, clock } = c.env
  const last = lastWindowStart(db, accountId)
  const { windowStart, windowStartHours, windowStartZone } = settings.current()
  const isEnabled = getAccount(db, accountId).windowStartEnabled
  return {
    isEnabled,
    schedule: windowStart,
    hours: `${windowStartHours} ${windowStartZone}`,
    last: last && {
      at: iso(last.startedAt),
      result: last.result,
      // Words of ChatGPT are for users who manage accounts.
      error: mayWrite(c) ? last.errorMessage : null,
    },
    refusal: mayWrite(c) ? (isEnabled ? null : getStartObstacle(c, accountId)) : READ_ONLY,
    now: iso(clock.now()),
  }
}

const creditsIn = (view: AccountView, length: WindowLength) => {
  const left = remainingCredits(view, length)
  const capacity = capacityCredits(view.planType, length)
  return left === null || capacity === 0 ? null : { left, capacity }
}

/** `available`: null until fetched. */
const resetRefusal = (c: Ctx, { status }: AccountView, available: number | null): string | null => {
  if (!mayWrite(c)) return READ_ONLY
  if (!isInUse({ status })) return 'Reset credits can only be used on an account that is in use.'
  if (available === null) return 'Not fetched from ChatGPT yet.'
  return available === 0 ? 'This account has no reset credits.' : null
}

const getRouting = (c: Ctx, view: AccountView): Tab => {
  const { settings, catalog } = c.env
  const { routingStrategy, proxyAccountStreamLimit } = settings.current()
  const models = catalog.getModels(view.accountId)
  return {
    tab: 'routing',
    strategy: routingStrategy,
    streamLimit: proxyAccountStreamLimit,
    models: models && [...models].toSorted(),
    owners: mayWrite(c) ? ownerChoices(c) : [],
    order: getOrder(c, view),
    sessions: holds(c.var.principal.grants, 'ops:write')
      ? { href: stickyLink({ accountQuery: view.accountId }), mayRelease: holdsWrite(c.var.principal.grants) }
      : null,
    egress: routeView(c, getAccount(c.env.db, view.accountId).egressPoolId),
    refusal: mayWrite(c) ? null : READ_ONLY,
  }
}

const getOrder = (c: Ctx, { accountId, position }: AccountView) => {
  const order = listByPosition(c.env.db)
  return { place: order.findIndex(({ id }) => id === accountId) + 1, of: order.length, isSet: position !== null }
}

const getCredentials = (c: Ctx, row: AccountRow): Tab => {
  const { sealer, clock } = c.env
  const health = { now: clock.now(), renewAfterMs: REFRESH_AFTER_MS }
  return {
    tab: 'credentials',
    tokens: tokenHealth(row, openTokens(sealer, row), health),
    chatgptAccountId: row.chatgptAccountId,
    addedAt: iso(row.createdAt),
    exportRefusal: holds(c.var.principal.grants, 'accounts:export')
      ? null
      : 'Your role cannot export credentials. Ask an Admin.',
  }
}

const mayWrite = (c: Ctx): boolean => holds(c.var.principal.grants, 'accounts:write')

const viewsFor = (c: Ctx): AccountView[] => {
  const views = c.env.pool.describe()
  return withUniqueNames(getHiddenFields(c.var.principal).hidesAccounts ? views.map(maskedView) : views)
}

/** Throws `account_not_found`. */
const getView = (c: Ctx): AccountView => {
  const view = viewsFor(c).find(({ accountId }) => accountId === getPathId(c))
  if (!view) throw new AppError('account_not_found')
  return view
}
