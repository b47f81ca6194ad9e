/** `/settings/automations` and `/api/automations`: scheduled requests on chosen accounts, and their runs. */

import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import {
  type AutomationChoices,
  type AutomationDraft,
  AutomationPage,
  type NewAutomationForm,
  NewAutomationPage,
  type OneAutomation,
  type Page,
  type Runs,
} from '../../views/automations/form.tsx'
import { type Automations, AutomationsPage } from '../../views/automations/list.tsx'
import { type OneRun, RunPage } from '../../views/automations/run.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { proceed, reply } from '../http/reply.tsx'
import { viewerZone } from '../http/viewer-clock.ts'
import { iso } from '../lib/iso.ts'
import { append } from '../model/audit/audit.ts'
import {
  type AutomationRow,
  createAutomation,
  deleteAutomation,
  getAutomation,
  updateAutomation,
} from '../model/automations/automations.ts'
import { AutomationPatch, fieldsFrom, NewAutomation } from '../model/automations/input.ts'
import {
  AutomationFilters,
  AutomationQuery,
  automationOptions,
  automationPage,
  getLastRun,
  getRun,
  RunFilters,
  RunQuery,
  RunsOfOneQuery,
  runOptions,
  runPage,
} from '../model/automations/lists.ts'
import { startManualRun } from '../model/automations/runs.ts'
import { SERVER_ZONE } from '../model/automations/schedule.ts'
import { type AutomationHiddenFields, toAutomation, toRun, toRunDetails } from '../model/automations/view.ts'
import { EFFORTS } from '../model/catalog/efforts.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { accountChoices, listedModels } from './choices.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getFrame } from './settings/frame.ts'
import { getHiddenFields } from './visibility.ts'

const PAGE = '/settings/automations'

export const listAutomationJobs = createHandlers(requires('dashboard:read'), query(AutomationQuery), async (c) => {
  const { items, ...page } = await automationPage(c.env.db, c.req.valid('query'))
  const now = c.env.clock.now()
  return c.json({ items: items.map((item) => toAutomation(item, now, automationHiddenFields(c))), ...page })
})

export const listAutomationOptions = createHandlers(requires('dashboard:read'), query(AutomationFilters), async (c) =>
  c.json(await automationOptions(c.env.db, c.req.valid('query'))),
)

/** Throws `invalid_schedule_…`, `invalid_account_ids`, `invalid_prompt`, `invalid_model`, `invalid_reasoning_effort`. */
export const createAutomationJob = createHandlers(
  writes({ audit: 'automation_created' }),
  body(NewAutomation),
  async (c) => {
    const fields = fieldsFrom(c.req.valid('json'), null, knownTo(c))
    const doing = { actor: actor(c), random: c.env.random }
    const row = await commit(c.env.db, (tx) => createAutomation(tx, fields, doing))
    return proceed(c, await shown(c, row), `${PAGE}/${row.id}?done=automation_created`)
  },
)

/** Throws `automation_not_found`, and what creating one does. */
export const editAutomationJob = createHandlers(
  writes({ audit: 'automation_updated' }),
  body(AutomationPatch),
  async (c) => {
    const who = actor(c)
    const row = await commit(c.env.db, async (tx) => {
      const fields = fieldsFrom(c.req.valid('json'), await getAutomation(tx, getPathId(c)), knownTo(c))
      return updateAutomation(tx, getPathId(c), fields, who)
    })
    return proceed(c, await shown(c, row), `${PAGE}/${row.id}?done=automation_updated`)
  },
)

/** Throws `automation_not_found`. */
export const deleteAutomationJob = createHandlers(writes({ audit: 'automation_deleted' }), async (c) => {
  await commit(c.env.db, (tx) => deleteAutomation(tx, getPathId(c), actor(c)))
  return proceed(c, { status: 'deleted' }, `${PAGE}?done=automation_deleted`)
})

/** The job sends the requests after the answer. Throws `automation_not_found`. */
export const runAutomationNow = createHandlers(writes({ audit: 'automation_started' }), async (c) => {
  const { db, clock, random, pool } = c.env
  const who = actor(c)
  const { run, automation } = await commit(db, async (tx) => {
    const automation = await getAutomation(tx, getPathId(c))
    const accountIds = automation.accountIds ?? pool.all().map(({ id }) => id)
    await append(tx, who, 'automation_started', { target: automation.id, details: { name: automation.name } })
    return { run: await startManualRun(tx, { automation, accountIds, now: clock.now(), random }), automation }
  })
  const value = toRun({ run, name: automation.name }, automationHiddenFields(c))
  return proceed(c, value, `${PAGE}/runs/${run.id}`, 202)
})

/** Throws `automation_not_found`. */
export const listRunsOfAutomation = createHandlers(requires('dashboard:read'), query(RunsOfOneQuery), async (c) => {
  const { id } = await getAutomation(c.env.db, getPathId(c))
  return c.json(await getRuns(c, { ...RunFilters.parse({}), ...c.req.valid('query'), automationId: [id] }))
})

export const listAutomationRuns = createHandlers(requires('dashboard:read'), query(RunQuery), async (c) =>
  c.json(await getRuns(c, c.req.valid('query'))),
)

export const listAutomationRunOptions = createHandlers(requires('dashboard:read'), query(RunFilters), async (c) =>
  c.json(await runOptions(c.env.db, c.req.valid('query'))),
)

/** Throws `automation_run_not_found`. */
export const showAutomationRun = createHandlers(requires('dashboard:read'), async (c) =>
  c.json(toRunDetails(await getRun(c.env.db, getPathId(c)), automationHiddenFields(c))),
)

