/** `/api/accounts/:id/statement`, and the figures of the tab Statement: where an account's quota went. */
import { z } from 'zod'
import type { StatementProps } from '../../../views/accounts/statement.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { query } from '../../http/query.ts'
import { csvLine } from '../../lib/csv.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { METER_WINDOWS, type MeterWindow } from '../../model/accounts/meter-readings.ts'
import type { Statement, StatementStep } from '../../model/accounts/statement-read.ts'
import { Moment } from '../../model/log/request-log-query.ts'
import { toReader } from '../reader-for-caller.ts'
import { getHiddenFields } from '../visibility.ts'

const StatementQuery = z.strictObject({
  window: z.enum(METER_WINDOWS).default('weekly').describe('The quota window.'),
  from: Moment.optional().describe('ISO 8601. Default: the start of the current window.'),
  to: Moment.optional().describe('ISO 8601. Default: now.'),
  format: z.enum(['json', 'csv']).default('json').describe('`csv` has one line per reading of the meter, in UTC.'),
})

/** The statement, without keys if the user may not list them. Throws `account_not_found`, `validation_error`. */
export const showStatement = createHandlers(requires('accounts:read'), query(StatementQuery), async (c) => {
  const { window, from, to, format } = c.req.valid('query')
  const accountId = getPathId(c)
  if (!c.env.pool.get(accountId)) throw new AppError('account_not_found')
  const period = { accountId, window, from: from ?? null, to: to ?? c.env.clock.now() }
  if (from !== undefined && from >= period.to)
    throw new AppError('validation_error', { param: 'to', message: 'The period must end after its start.' })
  if (format === 'json') return c.json(await getStatement(c, period))
  const steps = await toReader(c).statementSteps(period)
  return c.body([csvLine(COLUMNS.map(([name]) => name)), ...steps.map(csvRow)].join(''), 200, {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="sluice-statement-${window}-${iso(period.to).slice(0, 10)}.csv"`,
  })
})

interface Period {
  accountId: string
  window: MeterWindow
  from: number | null
  to: number
}

type Shown = Omit<Statement, 'byKey'> & { byKey: Statement['byKey'] | null }

const getStatement = async (c: Ctx, period: Period): Promise<Shown> =>
  withoutHidden(c, (await toReader(c).accountStatement(period)).statement)

const withoutHidden = (c: Ctx, statement: Statement): Shown =>
  getHiddenFields(c.var.principal).hidesKeys ? { ...statement, byKey: null } : statement

type Column = readonly [name: string, of: (step: StatementStep) => string | number | null]

const COLUMNS: readonly Column[] = [
  ['from', ({ since }) => iso(since)],
  ['at', ({ at }) => iso(at)],
  ['used_percent', ({ usedPercent }) => usedPercent],
  ['moved_percent', ({ moved }) => moved],
  ['reset_at', ({ resetAt }) => isoOrNull(resetAt)],
  ['window_minutes', ({ windowMinutes }) => windowMinutes],
  ['requests', ({ requests }) => requests],
  ['tokens', ({ tokens }) => tokens],
  ['cost_usd', ({ micros }) => micros / 1e6],
  ['requests_without_price', ({ unpriced }) => unpriced],
  ['running_requests', ({ running }) => running],
]

const csvRow = (step: StatementStep): string => csvLine(COLUMNS.map(([, of]) => of(step)))

export const STATEMENT_PERIODS = ['window', '7d', '30d', '90d'] as const
const DAYS = { '7d': 7, '30d': 30, '90d': 90 } as const

export interface StatementAsked {
  window: MeterWindow
  period: (typeof STATEMENT_PERIODS)[number]
}

export const getStatementTab = async (
  c: Ctx,
  accountId: string,
  { window, period }: StatementAsked,
): Promise<StatementProps> => {
  const to = c.env.clock.now()
  const from = period === 'window' ? null : to - DAYS[period] * DAY_MS
  const { statement, windows } = await toReader(c).accountStatement({ accountId, window, from, to })
  return { ...withoutHidden(c, statement), windows, period }
}
