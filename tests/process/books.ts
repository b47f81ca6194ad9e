/** Reads the database of a server from outside and checks that its totals match its rows. */
import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'
import type { SQL } from 'bun'
import type { LimitType } from '../../db/schema/keys.ts'

interface LoggedRequest {
  requestId: string
  status: 'ok' | 'error' | 'cancelled'
  errorCode: string | null
  outputTokens: number | null
}

/** Every row of the request log. */
export const loggedRequests = (dataDir: string): LoggedRequest[] =>
  read(dataDir, (db) =>
    db
      .query<LoggedRequest, []>(
        'SELECT request_id AS requestId, status, error_code AS errorCode, output_tokens AS outputTokens FROM requests',
      )
      .all(),
  )

/** Key counters, limit counters and hourly totals against the rows, and SQLite's own check. */
export const expectTotalsMatchRows = (dataDir: string): void =>
  read(dataDir, (db) => {
    expect(db.query('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(db.query('PRAGMA foreign_key_check').all()).toEqual([])
    for (const [what, sql] of TOTALS) expect([what, db.query<Row, []>(sql).all().map(pairOf)]).toEqual([what, []])
  })

/** The same for a database of PostgreSQL. */
export const expectPostgresTotalsMatchRows = async (sql: SQL): Promise<void> => {
  for (const [what, query] of TOTALS)
    expect([what, ((await sql.unsafe(query)) as Row[]).map(pairOf)]).toEqual([what, []])
}

interface Row {
  counted: unknown
  stored: unknown
}

const pairOf = ({ counted, stored }: Row) => ({ counted: String(counted), stored: String(stored) })

const total = (column: string) => `coalesce(sum(${column}), 0)`

/** Selects what differs. */
const compare = (what: string, counted: string, stored: string): [string, string] => [
  what,
  `SELECT counted, stored FROM (SELECT (${counted}) AS counted, (${stored}) AS stored) AS pair WHERE counted <> stored`,
]

const SUMMED = ['input_tokens', 'output_tokens', 'cost_micros']

/** Requests are counted when they were served at all; tokens as charged. */
const LIMITED: Record<LimitType, string> = {
  input_tokens: total('input_tokens'),
  output_tokens: total('output_tokens'),
  total_tokens: total('input_tokens + output_tokens'),
  cost_usd: total('cost_micros'),
  requests: total('CASE WHEN input_tokens IS NOT NULL THEN 1 ELSE 0 END'),
}

const TOTALS: readonly [string, string][] = [
  compare(
    'requests of keys',
    'SELECT count(*) FROM requests WHERE key_id IS NOT NULL',
    `SELECT ${total('request_count')} FROM api_keys`,
  ),
  compare('requests of hours', 'SELECT count(*) FROM requests', `SELECT ${total('requests')} FROM request_hours`),
  compare('attempts', 'SELECT count(*) FROM attempts', `SELECT ${total('attempts')} FROM requests`),
  ...SUMMED.flatMap((column) => [
    compare(
      `${column} of keys`,
      `SELECT ${total(column)} FROM requests WHERE key_id IS NOT NULL`,
      `SELECT ${total(column)} FROM api_keys`,
    ),
    compare(
      `${column} of hours`,
      `SELECT ${total(column)} FROM requests`,
      `SELECT ${total(column)} FROM request_hours`,
    ),
  ]),
  ...Object.entries(LIMITED).map(([type, column]): [string, string] => [
    `limits by ${type}`,
    `SELECT counted, stored FROM (
       SELECT (SELECT ${column} FROM requests WHERE requests.key_id = api_key_limits.key_id) AS counted, current_value AS stored
       FROM api_key_limits WHERE limit_type = '${type}') AS pair WHERE counted <> stored`,
  ]),
]

const read = <T>(dataDir: string, look: (db: Database) => T): T => {
  const db = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  try {
    return look(db)
  } finally {
    db.close()
  }
}