const getRuns = async (c: Ctx, asked: Parameters<typeof runPage>[1]) => {
  const { items, ...page } = await runPage(c.env.db, asked)
  return { items: items.map((item) => toRun(item, automationHiddenFields(c))), ...page }
}

const automationHiddenFields = (c: Ctx): AutomationHiddenFields => ({
  hidesPrompt: !mayWrite(c.var.principal.grants),
  hidesMessages: getHiddenFields(c.var.principal).hidesAccounts,
})

const shown = async (c: Ctx, row: AutomationRow) =>
  toAutomation({ row, lastRun: await getLastRun(c.env.db, row.id) }, c.env.clock.now(), automationHiddenFields(c))

const knownTo = ({ env: { pool, catalog } }: Ctx): Parameters<typeof fieldsFrom>[2] => ({
  accountExists: (id) => pool.get(id) !== null,
  modelExists: catalog.isEmpty ? null : (model) => catalog.find(model) !== null,
  getEfforts: (model) => catalog.getEfforts(model),
})

const getPage = (c: Ctx): Page => {
  const { done, problem } = getFormFeedback(c)
  const canWrite = mayWrite(c.var.principal.grants)
  return { frame: getFrame(c, 'automations'), now: iso(c.env.clock.now()), done, problem, canWrite }
}

const MAX_LISTED = 1000
const RUNS_LISTED = 25

const PageQuery = z.object({ offset: z.coerce.number().int().min(0).max(100_000).default(0) })

export const showAutomations = createHandlers(requires('dashboard:read'), query(PageQuery), async (c) => {
  const now = c.env.clock.now()
  const { items } = await automationPage(c.env.db, { ...AutomationFilters.parse({}), limit: MAX_LISTED, offset: 0 })
  const value: Automations = {
    ...getPage(c),
    automations: items.map((item) => toAutomation(item, now, automationHiddenFields(c))),
    runs: await runsFrom(c, c.req.valid('query').offset, []),
  }
  return reply(c, value, AutomationsPage)
})

const runsFrom = async (c: Ctx, offset: number, automationId: string[]): Promise<Runs> => {
  const { items, total } = await getRuns(c, { ...RunFilters.parse({}), automationId, limit: RUNS_LISTED, offset })
  return {
    items,
    total,
    offset,
    newer: offset > 0 ? Math.max(0, offset - RUNS_LISTED) : null,
    older: offset + items.length < total ? offset + RUNS_LISTED : null,
  }
}

const choicesFor = (c: Ctx): AutomationChoices => ({
  accounts: accountChoices(c),
  models: listedModels(c, null),
  efforts: EFFORTS,
})

const READY_MADE = ['mornings', 'nightly'] as const
const NewQuery = z.object({ ready: z.enum(READY_MADE).optional() })

export const showNewAutomation = createHandlers(writes(), query(NewQuery), (c) => {
  const { ready } = c.req.valid('query')
  const draft = fromTemplate(ready ?? null, viewerZone(c) ?? SERVER_ZONE)
  return reply(c, { ...getPage(c), draft, choices: choicesFor(c) } satisfies NewAutomationForm, NewAutomationPage)
})

const WORKING_DAYS: AutomationDraft['schedule']['days'] = ['mon', 'tue', 'wed', 'thu', 'fri']
const EVERY_DAY: AutomationDraft['schedule']['days'] = [...WORKING_DAYS, 'sat', 'sun']

const fromTemplate = (ready: (typeof READY_MADE)[number] | null, timezone: string): AutomationDraft => {
  const same = {
    ...{ enabled: true, includePausedAccounts: false, model: null, reasoningEffort: null, prompt: 'ping' },
    accountIds: [],
  }
  const daily = { type: 'daily', timezone } as const
  switch (ready) {
    case 'mornings': {
      const schedule = { ...daily, time: '07:55', thresholdMinutes: 0, days: WORKING_DAYS }
      return { ...same, name: 'Start windows on working mornings', kind: 'ping', schedule }
    }
    case 'nightly': {
      const schedule = { ...daily, time: '03:00', thresholdMinutes: 60, days: EVERY_DAY }
      return { ...same, name: 'Nightly check', kind: 'probe', schedule }
    }
    case null: {
      const schedule = { ...daily, time: '08:00', thresholdMinutes: 0, days: EVERY_DAY }
      return { ...same, name: '', kind: 'ping', schedule }
    }
  }
}

/** Throws `automation_not_found`. */
export const showAutomation = createHandlers(requires('dashboard:read'), query(PageQuery), async (c) => {
  const row = await getAutomation(c.env.db, getPathId(c))
  const page = getPage(c)
  const shown = { row, lastRun: await getLastRun(c.env.db, row.id) }
  const value: OneAutomation = {
    ...page,
    automation: toAutomation(shown, c.env.clock.now(), automationHiddenFields(c)),
    choices: page.canWrite ? choicesFor(c) : null,
    accounts: accountChoices(c).filter(({ id }) => row.accountIds?.includes(id)),
    runs: await runsFrom(c, c.req.valid('query').offset, [row.id]),
  }
  return reply(c, value, AutomationPage)
})

/** Throws `automation_run_not_found`. */
export const showRunPage = createHandlers(requires('dashboard:read'), async (c) => {
  const details = toRunDetails(await getRun(c.env.db, getPathId(c)), automationHiddenFields(c))
  const ids = new Set(details.accounts.map(({ accountId }) => accountId))
  const value: OneRun = {
    ...getPage(c),
    ...details,
    names: accountChoices(c).filter(({ id }) => ids.has(id)),
    opensAccounts: holds(c.var.principal.grants, 'accounts:read'),
  }
  return reply(c, value, RunPage)
})
