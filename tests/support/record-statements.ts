/**
 * For the preload: records each SQL statement that the program runs, in a file of this process in a folder, as one JSON string per
 * line. What tests run themselves is left out where the stack tells it, and so are migrations.
 */
import { Database } from 'bun:sqlite'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { MIGRATIONS } from '../../db/migrations/index.ts'

export function recordStatements(folder: string): void {
  const seen = new Set<string>()
  const file = join(folder, `${process.pid}.jsonl`)
  const record = (statement: string) => {
    if (seen.has(statement)) return
    seen.add(statement)
    if (!isOfTest() && !MIGRATIONS.some(({ sql }) => sql.includes(statement)))
      appendFileSync(file, `${JSON.stringify(statement)}\n`)
  }
  for (const name of ['prepare', 'query', 'run'] as const) {
    const original = Database.prototype[name] as (this: Database, statement: string, ...rest: unknown[]) => unknown // as: all begin with it
    Object.assign(Database.prototype, {
      [name](this: Database, statement: string, ...rest: unknown[]) {
        record(statement)
        return original.call(this, statement, ...rest)
      },
    })
  }
}

/** Between the code that runs a statement and the connection. */
const BETWEEN = /node_modules|record-statements\.ts|db\/(connection|driver|commit|migrate)\.ts/

function isOfTest(): boolean {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 50
  const frames = new Error().stack?.split('\n') ?? []
  Error.stackTraceLimit = limit
  return frames.find((frame) => /\.tsx?:/.test(frame) && !BETWEEN.test(frame))?.includes('/tests/') ?? false
}
