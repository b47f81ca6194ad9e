/** `/logs/export` and `/api/request-logs/export`: the filtered log as a file. */
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { requiresOwn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { query } from '../../http/query.ts'
import { csvLine } from '../../lib/csv.ts'
import { iso } from '../../lib/iso.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import type { RejectedClient } from '../../model/log/rejected-clients.ts'
import type { LogEntry } from '../../model/log/request-log-entry.ts'
import { LogPageQuery, toLogQuery, toRejectedQuery } from '../../model/log/request-log-page.ts'
import { Cursor, LogQuery } from '../../model/log/request-log-query.ts'
import { toReader } from '../reader-for-caller.ts'
import { getVisibility, requireVisibility } from '../visibility.ts'

const ExportQuery = LogPageQuery.extend({
  format: z.enum(['csv', 'json']).default('csv').describe('The format of the file.'),
})

/** Newest first. A file has 100,000 rows at most. */
export const exportLogs = createHandlers(requiresOwn('dashboard:read'), query(ExportQuery), async (c) => {
  const { format, ...asked } = c.req.valid('query')
  requireVisibility(c, asked)
  const now = c.env.clock.now()
  const isRejected = asked.status.includes('rejected')
  const pageAt = isRejected ? rejectedPages(c, asked, now) : requestPages(c, asked, now)
  const write = format === 'json' ? jsonWriter() : csvWriter(isRejected ? REJECTED_COLUMNS : REQUEST_COLUMNS)
  const name = `sluice-${isRejected ? 'rejected-clients' : 'log'}-${iso(now).slice(0, 10)}.${format}`
  return c.body(await getStream(c, pageAt, write), 200, {
    'content-type': TYPES[format],
    'content-disposition': `attachment; filename="${name}"`,
  })
})

const ApiQuery = LogQuery.omit({ limit: true, offset: true, cursor: true, newer: true }).extend({
  format: z.enum(['csv', 'ndjson']).default('csv').describe('`ndjson` has one JSON object per line.'),
})

/** The same with the filters of `/api/request-logs`. Throws `permission_required` for filters the user may not use. */
export const exportRequestLogs = createHandlers(requiresOwn('dashboard:read'), query(ApiQuery), async (c) => {
  const { format, ...asked } = c.req.valid('query')
  requireVisibility(c, asked)
  const write = format === 'ndjson' ? LINES : csvWriter(REQUEST_COLUMNS)
  const name = `sluice-log-${iso(c.env.clock.now()).slice(0, 10)}.${format}`
  return c.body(await getStream(c, getPages(c, { ...asked, offset: 0 }), write), 200, {
    'content-type': TYPES[format],
    'content-disposition': `attachment; filename="${name}"`,
  })
})

const TYPES = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
} as const

/** The most a spreadsheet can open. */
const MAX_ROWS = 100_000
const ROWS_AT_ONCE = 1000

type Row = LogEntry | RejectedClient

interface Page {
  rows: readonly Row[]
  next: Cursor | null
}

type PageAt = (cursor: Cursor | null) => Promise<Page>

const cursorFrom = (text: string | null): Cursor | null => (text === null ? null : Cursor.parse(text))

const requestPages = (c: Ctx, asked: LogPageQuery, now: number): PageAt => getPages(c, toLogQuery(asked, now))

const getPages = (c: Ctx, asked: Omit<LogQuery, 'limit' | 'cursor' | 'newer'>): PageAt => {
  const question = { ...asked, limit: ROWS_AT_ONCE, newer: undefined }
  return async (cursor) => {
    const page = await toReader(c).requestLogs({ ...question, cursor: cursor ?? undefined }, getVisibility(c))
    return { rows: page.requests, next: cursorFrom(page.nextCursor) }
  }
}

const rejectedPages = (c: Ctx, asked: LogPageQuery, now: number): PageAt => {
  const question = toRejectedQuery(asked, now)
  return async (cursor) => {
    if (!question) return { rows: [], next: null }
    const page = await toReader(c).rejectedPage(
      { ...question, limit: ROWS_AT_ONCE, cursor: cursor ?? undefined },
      getVisibility(c),
    )
    return { rows: page.items, next: cursorFrom(page.nextCursor) }
  }
}

