/** `/dashboard`: how the service is, what waits for somebody, what is left, and what the last day was like. */
import { getCookie } from 'hono/cookie'
import { OverviewFiguresPart } from '../../views/overview/figures.tsx'
import { OverviewNow } from '../../views/overview/now.tsx'
import { OverviewPoolPart } from '../../views/overview/pool.tsx'
import { OverviewPage } from '../../views/overview.tsx'
import type { Ctx } from '../bindings.ts'
import type { Config } from '../env.ts'
import { open, requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { originForLinks, publicOrigin } from '../http/public-origin.ts'
import { reply } from '../http/reply.tsx'
import { findVariable } from '../lib/env-names.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import { namedApart } from '../model/account-names.ts'
import type { AccountStatus } from '../model/account-state.ts'
import { maskedView } from '../model/account-summary.ts'
import type { AccountView } from '../model/account-view.ts'
import { type Attention, attention } from '../model/attention.ts'
import { type Outcome, stripOf } from '../model/outcome-strip.ts'
import { firstSteps } from '../model/overview.ts'
import type { Figures } from '../model/overview-figures.ts'
import { SLOTS_A_DAY } from '../model/overview-slots.ts'
import type { Tiles } from '../model/overview-tiles.ts'
import { hasPasswordAccount } from '../model/people.ts'
import { holds, mayWrite } from '../model/permissions.ts'
import { type PoolMeter, poolMeters } from '../model/pool-meters.ts'
import type { RejectedLately } from '../model/rejected-clients.ts'
import type { LogEntry } from '../model/request-log-entry.ts'
import { blindedRow } from '../model/request-view.ts'
import { perWindow, type WindowLength } from '../model/usage-windows.ts'
import { typedCommand } from '../ops/own-command.ts'
import { type Health, healthOf } from './overview-health.ts'
import { blindersOf, sightOf } from './requests.ts'

/** Times are ISO 8601 in all of them. */
export interface Overview {
  generatedAt: string
  now: NowPart
  /** null: the reader may not see accounts. */
  pool: PoolPart | null
  figures: FiguresPart
}

export interface NowPart {
  generatedAt: string
  health: Health
  attention: Attention[]
  /** null: everything is done, put away, or not this reader's to do. */
  checklist: Checklist | null
}

export interface Checklist {
  /** Where this service is reached by the browser that asks. */
  baseUrl: string
  /** The address was read from the Host header alone. */
  isGuess: boolean
  /** What the words of a command stand behind, in a shell on this machine. */
  command: string
  /** `elsewhere`: people sign in by other means than a password. */
  password: 'done' | 'open' | 'elsewhere'
  hasAccount: boolean
  hasKey: boolean
  hasAnswered: boolean
  isKeyRequired: boolean
}

export interface PoolPart {
  generatedAt: string
  meters: (Omit<PoolMeter, 'resetAt' | 'usedUpAt'> & { resetAt: string | null; usedUpAt: string | null })[]
  total: number
  /** Whether any account may be asked now. */
  isServing: boolean
  /** All, or where there are many those that most need a look. */
  accounts: PoolAccount[]
}

export interface PoolAccount
  extends Pick<AccountView, 'accountId' | 'displayName' | 'planType' | 'status' | 'eligible' | 'why' | 'inFlight'> {
  until: string | null
  /** When a block without a known end is tried again. */
  nextCheckAt: string | null
  /** Percent used; null: not reported. */
  used: Record<WindowLength, number | null>
  /** 48 half hours, oldest first. */
  strip: Outcome[]
}

export interface FiguresPart {
  generatedAt: string
  tiles: Tiles
  /** The newest first. */
  errors: LogEntry[]
}

const SHOWN_AT_MOST = 16
const SHOWN_OF_MANY = 12
/** Beside percents. */
const WEIGHTS: Partial<Record<AccountStatus, number>> = { reauth_required: 1000, deactivated: 1000, paused: -1000 }
const ERRORS_SHOWN = 5

export const showOverview = createHandlers(requires('dashboard:read'), async (c) => {
  const value: Overview = {
    generatedAt: iso(c.env.clock.now()),
    now: await nowPart(c),
    pool: holds(c.var.principal.grants, 'accounts:read') ? await poolPart(c) : null,
    figures: await figuresPart(c),
  }
  return reply(c, value, OverviewPage)
})

export const showNow = createHandlers(requires('dashboard:read'), async (c) => reply(c, await nowPart(c), OverviewNow))

export const showPool = createHandlers(requires('accounts:read'), async (c) =>
  reply(c, await poolPart(c), OverviewPoolPart),
)

export const showFigures = createHandlers(requires('dashboard:read'), async (c) =>
  reply(c, await figuresPart(c), OverviewFiguresPart),
)

/** `/` leads to the dashboard; who may see it is decided there. */
export const goToDashboard = createHandlers(open('redirect to the dashboard'), (c) => c.redirect('/dashboard'))

/** The upstream may have worded it, and name whose account it is: not for those who are not told that in the log either. */
const outageFor = (c: Ctx) => {
  const { current } = c.env.ops.outage
  return current && blindersOf(c.var.principal).hidesAccounts ? { ...current, message: '' } : current
}

const nowPart = async (c: Ctx): Promise<NowPart> => {
  const { clock, lifecycle, ledger, ops, settings, env } = c.env
  const now = clock.now()
  const { grants } = c.var.principal
  const accounts = visibleAccounts(c)
  const figures = await c.env.figures.now()
  const facts = {
    accounts: holds(grants, 'accounts:read') ? accounts : [],
    keys: figures.present.keys,
    isLedgerHealthy: ledger.healthy,
    isDatabaseLost: ops.lostDatabase() !== null,
    outage: accounts.some(({ eligible }) => eligible) ? outageFor(c) : null,
    rejected: rejectedFor(c, figures.present.rejected),
    isChosenAccountGone: isChosenAccountGone(c),
    unwritten: ledger.unwrittenTurns,
    isDashboardOpen: env.DASHBOARD_AUTH_MODE === 'disabled',
    isKeyless: !settings.current().apiKeyAuthEnabled && env.PROXY_UNAUTHENTICATED_CLIENT_CIDRS.length > 0,
    lastBackupAt: holds(grants, 'ops:write') ? await lastBackupAt(c) : undefined,
    now,
  }
  return {
    generatedAt: iso(now),
    health: healthOf(accounts, {
      now,
      isDraining: lifecycle.draining,
      isLedgerHealthy: ledger.healthy,
      isFailing: facts.outage !== null,
      firstEventMs: figures.tiles.firstToken.value,
    }),
    attention: attention(facts, grants),
    checklist: checklistOf(c, accounts.length > 0),
  }
}

/** Addresses are for those who see them in the log. */
const rejectedFor = (c: Ctx, rejected: readonly RejectedLately[]): readonly RejectedLately[] =>
  sightOf(c).sensitive ? rejected : rejected.map((group) => ({ ...group, client: null }))

const isChosenAccountGone = ({ env: { settings, pool } }: Ctx): boolean => {
  const { routingStrategy, singleAccountId } = settings.current()
  return routingStrategy === 'single_account' && singleAccountId !== null && !pool.get(singleAccountId)
}

const lastBackupAt = async ({ env: { ops } }: Ctx): Promise<number | null> => {
  await ops.backups.list().catch(() => []) // it looks; where it cannot, the page of the backups says why
  return ops.backups.newestAt
}

const poolPart = async (c: Ctx): Promise<PoolPart> => {
  const now = c.env.clock.now()
  const accounts = visibleAccounts(c)
  const figures = await c.env.figures.now()
  return {
    generatedAt: iso(now),
    meters: poolMeters(accounts, now).map((meter) => ({
      ...meter,
      resetAt: isoOrNull(meter.resetAt),
      usedUpAt: isoOrNull(meter.usedUpAt),
    })),
    total: accounts.length,
    isServing: accounts.some(({ eligible }) => eligible),
    accounts: mostPressing(accounts).map((account) => poolAccount(account, figures)),
  }
}

const figuresPart = async (c: Ctx): Promise<FiguresPart> => {
  const figures = await c.env.figures.now()
  const blinders = blindersOf(c.var.principal)
  const names = new Map<string | null, string>(
    visibleAccounts(c).map((account) => [account.accountId, account.displayName]),
  )
  const errors = figures.slots
    .slice(-SLOTS_A_DAY)
    .flatMap(({ lastErrors }) => lastErrors)
    .toSorted((a, b) => b.requestedAt.localeCompare(a.requestedAt))
    .slice(0, ERRORS_SHOWN)
  return {
    generatedAt: iso(c.env.clock.now()),
    tiles: figures.tiles,
    errors: errors.map((row) => ({ ...blindedRow(row, blinders), accountName: names.get(row.accountId) ?? null })),
  }
}

const visibleAccounts = (c: Ctx): AccountView[] => {
  const accounts = c.env.pool.describe()
  return namedApart(blindersOf(c.var.principal).hidesAccounts ? accounts.map(maskedView) : accounts)
}

/** In their order while they are few; of many first those that somebody must see to, then the fullest, and last what is paused on purpose. */
const mostPressing = (accounts: readonly AccountView[]): readonly AccountView[] => {
  if (accounts.length <= SHOWN_AT_MOST) return accounts
  const weight = ({ status, eligible, windows }: AccountView): number =>
    (WEIGHTS[status] ?? (eligible ? 0 : 500)) +
    Math.max(...Object.values(windows).map((window) => window?.usedPercent ?? 0))
  return accounts.toSorted((a, b) => weight(b) - weight(a)).slice(0, SHOWN_OF_MANY)
}

const poolAccount = (account: AccountView, figures: Figures): PoolAccount => ({
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
  strip: stripOf(account, figures),
})

/** Without its folder it would work on the one in the home of whoever types it. */
const commandFor = ({ DATA_DIR, raw }: Config): string =>
  findVariable(raw, 'DATA_DIR') ? `SLUICE_DATA_DIR='${DATA_DIR}' ${typedCommand()}` : typedCommand()

/** Of the script; who puts the list away means it. */
const PUT_AWAY = 'checklist'

const checklistOf = (c: Ctx, hasAccount: boolean): Checklist | null => {
  if (!mayWrite(c.var.principal.grants) || getCookie(c, PUT_AWAY) === 'off') return null
  const isStandard = c.env.env.DASHBOARD_AUTH_MODE === 'standard'
  const password = !isStandard ? 'elsewhere' : hasPasswordAccount(c.env.db) ? 'done' : 'open'
  const { hasKey, hasAnswered } = firstSteps(c.env.db)
  if (password !== 'open' && hasAccount && hasKey && hasAnswered) return null
  const isKeyRequired = c.env.settings.current().apiKeyAuthEnabled
  const address = { baseUrl: originForLinks(c), isGuess: publicOrigin(c) === null }
  return { ...address, command: commandFor(c.env.env), password, hasAccount, hasKey, hasAnswered, isKeyRequired }
}
