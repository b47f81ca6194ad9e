/** `/reports` and `/api/reports`: what was used by day, model, account and key, as a page, JSON or CSV. */
import type { Context } from 'hono'
import { z } from 'zod'
import { ReportPage } from '../../views/logs/report.tsx'
import { demand } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/params.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { csv } from '../model/report-csv.ts'
import { type Report, ReportQuery } from '../model/reports.ts'
import { type Logs, optionsOf } from './logs-page.ts'
import { blindersOf } from './requests.ts'

const Asked = ReportQuery.extend({
  format: z.enum(['json', 'csv']).default('json'),
  /** Saved as a file instead of shown. */
  download: z.coerce.boolean().default(false),
})

/** `format=csv` has one line a day, model, account and key. Throws `validation_error`, and `permission_required` for keys. */
export const getReport = createHandlers(requires('dashboard:read'), query(Asked), async (c) => {
  const { format, download, ...asked } = c.req.valid('query')
  demandKeys(c, asked)
  const question = [asked, blindersOf(c.var.principal), c.env.clock.now()] as const
  if (format === 'json' && !download) return c.json(await c.env.reader.report(...question))
  const text =
    format === 'csv'
      ? csv(await c.env.reader.reportLines(...question))
      : JSON.stringify(await c.env.reader.report(...question), null, 2)
  return c.body(text, 200, {
    'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8',
    'content-disposition': `attachment; filename="sluice-report-${iso(c.env.clock.now()).slice(0, 10)}.${format}"`,
    'cache-control': 'no-store',
  })
})

export interface ReportView extends Report {
  generatedAt: string
  asked: Pick<ReportQuery, 'account_id' | 'api_key_id' | 'model'>
  options: Logs['options']
  /** The same report as files. */
  links: { csv: string; json: string }
}

/** `GET /reports`. */
export const showReports = createHandlers(requires('dashboard:read'), query(ReportQuery), async (c) => {
  const asked = c.req.valid('query')
  demandKeys(c, asked)
  const now = c.env.clock.now()
  const found = await c.env.reader.report(asked, blindersOf(c.var.principal), now)
  const view: ReportView = {
    ...found,
    generatedAt: iso(now),
    asked,
    options: optionsOf(c),
    links: { csv: fileLink(c, 'csv'), json: fileLink(c, 'json') },
  }
  return reply(c, view, ReportPage)
})

const demandKeys = (c: Context<AppEnv>, { api_key_id: keys }: ReportQuery): void => {
  if (keys.length > 0) demand(c.var.principal, 'api_keys:read')
}

const fileLink = (c: Context<AppEnv>, format: 'csv' | 'json'): string => {
  const asked = [...new URL(c.req.url).searchParams].filter(([, value]) => value !== '')
  return `/api/reports?${new URLSearchParams([...asked, ['format', format], ['download', 'true']])}`
}