interface Writer {
  head: string
  rows: (rows: readonly Row[], isFirst: boolean) => string
  /** `isCutOff`: the file is full and rows are missing. */
  end: (isCutOff: boolean) => string
}

type Columns = Record<string, (row: never) => string | number | null>

const REQUEST_COLUMNS: Record<string, (row: LogEntry) => string | number | null> = {
  time: ({ requestedAt }) => requestedAt,
  id: ({ id }) => id,
  request_id: ({ requestId }) => requestId,
  result: ({ result }) => result,
  cause: ({ cause }) => cause,
  status: ({ status }) => status,
  http_status: ({ httpStatus }) => httpStatus,
  error_code: ({ errorCode }) => errorCode,
  error_message: ({ errorMessage }) => errorMessage,
  phase: ({ failurePhase }) => failurePhase,
  key: ({ apiKeyName }) => apiKeyName,
  account: ({ accountName }) => accountName,
  attempts: ({ attemptCount }) => attemptCount,
  model: ({ model }) => model,
  effort: ({ reasoningEffort }) => reasoningEffort,
  input_tokens: ({ inputTokens }) => inputTokens,
  cached_input_tokens: ({ cachedInputTokens }) => cachedInputTokens,
  output_tokens: ({ outputTokens }) => outputTokens,
  cost_usd: ({ costUsd }) => costUsd,
  first_token_ms: ({ latencyFirstTokenMs }) => latencyFirstTokenMs,
  total_ms: ({ latencyMs }) => latencyMs,
  route: ({ route }) => route,
  client: ({ useragent, useragentGroup }) => useragent ?? useragentGroup,
  client_ip: ({ clientIp }) => clientIp,
  client_name: ({ clientName }) => clientName,
}

const REJECTED_COLUMNS: Record<string, (row: RejectedClient) => string | number | null> = {
  time: ({ lastAt }) => lastAt,
  count: ({ count }) => count,
  result: ({ result }) => result,
  reason: ({ reason }) => reason,
  client_ip: ({ clientIp }) => clientIp,
  key: ({ apiKeyName }) => apiKeyName,
  key_start: ({ keyStart }) => keyStart,
  model: ({ model }) => model,
  route: ({ route }) => route,
  client: ({ useragent }) => useragent,
}

const csvWriter = (columns: Columns): Writer => ({
  head: csvLine(Object.keys(columns)),
  // as: the columns belong to these rows
  rows: (rows) => rows.map((row) => csvLine(Object.values(columns).map((value) => value(row as never)))).join(''),
  end: (isCutOff) => (isCutOff ? csvLine([`cut off after ${MAX_ROWS} rows; choose a shorter time range`]) : ''),
})

const jsonWriter = (): Writer => ({
  head: '{"rows":[',
  rows: (rows, isFirst) =>
    rows.map((row, index) => `${isFirst && index === 0 ? '' : ','}\n${JSON.stringify(row)}`).join(''),
  end: (isCutOff) => `\n],"isComplete":${!isCutOff}}\n`,
})

const LINES: Writer = {
  head: '',
  rows: (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
  end: (isCutOff) => (isCutOff ? `${JSON.stringify({ isComplete: false, rows: MAX_ROWS })}\n` : ''),
}

/** Reads page by page at the client's pace. Filter errors are thrown before the first page. */
const getStream = async (c: Ctx, pageAt: PageAt, write: Writer): Promise<ReadableStream<Uint8Array>> => {
  const { log } = c.env
  let page: Page | null = await pageAt(null)
  let text = write.head
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      if (!page) return controller.close()
      const { rows, next } = page
      text += write.rows(rows, sent === 0)
      sent += rows.length
      const isCutOff = next !== null && sent >= MAX_ROWS
      const isLast = next === null || isCutOff
      if (isLast) text += write.end(isCutOff)
      controller.enqueue(encodeUtf8(text))
      text = ''
      page = isLast
        ? null
        : await pageAt(next).catch((err) => {
            log.warn('an export of the log stopped early', { err })
            throw err
          })
    },
  })
}
