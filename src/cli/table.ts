/** Text tables: columns as wide as their widest cell, two spaces apart. */
import { withoutControls } from '../lib/controls.ts'

/** One line per row below the headings, each ending with a line break. Control characters are removed. */
export const table = (headings: readonly string[], rows: readonly (readonly string[])[]): string => {
  const lines = [headings, ...rows].map((row) => row.map(withoutControls))
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))))
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => pad(cell, widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** `2026-11-20 19:30` in this machine's time zone; a dash for null. */
export const shortTime = (ms: number | null): string => (ms === null ? '-' : localTime(ms).slice(0, 16))

/** `2026-11-20 19:30:05` in this machine's time zone. */
export const localTime = (ms: number): string => {
  const at = new Date(ms)
  const two = (number: number) => String(number).padStart(2, '0')
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

const natural = new Intl.Collator('en', { numeric: true })

/** Natural order: `team2` comes before `team10`. */
export const byName = (a: string, b: string): number => natural.compare(a, b)

const pad = (cell: string, width: number): string => cell + ' '.repeat(width - Bun.stringWidth(cell))
