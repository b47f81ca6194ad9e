/** What the jobs keep and delete: backups, usage samples, events and explanations of old requests. */
import { describe, expect, test } from 'bun:test'
import { commit, type Tx } from '../../db/commit.ts'
import { accounts, affinity } from '../../db/schema/accounts.ts'
import { accountEvents, usageSamples } from '../../db/schema/history.ts'
import { rejectedClients } from '../../db/schema/rejections.ts'
import { attempts, requests } from '../../db/schema/requests.ts'
import { type BackupJobDeps, backUp } from '../../src/jobs/backups.ts'
import { retain } from '../../src/jobs/retention.ts'
import { sampleUsage } from '../../src/jobs/samples.ts'
import type { Log } from '../../src/lib/log.ts'
import { recordAccountEvent } from '../../src/model/accounts/account-events.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import { trimConsidered } from '../../src/model/log/trim-candidates.ts'
import type { Backup } from '../../src/ops/backups.ts'
import { DEFAULTS } from '../../src/settings/schema.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const never = new AbortController().signal
const noLog: Log = {
  error() {},
  warn() {},
  info() {},
  debug() {},
  writes: () => false,
}

const withAccounts = (...ids: string[]) => {
  const opened = testDb()
  const tokens = { accessTokenSealed: 'a', refreshTokenSealed: 'r', idTokenSealed: 'i' }
  commit(opened.db, (tx) => {
    for (const id of ids)
      tx.insert(accounts)
        .values({ id, email: id, planType: 'plus', lastRefreshAt: 0, createdAt: 0, ...tokens })
        .run()
  })
  return opened
}

describe('backups', () => {
  const setUp = (ages: readonly number[], kind: Backup['kind'] = 'scheduled') => {
    const clock = new ManualClock()
    const kept: number[] = []
    const held: Backup[] = ages.map((age) => ({ name: `b${age}`, bytes: 1, at: clock.now() - age, kind }))
    const made: Backup[] = []
    const backups: BackupJobDeps['backups'] = {
      list: async () => held,
      make: async () => {
        made.push({ name: 'new', bytes: 1, at: clock.now(), kind: 'scheduled' })
        return made[0]!
      },
      keepNewest: async (count) => {
        kept.push(count)
        return []
      },
    }
    const run = (backupIntervalHours: number) =>
      backUp(
        { backups, clock, log: noLog, settings: { current: () => ({ backupIntervalHours, backupKeep: 3 }) } },
        never,
      )
    return { run, made, kept, backups }
  }

  test.each([
    ['there is no backup', [], 24, 1],
    ['the newest is old enough', [24 * HOUR_MS, 48 * HOUR_MS], 24, 1],
    ['the newest is younger', [23 * HOUR_MS], 24, 0],
    ['one is dated in the future, and the newest other is old enough', [-9 * HOUR_MS, 24 * HOUR_MS], 24, 1],
    ['it is disabled', [], 0, 0],
  ] as const)('when %s', async (_, ages, every, count) => {
    const { run, made, kept } = setUp(ages)
    await run(every)
    expect([made.length, kept]).toEqual([count, count === 1 ? [3] : []])
  })

  test('a manual backup does not delay the scheduled one', async () => {
    const { run, made } = setUp([HOUR_MS], 'manual')
    await run(24)
    expect(made).toHaveLength(1)
  })

  test('a failed backup removes none', async () => {
    const { run, backups, kept } = setUp([])
    backups.make = () => Promise.reject(new Error('disk full'))
    await expect(run(24)).rejects.toThrow('disk full')
    expect(kept).toEqual([])
  })
})

describe('usage samples', () => {
  const START = Date.UTC(2026, 0, 1)
  const seen = (at: number, used: number): UsageSnapshot => ({
    at,
    windows: {
      fiveHour: { usedPercent: used, windowMinutes: 300, resetAt: null },
      weekly: { usedPercent: used + 1, windowMinutes: 10_080, resetAt: at + 1 },
      monthly: { usedPercent: used + 2, windowMinutes: 43_200, resetAt: null },
    },
    credits: null,
    planType: null,
  })

  test('the last of each hour is kept, in the hour it was seen; hours without one are gaps', () => {
    const { db, sqlite } = withAccounts('a', 'b')
    const a: { id: string; usage: UsageSnapshot | null } = { id: 'a', usage: null }
    const deps = { db, pool: { all: () => [a, { id: 'b', usage: null }, { id: 'gone', usage: seen(START, 1) }] } }
    const written = new Map<string, number>()
    for (const [minutes, used] of [
      [1, 10],
      [58, 20],
      [61, 30],
      [200, 40],
    ] as const) {
      a.usage = seen(START + minutes * 60_000, used)
      sampleUsage(deps, written)
      const before = sqlite.query('SELECT total_changes() AS n').get()
      sampleUsage(deps, written)
      expect(sqlite.query('SELECT total_changes() AS n').get()).toEqual(before)
    }
    expect(db.select().from(usageSamples).all()).toEqual([
      { accountId: 'a', hour: START, fiveHourUsed: 20, weeklyUsed: 21, monthlyUsed: 22 },
      { accountId: 'a', hour: START + HOUR_MS, fiveHourUsed: 30, weeklyUsed: 31, monthlyUsed: 32 },
      { accountId: 'a', hour: START + 3 * HOUR_MS, fiveHourUsed: 40, weeklyUsed: 41, monthlyUsed: 42 },
    ])
  })

  test('are all deleted with their accounts', () => {
    const { db } = withAccounts()
    sampleUsage({ db, pool: { all: () => [{ id: 'gone', usage: seen(START, 1) }] } }, new Map())
    expect(db.select().from(usageSamples).all()).toEqual([])
  })
})

