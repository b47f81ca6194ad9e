/**
 * `/api/quota-planner` and its card on the reports: its settings, the expected demand, planned starts of five-hour
 * windows, and a start now.
 */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import type { PlannerCard } from '../../views/reports/planner.tsx'
import { actor } from '../auth/principal.ts'
import type { Bindings, Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { proceed } from '../http/reply.tsx'
import { DAY_MS } from '../lib/durations.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import { type Ping, startWindow } from '../model/accounts/start-window.ts'
import { append } from '../model/audit/audit.ts'
import { firstArrival } from '../model/log/request-units.ts'
import { addManualDecision, cancelDecision, type Decision, listDecisions } from '../model/planner/decisions.ts'
import { ENOUGH_DAYS, HISTORY_MS } from '../model/planner/demand.ts'
import { clockTime, failureText, startProblem } from '../model/planner/starts.ts'
import { dayNumbers, WEEKDAYS } from '../model/planner/working-time.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { PLANNER_MODES } from '../settings/planner-settings.ts'
import { type Settings, SettingsPatch } from '../settings/schema.ts'
import { accountChoices } from './choices.ts'
import { back } from './form-feedback.ts'
import { storeSettings } from './settings/settings.ts'

const Fields = z.strictObject({
  mode: z.enum(PLANNER_MODES).optional().describe('`off`, `advise`, or `act`.'),
  zone: z.string().optional().describe('Time zone of the working hours, like `Europe/Berlin`.'),
  workingDays: z.array(z.int()).max(7).optional().describe('0 is Monday, 6 is Sunday.'),
  workingHoursStart: z.string().optional().describe('Like `09:00`.'),
  workingHoursEnd: z.string().optional().describe('Like `18:00`.'),
  maxStartsPerDay: z.number().optional().describe('1 to 100.'),
  minGainPercent: z.number().optional().describe('1 to 100.'),
})
type Fields = Required<z.output<typeof Fields>>

export const getPlannerSettings = createHandlers(requires('dashboard:read'), (c) => c.json(plannerSettings(c)))

const plannerSettings = ({ env }: Ctx): Fields => getFields(env.settings.current())

const getFields = (settings: Settings): Fields => ({
  mode: settings.plannerMode,
  zone: settings.plannerZone,
  workingDays: dayNumbers(settings.plannerWorkingDays),
  workingHoursStart: settings.plannerWorkingHoursStart,
  workingHoursEnd: settings.plannerWorkingHoursEnd,
  maxStartsPerDay: settings.plannerMaxStartsPerDay,
  minGainPercent: settings.plannerMinGainPercent,
})

/** Missing fields stay unchanged. Throws `invalid_quota_planner`, and `validation_error` for fields that it does not have. */
export const putPlannerSettings = createHandlers(writes({ audit: 'settings_updated' }), body(Fields), async (c) => {
  const patch = getPatch(c.req.valid('json'))
  const who = actor(c)
  await commit(c.env.db, (tx) => storeSettings(tx, patch, { principal: c.var.principal, who }))
  return proceed(c, plannerSettings(c), '/settings/routing?done=settings_updated&section=planner#planner')
})

const NAMES = {
  mode: 'plannerMode',
  zone: 'plannerZone',
  workingDays: 'plannerWorkingDays',
  workingHoursStart: 'plannerWorkingHoursStart',
  workingHoursEnd: 'plannerWorkingHoursEnd',
  maxStartsPerDay: 'plannerMaxStartsPerDay',
  minGainPercent: 'plannerMinGainPercent',
} as const satisfies Record<keyof Fields, keyof Settings>

const getPatch = ({ workingDays, ...fields }: z.output<typeof Fields>): Partial<Settings> => {
  const days = workingDays?.map((day) => WEEKDAYS[day] ?? `day ${day}`).join(' ')
  const given = Object.entries({ ...fields, workingDays: days }).filter(([, value]) => value !== undefined)
  // as: the members of `Fields`
  const patch = Object.fromEntries(given.map(([name, value]) => [NAMES[name as keyof Fields], value]))
  const parsed = SettingsPatch.safeParse(patch)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const param = Object.entries(NAMES).find(([, name]) => name === issue?.path[0])?.[0] ?? 'mode'
  throw new AppError('invalid_quota_planner', { param, message: `${param}: ${issue?.message ?? 'not valid'}.` })
}

const ForecastQuery = z.object({
  horizonHours: z.coerce.number().int().min(1).max(168).default(36).describe('How far it looks ahead.'),
})

/** Throws `busy` while too many replays wait. */
export const getForecast = createHandlers(requires('dashboard:read'), query(ForecastQuery), async (c) => {
  const { replayer, clock, server } = c.env
  server?.timeout(c.req.raw, 0)
  const question = { ...c.req.valid('query'), now: clock.now() }
  return c.json(await replayer.ask('forecast', question, c.req.raw.signal))
})

const DecisionQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Rows at most.'),
})

/** Latest start first. */
export const listPlannerDecisions = createHandlers(requires('accounts:read'), query(DecisionQuery), async (c) =>
  c.json((await listDecisions(c.env.db, c.req.valid('query').limit)).map(decisionView)),
)

