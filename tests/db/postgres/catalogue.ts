/** Tables, columns, keys and indexes in one form, read from PostgreSQL, from SQLite and from the declared tables. */

import type { Database } from 'bun:sqlite'
import type { SQL } from 'bun'
import { is } from 'drizzle-orm'
import { getTableConfig, type SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { getColumnName } from '../../../db/postgres/ddl.ts'

/** By name of the table. */
export type Catalogue = Record<string, CatalogueTable>

interface CatalogueTable {
  /** By name: type, whether it is nullable, and the default as text; null: none. */
  columns: Record<string, { type: 'integer' | 'real' | 'text'; isNullable: boolean; default: string | null }>
  primaryKey: string[]
  /** Sorted. Unique constraints are listed without a name, because engines name them differently. */
  indexes: { name: string | null; isUnique: boolean; columns: string[]; isPartial: boolean }[]
  foreignKeys: { columns: string[]; table: string; foreignColumns: string[]; onDelete: string }[]
}

const sorted = <T>(items: T[]): T[] => items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

/** A computed column of an index. */
const EXPRESSION = '(expression)'

export const ofTables = (schema: Record<string, unknown>): Catalogue =>
  Object.fromEntries(
    Object.values(schema)
      .filter((value) => is(value, SQLiteTable))
      .map((table) => {
        const config = getTableConfig(table)
        const names = (columns: readonly SQLiteColumn[]) => columns.map(getColumnName)
        const [primary] = config.primaryKeys
        const keyColumns = primary?.columns ?? config.columns.filter((column) => column.primary)
        return [
          config.name,
          {
            columns: Object.fromEntries(
              config.columns.map((column) => [
                getColumnName(column),
                {
                  type: column.getSQLType() as 'integer', // as: other types fail the comparison
                  isNullable: !column.notNull,
                  default: column.default === undefined ? null : String(column.mapToDriverValue(column.default)),
                },
              ]),
            ),
            primaryKey: names(keyColumns),
            indexes: sorted([
              ...config.columns
                .filter((column) => column.isUnique)
                .map((column) => ({ name: null, isUnique: true, columns: names([column]), isPartial: false })),
              ...config.indexes.map(({ config: index }) => ({
                name: index.name,
                isUnique: index.unique,
                columns: index.columns.map((column) => ('name' in column ? getColumnName(column) : EXPRESSION)),
                isPartial: index.where !== undefined,
              })),
            ]),
            foreignKeys: sorted(
              config.foreignKeys.map((key) => {
                const { columns, foreignTable, foreignColumns } = key.reference()
                const table = getTableConfig(foreignTable).name
                return {
                  columns: names(columns),
                  table,
                  foreignColumns: names(foreignColumns),
                  onDelete: key.onDelete ?? 'no action',
                }
              }),
            ),
          },
        ]
      }),
  )

/** Without the table in which migrations are counted. */
export const ofSqlite = (sqlite: Database): Catalogue => {
  const all = <Row>(query: string) => sqlite.query<Row, []>(query).all()
  const tables = all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'migrations'",
  )
  return Object.fromEntries(
    tables.map(({ name }) => {
      const columns = all<SqliteColumn>(`PRAGMA table_info(${name})`)
      const keys = Map.groupBy(all<SqliteForeignKey>(`PRAGMA foreign_key_list(${name})`), ({ id }) => id)
      return [
        name,
        {
          columns: Object.fromEntries(
            columns.map((column) => [
              column.name,
              {
                type: column.type.toLowerCase() as 'integer', // as: other types fail the comparison
                isNullable: column.notnull === 0,
                default: column.dflt_value === null ? null : toValue(column.dflt_value),
              },
            ]),
          ),
          primaryKey: columns
            .filter(({ pk }) => pk > 0)
            .sort((a, b) => a.pk - b.pk)
            .map((column) => column.name),
          indexes: sorted(
            all<SqliteIndex>(`PRAGMA index_list(${name})`)
              .filter(({ origin }) => origin !== 'pk')
              .map((index) => ({
                name: index.name.endsWith('_unique') ? null : index.name,
                isUnique: index.unique === 1,
                columns: all<{ name: string | null }>(`PRAGMA index_info(${index.name})`).map(
                  (column) => column.name ?? EXPRESSION,
                ),
                isPartial: index.partial === 1,
              })),
          ),
          foreignKeys: sorted(
            [...keys.values()].map((parts) => ({
              columns: parts.map(({ from }) => from),
              table: parts[0]!.table, // a group has a row
              foreignColumns: parts.map(({ to }) => to),
              onDelete: parts[0]!.on_delete.toLowerCase(),
            })),
          ),
        },
      ]
    }),
  )
}

