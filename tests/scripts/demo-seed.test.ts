/**
 * The demo's week: its totals match its rows, a seed gives the same week again, and its account states are consistent.
 */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addToUpstream, DEMO_ACCOUNTS } from '../../scripts/demo/pool.ts'
import { parseSeed, seedDemo } from '../../scripts/demo/seed.ts'
import { createUpstream } from '../support/upstream/app.ts'

const NOW = Date.UTC(2026, 10, 26, 15, 20)
const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const seeded = async (seed: number, requests: number, now = NOW): Promise<Database> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-demo-seed-'))
  folders.push(dataDir)
  const upstream = createUpstream()
  addToUpstream(upstream, now)
  await seedDemo({ dataDir, upstream, now, seed, requests })
  return new Database(join(dataDir, 'sluice.db'), { readonly: true })
}

const COLUMNS = ['count(*)', 'sum(input_tokens)', 'sum(cached_input_tokens)', 'sum(output_tokens)', 'sum(cost_micros)']

describe("the demo's week", () => {
  test.each([1, 7, 4_294_967_295])('has hourly, account and key totals equal to its rows (seed %d)', async (seed) => {
    using db = await seeded(seed, 1500)
    const [, ...sums] = COLUMNS
    const rows = db.query(`SELECT ${COLUMNS}, sum(status = 'error'), sum(status = 'cancelled') FROM requests`).values()
    const hours = db.query(`SELECT sum(requests), ${sums}, sum(errors), sum(cancelled) FROM request_hours`).values()
    expect(hours).toEqual(rows)
    const withoutStatuses = rows.map((row) => row.slice(0, COLUMNS.length))
    expect(db.query(`SELECT sum(requests), ${sums} FROM account_totals`).values()).toEqual(withoutStatuses)
    expect(db.query(`SELECT sum(request_count), ${sums} FROM api_keys`).values()).toEqual(withoutStatuses)
    expect(withoutStatuses[0]?.[0]).toBe(1500)
    expect(db.query('SELECT sum(attempts) FROM requests').values()).toEqual(
      db.query('SELECT count(*) FROM attempts').values(),
    )
    expect(db.query('PRAGMA foreign_key_check').all()).toEqual([])
  })

  test('is the same for the same seed and another for another', async () => {
    const getRows = async (seed: number) => {
      using db = await seeded(seed, 400)
      return db
        .query(
          `SELECT r.id, request_id, started_at, k.name, account_id, model, service_tier, status, error_code, r.input_tokens,
             r.cost_micros, total_ms FROM requests r JOIN api_keys k ON k.id = key_id ORDER BY r.id`,
        )
        .values()
    }
    const first = await getRows(3)
    expect(first).toHaveLength(400)
    expect(await getRows(3)).toEqual(first)
    expect(await getRows(4)).not.toEqual(first)
  })

  test('lies within seven days and has every account in its state and no request while it was not available', async () => {
    using db = await seeded(1, 3000)
    const [span] = db
      .query<{ first: number; last: number }, []>(
        'SELECT min(started_at) AS first, max(started_at + total_ms) AS last FROM requests',
      )
      .all()
    expect(span?.first).toBeGreaterThanOrEqual(NOW - 7 * 86_400_000)
    const states = db
      .query<{ email: string; status: string; last: number }, []>(
        `SELECT email, status, (SELECT max(started_at) FROM requests WHERE account_id = accounts.id) AS last
       FROM accounts ORDER BY email`,
      )
      .all()
    const expected = DEMO_ACCOUNTS.toSorted((a, b) => a.email.localeCompare(b.email))
    expect(states.map(({ email, status }) => [email, status])).toEqual(
      expected.map(({ email, status }) => [email, status]),
    )
    expect(new Set(states.map(({ status }) => status)).size).toBe(6)
    for (const [index, { last }] of states.entries()) expect(last).toBeLessThan(NOW - (expected[index]?.sinceMs ?? 0))
  })

  test('has nights, two incidents, and several models, keys and tiers', async () => {
    using db = await seeded(1, 4000)
    const distinct = (column: string) => db.query(`SELECT count(DISTINCT ${column}) FROM requests`).values()[0]?.[0]
    expect(distinct('key_id')).toBe(6)
    expect(distinct('model')).toBeGreaterThanOrEqual(4)
    expect(distinct('service_tier')).toBe(3)
    const bursts = db
      .query<{ code: string; n: number; minutes: number }, []>(
        `SELECT error_code AS code, count(*) AS n, (max(started_at) - min(started_at)) / 60000 AS minutes
       FROM requests WHERE error_code IN ('server_is_overloaded', 'upstream_unreachable') GROUP BY error_code ORDER BY code`,
      )
      .all()
    expect(bursts.map(({ code }) => code)).toEqual(['server_is_overloaded', 'upstream_unreachable'])
    for (const { n, minutes } of bursts) {
      expect(n).toBeGreaterThanOrEqual(15)
      expect(minutes).toBeLessThanOrEqual(40)
    }
    const hours = db
      .query<{ n: number }, []>('SELECT sum(requests) AS n FROM request_hours GROUP BY hour ORDER BY n')
      .all()
    expect(hours.at(-1)?.n ?? 0).toBeGreaterThan(4 * (hours[4]?.n ?? 0))
  })
})

describe('--seed', () => {
  test.each(['', '-1', '1.5', '4294967296', 'tuesday', '1e3', '0x10', ' 1'])('%p is rejected in a sentence', (text) => {
    expect(() => parseSeed(text)).toThrow(/^--seed must be a whole number from 0 to 4294967295, not "/)
  })

  test('accepts integers', () => {
    expect(['0', '1', '4294967295'].map(parseSeed)).toEqual([0, 1, 4_294_967_295])
  })
})