describe('retention', () => {
  const setUp = () => {
    const opened = withAccounts('a')
    const clock = new ManualClock()
    const run = async (settings: Partial<typeof DEFAULTS>) => {
      const running = retain(
        { db: opened.db, clock, settings: { current: () => ({ ...DEFAULTS, ...settings }) } },
        never,
      )
      await clock.advance('5m')
      await running
    }
    return { ...opened, clock, run }
  }

  test('forgets file owners 30 minutes after their last use, and keeps the owners of conversations', async () => {
    const { db, clock, run } = setUp()
    const row = (kind: 'file' | 'conversation', minutes: number) => ({
      kind,
      keyHash: `${kind} ${minutes}`,
      accountId: 'a',
      usedAt: clock.now() - minutes * 60_000,
    })
    const rows = [row('file', 29), row('file', 31), row('file', 5000), row('conversation', 31)]
    commit(db, (tx) => tx.insert(affinity).values(rows).run())
    await run({})
    expect(
      db
        .select()
        .from(affinity)
        .all()
        .map(({ keyHash }) => keyHash)
        .toSorted(),
    ).toEqual(['conversation 31', 'file 29'])
  })

  test('requests are deleted 100 at a time, and checkpointed in small pieces', async () => {
    const { db, sqlite, clock } = setUp()
    sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 400)
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
      SELECT 'r' || n, 'r', n, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n`)
    const look = (): unknown[] => [
      sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM requests').get()?.n,
      sqlite.query<{ wal_autocheckpoint: number }, []>('PRAGMA wal_autocheckpoint').get()?.wal_autocheckpoint,
    ]
    const seen = [look()]
    const current = () => ({ ...DEFAULTS, requestLogRetentionDays: 1 })
    const running = retain({ db, clock, settings: { current } }, never)
    for (let step = 0; step < 3; step++) {
      seen.push(look())
      await clock.advance(50)
    }
    await clock.advance('1m')
    await running
    expect([...seen, look()]).toEqual([
      [400, 1000],
      [300, 200],
      [200, 200],
      [100, 200],
      [0, 1000],
    ])
  })

  test('runs one step after another, with a pause after each', async () => {
    const { db, clock } = setUp()
    const current = () => ({ ...DEFAULTS, requestLogRetentionDays: 1, auditRetentionDays: 1 })
    const running = retain({ db, clock, settings: { current } }, never)
    const waiting: number[] = []
    for (; clock.pending > 0; await clock.advance(50)) waiting.push(clock.pending)
    await running
    expect(waiting).toEqual(Array(10).fill(1))
  })

  test('events are deleted with the log, samples after 35 days', async () => {
    const { db, clock, run } = setUp()
    const now = clock.now()
    commit(db, (tx) => {
      for (let i = 0; i < 1200; i++)
        recordAccountEvent(tx, { accountId: 'a', at: now - 9 * DAY_MS, kind: 'state', result: 'active', detail: null })
      recordAccountEvent(tx, { accountId: 'a', at: now - DAY_MS, kind: 'token', result: 'renewed', detail: null })
      for (const days of [1, 34, 36, 99])
        tx.insert(usageSamples)
          .values({ accountId: 'a', hour: now - days * DAY_MS, fiveHourUsed: 1 })
          .run()
    })
    await run({ requestLogRetentionDays: 0 })
    expect(db.select().from(accountEvents).all()).toHaveLength(1201)
    await run({ requestLogRetentionDays: 7 })
    expect(db.select().from(accountEvents).all()).toMatchObject([{ kind: 'token', result: 'renewed' }])
    expect(
      db
        .select()
        .from(usageSamples)
        .all()
        .map(({ hour }) => (now - hour) / DAY_MS)
        .sort(),
    ).toEqual([1, 34])
  })

  test('rejected clients are deleted with the log', async () => {
    const { db, clock, run } = setUp()
    const now = clock.now() // which advances while it runs
    const days = (n: number) => now - n * DAY_MS
    const facts = { client: '192.0.2.1', reason: 'unknown_key', count: 1, route: '/v1/models' } as const
    commit(db, (tx) => {
      for (let i = 0; i < 1200; i++)
        tx.insert(rejectedClients)
          .values({ ...facts, minute: days(9) - i * 60_000, lastAt: days(9) })
          .run()
      tx.insert(rejectedClients)
        .values({ ...facts, minute: days(1), lastAt: days(1) })
        .run()
    })
    await run({ requestLogRetentionDays: 0 })
    expect(db.select().from(rejectedClients).all()).toHaveLength(1201)
    await run({ requestLogRetentionDays: 7 })
    expect(db.select().from(rejectedClients).all()).toMatchObject([{ minute: days(1) }])
  })

  test('events written while the clock was ahead do not keep others from deletion', async () => {
    const { db, clock, run } = setUp()
    const now = clock.now()
    const note = (tx: Tx, at: number) =>
      recordAccountEvent(tx, { accountId: 'a', at, kind: 'token', result: 'renewed', detail: null })
    commit(db, (tx) => {
      for (let i = 0; i < 600; i++) note(tx, now + 999 * DAY_MS)
      for (let i = 0; i < 1200; i++) note(tx, now - 9 * DAY_MS)
      note(tx, now - DAY_MS)
    })
    await run({ requestLogRetentionDays: 7 })
    const left = db.select().from(accountEvents).all()
    expect(left.map(({ at }) => (at - now) / DAY_MS)).toEqual([...Array(600).fill(999), -1])
  })

  test('an event of a deleted account is ignored', () => {
    const { db } = setUp()
    commit(db, (tx) =>
      recordAccountEvent(tx, { accountId: 'gone', at: 1, kind: 'import', result: 'added', detail: null }),
    )
    expect(db.select().from(accountEvents).all()).toEqual([])
  })
})

describe('explanations of old requests', () => {
  const setUp = (statuses: readonly ('ok' | 'error')[]) => {
    const opened = withAccounts('a')
    commit(opened.db, (tx) => {
      for (const [i, status] of statuses.entries()) addTurn(tx, i, status)
    })
    const explained = () =>
      opened.db
        .select()
        .from(attempts)
        .all()
        .filter(({ considered }) => considered !== null)
        .map(({ requestRowId, n }) => `${requestRowId}.${n}`)
    const trim = (keep: number, limit = 2) => commit(opened.db, (tx) => trimConsidered(tx, { keep, limit }))
    return { ...opened, explained, trim }
  }
  type Tx = Parameters<Parameters<typeof commit>[1]>[0]
  /** A turn has a first attempt that failed when its number is odd. */
  const addTurn = (tx: Tx, i: number, status: 'ok' | 'error') => {
    const id = `r${i}`
    const fixed = { route: '/v1/responses', kind: 'normal', transport: 'http', httpStatus: 200, totalMs: 1 } as const
    tx.insert(requests)
      .values({ id, requestId: id, startedAt: 1000 + i, status, attempts: 1, ...fixed })
      .run()
    const outcomes = i % 2 === 1 ? (['failed', 'ok'] as const) : (['ok'] as const)
    for (const [n, outcome] of outcomes.entries())
      tx.insert(attempts)
        .values({ requestRowId: id, n, startedAt: i, durationMs: 1, outcome, considered: [{ id: 'a' }] })
        .run()
  }

  test('are deleted in batches, except those of failures and the newest', () => {
    const { trim, explained, db } = setUp(['ok', 'ok', 'error', 'ok', 'ok', 'ok'])
    expect([trim(2), trim(2), trim(2)]).toEqual([2, 2, 0])
    expect(explained().toSorted()).toEqual(['r1.0', 'r2.0', 'r3.0', 'r4.0', 'r5.0', 'r5.1'])
    commit(db, (tx) => addTurn(tx, 6, 'ok'))
    expect([trim(2), trim(2)]).toEqual([1, 0])
    expect(explained()).not.toContain('r4.0')
  })

  test('are deleted twenty requests at a time in a large log, with a pause between', async () => {
    const { db, sqlite } = setUp([])
    const turns = 10_050
    const numbers = `WITH RECURSIVE turn(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM turn WHERE i < ${turns})`
    sqlite.run(`${numbers} INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status,
      attempts, total_ms, moved) SELECT printf('r%06d', i), i, i, '/', 'normal', 'http', 'ok', 200, 1, 1, 0 FROM turn`)
    sqlite.run(`${numbers} INSERT INTO attempts (request_row_id, n, started_at, duration_ms, outcome, considered)
      SELECT printf('r%06d', i), 0, i, 1, 'ok', '[]' FROM turn`)
    const left = () =>
      sqlite.query<{ n: number }, []>('SELECT count(considered) AS n FROM attempts').get()!.n - (turns - 50)
    const clock = new ManualClock()
    const current = () => ({ ...DEFAULTS, requestLogRetentionDays: 0 })
    const running = retain({ db, clock, settings: { current } }, never)
    const seen = [left()]
    for (let step = 0; step < 3; step++) {
      await clock.advance(50)
      seen.push(left())
    }
    await clock.advance('1m')
    await running
    expect(seen).toEqual([30, 10, 0, 0])
  })

  test('are not searched while there are few', () => {
    const { trim, explained } = setUp(['ok', 'ok'])
    expect(trim(2)).toBe(0)
    expect(explained()).toHaveLength(3)
  })
})
