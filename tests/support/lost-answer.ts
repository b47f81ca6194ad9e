/** Commits whose answer is lost, as when PostgreSQL ends before it answers, and commits that fail. */
import { outcomeUnknown } from '../../db/busy.ts'
import { type Db, getWriter, onWriter, writeWith } from '../../db/commit.ts'
import { begin, commitCounting, type Procedure, rollback, runQuery } from '../../db/connection.ts'

interface Lost {
  /** Loses the answer to the next commit that runs a matching statement; without it, to the next commit. */
  sql?: RegExp
  isStored?: boolean
}

/** Returns whether it was lost already. */
export const loseAnswer = (db: Db, { sql, isStored = true }: Lost = {}): (() => boolean) => {
  const writer = getWriter(db)
  let isLost = false
  let isMeant = sql === undefined
  writeWith(db, {
    call: async <Args, Value>(procedure: Procedure<Args, Value>, args: Args): Promise<Value> => {
      const called: unknown = procedure
      if (isLost && called === rollback) return undefined as Value // as: it returns nothing
      if (called === begin) isMeant = sql === undefined
      const text = (args as { sql?: unknown } | null)?.sql // as: only queries have it
      if (typeof text === 'string' && sql?.test(text)) isMeant = true
      if (called !== commitCounting || !isMeant) return writer.call(procedure, args)
      if (isStored) await writer.call(procedure, args)
      else await writer.call(rollback, null)
      isLost = true
      writeWith(db, writer)
      throw outcomeUnknown(null)
    },
  })
  return () => isLost
}

/** Until the returned function is called, every commit fails, and none is stored. */
export const loseDatabase = (db: Db): (() => void) => {
  const writer = getWriter(db)
  writeWith(db, { call: () => Promise.reject(new Error('The database cannot be reached.')) })
  return () => writeWith(db, writer)
}

/** SQLite only. Until the returned function is called, rows of `table` cannot be changed. */
export const blockUpdates = async (db: Db, table: string) => {
  const run = (sql: string) => onWriter(db, runQuery, { sql, bindings: [] })
  await run(`CREATE TRIGGER blocked BEFORE UPDATE ON ${table} BEGIN SELECT RAISE(ABORT, 'blocked'); END`)
  return () => run('DROP TRIGGER blocked')
}
