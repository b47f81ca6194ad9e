/** The query plans of the statements a function runs. */
import type { Database } from 'bun:sqlite'

/**
 * One line per step of each query that `run` executes on `sqlite` and that mentions `table`, like `SEARCH requests
 * USING INDEX …`.
 */
export const getPlans = async (sqlite: Database, table: RegExp, run: () => Promise<unknown>): Promise<string[]> => {
  const asked: string[] = []
  const prepare = sqlite.prepare.bind(sqlite)
  sqlite.prepare = ((text: string) => {
    asked.push(text)
    return prepare(text)
  }) as typeof sqlite.prepare // as: only the text is used
  try {
    await run()
  } finally {
    sqlite.prepare = prepare
  }
  return asked
    .filter((text) => table.test(text))
    .flatMap((text) => {
      const values = Array.from({ length: text.split('?').length - 1 }, () => 1)
      return (prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values) as { detail: string }[]).map(({ detail }) => detail) // as: its documented columns
    })
}
