/** Lists of automations and of their runs, with filters, pages, and the values of the filters. */

import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { automationRuns, automations, RUN_STATUSES, RUN_TRIGGERS } from '../../../db/schema/automations.ts'
import { AppError } from '../../errors.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { oneOrMany } from '../form-query.ts'
import { type AutomationRow, listAutomations } from './automations.ts'
import type { NamedRun, Shown } from './view.ts'

const JOB_STATUSES = ['enabled', 'disabled'] as const

const Search = z.string().trim().max(200).default('')
const page = (limit: number, most: number) => ({
  limit: z.coerce.number().int().min(1).max(most).default(limit).describe('Rows per page.'),
  offset: z.coerce.number().int().min(0).max(100_000).default(0).describe('Rows to skip.'),
})

export const AutomationFilters = z.object({
  search: Search.describe('Searches names and models.'),
  accountId: oneOrMany(z.string()).describe('Only automations that use one of these accounts.'),
  model: oneOrMany(z.string()).describe('Only automations with one of these models.'),
  status: oneOrMany(z.enum(JOB_STATUSES)).describe('Only enabled or disabled ones.'),
  scheduleType: oneOrMany(z.literal('daily')).describe('There is one type.'),
})
export type AutomationFilters = z.output<typeof AutomationFilters>
export const AutomationQuery = AutomationFilters.extend(page(25, 1000))

export const RunFilters = z.object({
  search: Search.describe('Searches the names of automations, and models.'),
  accountId: oneOrMany(z.string()).describe('Only runs with one of these accounts.'),
  model: oneOrMany(z.string()).describe('Only runs with one of these models.'),
  status: oneOrMany(z.enum(RUN_STATUSES)).describe('Only runs with one of these statuses.'),
  trigger: oneOrMany(z.enum(RUN_TRIGGERS)).describe('Only scheduled or manual runs.'),
  automationId: oneOrMany(z.string()).describe('Only runs of these automations.'),
})
export type RunFilters = z.output<typeof RunFilters>
export const RunQuery = RunFilters.extend(page(25, 1000))
export const RunsOfOneQuery = z.object(page(20, 200))

export interface Page<T> {
  items: T[]
  total: number
  hasMore: boolean
}

interface Cut {
  limit: number
  offset: number
}

export const automationPage = async (
  db: Db,
  { limit, offset, ...filters }: AutomationFilters & Cut,
): Promise<Page<Shown>> => {
  const found = await matching(db, filters)
  const shown = found.slice(offset, offset + limit)
  const items = await mapInOrder(shown, async (row) => ({ row, lastRun: await getLastRun(db, row.id) }))
  return { items, total: found.length, hasMore: offset + shown.length < found.length }
}

const matching = async (
  db: Db,
  { search, accountId, model, status, scheduleType }: AutomationFilters,
): Promise<AutomationRow[]> => {
  const has = <T>(list: readonly T[], value: T) => list.length === 0 || list.includes(value)
  const wanted = search.toLowerCase()
  return (await listAutomations(db)).filter(
    (row) =>
      `${row.name}\n${row.model ?? ''}`.toLowerCase().includes(wanted) &&
      (accountId.length === 0 || row.accountIds === null || row.accountIds.some((id) => accountId.includes(id))) &&
      has(model, row.model ?? '') &&
      has(status, row.enabled ? 'enabled' : 'disabled') &&
      has(scheduleType, 'daily'),
  )
}

export const getLastRun = async (db: Db, automationId: string) =>
  (await db
    .select()
    .from(automationRuns)
    .where(eq(automationRuns.automationId, automationId))
    .orderBy(desc(automationRuns.startedAt), desc(automationRuns.id))
    .limit(1)
    .get()) ?? null

export const automationOptions = async (db: Db, filters: AutomationFilters) => {
  const found = await matching(db, filters)
  return {
    accountIds: distinct(found.flatMap(({ accountIds }) => accountIds ?? [])),
    models: distinct(found.flatMap(({ model }) => model ?? [])),
    statuses: JOB_STATUSES.filter((status) => found.some(({ enabled }) => enabled === (status === 'enabled'))),
    scheduleTypes: found.length > 0 ? ['daily' as const] : [],
  }
}

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)].toSorted()

/** Newest first. */
export const runPage = async (db: Db, { limit, offset, ...filters }: RunFilters & Cut): Promise<Page<NamedRun>> => {
  const where = getWhere(filters)
  const items = await selectRuns(db)
    .where(where)
    .orderBy(desc(automationRuns.startedAt), desc(automationRuns.id))
    .limit(limit)
    .offset(offset)
    .all()
  const total = await db
    .select({ count: sql<number>`count(*)` })
    .from(automationRuns)
    .innerJoin(automations, eq(automations.id, automationRuns.automationId))
    .where(where)
    .get()
  const count = total?.count ?? 0
  return { items, total: count, hasMore: offset + items.length < count }
}

const selectRuns = (db: Db) =>
  db
    .select({ run: automationRuns, name: automations.name })
    .from(automationRuns)
    .innerJoin(automations, eq(automations.id, automationRuns.automationId))

/** Throws `automation_run_not_found`. */
export const getRun = async (db: Db, id: string): Promise<NamedRun> => {
  const found = await selectRuns(db).where(eq(automationRuns.id, id)).get()
  if (!found) throw new AppError('automation_run_not_found')
  return found
}

export const runOptions = async (db: Db, filters: RunFilters) => {
  const rows = await selectRuns(db).where(getWhere(filters)).all()
  return {
    accountIds: distinct(rows.flatMap(({ run }) => run.accounts.map(({ accountId }) => accountId))),
    models: distinct(rows.flatMap(({ run }) => run.model ?? [])),
    statuses: RUN_STATUSES.filter((status) => rows.some(({ run }) => run.status === status)),
    triggers: RUN_TRIGGERS.filter((trigger) => rows.some(({ run }) => run.trigger === trigger)),
  }
}

const getWhere = ({ search, accountId, model, status, trigger, automationId }: RunFilters): SQL | undefined =>
  and(
    search === '' ? undefined : contains(search),
    status.length > 0 ? inArray(automationRuns.status, status) : undefined,
    trigger.length > 0 ? inArray(automationRuns.trigger, trigger) : undefined,
    automationId.length > 0 ? inArray(automationRuns.automationId, automationId) : undefined,
    model.length > 0 ? inArray(automationRuns.model, model) : undefined,
    accountId.length > 0
      ? sql`EXISTS (SELECT 1 FROM json_each(${automationRuns.accounts})
          WHERE json_extract(json_each.value, '$.accountId') IN ${accountId})`
      : undefined,
  )

const contains = (search: string): SQL =>
  sql`instr(lower(${automations.name} || ${'\n'} || coalesce(${automationRuns.model}, '')), lower(${search})) > 0`
