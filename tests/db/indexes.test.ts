/** Indexes that queries rely on. */
import { expect, test } from 'bun:test'
import { testDb } from '../support/db.ts'

interface ForeignKey {
  id: number
  from: string
}

test('every foreign key has an index: deleting the referenced row scans no whole table', () => {
  const { sqlite } = testDb()
  const column = (query: string): string[] =>
    sqlite
      .query<{ name: string }, []>(query)
      .all()
      .map(({ name }) => name)
  const unindexed = column("SELECT name FROM sqlite_schema WHERE type = 'table'").flatMap((table) => {
    const starts = column(`PRAGMA index_list(${table})`).map((index) => column(`PRAGMA index_info(${index})`)[0])
    const keys = sqlite.query<ForeignKey, []>(`PRAGMA foreign_key_list(${table})`).all()
    const primary = column(`SELECT name FROM pragma_table_info('${table}') WHERE pk = 1`)
    return keys.filter(({ from }) => ![...starts, ...primary].includes(from)).map(({ from }) => `${table}.${from}`)
  })
  expect(unindexed).toEqual([])
})
