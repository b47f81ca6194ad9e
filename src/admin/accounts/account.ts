/**
 * `/accounts/:id` and `/api/accounts/:id`: the page of an account and its trend, and to edit, pause, resume and delete
 * it.
 */
import { z } from 'zod'
import { commit, type Tx } from '../../../db/commit.ts'
import { AccountPage, type AccountProps, type Tab, type TabName } from '../../../views/accounts/detail.tsx'
import type { ResetRuleProps } from '../../../views/accounts/reset-rule.tsx'
import type { WindowProps } from '../../../views/accounts/window-card.tsx'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { Flag, query } from '../../http/query.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { HOUR_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { offeredActions, READ_ONLY } from '../../model/accounts/account-actions.ts'
import { lastProbe, maskedHistory } from '../../model/accounts/account-events-read.ts'
import { tokenHealth } from '../../model/accounts/account-export.ts'
import { listByPosition } from '../../model/accounts/account-order.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { ROUTING_POLICIES, remainingCredits } from '../../model/accounts/account-summary.ts'
import { Tags } from '../../model/accounts/account-tags.ts'
import { openTokens } from '../../model/accounts/account-tokens.ts'
import { TREND_HOURS, trendPoints, withCurrentUsage } from '../../model/accounts/account-trends.ts'
import { type AccountView, wireAccount } from '../../model/accounts/account-view.ts'
import {
  type AccountEdit,
  type AccountRow,
  editAccount as edit,
  getAccount,
  pauseAccount as pause,
  reactivateAccount as reactivate,
} from '../../model/accounts/accounts.ts'
import { METER_WINDOWS } from '../../model/accounts/meter-readings.ts'
import { getResetAttempts } from '../../model/accounts/reset-attempts.ts'
import { resetCreditsView } from '../../model/accounts/reset-credits.ts'
import { planReset, ruleFor } from '../../model/accounts/reset-rule.ts'
import { ResetRuleFields } from '../../model/accounts/reset-rule-fields.ts'
import { capacityCredits, perWindow, type WindowLength } from '../../model/accounts/usage-windows.ts'
import { lastWindowStart } from '../../model/accounts/window-starts.ts'
import type { Actor } from '../../model/audit/audit.ts'
import { ExpectedVersion } from '../../model/edit-version.ts'
import { holds, mayWrite as holdsWrite } from '../../model/users/permissions.ts'
import { REFRESH_AFTER_MS } from '../../upstream/credentials.ts'
import { ownerChoices } from '../choices.ts'
import { routeView } from '../egress.ts'
import { back, getFormFeedback } from '../form-feedback.ts'
import { toReader } from '../reader-for-caller.ts'
import { stickyLink } from '../sticky-sessions.ts'
import { getHiddenFields } from '../visibility.ts'
import { deleteEach } from './bulk.ts'
import { mayWrite, viewsFor } from './list.ts'
import { getStatementTab, STATEMENT_PERIODS, type StatementAsked } from './statement.ts'
import { getStartObstacle } from './window.ts'

/** Throws `account_not_found`, `account_state_transition_invalid`. */
export const pauseAccount = createHandlers(requires('accounts:write', { audit: 'account_paused' }), async (c) => {
  await write(c, pause)
  return proceed(c, { status: 'paused' }, back(c, 'account_paused'))
})

/** Throws `account_not_found`, `account_state_transition_invalid` for one that needs sign-in. */
export const reactivateAccount = createHandlers(
  requires('accounts:write', { audit: 'account_reactivated' }),
  async (c) => {
    await write(c, reactivate)
    return proceed(c, { status: 'reactivated' }, back(c, 'account_reactivated'))
  },
)

const Deletion = z.object({
  delete_history: Flag.describe('Delete its request log too.'),
})

/** With `delete_history`, its request log is deleted too, after the response. */
export const deleteAccount = createHandlers(
  requires('accounts:write', { audit: 'account_deleted' }),
  query(Deletion),
  async (c) => {
    await deleteEach(c, [getPathId(c)], { deleteHistory: c.req.valid('query').delete_history })
    return proceed(c, { status: 'deleted' }, '/accounts?done=account_deleted')
  },
)

