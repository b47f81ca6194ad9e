/** Prints measurements as small tables and verdicts as PASS or FAIL lines, and keeps the verdicts. */

type Verdict = { name: string; isPass: boolean; measured: string; target: string }

export type Report = {
  heading: (text: string) => void
  note: (text: string) => void
  table: (columns: string[], rows: string[][]) => void
  /** Prints one verdict; `limit` is in the unit of `value`. */
  check: (name: string, value: number, comparison: '<=' | '>=', limit: number, unit: string) => void
  verdicts: readonly Verdict[]
}

export function createReport(print: (line: string) => void): Report {
  const verdicts: Verdict[] = []
  return {
    heading: (text) => print(`\n== ${text}`),
    note: (text) => print(`   ${text}`),
    table: (columns, rows) => {
      const widths = columns.map((column, n) => Math.max(column.length, ...rows.map((row) => (row[n] ?? '').length)))
      for (const row of [columns, ...rows]) print(`   ${row.map((cell, n) => pad(cell, widths[n] ?? 0, n)).join('  ')}`)
    },
    check: (name, value, comparison, limit, unit) => {
      const isPass = comparison === '<=' ? value <= limit : value >= limit
      const verdict = {
        name,
        isPass,
        measured: `${short(value)}${unit}`,
        target: `${comparison} ${short(limit)}${unit}`,
      }
      verdicts.push(verdict)
      print(`${isPass ? 'PASS' : 'FAIL'} ${name}: ${verdict.measured} (target ${verdict.target})`)
    },
    verdicts,
  }
}

/** Three significant digits without an exponent; integers unchanged. */
export function short(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value)
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value) || 1)))
  return value.toFixed(Math.min(digits, 3))
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

function pad(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}