const decisionView = ({ gainPercent, gainFrom, gainTo, model, ...decision }: Decision) => ({
  id: decision.id,
  createdAt: iso(decision.createdAt),
  mode: decision.mode,
  accountId: decision.accountId,
  action: 'start_window',
  scheduledAt: iso(decision.scheduledAt),
  executedAt: isoOrNull(decision.executedAt),
  score: gainPercent,
  reason: decision.reason,
  details: { gainPercent, gainFrom: isoOrNull(gainFrom), gainTo: isoOrNull(gainTo), model },
  status: decision.status,
  idempotencyKey: decision.idempotencyKey,
})

/** Throws `quota_planner_decision_not_found`, `invalid_quota_planner`. */
export const cancelPlannedStart = createHandlers(writes({ audit: 'quota_planner_canceled' }), async (c) => {
  const who = actor(c)
  const canceled = await commit<Decision>(c.env.db, async (tx) => {
    const decision = await cancelDecision(tx, getPathId(c), c.env.clock.now())
    await append(tx, who, 'quota_planner_canceled', { target: decision.accountId, details: { decision: decision.id } })
    return decision
  })
  return proceed(c, getOutcome(canceled, null), back(c, 'quota_planner_canceled'))
})

const Wish = z.strictObject({
  accountId: z.string().min(1).max(255).describe('The account whose window is started.'),
  model: z.string().trim().min(1).max(200).nullish().describe('Missing: the cheapest model of the account.'),
})

/**
 * Starts the window now. The status is `skipped` with a reason when it has already started, or the request fails.
 * `pingWith` sends the request. Throws `account_not_found`.
 */
export const startWindowNow = (pingWith: (env: Bindings, ...args: Parameters<Ping>) => Promise<void>) =>
  createHandlers(writes({ audit: 'quota_planner_started' }), body(Wish), async (c) => {
    const { accountId, model = null } = c.req.valid('json')
    const { env } = c
    const account = env.pool.get(accountId)
    if (!account) throw new AppError('account_not_found', { param: 'accountId' })
    const who = actor(c)
    const at = env.clock.now()
    const problem = startProblem(account, env.pool.all(), at)
    env.server?.timeout(c.req.raw, 0)
    const ping: Ping = (wanted, signal) => pingWith(env, wanted, signal)
    const result =
      problem === null ? await startWindow({ ...env, ping }, { accountId, resetAt: at, model }, c.req.raw.signal) : null
    const decision = manualDecision(env, { accountId, at, problem, result })
    await commit(env.db, async (tx) => {
      await addManualDecision(tx, decision)
      await append(tx, who, 'quota_planner_started', {
        target: accountId,
        details: { decision: decision.id, status: decision.status },
      })
    })
    return proceed(c, getOutcome(decision, null), back(c, 'quota_planner_started'))
  })

interface Manual {
  accountId: string
  at: number
  problem: string | null
  result: Awaited<ReturnType<typeof startWindow>> | null
}

const manualDecision = ({ random, clock }: Bindings, { accountId, at, problem, result }: Manual) => {
  const id = random.id('plan')
  const isStarted = result?.kind === 'started'
  return {
    id,
    createdAt: at,
    accountId,
    scheduledAt: at,
    executedAt: isStarted ? clock.now() : null,
    status: isStarted ? ('executed' as const) : ('skipped' as const),
    reason: isStarted ? 'Started by a user.' : (problem ?? skippedText(result)),
    model: isStarted ? result.model : null,
    idempotencyKey: `manual:${id}`,
  }
}

const skippedText = (result: Manual['result']): string =>
  result?.kind === 'failed' ? failureText(result.error) : 'The window was started a moment ago.'

/** `requestId` is for clients of codex-lb, which expect it. */
const getOutcome = (
  { id, status, reason, executedAt }: Pick<Decision, 'id' | 'status' | 'reason' | 'executedAt'>,
  requestId: string | null,
) => ({ decisionId: id, status, reason, requestId, executedAt: isoOrNull(executedAt) })

const MAX_ROWS = 6

/** Null for users who may not see accounts, and for viewers while the planner is off. */
export const plannerCard = async (c: Ctx): Promise<PlannerCard | null> => {
  const { grants } = c.var.principal
  const { db, clock, settings } = c.env
  const { plannerMode: mode, plannerZone: zone } = settings.current()
  const isEditable = mayWrite(grants)
  if (!holds(grants, 'accounts:read') || (mode === 'off' && !isEditable)) return null
  const now = clock.now()
  const names = new Map(accountChoices(c).map(({ id, name }) => [id, name]))
  const first = mode === 'off' ? null : await firstArrival(db, now - HISTORY_MS)
  return {
    mode,
    zone,
    coveredDays: first === null ? 0 : Math.floor((now - first) / DAY_MS),
    neededDays: ENOUGH_DAYS,
    decisions: (await listDecisions(db, MAX_ROWS)).map(({ id, accountId, scheduledAt, reason, status }) => ({
      id,
      accountName: names.get(accountId ?? '') ?? null,
      scheduledAt: iso(scheduledAt),
      clock: clockTime(scheduledAt, zone),
      reason,
      status,
    })),
    isEditable,
  }
}
