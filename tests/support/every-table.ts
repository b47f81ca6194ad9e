/** Rows in every table, with values that copies and conversions get wrong easily. */
import type { Database } from 'bun:sqlite'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { getColumnName, getTables } from '../../db/postgres/ddl.ts'
import * as schema from '../../db/schema/all.ts'

const TEXTS = [
  '',
  'it\'s "quoted", `too` \\ \\u0000',
  'Zürich 東京 😀',
  'line\nbreak\ttab',
  '{"a":[1,null]}',
  '\\N',
  'NULL',
]
const INTEGERS = [0, 1, -1, 2_147_483_648, Number.MAX_SAFE_INTEGER]
const REALS = [0, 0.1, -1e-7, 12_345.678_901_234_5, 1e300, 5]

/** Adds `rows` to each table; every second one has null where it may. */
export const fillEveryTable = (sqlite: Database, rows: number): void => {
  sqlite.run('PRAGMA foreign_keys = ON')
  sqlite.run('BEGIN')
  sqlite.run('PRAGMA defer_foreign_keys = ON')
  for (const { name, columns, foreignKeys, primaryKeys } of getTables(schema)) {
    const keys = new Map(foreignKeys.flatMap((key) => pairsOf(key.reference())))
    const own = new Set(primaryKeys.flatMap((key) => key.columns.map(({ name }) => name)))
    const statement = sqlite.query(
      `INSERT INTO "${name}" (${columns.map((column) => `"${getColumnName(column)}"`)}) VALUES (${columns.map(() => '?')})`,
    )
    for (let n = 1; n <= rows; n++)
      statement.run(
        ...columns.map((column, place) => {
          const target = keys.get(column.name)
          if (target) return keyOf(target, n)
          if (column.primary || column.isUnique || own.has(column.name)) return keyOf(column, n)
          return n % 2 === 0 && !column.notNull ? null : anyValue(column, n + place)
        }),
      )
  }
  sqlite.run('COMMIT')
}

interface Reference {
  columns: SQLiteColumn[]
  foreignColumns: SQLiteColumn[]
}

const pairsOf = ({ columns, foreignColumns }: Reference) =>
  columns.map((column, place) => [column.name, foreignColumns[place]!] as const) // as many

const keyOf = (column: SQLiteColumn, n: number) => (column.getSQLType() === 'text' ? `é-${n}` : n)

const anyValue = (column: SQLiteColumn, n: number) => {
  const type = column.getSQLType()
  if (type === 'text') return `${TEXTS[n % TEXTS.length]}${n}`
  return (type === 'real' ? REALS[n % REALS.length] : INTEGERS[n % INTEGERS.length]) ?? null
}