const AliasText = z
  .string()
  .trim()
  .max(255)
  .nullable()
  .transform((alias) => alias || null)
  .describe('Shown instead of the e-mail address. Blank or null removes it.')

const PolicyName = z
  .enum(ROUTING_POLICIES)
  .describe('`burn_first`: used before the others; `normal`: the strategy decides; `preserve`: last resort.')

const Cap = z.int().min(1).max(100).nullable().optional()

/** The routing form sends all but the reset rule; the API also has separate routes for alias and policy. */
const Patch = z.strictObject({
  securityWorkAuthorized: z.boolean().optional().describe('Whether the account belongs to the restricted pool.'),
  alias: AliasText.optional(),
  routingPolicy: PolicyName.optional(),
  ...ResetRuleFields.shape,
  maxUsedPercentPrimary: Cap.describe(
    'Percent used of the 5-hour window from which the account is skipped until the reset. Null: no cap.',
  ),
  maxUsedPercentSecondary: Cap.describe(
    'The same for the weekly window, or for the monthly window of plans without a weekly one.',
  ),
  ownerUserId: z
    .string()
    .min(1)
    .max(64)
    .nullable()
    .optional()
    .describe('ID of the user who owns the account, or null.'),
  reserveForOwner: z.boolean().optional().describe('Keys of the owner are exempt from the caps. Needs an owner.'),
  tags: Tags.optional().describe('Replaces the tags. At most 20, of 1 to 40 characters; a comma separates two.'),
  position: z
    .int()
    .min(1)
    .nullable()
    .optional()
    .describe(
      'Position, from 1, in the order of `fill_first` and `sequential_drain`. Null means after all accounts with a position.',
    ),
  expectedVersion: ExpectedVersion,
})

export const editAccount = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Patch),
  async (c) => {
    await change(c, c.req.valid('json'))
    return proceed(c, { status: 'updated' }, back(c, 'account_updated'))
  },
)

const Alias = z.strictObject({ alias: AliasText })

export const setAlias = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Alias),
  async (c) => {
    const { id: accountId, alias } = await change(c, c.req.valid('json'))
    return c.json({ accountId, alias })
  },
)

const Policy = z.strictObject({ routingPolicy: PolicyName })

export const setRoutingPolicy = createHandlers(
  requires('accounts:write', { audit: 'account_updated' }),
  body(Policy),
  async (c) => {
    const { id: accountId, routingPolicy } = await change(c, c.req.valid('json'))
    return c.json({ accountId, routingPolicy })
  },
)

const change = (c: Ctx, what: AccountEdit): Promise<AccountRow> => write(c, (tx, id, who) => edit(tx, id, what, who))

const write = async <T>(c: Ctx, apply: (tx: Tx, id: string, who: Actor) => Promise<T>): Promise<T> => {
  const who = actor(c)
  return commit<T>(c.env.db, (tx) => apply(tx, getPathId(c), who))
}

/** 7 days, hourly, as percent left. Throws `account_not_found`. */
export const showAccountTrends = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), async (c) => {
  const view = getView(c)
  return c.json({ accountId: view.accountId, ...trendPoints(await getTrend(c, view), view.windows.weekly) })
})

const getTrend = async (c: Ctx, { accountId, windows, usageAt }: AccountView) =>
  withCurrentUsage(await toReader(c).accountTrend(accountId, c.env.clock.now()), windows, usageAt)

const TABS = ['usage', 'statement', 'routing', 'events', 'credentials'] as const satisfies readonly TabName[]

const TabQuery = z.object({
  tab: z.enum(TABS).default('usage').catch('usage'),
  before: z.coerce.number().int().min(1).nullable().default(null).catch(null),
  window: z.enum(METER_WINDOWS).default('weekly').catch('weekly'),
  period: z.enum(STATEMENT_PERIODS).default('window').catch('window'),
})

