/** A commit that is stored although it fails, as when PostgreSQL ends before it answers. */
import { outcomeUnknown } from '../../db/busy.ts'
import { type Db, getWriter, writeWith } from '../../db/commit.ts'
import { commitCounting, type Procedure, rollback } from '../../db/connection.ts'

/** For the next commit. */
export const loseAnswer = (db: Db): void => {
  const writer = getWriter(db)
  let isLost = false
  writeWith(db, {
    call: async <Args, Value>(procedure: Procedure<Args, Value>, args: Args): Promise<Value> => {
      if (isLost && (procedure as unknown) === rollback) return undefined as Value // as: it returns nothing
      const value = await writer.call(procedure, args)
      if ((procedure as unknown) !== commitCounting) return value
      isLost = true
      writeWith(db, writer)
      throw outcomeUnknown(null)
    },
  })
}
