/** Lists for people: columns as wide as their widest cell, two spaces apart. */
import { withoutControls } from '../lib/controls.ts'

/** One line a row under the headings, each ended by a line break. Control characters of stored names are left out. */
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

/** `2026-11-20 19:30` in UTC, to be read at a glance; a dash for none. */
export const shortTime = (ms: number | null): string =>
  ms === null ? '-' : new Date(ms).toISOString().slice(0, 16).replace('T', ' ')

const pad = (cell: string, width: number): string => cell + ' '.repeat(width - Bun.stringWidth(cell))
