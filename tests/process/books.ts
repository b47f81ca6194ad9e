/** Reads the database of a server from outside and checks that its totals match its rows. */
import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'

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
    const fromRows = db.query<Sums, []>(`SELECT ${SUMS} FROM requests WHERE key_id IS NOT NULL`).get()
    const fromKeys = db.query<Sums, []>(`SELECT ${KEY_SUMS} FROM api_keys`).get()
    expect(fromKeys).toEqual(fromRows)
    const fromAll = db.query<Sums, []>(`SELECT ${SUMS} FROM requests`).get()
    const fromHours = db.query<Sums, []>(`SELECT ${HOUR_SUMS} FROM request_hours`).get()
    expect(fromHours).toEqual(fromAll)
    expectLimits(db)
    const attempts = db.query<{ n: number }, []>('SELECT count(*) AS n FROM attempts').get()
    const claimed = db.query<{ n: number }, []>('SELECT coalesce(sum(attempts), 0) AS n FROM requests').get()
    expect(attempts).toEqual(claimed)
  })

interface Sums {
  requests: number
  input: number
  output: number
  cost: number
}

const total = (column: string) => `coalesce(sum(${column}), 0)`
const sums = (requests: string) =>
  `${requests} AS requests, ${total('input_tokens')} AS input, ${total('output_tokens')} AS output, ${total('cost_micros')} AS cost`
const SUMS = sums('count(*)')
const KEY_SUMS = sums(total('request_count'))
const HOUR_SUMS = sums(total('requests'))

/** Requests are counted when they were served at all; tokens as charged. */
const expectLimits = (db: Database): void => {
  const limits = db
    .query<{ keyId: string; type: string; current: number }, []>(
      'SELECT key_id AS keyId, limit_type AS type, current_value AS current FROM api_key_limits',
    )
    .all()
  for (const { keyId, type, current } of limits) {
    const column = LIMITED[type] ?? total('input_tokens IS NOT NULL')
    const row = db.query<{ sum: number }, [string]>(`SELECT ${column} AS sum FROM requests WHERE key_id = ?`).get(keyId)
    expect([type, current]).toEqual([type, row?.sum ?? 0])
  }
}

const LIMITED: Record<string, string> = {
  total_tokens: total('input_tokens + output_tokens'),
  cost_usd: total('cost_micros'),
}

const read = <T>(dataDir: string, look: (db: Database) => T): T => {
  const db = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  try {
    return look(db)
  } finally {
    db.close()
  }
}