interface SqliteColumn {
  name: string
  type: string
  notnull: 0 | 1
  dflt_value: string | null
  pk: number
}

interface SqliteIndex {
  name: string
  unique: 0 | 1
  origin: 'c' | 'u' | 'pk'
  partial: 0 | 1
}

interface SqliteForeignKey {
  id: number
  table: string
  from: string
  to: string
  on_delete: string
}

/** `'normal'::text` and `'0'::bigint` of PostgreSQL, `'normal'` and `false` of SQLite. */
const toValue = (literal: string): string => {
  const [, text] = /^'(.*)'(::\w+)?$/.exec(literal) ?? []
  return text ?? literal.replace(/^false$/, '0').replace(/^true$/, '1')
}

export const ofPostgres = async (sql: SQL): Promise<Catalogue> => {
  const tables: { name: string }[] = await sql`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
  const entries = tables.map(async ({ name }) => [name, await tableOfPostgres(sql, name)] as const)
  return Object.fromEntries(await Promise.all(entries))
}

const TYPES: Record<string, 'integer' | 'real' | 'text'> = {
  bigint: 'integer',
  'double precision': 'real',
  text: 'text',
}

const tableOfPostgres = async (sql: SQL, name: string): Promise<CatalogueTable> => {
  const columns: PostgresColumn[] = await sql`
    SELECT column_name, data_type, is_nullable, column_default, collation_name FROM information_schema.columns
    WHERE table_name = ${name} AND (data_type <> 'text' OR collation_name = 'C') ORDER BY ordinal_position`
  const indexes: PostgresIndex[] = await sql`
    SELECT relname AS name, indisunique, indisprimary, indpred IS NOT NULL AS is_partial,
      EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype = 'u') AS is_constraint,
      ARRAY(SELECT coalesce(attname, ${EXPRESSION}) FROM unnest(indkey) WITH ORDINALITY AS part(number, place)
        LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number ORDER BY place)::text[] AS columns
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = ${name}::regclass`
  const keys: { definition: string }[] = await sql`
    SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE contype = 'f' AND conrelid = ${name}::regclass`
  return {
    columns: Object.fromEntries(
      columns.map((column) => [
        column.column_name,
        {
          type: TYPES[column.data_type]!, // another type fails the comparison
          isNullable: column.is_nullable === 'YES',
          default: column.column_default === null ? null : toValue(column.column_default),
        },
      ]),
    ),
    primaryKey: indexes.find(({ indisprimary }) => indisprimary)?.columns ?? [],
    indexes: sorted(
      indexes
        .filter(({ indisprimary }) => !indisprimary)
        .map(({ name, indisunique, is_constraint, is_partial, columns }) => ({
          name: is_constraint ? null : name,
          isUnique: indisunique,
          columns,
          isPartial: is_partial,
        })),
    ),
    foreignKeys: sorted(keys.map(({ definition }) => toForeignKey(definition))),
  }
}

interface PostgresColumn {
  column_name: string
  data_type: string
  is_nullable: 'YES' | 'NO'
  column_default: string | null
}

interface PostgresIndex {
  name: string
  indisunique: boolean
  indisprimary: boolean
  is_constraint: boolean
  is_partial: boolean
  columns: string[]
}

/** `FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE` */
const toForeignKey = (definition: string): CatalogueTable['foreignKeys'][number] => {
  const [, from = '', table = '', to = '', onDelete = 'no action'] =
    /^FOREIGN KEY \((.*)\) REFERENCES (\w+)\((.*)\)(?: ON DELETE (.*))?$/.exec(definition) ?? []
  return { columns: from.split(', '), table, foreignColumns: to.split(', '), onDelete: onDelete.toLowerCase() }
}
