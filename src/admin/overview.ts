/** `/dashboard`: health, what needs attention, remaining quota, and the totals of a period. */
import { getCookie } from 'hono/cookie'
import { z } from 'zod'
import type { Checklist } from '../../views/overview/checklist.tsx'
import type { FiguresPart } from '../../views/overview/figures.tsx'
import type { NowPart } from '../../views/overview/now.tsx'
import type { PoolAccount, PoolPart } from '../../views/overview/pool.tsx'
import { type Overview, OverviewPage } from '../../views/overview.tsx'
import { requireScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import type { Config } from '../boot/env.ts'
import { open, requiresOwn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { originForLinks, publicOrigin } from '../http/public-origin.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { viewerZone } from '../http/viewer-clock.ts'
import { findVariable } from '../lib/env-names.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import { withUniqueNames } from '../model/accounts/account-names.ts'
import type { AccountStatus } from '../model/accounts/account-state.ts'
import { maskedView } from '../model/accounts/account-summary.ts'
import type { AccountView } from '../model/accounts/account-view.ts'
import { redeemable } from '../model/accounts/reset-credits.ts'
import { perWindow } from '../model/accounts/usage-windows.ts'
import type { RejectedLately } from '../model/log/rejected-clients.ts'
import { blindedRow } from '../model/log/request-view.ts'
import { attention } from '../model/overview/attention.ts'
import { collectFacts } from '../model/overview/attention-facts.ts'
import { getStrip } from '../model/overview/outcome-strip.ts'
import { firstSteps } from '../model/overview/overview.ts'
import { getChart } from '../model/overview/overview-chart.ts'
import type { PeriodFigures } from '../model/overview/overview-periods.ts'
import { PERIODS } from '../model/overview/overview-slots.ts'
import { poolMeters } from '../model/overview/pool-meters.ts'
import { hasPasswordAccount } from '../model/users/people.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { getUserCommand } from '../ops/own-command.ts'
import { getHealth } from './overview-health.ts'
import { OWN_RANGES, showOwnOverview } from './own-overview.ts'
import { getHiddenFields, getVisibility } from './visibility.ts'

const SHOWN_AT_MOST = 16
const SHOWN_OF_MANY = 9
/** Compared with percentages. */
const WEIGHTS: Partial<Record<AccountStatus, number>> = { reauth_required: 1000, deactivated: 1000, paused: -1000 }

const OverviewQuery = z.object({
  period: z.enum(PERIODS, { error: `choose ${PERIODS.slice(0, -1).join(', ')} or ${PERIODS.at(-1)}` }).default('24h'),
  range: z
    .enum(OWN_RANGES, { error: `choose ${OWN_RANGES.join(' or ')}` })
    .default('7d')
    .describe('For users who see only their own keys, instead of `period`.'),
})

/** `GET /dashboard`. Throws `validation_error` for an unknown period. */
export const showOverview = createHandlers(requiresOwn('dashboard:read'), query(OverviewQuery), async (c) => {
  const { period, range } = c.req.valid('query')
  const scope = requireScope(c.var.principal, 'dashboard:read')
  if (scope !== 'all') return showOwnOverview(c, scope, range)
  const figures = await c.env.figures.now(period)
  const backupAt = holds(c.var.principal.grants, 'ops:write') ? await lastBackupAt(c) : undefined
  return reply(
    c,
    await getOverview(c, { figures, accounts: visibleAccounts(c), backupAt, now: c.env.clock.now() }),
    OverviewPage,
  )
})

/** Everything the page is made of, so that its parts agree. */
interface Snapshot {
  figures: PeriodFigures
  accounts: AccountView[]
  /** ms since epoch; null: never, undefined: this user may not see backups. */
  backupAt: number | null | undefined
  /** ms since epoch */
  now: number
}

const getOverview = async (c: Ctx, snapshot: Snapshot): Promise<Overview> => ({
  generatedAt: iso(snapshot.now),
  period: snapshot.figures.period,
  now: await nowPart(c, snapshot),
  pool: holds(c.var.principal.grants, 'accounts:read') ? poolPart(snapshot) : null,
  figures: figuresPart(c, snapshot),
})

/** `/` redirects to the dashboard, which checks permissions. */
export const goToDashboard = createHandlers(open('redirect to the dashboard'), (c) => c.redirect('/dashboard'))

/** The message may come from the upstream and name an account, so it is hidden from users who do not see it in the log. */
const outageFor = (c: Ctx) => {
  const { current } = c.env.ops.outage
  return current && getHiddenFields(c.var.principal).hidesAccounts ? { ...current, message: '' } : current
}

const nowPart = async (c: Ctx, { figures, accounts, backupAt, now }: Snapshot): Promise<NowPart> => {
  const { lifecycle, ledger } = c.env
  const { grants } = c.var.principal
  const isOperator = holds(grants, 'ops:write')
  const { keys, rejected } = figures.present
  const all = collectFacts(c.env, { accounts, keys, rejected: rejectedFor(c, rejected), lastBackupAt: backupAt, now })
  const facts = {
    ...all,
    accounts: holds(grants, 'accounts:read') ? accounts : [],
    outage: all.outage && outageFor(c),
    failingProxies: isOperator ? all.failingProxies : [],
    backupFailure: isOperator ? all.backupFailure : undefined,
    isAuditBroken: holds(grants, 'audit:read') && c.env.alerts.isAuditBroken,
    failingChannels: isOperator ? c.env.alerts.failingChannels : [],
  }
  return {
    health: getHealth(accounts, {
      now,
      isDraining: lifecycle.draining,
      isLedgerHealthy: ledger.healthy,
      isFailing: facts.outage !== null,
      firstEventMs: figures.tiles.firstToken.value,
      hasResetCredit: (id) => redeemable(c.env.resetCredits.of(id) ?? [], now).length > 0,
      mayWrite: holds(grants, 'accounts:write'),
    }),
    attention: attention(facts, grants),
    checklist: await getChecklist(c, accounts.length > 0),
  }
}

/** Addresses are only for users who see them in the log. */
const rejectedFor = (c: Ctx, rejected: readonly RejectedLately[]): readonly RejectedLately[] =>
  getVisibility(c).sensitive ? rejected : rejected.map((group) => ({ ...group, client: null }))

const lastBackupAt = async ({ env: { ops } }: Ctx): Promise<number | null> => {
  await ops.backups.list().catch(() => []) // updates `newestAt`; the backups page shows why it fails
  return ops.backups.newestAt
}

const poolPart = ({ figures, accounts, now }: Snapshot): PoolPart => ({
  meters: poolMeters(accounts, now).map((meter) => ({
    ...meter,
    resetAt: isoOrNull(meter.resetAt),
    usedUpAt: isoOrNull(meter.usedUpAt),
  })),
  total: accounts.length,
  isServing: accounts.some(({ eligible }) => eligible),
  accounts: mostPressing(accounts).map((account) => poolAccount(account, figures)),
  slotMs: figures.slotMs,
  cells: figures.cells,
})

const figuresPart = (c: Ctx, { figures, accounts, now }: Snapshot): FiguresPart => {
  const hiddenFields = getHiddenFields(c.var.principal)
  const names = new Map<string | null, string>(accounts.map((account) => [account.accountId, account.displayName]))
  return {
    tiles: figures.tiles,
    chart: figures.slots.some(({ requests }) => requests > 0)
      ? getChart(figures, { zone: viewerZone(c) ?? 'UTC', now })
      : null,
    errors: figures.present.errors.map((group) => ({
      ...group,
      newest: { ...blindedRow(group.newest, hiddenFields), accountName: names.get(group.newest.accountId) ?? null },
      accounts: group.accountIds.map((id) => names.get(id) ?? 'deleted account'),
    })),
  }
}

const visibleAccounts = (c: Ctx): AccountView[] => {
  const accounts = c.env.pool.describe()
  return withUniqueNames(getHiddenFields(c.var.principal).hidesAccounts ? accounts.map(maskedView) : accounts)
}

/** Keeps the order of a few accounts. Of many, those that need attention come first, then the most used, paused ones last. */
const mostPressing = (accounts: readonly AccountView[]): readonly AccountView[] => {
  if (accounts.length <= SHOWN_AT_MOST) return accounts
  const weight = ({ status, eligible, windows }: AccountView): number =>
    (WEIGHTS[status] ?? (eligible ? 0 : 500)) +
    Math.max(...Object.values(windows).map((window) => window?.usedPercent ?? 0))
  return accounts.toSorted((a, b) => weight(b) - weight(a)).slice(0, SHOWN_OF_MANY)
}

const poolAccount = (account: AccountView, figures: PeriodFigures): PoolAccount => ({
  accountId: account.accountId,
  displayName: account.displayName,
  planType: account.planType,
  status: account.status,
  eligible: account.eligible,
  why: account.why,
  inFlight: account.inFlight,
  until: isoOrNull(account.until),
  nextCheckAt: isoOrNull(account.nextCheckAt),
  used: perWindow((length) => account.windows[length]?.usedPercent ?? null),
  strip: getStrip(account, figures),
})

/** Without the folder, the command would use the one in the home directory of the user who runs it. */
const commandFor = ({ DATA_DIR, raw }: Config): string =>
  findVariable(raw, 'DATA_DIR') ? `SLUICE_DATA_DIR='${DATA_DIR}' ${getUserCommand()}` : getUserCommand()

/** Set by the page's script. */
const HIDDEN_COOKIE = 'checklist'

const getChecklist = async (c: Ctx, hasAccount: boolean): Promise<Checklist | null> => {
  if (!mayWrite(c.var.principal.grants) || getCookie(c, HIDDEN_COOKIE) === 'off') return null
  const isStandard = c.env.env.DASHBOARD_AUTH_MODE === 'standard'
  const password = !isStandard ? 'elsewhere' : (await hasPasswordAccount(c.env.db)) ? 'done' : 'open'
  const { hasKey, hasAnswered } = await firstSteps(c.env.db)
  if (password !== 'open' && hasAccount && hasKey && hasAnswered) return null
  const isKeyRequired = c.env.settings.current().apiKeyAuthEnabled
  const address = { baseUrl: originForLinks(c), isGuess: publicOrigin(c) === null }
  return { ...address, command: commandFor(c.env.env), password, hasAccount, hasKey, hasAnswered, isKeyRequired }
}
