/** `/settings/automations`: the pages about automations and their runs. */
import { z } from 'zod'
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
import type { Ctx } from '../boot/bindings.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { viewerZone } from '../http/viewer-clock.ts'
import { iso } from '../lib/iso.ts'
import { getAutomation } from '../model/automations/automations.ts'
import { AutomationFilters, automationPage, getLastRun, getRun, RunFilters } from '../model/automations/lists.ts'
import { SERVER_ZONE } from '../model/automations/schedule.ts'
import { toAutomation, toRunDetails } from '../model/automations/view.ts'
import { EFFORTS } from '../model/catalog/efforts.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { accountChoices } from './account-choices.ts'
import { automationHiddenFields, getRuns } from './automations.ts'
import { getFormFeedback } from './form-feedback.ts'
import { listedModels } from './key-models.ts'
import { getFrame } from './settings-frame.ts'

const getPage = (c: Ctx): Page => {
  const { done, problem } = getFormFeedback(c)
  const canWrite = mayWrite(c.var.principal.grants)
  return { frame: getFrame(c, 'automations'), now: iso(c.env.clock.now()), done, problem, canWrite }
}

const MAX_LISTED = 1000
const RUNS_LISTED = 25

const PageQuery = z.object({ offset: z.coerce.number().int().min(0).max(100_000).default(0) })

export const showAutomations = createHandlers(requires('dashboard:read'), query(PageQuery), (c) => {
  const now = c.env.clock.now()
  const { items } = automationPage(c.env.db, { ...AutomationFilters.parse({}), limit: MAX_LISTED, offset: 0 })
  const value: Automations = {
    ...getPage(c),
    automations: items.map((item) => toAutomation(item, now, automationHiddenFields(c))),
    runs: runsFrom(c, c.req.valid('query').offset, []),
  }
  return reply(c, value, AutomationsPage)
})

const runsFrom = (c: Ctx, offset: number, automationId: string[]): Runs => {
  const { items, total } = getRuns(c, { ...RunFilters.parse({}), automationId, limit: RUNS_LISTED, offset })
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
export const showAutomation = createHandlers(requires('dashboard:read'), query(PageQuery), (c) => {
  const row = getAutomation(c.env.db, getPathId(c))
  const page = getPage(c)
  const shown = { row, lastRun: getLastRun(c.env.db, row.id) }
  const value: OneAutomation = {
    ...page,
    automation: toAutomation(shown, c.env.clock.now(), automationHiddenFields(c)),
    choices: page.canWrite ? choicesFor(c) : null,
    accounts: accountChoices(c).filter(({ id }) => row.accountIds?.includes(id)),
    runs: runsFrom(c, c.req.valid('query').offset, [row.id]),
  }
  return reply(c, value, AutomationPage)
})

/** Throws `automation_run_not_found`. */
export const showRunPage = createHandlers(requires('dashboard:read'), (c) => {
  const details = toRunDetails(getRun(c.env.db, getPathId(c)), automationHiddenFields(c))
  const ids = new Set(details.accounts.map(({ accountId }) => accountId))
  const value: OneRun = {
    ...getPage(c),
    ...details,
    names: accountChoices(c).filter(({ id }) => ids.has(id)),
    opensAccounts: holds(c.var.principal.grants, 'accounts:read'),
  }
  return reply(c, value, RunPage)
})
