/** What is rewritten for PostgreSQL, or defined there because it lacks it, answers as in SQLite. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { FUNCTIONS } from '../../../db/postgres/functions.ts'
import { toPostgres } from '../../../db/postgres/statements.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'

describe('a statement in the form of PostgreSQL', () => {
  test.each([
    ['SELECT ?, ? FROM a WHERE b = ?', 'SELECT $1, $2 FROM a WHERE b = $3'],
    ["SELECT '?', 'it''s ?', \"a?\", ?", "SELECT '?', 'it''s ?', \"a?\", $1"],
    ['UPDATE a SET b = $new WHERE c = $old AND d < $new', 'UPDATE a SET b = $1 WHERE c = $2 AND d < $1'],
    ['on conflict ("facts"."name") do update', 'on conflict ("name") do update'],
    ['on conflict ("a"."b","a"."c") do nothing', 'on conflict ("b","c") do nothing'],
    ['ON CONFLICT (a, b) DO NOTHING', 'ON CONFLICT (a, b) DO NOTHING'],
    [
      'insert into a values (null, ?, null), (null, ?, null)',
      'insert into a values (DEFAULT, $1, null), (DEFAULT, $2, null)',
    ],
    ["a like ? OR b NOT LIKE ? ESCAPE '\\' OR c = 'like'", "a ILIKE $1 OR b NOT ILIKE $2 ESCAPE '\\' OR c = 'like'"],
  ])('%s', (ours, theirs) => {
    expect(toPostgres(ours)).toBe(theirs)
  })
})

describe.skipIf(MAY_SKIP)('PostgreSQL', () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await startPostgres()
    for (const statement of FUNCTIONS) await server.sql.unsafe(statement)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test.each([
    "SELECT instr('abcb', 'b'), instr('abc', ''), instr('abc', 'z'), instr(NULL, 'a')",
    `SELECT key, value FROM json_each('["b", "a", [1, 2], {"a": "b"}, 3, null]') ORDER BY key`,
    "SELECT count(*) FROM json_each('[]')",
    'SELECT count(*) FROM json_each(NULL)',
    `SELECT json_extract('{"a": "x", "b": 7, "c": null}', '$.a'), CAST(json_extract('{"b": 7}', '$.b') AS BIGINT),
       json_extract('{"c": null}', '$.c'), json_extract('{}', '$.c'), json_extract(NULL, '$.c')`,
    "SELECT CAST(json_extract('[5, 1790000000000]', '$[1]') AS BIGINT), json_extract('[5]', '$[1]')",
    `SELECT CAST(json_extract(json_set('{"1":2}', '$."12"', 5), '$."12"') AS BIGINT), json_set('{}', '$."1"', 5) LIKE '%:%5}'`,
    `SELECT json_remove('{"1":2,"12":5}', '$."12"') LIKE '{"1":%2}', json_remove('{}', '$."1"')`,
    `SELECT CAST(json_extract(json_group_array(value), '$[1]') AS BIGINT) FROM json_each('[7, 8, 9]')`,
    "SELECT json_group_array(value) FROM json_each('[]')",
    "SELECT 'aBc' LIKE 'AbC', 'a_c' LIKE 'a\\_c' ESCAPE '\\', 'abc' LIKE 'a\\_c' ESCAPE '\\', 'Ä' COLLATE \"C\" LIKE 'ä'",
    'SELECT 7 / 2, -7 / 2, -7 % 4, 7 / 2.0',
    'SELECT CASE WHEN (1, 2) > (1, 1) THEN 1 ELSE 0 END, NULL IS DISTINCT FROM 1',
  ])('answers as SQLite does: %s', async (statement) => {
    using sqlite = new Database(':memory:')
    const ours = sqlite.query(statement.replace(' COLLATE "C"', '')).values()
    const theirs = await server.sql.unsafe(toPostgres(statement)).values()
    expect(theirs.map((row: unknown[]) => row.map(plain))).toEqual(ours.map((row) => row.map(plain)))
  })
})

/** Without differences that drizzle and the driver take away: spaces in JSON, decimals, truth values as numbers. */
const plain = (value: unknown): unknown => {
  if (typeof value === 'boolean') return Number(value)
  try {
    return JSON.parse(String(value))
  } catch {
    return value
  }
}
