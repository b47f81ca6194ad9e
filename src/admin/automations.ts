/** `/api/automations`: scheduled requests on chosen accounts, and their runs. */
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { proceed } from '../http/reply.tsx'
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
import { type AutomationHiddenFields, toAutomation, toRun, toRunDetails } from '../model/automations/view.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { getHiddenFields } from './requests.ts'

const PAGE = '/settings/automations'

export const listAutomationJobs = createHandlers(requires('dashboard:read'), query(AutomationQuery), (c) => {
  const { items, ...page } = automationPage(c.env.db, c.req.valid('query'))
  const now = c.env.clock.now()
  return c.json({ items: items.map((item) => toAutomation(item, now, automationHiddenFields(c))), ...page })
})

export const listAutomationOptions = createHandlers(requires('dashboard:read'), query(AutomationFilters), (c) =>
  c.json(automationOptions(c.env.db, c.req.valid('query'))),
)

/** Throws `invalid_schedule_…`, `invalid_account_ids`, `invalid_prompt`, `invalid_model`, `invalid_reasoning_effort`. */
export const createAutomationJob = createHandlers(writes({ audit: 'automation_created' }), body(NewAutomation), (c) => {
  const fields = fieldsFrom(c.req.valid('json'), null, knownTo(c))
  const doing = { actor: actor(c), random: c.env.random }
  const row = commit(c.env.db, (tx) => createAutomation(tx, fields, doing))
  return proceed(c, shown(c, row), `${PAGE}/${row.id}?done=automation_created`)
})

/** Throws `automation_not_found`, and what creating one does. */
export const editAutomationJob = createHandlers(writes({ audit: 'automation_updated' }), body(AutomationPatch), (c) => {
  const who = actor(c)
  const row = commit(c.env.db, (tx) => {
    const fields = fieldsFrom(c.req.valid('json'), getAutomation(tx, getPathId(c)), knownTo(c))
    return updateAutomation(tx, getPathId(c), fields, who)
  })
  return proceed(c, shown(c, row), `${PAGE}/${row.id}?done=automation_updated`)
})

/** Throws `automation_not_found`. */
export const deleteAutomationJob = createHandlers(writes({ audit: 'automation_deleted' }), (c) => {
  commit(c.env.db, (tx) => deleteAutomation(tx, getPathId(c), actor(c)))
  return proceed(c, { status: 'deleted' }, `${PAGE}?done=automation_deleted`)
})

/** The job sends the requests after the answer. Throws `automation_not_found`. */
export const runAutomationNow = createHandlers(writes({ audit: 'automation_started' }), (c) => {
  const { db, clock, random, pool } = c.env
  const who = actor(c)
  const { run, automation } = commit(db, (tx) => {
    const automation = getAutomation(tx, getPathId(c))
    const accountIds = automation.accountIds ?? pool.all().map(({ id }) => id)
    append(tx, who, 'automation_started', { target: automation.id, details: { name: automation.name } })
    return { run: startManualRun(tx, { automation, accountIds, now: clock.now(), random }), automation }
  })
  const value = toRun({ run, name: automation.name }, automationHiddenFields(c))
  return proceed(c, value, `${PAGE}/runs/${run.id}`, 202)
})

/** Throws `automation_not_found`. */
export const listRunsOfAutomation = createHandlers(requires('dashboard:read'), query(RunsOfOneQuery), (c) => {
  const { id } = getAutomation(c.env.db, getPathId(c))
  return c.json(getRuns(c, { ...RunFilters.parse({}), ...c.req.valid('query'), automationId: [id] }))
})

export const listAutomationRuns = createHandlers(requires('dashboard:read'), query(RunQuery), (c) =>
  c.json(getRuns(c, c.req.valid('query'))),
)

export const listAutomationRunOptions = createHandlers(requires('dashboard:read'), query(RunFilters), (c) =>
  c.json(runOptions(c.env.db, c.req.valid('query'))),
)

/** Throws `automation_run_not_found`. */
export const showAutomationRun = createHandlers(requires('dashboard:read'), (c) =>
  c.json(toRunDetails(getRun(c.env.db, getPathId(c)), automationHiddenFields(c))),
)

export const getRuns = (c: Ctx, asked: Parameters<typeof runPage>[1]) => {
  const { items, ...page } = runPage(c.env.db, asked)
  return { items: items.map((item) => toRun(item, automationHiddenFields(c))), ...page }
}

export const automationHiddenFields = (c: Ctx): AutomationHiddenFields => ({
  hidesPrompt: !mayWrite(c.var.principal.grants),
  hidesMessages: getHiddenFields(c.var.principal).hidesAccounts,
})

const shown = (c: Ctx, row: AutomationRow) =>
  toAutomation({ row, lastRun: getLastRun(c.env.db, row.id) }, c.env.clock.now(), automationHiddenFields(c))

const knownTo = ({ env: { pool, catalog } }: Ctx): Parameters<typeof fieldsFrom>[2] => ({
  accountExists: (id) => pool.get(id) !== null,
  modelExists: catalog.isEmpty ? null : (model) => catalog.find(model) !== null,
  getEfforts: (model) => catalog.getEfforts(model),
})
