/** `/reports` and `/api/reports`: what was used by day, model, account and key, as a page, JSON or CSV. */
import { getCookie } from 'hono/cookie'
import { z } from 'zod'
import { ReportPage } from '../../views/logs/report.tsx'
import { demand } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { Flag, query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import type { CsvPage } from '../model/report-csv.ts'
import { type LinePlace, type Report, ReportQuery } from '../model/reports.ts'
import { type Logs, optionsOf } from './logs-page.ts'
import { readerOf } from './reader-of.ts'
import { blindersOf } from './requests.ts'

const Asked = ReportQuery.extend({
  format: z.enum(['json', 'csv']).default('json').describe('`csv` has one line a day, model, account and key.'),
  download: Flag.describe('Saved as a file instead of shown.'),
})

/** `format=csv` has one line a day, model, account and key. Throws `validation_error`, and `permission_required` for keys. */
export const getReport = createHandlers(requires('dashboard:read'), query(Asked), async (c) => {
  const { format, download, ...asked } = c.req.valid('query')
  demandKeys(c, asked)
  if (format === 'csv') return asFile(c, await csvOf(c, asked), format)
  const found = await readerOf(c).report(asked, blindersOf(c.var.principal), c.env.clock.now())
  return download ? asFile(c, JSON.stringify(found, null, 2), format) : c.json(found)
})

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json; charset=utf-8' } as const

const asFile = (c: Ctx, content: string | ReadableStream<Uint8Array>, format: keyof typeof TYPES) =>
  c.body(content, 200, {
    'content-type': TYPES[format],
    'content-disposition': `attachment; filename="sluice-report-${iso(c.env.clock.now()).slice(0, 10)}.${format}"`,
  })

/** Read and sent piece by piece, as fast as it is taken. What is wrong with the question is thrown before the first. */
const csvOf = async (c: Ctx, asked: ReportQuery): Promise<ReadableStream<Uint8Array>> => {
  const reader = readerOf(c)
  const { clock, log } = c.env
  const now = clock.now()
  const pageAt = (place: LinePlace | null, before: number) =>
    reader.reportCsv(asked, blindersOf(c.var.principal), { now, place, before })
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

export interface ReportView extends Report {
  generatedAt: string
  asked: Pick<ReportQuery, 'account_id' | 'api_key_id' | 'model'>
  options: Logs['options']
  /** The same report as files. */
  links: { csv: string; json: string }
}

/** `GET /reports`. */
export const showReports = createHandlers(requires('dashboard:read'), query(ReportQuery), async (c) => {
  const asked = { ...c.req.valid('query'), ...zoneOf(c) }
  demandKeys(c, asked)
  const now = c.env.clock.now()
  const found = await readerOf(c).report(asked, blindersOf(c.var.principal), now)
  const view: ReportView = {
    ...found,
    generatedAt: iso(now),
    asked,
    options: optionsOf(c),
    links: { csv: fileLink(c, found, 'csv'), json: fileLink(c, found, 'json') },
  }
  return reply(c, view, ReportPage)
})

const demandKeys = (c: Ctx, { api_key_id: keys }: ReportQuery): void => {
  if (keys.length > 0) demand(c.var.principal, 'api_keys:read')
}

/** The zone of the browser, which its script has put there, where the address names none. */
const zoneOf = (c: Ctx): { timezone?: string } => {
  const zone = getCookie(c, 'zone')
  return c.req.query('timezone') || !zone ? {} : { timezone: zone }
}

const fileLink = (c: Ctx, { timezone }: Report, format: 'csv' | 'json'): string =>
  linkFrom(c, '/api/reports', { drop: ['timezone'], add: { timezone, format, download: 'true' } })
