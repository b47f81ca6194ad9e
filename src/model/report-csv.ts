/** A report as comma-separated values (RFC 4180), safe to open in a spreadsheet. */
import type { ReportLine } from './reports.ts'

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
]

export const csv = (lines: readonly ReportLine[]): string =>
  [COLUMNS.map(([head]) => head), ...lines.map((line) => COLUMNS.map(([, value]) => cell(value(line))))]
    .map((row) => `${row.join(',')}\r\n`)
    .join('')

/** A text that begins like a formula would be run as one: the apostrophe makes it a text. */
const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
