/** `list`: all there is of something, as a table or with `--json`. */
import type { Db } from '../../db/commit.ts'
import { type Command, noArguments, printJson, readArgs, withFolder } from './command.ts'
import { table } from './table.ts'

interface Listing<T> {
  all: (db: Db) => readonly T[]
  headings: readonly string[]
  cells: (item: T) => readonly string[]
  /** A sentence that says how to make the first. */
  none: string
  /** What `--json` prints; the items themselves unless told. */
  document?: (items: readonly T[]) => unknown
}

export const listing =
  <T>({ all, headings, cells, none, document = (items) => items }: Listing<T>): Command =>
  (args, io) => {
    const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
    noArguments(positionals)
    return withFolder(io, ({ db }) => {
      const items = all(db)
      if (values.json) printJson(io, document(items))
      else io.stdout(items.length === 0 ? `${none}\n` : table(headings, items.map(cells)))
      return 0
    })
  }