/** If the user may not open a tab, the first one is shown. Throws `account_not_found`. */
export const showAccount = createHandlers(requires('accounts:read'), query(TabQuery), async (c) => {
  const asked = c.req.valid('query')
  const view = getView(c)
  const tabs = TABS.filter((tab) => tab !== 'credentials' || mayWrite(c))
  const tab = tabs.includes(asked.tab) ? asked.tab : 'usage'
  const row = await getAccount(c.env.db, view.accountId)
  const { done, problem } = getFormFeedback(c)
  const value: AccountProps = {
    account: wireAccount(view),
    workspace: mayWrite(c) ? row.workspaceLabel : null,
    actions: offeredActions(view, mayWrite(c)),
    tabs,
    content: await getContent(c, { ...asked, tab, view, row }),
    mayWrite: mayWrite(c),
    now: iso(c.env.clock.now()),
    done,
    problem,
    probe: mayWrite(c) ? await lastProbe(c.env.db, view.accountId, c.env.clock.now() - HOUR_MS) : null,
  }
  return reply(c, value, AccountPage)
})

interface Shown extends StatementAsked {
  tab: TabName
  before: number | null
  view: AccountView
  row: AccountRow
}

const getContent = async (c: Ctx, { tab, before, view, row, ...asked }: Shown): Promise<Tab> => {
  switch (tab) {
    case 'usage':
      return getUsage(c, view)
    case 'statement':
      return { tab, ...(await getStatementTab(c, view.accountId, asked)) }
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
    window: await getWindow(c, view),
    resetRule: await getResetRule(c, view),
  }
}

const getResetRule = async (c: Ctx, { accountId }: AccountView): Promise<ResetRuleProps> => {
  const { db, pool, settings, clock, resetCredits } = c.env
  const now = clock.now()
  const current = settings.current()
  const account = pool.get(accountId)
  const credits = resetCredits.of(accountId)
  const row = await getAccount(db, accountId)
  const attempts = await getResetAttempts(db, accountId)
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

const getWindow = async (c: Ctx, { accountId }: AccountView): Promise<WindowProps> => {
  const { db, settings, clock } = c.env
  const last = await lastWindowStart(db, accountId)
  const { windowStart, windowStartHours, windowStartZone } = settings.current()
  const isEnabled = (await getAccount(db, accountId)).windowStartEnabled
  return {
    isEnabled,
    schedule: windowStart,
    hours: `${windowStartHours} ${windowStartZone}`,
    last: last && {
      at: iso(last.startedAt),
      result: last.result,
      // Messages from ChatGPT are only shown to users who manage accounts.
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

/** Why reset credits can't be used now, or null. `available` is null until fetched. */
const resetRefusal = (c: Ctx, { status }: AccountView, available: number | null): string | null => {
  if (!mayWrite(c)) return READ_ONLY
  if (!isInUse({ status })) return 'Reset credits can only be used on an account that is in use.'
  if (available === null) return 'Not fetched from ChatGPT yet.'
  return available === 0 ? 'This account has no reset credits.' : null
}

const getRouting = async (c: Ctx, view: AccountView): Promise<Tab> => {
  const { settings, catalog } = c.env
  const { routingStrategy, proxyAccountStreamLimit } = settings.current()
  const models = catalog.getModels(view.accountId)
  return {
    tab: 'routing',
    strategy: routingStrategy,
    streamLimit: proxyAccountStreamLimit,
    models: models && [...models].toSorted(),
    owners: mayWrite(c) ? await ownerChoices(c) : [],
    order: await getOrder(c, view),
    sessions: holds(c.var.principal.grants, 'ops:write')
      ? { href: stickyLink({ accountQuery: view.accountId }), mayRelease: holdsWrite(c.var.principal.grants) }
      : null,
    egress: await routeView(c, (await getAccount(c.env.db, view.accountId)).egressPoolId),
    refusal: mayWrite(c) ? null : READ_ONLY,
  }
}

const getOrder = async (c: Ctx, { accountId, position }: AccountView) => {
  const order = await listByPosition(c.env.db)
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

/** Throws `account_not_found`. */
const getView = (c: Ctx): AccountView => {
  const view = viewsFor(c).find(({ accountId }) => accountId === getPathId(c))
  if (!view) throw new AppError('account_not_found')
  return view
}
