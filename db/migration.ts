/** Migrations, and the check that a database has only those this program knows. Used for both engines. */
import { createHash } from 'node:crypto'

export interface Migration {
  /** Such as `0001_init`. Migrations are ordered by name and never renamed after release. */
  name: string
  /** Statements, separated by `--> statement-breakpoint` as drizzle-kit writes them. */
  sql: string
  /** The statements for PostgreSQL if those for SQLite cannot be translated, such as those that rebuild a table. */
  postgres?: string
}

/** Hash by name. */
export type Applied = ReadonlyMap<string, string>

export const inOrder = (migrations: readonly Migration[]): Migration[] =>
  migrations.toSorted((a, b) => (a.name < b.name ? -1 : 1))

/** Why a database with the migrations in `applied` cannot be migrated by this program, or null. */
export function getProblem(ordered: readonly Migration[], applied: Applied): string | null {
  const known = new Set(ordered.map(({ name }) => name))
  const unknown = [...applied.keys()].filter((name) => !known.has(name))
  if (unknown.length > 0)
    return `The database was written by a newer version (it has ${unknown.join(', ')}). Update Sluice.`
  let isBehind = false
  for (const migration of ordered) {
    const hash = applied.get(migration.name)
    if (hash === undefined) isBehind = true
    else if (hash !== getHash(migration)) return `Migration ${migration.name} was edited after it was applied.`
    else if (isBehind) return `A migration is missing before ${migration.name}, which is already applied.`
  }
  return null
}

/** Ignores line endings, which a checkout may change. */
export function getHash({ sql }: Migration): string {
  return createHash('sha256').update(sql.replaceAll('\r\n', '\n')).digest('hex')
}

/** The statements of a migration, without comments and empty statements. */
export const getStatements = (sql: string): string[] =>
  sql
    .split('--> statement-breakpoint')
    .map((text) => text.replaceAll(/^\s*--.*$/gm, '').trim())
    .filter((text) => text !== '')

/**
 * The missing migrations that would break a running program of an older version, such as one that drops a column.
 * `textOf` returns the statements for the engine.
 */
export const getBreaking = (
  migrations: readonly Migration[],
  applied: Applied,
  textOf: (migration: Migration) => string = ({ sql }) => sql,
): string[] =>
  applied.size === 0
    ? []
    : migrations.filter((one) => !applied.has(one.name) && !isAdditive(textOf(one))).map(({ name }) => name)

const ADDS = /^(CREATE (TABLE|INDEX|UNIQUE INDEX)|ALTER TABLE \S+ ADD)\b/i

function isAdditive(sql: string): boolean {
  const statements = getStatements(sql)
  const tables = statements.map((text) => /^CREATE TABLE (\S+)/i.exec(text)?.[1])
  // A new unique index on an existing table could reject what the older program writes.
  const restricts = (text: string) => {
    const table = /^CREATE UNIQUE INDEX \S+ ON (\S+)/i.exec(text)?.[1]
    return table !== undefined && !tables.includes(table)
  }
  return statements.every((text) => ADDS.test(text) && !restricts(text))
}
