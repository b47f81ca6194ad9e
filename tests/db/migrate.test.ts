/** Migrations run once, in order, whole or not at all, and a database that does not match is rejected. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { breakingMigrations, migrate } from '../../db/migrate.ts'
import type { Migration } from '../../db/migration.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'

const INIT: Migration = {
  name: '0001_init',
  sql: 'CREATE TABLE a (id TEXT PRIMARY KEY);\n--> statement-breakpoint\nCREATE TABLE b (a TEXT REFERENCES a ON DELETE CASCADE);',
}
const SECOND: Migration = { name: '0002_more', sql: "INSERT INTO a VALUES ('x');--> statement-breakpoint\n" }

const aDatabase = () => {
  const sqlite = new Database(':memory:', { strict: true })
  sqlite.run('PRAGMA foreign_keys = ON')
  return sqlite
}
const names = (sqlite: ReturnType<typeof aDatabase>) =>
  sqlite.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all()

test('applies in name order, once, and remembers when', () => {
  const sqlite = aDatabase()
  expect(migrate(sqlite, [SECOND, INIT], 7)).toEqual(['0001_init', '0002_more'])
  expect(migrate(sqlite, [INIT, SECOND], 8)).toEqual([])
  expect(sqlite.query('SELECT name, applied_at FROM migrations ORDER BY name').all()).toEqual([
    { name: '0001_init', applied_at: 7 },
    { name: '0002_more', applied_at: 7 },
  ])
  expect(sqlite.query('SELECT id FROM a').all()).toEqual([{ id: 'x' }])
})

test('a failing migration leaves nothing of itself and keeps the earlier ones', () => {
  const sqlite = aDatabase()
  const bad = { name: '0002_bad', sql: 'CREATE TABLE c (x);--> statement-breakpoint\nCREATE TABLE a (x);' }
  expect(() => migrate(sqlite, [INIT, bad], 1)).toThrow('0002_bad failed')
  expect(names(sqlite).map(({ name }) => name)).toEqual(['a', 'b', 'migrations'])
  expect(migrate(sqlite, [INIT, SECOND], 2)).toEqual(['0002_more'])
})

test('an edited migration is rejected, other line endings are not', () => {
  const sqlite = aDatabase()
  migrate(sqlite, [INIT], 1)
  expect(migrate(sqlite, [{ ...INIT, sql: INIT.sql.replaceAll('\n', '\r\n') }], 1)).toEqual([])
  expect(() => migrate(sqlite, [{ ...INIT, sql: `${INIT.sql} ` }], 1)).toThrow('0001_init was edited')
})

test('existing accounts have their hourly totals', () => {
  const sqlite = aDatabase()
  const before = MIGRATIONS.filter(({ name }) => name < '0005')
  migrate(sqlite, before, 1)
  sqlite.run(`INSERT INTO accounts (id, email, plan_type, access_token_sealed, refresh_token_sealed, id_token_sealed,
    last_refresh_at, created_at) VALUES ('a', 'a', 'plus', '', '', '', 0, 0), ('idle', 'b', 'plus', '', '', '', 0, 0)`)
  for (const [hour, account] of [
    [0, 'a'],
    [1, 'a'],
    [1, 'gone'],
    [1, ''],
  ] as const)
    anHour(sqlite, hour, account)
  migrate(sqlite, MIGRATIONS, 2)
  expect(sqlite.query('SELECT * FROM account_totals').all()).toEqual([
    { account_id: 'a', requests: 4, input_tokens: 200, cached_input_tokens: 80, output_tokens: 20, cost_micros: 14 },
  ])
})

test('limits in credits, which never had an effect, are deleted and other limits stay', () => {
  const sqlite = aDatabase()
  const before = MIGRATIONS.filter(({ name }) => name < '0016')
  migrate(sqlite, before, 1)
  sqlite.run("INSERT INTO api_keys (id, name, key_hash, key_prefix, created_at) VALUES ('k', 'k', 'h', 'p', 0)")
  for (const type of ['credits', 'requests', 'cost_usd'])
    sqlite.run(`INSERT INTO api_key_limits (id, key_id, limit_type, limit_window, max_value, reset_at)
      VALUES ('${type}', 'k', '${type}', 'daily', 5, 0)`)
  migrate(sqlite, MIGRATIONS, 2)
  expect(sqlite.query('SELECT id FROM api_key_limits ORDER BY id').values()).toEqual([['cost_usd'], ['requests']])
})

test('existing daily totals belong to an unknown client', () => {
  const sqlite = aDatabase()
  migrate(
    sqlite,
    MIGRATIONS.filter(({ name }) => name < '0013'),
    1,
  )
  for (const [length, start, id, requests] of [
    [24, 0, 'strong', 2],
    [24, 0, 'weak', 3],
    [24, 86_400_000, 'weak', 5],
    [768, 0, 'weak', 7],
  ] as const)
    for (const dimension of ['model', 'account'])
      sqlite.run(`INSERT INTO request_spans VALUES (?, ?, ?, ?, ?, 1, 0, 10, 5, 1, 100, 0, 0)`, [
        length,
        dimension,
        start,
        id,
        requests,
      ])
  migrate(sqlite, MIGRATIONS, 2)
  const spans = sqlite.query("SELECT span_hours, start, id, requests FROM request_spans WHERE dimension = 'client'")
  expect(spans.values()).toEqual([
    [24, 0, '', 5],
    [24, 86_400_000, '', 5],
    [768, 0, '', 7],
  ])
})

test('existing hours are kept, and a report reads them in one piece', () => {
  const sqlite = aDatabase()
  const hours = () => sqlite.query('SELECT * FROM request_hours ORDER BY hour, account_id').all()
  const before = MIGRATIONS.filter(({ name }) => name < '0007')
  migrate(sqlite, before, 1)
  for (const hour of [2, 1, 0]) for (const account of ['b', 'a']) anHour(sqlite, hour, account)
  const kept = hours()
  migrate(sqlite, MIGRATIONS, 2)
  expect(kept).toHaveLength(6)
  expect(hours()).toEqual(kept.map((hour) => ({ ...(hour as object), client: '', source_id: '', ...NO_MOVES }))) // as: a row
  const indexes = sqlite.query<{ name: string }, []>(
    "SELECT name FROM pragma_index_list('request_hours') WHERE origin = 'c'",
  )
  expect(
    indexes
      .all()
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(['request_hours_account', 'request_hours_key'])
  const plan = sqlite.query<{ detail: string }, []>(
    "EXPLAIN QUERY PLAN SELECT * FROM request_hours WHERE hour >= 1 AND hour < 2 AND model = 'm'",
  )
  expect(plan.all().map(({ detail }) => detail)).toEqual(['SEARCH request_hours USING PRIMARY KEY (hour>? AND hour<?)'])
})

test('a database from a newer version and a missing past migration are rejected', () => {
  const sqlite = aDatabase()
  migrate(sqlite, [INIT, SECOND], 1)
  expect(() => migrate(sqlite, [INIT], 1)).toThrow('newer version (it has 0002_more)')
  const between = { name: '0001b_late', sql: 'CREATE TABLE late (x);' }
  expect(() => migrate(sqlite, [INIT, between, SECOND], 1)).toThrow('missing before 0002_more')
  expect(names(sqlite).map(({ name }) => name)).not.toContain('late')
})

test('rebuilding a table keeps the rows that reference it, and foreign keys are on again afterwards', () => {
  const sqlite = aDatabase()
  migrate(sqlite, [INIT, SECOND], 1)
  sqlite.run("INSERT INTO b VALUES ('x')")
  const rebuild = {
    name: '0003_rebuild',
    sql: [
      'CREATE TABLE new_a (id TEXT PRIMARY KEY, n INTEGER);',
      'INSERT INTO new_a SELECT id, 1 FROM a;',
      'DROP TABLE a;',
      'ALTER TABLE new_a RENAME TO a;',
    ].join('--> statement-breakpoint\n'),
  }
  migrate(sqlite, [INIT, SECOND, rebuild], 2)
  expect(sqlite.query('SELECT count(*) AS n FROM b').get()).toEqual({ n: 1 })
  expect(() => sqlite.run("INSERT INTO b VALUES ('nobody')")).toThrow('FOREIGN KEY')
})

test('a migration that breaks a foreign key is rolled back', () => {
  const sqlite = aDatabase()
  const bad = { name: '0002_bad', sql: "INSERT INTO b VALUES ('nobody');" }
  expect(() => migrate(sqlite, [INIT, bad], 1)).toThrow('broken foreign key')
  expect(sqlite.query('SELECT * FROM b').all()).toEqual([])
  expect(sqlite.query('PRAGMA foreign_keys').get()).toEqual({ foreign_keys: 1 })
})

const NO_MOVES = { moves: 0, avoidable_moves: 0, moved_tokens: 0 }
const anHour = (sqlite: Database, hour: number, account: string) =>
  sqlite.run(
    `INSERT INTO request_hours (hour, account_id, key_id, model, requests, errors, cancelled, input_tokens,
    cached_input_tokens, output_tokens, cost_micros, unpriced) VALUES (?, ?, '', '', 2, 1, 0, 100, 40, 10, 7, 0)`,
    [hour, account],
  )

test.each([
  ['a new table with its indexes', 'CREATE TABLE c (x);--> statement-breakpoint\nCREATE UNIQUE INDEX i ON c (x);', []],
  ['a new column', '-- why\nALTER TABLE `a` ADD `n` integer;--> statement-breakpoint\nCREATE INDEX j ON a (n);', []],
  ['a dropped table', 'DROP TABLE b;', ['0002_next']],
  ['a new name', 'ALTER TABLE b RENAME COLUMN a TO c;', ['0002_next']],
  ['a rebuilt table', 'CREATE TABLE new (x);--> statement-breakpoint\nDROP TABLE a;', ['0002_next']],
  ['changed rows', "UPDATE a SET id = 'y';", ['0002_next']],
  ['a unique index on a table in use', 'CREATE UNIQUE INDEX i ON a (id);', ['0002_next']],
  ['a trigger', 'CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END;', ['0002_next']],
])('beside a server of the release before, %s', (_, sql, breaking) => {
  const sqlite = aDatabase()
  const both = [INIT, { name: '0002_next', sql }]
  expect(breakingMigrations(sqlite, both)).toEqual([])
  migrate(sqlite, [INIT], 1)
  expect(breakingMigrations(sqlite, both)).toEqual(breaking)
  migrate(sqlite, both, 2)
  expect(breakingMigrations(sqlite, both)).toEqual([])
})
