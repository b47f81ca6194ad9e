/** A report as comma-separated values. */
import type { Db } from '../../../db/commit.ts'
import { csvLine } from '../../lib/csv.ts'
import type { HiddenFields } from '../log/request-view.ts'
import { type LinePlace, type ReportLine, type ReportQuery, reportLines } from './reports.ts'

const COLUMNS: readonly (readonly [head: string, value: (line: ReportLine) => string | number])[] = [
  ['date', ({ date }) => date],
  ['model', ({ model }) => model],
  ['account', ({ account }) => account],
  ['key', ({ key }) => key],
  ['requests', ({ requests }) => requests],
  ['errors', ({ errors }) => errors],
  ['cancelled', ({ cancelled }) => cancelled],
  ['input_tokens', ({ inputTokens }) => inputTokens],
  ['cached_input_tokens', ({ cachedInputTokens }) => cachedInputTokens],
  ['output_tokens', ({ outputTokens }) => outputTokens],
  ['cost_usd', ({ costUsd }) => costUsd.toFixed(6)],
  ['unpriced_requests', ({ unpriced }) => unpriced],
  ['moves', ({ moves }) => moves],
  ['avoidable_moves', ({ avoidableMoves }) => avoidableMoves],
  ['moved_input_tokens', ({ movedInputTokens }) => movedInputTokens],
]

export interface CsvPage {
  text: string
  lines: number
  /** null: this was the last page. */
  next: LinePlace | null
}

/** Per page, about 400 KB. */
const LINES = 4000
/** Per file: what spreadsheets can open. */
const MAX_LINES = 100_000

/**
 * The next lines of the file; `place` null starts with the headings. `before`: lines so far; after a hundred thousand a
 * last line says that the file was cut off. `now` is ms since epoch. Throws like `report`.
 */
export const reportCsv = async (
  db: Db,
  query: ReportQuery,
  hiddenFields: HiddenFields,
  { now, place, before }: { now: number; place: LinePlace | null; before: number },
): Promise<CsvPage> => {
  const from = place ?? { day: 0, after: null }
  const { lines, next } = await reportLines(db, query, hiddenFields, { now, place: from, limit: LINES })
  const rows = lines.map((line) => COLUMNS.map(([, value]): string | number => value(line)))
  if (place === null) rows.unshift(COLUMNS.map(([head]) => head))
  const isCutOff = next !== null && before + lines.length >= MAX_LINES
  if (isCutOff) rows.push([`cut off after ${before + lines.length} lines; choose fewer days`])
  const text = rows.map(csvLine).join('')
  return { text, lines: lines.length, next: isCutOff ? null : next }
}
