/** `list` commands: all items in natural order of their names, as a table or with `--json`. */
import type { Db } from '../../db/commit.ts'
import { printJson, type Run, withFolder } from './command.ts'
import { byName, table } from './table.ts'

interface Listing<T> {
  all: (db: Db) => Promise<readonly T[]>
  getName: (item: T) => string
  headings: readonly string[]
  cells: (item: T) => readonly string[]
  /** A message on how to add the first. */
  none: string
  /** What `--json` prints; by default the items. */
  document?: (items: readonly T[]) => unknown
}

export const listing =
  <T>({ all, getName, headings, cells, none, document = (items) => items }: Listing<T>): Run =>
  (io, _args, { json }) =>
    withFolder(io, async ({ db }) => {
      const items = (await all(db)).toSorted((a, b) => byName(getName(a), getName(b)))
      if (json) printJson(io, document(items))
      else io.stdout(items.length === 0 ? `${none}\n` : table(headings, items.map(cells)))
      return 0
    })
