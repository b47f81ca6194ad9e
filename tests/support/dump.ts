/** The complete content of a database, to compare two moments or to search it. */
import { Database } from 'bun:sqlite'

type Row = Record<string, unknown>

/** Table → rows. The last use of a session is omitted, because every request may record it. */
export const dump = (sqlite: Database): Record<string, Row[]> => {
  const names = sqlite.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all()
  return Object.fromEntries(
    names.map(({ name }) => [name, sqlite.query<Row, []>(`SELECT * FROM "${name}"`).all().map(lasting)]),
  )
}

const lasting = ({ last_seen_at: _, ...row }: Row): Row => row

export interface Snapshot {
  /** Whether nothing has been written since. */
  isUnchanged(): boolean
  rows(): Record<string, Row[]>
}

/** A copy of the pages, which takes less than half the time of reading every table. */
export const takeSnapshot = (sqlite: Database): Snapshot => {
  const countChanges = () => sqlite.query<{ n: number }, []>('SELECT total_changes() AS n').get()?.n
  const changes = countChanges()
  const pages = sqlite.serialize()
  return {
    isUnchanged: () => countChanges() === changes,
    rows: () => {
      using copy = Database.deserialize(pages)
      return dump(copy)
    },
  }
}
