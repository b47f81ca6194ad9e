/** `/reports` and `/api/reports`: usage by day, model, account and key, as a page, JSON or CSV. */
import { z } from 'zod'
import { type Preset, ReportPage, type ReportView } from '../../views/reports/page.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requiresOwn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { Flag, query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { viewerZone } from '../http/viewer-clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { iso } from '../lib/iso.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { isZone, localDate } from '../lib/zoned-days.ts'
import { filled } from '../model/form-query.ts'
import { ChartQuery } from '../model/reports/report-bars.ts'
import type { CsvPage } from '../model/reports/report-csv.ts'
import { type LinePlace, type Report, ReportQuery } from '../model/reports/reports.ts'
import { getOptions } from './logs/logs.ts'
import { plannerCard } from './quota-planner.ts'
import { toReader } from './reader-for-caller.ts'
import { getHiddenFields, requireVisibility } from './visibility.ts'

const Asked = ReportQuery.extend({
  format: z.enum(['json', 'csv']).default('json').describe('`csv` has one line per day, model, account and key.'),
  download: Flag.describe('Download as a file.'),
})

/** `format=csv` has one line per day, model, account and key. Throws `validation_error`, and `permission_required` for keys. */
export const getReport = createHandlers(requiresOwn('dashboard:read'), query(Asked), async (c) => {
  const { format, download, ...asked } = c.req.valid('query')
  requireFilters(c, asked)
  if (format === 'csv') return asFile(c, await getCsv(c, asked), format)
  const found = await toReader(c).report(asked, getHiddenFields(c.var.principal), c.env.clock.now())
  return download ? asFile(c, JSON.stringify(found, null, 2), format) : c.json(found)
})

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json; charset=utf-8' } as const

const asFile = (c: Ctx, content: string | ReadableStream<Uint8Array>, format: keyof typeof TYPES) =>
  c.body(content, 200, {
    'content-type': TYPES[format],
    'content-disposition': `attachment; filename="sluice-report-${iso(c.env.clock.now()).slice(0, 10)}.${format}"`,
  })

/** Read and sent page by page at the client's pace. Query errors are thrown before the first page. */
const getCsv = async (c: Ctx, asked: ReportQuery): Promise<ReadableStream<Uint8Array>> => {
  const reader = toReader(c)
  const { clock, log } = c.env
  const now = clock.now()
  const pageAt = (place: LinePlace | null, before: number) =>
    reader.reportCsv(asked, getHiddenFields(c.var.principal), { now, place, before })
  let page: CsvPage | null = await pageAt(null, 0)
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      if (!page) return controller.close()
      controller.enqueue(encodeUtf8(page.text))
      sent += page.lines
      const { next } = page
      page =
        next &&
        (await pageAt(next, sent).catch((err) => {
          log.warn('a report could not be written completely', { err })
          throw err
        }))
    },
  })
}

const PRESETS = ['today', '7d', '30d', '90d', 'month'] as const satisfies readonly Preset[]

const PageQuery = ReportQuery.extend({
  range: filled(z.enum(PRESETS, { error: `choose ${PRESETS.slice(0, -1).join(', ')} or ${PRESETS.at(-1)}` })).describe(
    'A range of days by name. `start_date` and `end_date` take precedence.',
  ),
  ...ChartQuery.shape,
})
type PageQuery = z.output<typeof PageQuery>

/** `GET /reports`. Throws `validation_error`, and `permission_required` for keys. */
export const showReports = createHandlers(requiresOwn('dashboard:read'), query(PageQuery), async (c) => {
  const { range = null, measure = 'cost', stack = 'model', ...filters } = c.req.valid('query')
  const named = c.req.query('timezone')
  const timezone = named && isZone(named) ? named : (viewerZone(c) ?? 'UTC')
  const now = c.env.clock.now()
  const isChosen = filters.start_date !== undefined || filters.end_date !== undefined
  const preset = isChosen ? null : (range ?? '7d')
  const asked = { ...filters, ...(preset && getDays(preset, localDate(now, timezone))), timezone }
  requireFilters(c, asked)
  const hiddenFields = getHiddenFields(c.var.principal)
  const reader = toReader(c)
  const [found, chart] = await Promise.all([
    reader.report(asked, hiddenFields, now),
    reader.reportBars({ query: asked, chart: { measure, stack } }, hiddenFields, now),
  ])
  const view: ReportView = {
    ...found,
    generatedAt: iso(now),
    range: preset,
    chart,
    showsAccounts: hiddenFields.scope === 'all',
    asked: filtersIn(asked),
    params: [...new URL(c.req.url).searchParams].filter(([, value]) => value !== ''),
    unknownZone: named && named !== timezone ? named : null,
    options: await getOptions(c),
    planner: await plannerCard(c),
    links: { csv: fileLink(c, found, 'csv'), json: fileLink(c, found, 'json') },
  }
  return reply(c, view, ReportPage)
})

const filtersIn = ({ account_id, api_key_id, source_id, model, client }: ReportQuery): ReportView['asked'] => ({
  account_id,
  api_key_id,
  source_id,
  model,
  client,
})

const DAYS: Record<Exclude<Preset, 'month'>, number> = { today: 1, '7d': 7, '30d': 30, '90d': 90 }

/** `today` is YYYY-MM-DD in the zone of the report. */
const getDays = (preset: Preset, today: string): Pick<PageQuery, 'start_date' | 'end_date'> => {
  if (preset === 'month') return { start_date: `${today.slice(0, 8)}01`, end_date: today }
  const first = Date.parse(today) - (DAYS[preset] - 1) * DAY_MS
  return { start_date: iso(first).slice(0, 10), end_date: today }
}

const requireFilters = (c: Ctx, asked: Pick<ReportQuery, 'api_key_id' | 'account_id'>): void =>
  requireVisibility(c, { apiKeyId: asked.api_key_id, accountId: asked.account_id })

/** The report for these days, however they were chosen. */
const fileLink = (c: Ctx, { timezone, startDate, endDate }: Report, format: 'csv' | 'json'): string =>
  linkFrom(c, '/api/reports', {
    drop: ['timezone', 'start_date', 'end_date', 'range', 'measure', 'stack'],
    add: { start_date: startDate, end_date: endDate, timezone, format, download: 'true' },
  })
