/** Runs the statements of `db/statements.ts` on PostgreSQL. */
import { type Change, type Insertion, quoted, type Statement, type Value } from '../statements.ts'
import type { Client } from './connection.ts'
import { toPostgresNamed } from './statements.ts'

/**
 * Sends all `statements` and a COMMIT without waiting for answers. If one fails, PostgreSQL skips the rest and rolls
 * back. Rejects with the first error.
 */
export const commitStatements = async (client: Client, statements: Iterable<Statement>): Promise<void> => {
  const filled = [...statements].filter(({ rows }) => rows.length > 0)
  const sent = filled.flatMap((statement) =>
    'into' in statement ? insert(client, statement) : change(client, statement),
  )
  await allOf([...sent, send(client, 'COMMIT')])
}

/** Starts a query immediately. Bun otherwise starts queries when they are awaited, which could change their order. */
export const send = async <T = unknown>(client: Client, text: string, values: unknown[] = []): Promise<T> =>
  (await client.unsafe(text, values)) as T // as: rows have the type of their statement

/** Like Promise.all, but waits for all promises even if one rejects. */
export const allOf = async <T extends readonly unknown[]>(
  sent: T,
): Promise<{ -readonly [Place in keyof T]: Awaited<T[Place]> }> => {
  await Promise.allSettled(sent)
  return Promise.all(sent)
}

/**
 * Sends all rows as one JSON parameter, so the text is the same for any number of rows. Bun keeps a prepared statement
 * for each text and each combination of parameter types and nulls, and never closes one (1.4.5).
 */
const insert = (client: Client, { into, rows }: Insertion) => {
  const objects = rows.map((row) => {
    const object: Record<string, Value> = {}
    for (const [place, name] of into.columns.entries()) object[name] = row[place]!
    return object
  })
  return send(
    client,
    `INSERT INTO ${into.table} (${quoted(into.columns)}) SELECT ${quoted(into.columns)}
     FROM json_populate_recordset(CAST(NULL AS ${into.table}), CAST(CAST($1 AS text) AS json)) ${into.onConflict}`,
    [toJson(objects)],
  )
}

/** Values are sent as text and get the type of their column. */
const change = (client: Client, { sql, rows }: Change) => {
  const { text, names } = toPostgresNamed(sql)
  return rows.map((row) =>
    send(
      client,
      text,
      names.map((name) => toText(row[name] ?? null)),
    ),
  )
}

const toText = (value: Value): Value => (typeof value === 'number' ? String(value) : storable(value))

const toJson = (rows: readonly object[]): string => {
  const json = JSON.stringify(rows)
  return MAYBE_UNSTORABLE.test(json) ? JSON.stringify(rows, (_, value) => storable(value)) : json
}

const MAYBE_UNSTORABLE = /\\u(0000|d[89a-f])/

/** PostgreSQL text cannot contain U+0000 or half a surrogate pair. */
const storable = <T>(value: T): T | string =>
  typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\uFFFD') : value
