/** What the jobs keep and delete: backups, usage samples, events and explanations of old requests. */
import { describe, expect, test } from 'bun:test'
import { commit, type Tx } from '../../db/commit.ts'
import { accounts, affinity } from '../../db/schema/accounts.ts'
import { accountEvents, usageSamples } from '../../db/schema/history.ts'
import { meterReadings } from '../../db/schema/meter.ts'
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

const withAccounts = async (...ids: string[]) => {
  const opened = testDb()
  const tokens = { accessTokenSealed: 'a', refreshTokenSealed: 'r', idTokenSealed: 'i' }
  await commit(opened.db, async (tx) => {
    for (const id of ids)
      await tx
        .insert(accounts)
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

  test('the last of each hour is kept, in the hour it was seen; hours without one are gaps', async () => {
    const { db, sqlite } = await withAccounts('a', 'b')
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
      await sampleUsage(deps, written)
      const before = sqlite.query('SELECT total_changes() AS n').get()
      await sampleUsage(deps, written)
      expect(sqlite.query('SELECT total_changes() AS n').get()).toEqual(before)
    }
    expect(await db.select().from(usageSamples).all()).toEqual([
      { accountId: 'a', hour: START, fiveHourUsed: 20, weeklyUsed: 21, monthlyUsed: 22 },
      { accountId: 'a', hour: START + HOUR_MS, fiveHourUsed: 30, weeklyUsed: 31, monthlyUsed: 32 },
      { accountId: 'a', hour: START + 3 * HOUR_MS, fiveHourUsed: 40, weeklyUsed: 41, monthlyUsed: 42 },
    ])
  })

  test('are all deleted with their accounts', async () => {
    const { db } = await withAccounts()
    await sampleUsage({ db, pool: { all: () => [{ id: 'gone', usage: seen(START, 1) }] } }, new Map())
    expect(await db.select().from(usageSamples).all()).toEqual([])
  })
})

describe('retention', () => {
  const setUp = async () => {
    const opened = await withAccounts('a')
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
    const { db, clock, run } = await setUp()
    const row = (kind: 'file' | 'conversation', minutes: number) => ({
      kind,
      keyHash: `${kind} ${minutes}`,
      accountId: 'a',
      usedAt: clock.now() - minutes * 60_000,
    })
    const rows = [row('file', 29), row('file', 31), row('file', 5000), row('conversation', 31)]
    await commit(db, (tx) => tx.insert(affinity).values(rows).run())
    await run({})
    expect((await db.select().from(affinity).all()).map(({ keyHash }) => keyHash).toSorted()).toEqual([
      'conversation 31',
      'file 29',
    ])
  })

  test('requests are deleted 100 at a time', async () => {
    const { db, sqlite, clock } = await setUp()
    sqlite.run(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 400)
      INSERT INTO requests (id, request_id, started_at, route, kind, transport, status, http_status, attempts, total_ms)
      SELECT 'r' || n, 'r', n, '/', 'normal', 'http', 'ok', 200, 1, 1 FROM n`)
    const count = () => sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM requests').get()?.n
    const seen = [count()]
    const current = () => ({ ...DEFAULTS, requestLogRetentionDays: 1 })
    const running = retain({ db, clock, settings: { current } }, never)
    await clock.advance(0)
    for (let step = 0; step < 3; step++) {
      seen.push(count())
      await clock.advance(50)
    }
    await clock.advance('1m')
    await running
    expect([...seen, count()]).toEqual([400, 300, 200, 100, 0])
  })

  test('runs one step after another, with a pause after each', async () => {
    const { db, clock } = await setUp()
    const current = () => ({ ...DEFAULTS, requestLogRetentionDays: 1, auditRetentionDays: 1 })
    const running = retain({ db, clock, settings: { current } }, never)
    await clock.advance(0)
    const waiting: number[] = []
    for (; clock.pending > 0; await clock.advance(50)) waiting.push(clock.pending)
    await running
    expect(waiting).toEqual(Array(11).fill(1))
  })

  test('events are deleted with the log, samples after 35 days', async () => {
    const { db, clock, run } = await setUp()
    const now = clock.now()
    await commit(db, async (tx) => {
      for (let i = 0; i < 1200; i++)
        await recordAccountEvent(tx, {
          accountId: 'a',
          at: now - 9 * DAY_MS,
          kind: 'state',
          result: 'active',
          detail: null,
        })
      await recordAccountEvent(tx, { accountId: 'a', at: now - DAY_MS, kind: 'token', result: 'renewed', detail: null })
      for (const days of [1, 34, 36, 99])
        await tx
          .insert(usageSamples)
          .values({ accountId: 'a', hour: now - days * DAY_MS, fiveHourUsed: 1 })
          .run()
    })
    await run({ requestLogRetentionDays: 0 })
    expect(await db.select().from(accountEvents).all()).toHaveLength(1201)
    await run({ requestLogRetentionDays: 7 })
    expect(await db.select().from(accountEvents).all()).toMatchObject([{ kind: 'token', result: 'renewed' }])
    expect((await db.select().from(usageSamples).all()).map(({ hour }) => (now - hour) / DAY_MS).sort()).toEqual([
      1, 34,
    ])
  })

  test('meter readings are kept for 90 days, then the last of each day with the work of the others', async () => {
    const { db, clock, run } = await setUp()
    const now = clock.now()
    const midnight = (days: number) => now - (now % DAY_MS) - days * DAY_MS
    await commit(db, async (tx) => {
      for (const window of ['weekly', 'five_hour'] as const)
        for (const days of [200, 95, 94, 88])
          for (const hour of [1, 9, 17])
            await tx
              .insert(meterReadings)
              .values({
                accountId: 'a',
                window,
                at: midnight(days) + hour * HOUR_MS,
                usedPercent: hour,
                windowMinutes: 300,
                resetAt: null,
                running: 0,
                pricedMicrosHere: 100,
                tokensHere: 10,
                requestsHere: 1,
                unpricedHere: 0,
              })
              .run()
    })
    const kept = async () =>
      (await db.select().from(meterReadings).orderBy(meterReadings.id).all())
        .filter(({ window }) => window === 'weekly')
        .map(({ at, usedPercent, requestsHere, tokensHere, pricedMicrosHere }) => [
          Math.round((midnight(0) - at) / DAY_MS),
          usedPercent,
          [requestsHere, tokensHere, pricedMicrosHere],
        ])
    await run({ requestLogRetentionDays: 0 })
    const all = [3, 30, 300]
    const one = [1, 10, 100]
    const old = [200, 95, 94].map((days) => [days - 1, 17, all])
    const recent = [
      [88, 1, one],
      [88, 9, one],
      [87, 17, one],
    ]
    expect(await kept()).toEqual([...old, ...recent])
    await run({ requestLogRetentionDays: 0 })
    expect(await kept()).toEqual([...old, ...recent])
    await clock.advance(4 * DAY_MS)
    await run({ requestLogRetentionDays: 0 })
    expect((await kept()).map(([, used]) => used)).toEqual([17, 17, 17, 17])
  })

  test('rejected clients are deleted with the log', async () => {
    const { db, clock, run } = await setUp()
    const now = clock.now() // which advances while it runs
    const days = (n: number) => now - n * DAY_MS
    const facts = { client: '192.0.2.1', reason: 'unknown_key', count: 1, route: '/v1/models' } as const
    await commit(db, async (tx) => {
      for (let i = 0; i < 1200; i++)
        await tx
          .insert(rejectedClients)
          .values({ ...facts, minute: days(9) - i * 60_000, lastAt: days(9) })
          .run()
      await tx
        .insert(rejectedClients)
        .values({ ...facts, minute: days(1), lastAt: days(1) })
        .run()
    })
    await run({ requestLogRetentionDays: 0 })
    expect(await db.select().from(rejectedClients).all()).toHaveLength(1201)
    await run({ requestLogRetentionDays: 7 })
    expect(await db.select().from(rejectedClients).all()).toMatchObject([{ minute: days(1) }])
  })

  test('events written while the clock was ahead do not keep others from deletion', async () => {
    const { db, clock, run } = await setUp()
    const now = clock.now()
    const note = (tx: Tx, at: number) =>
      recordAccountEvent(tx, { accountId: 'a', at, kind: 'token', result: 'renewed', detail: null })
    await commit(db, async (tx) => {
      for (let i = 0; i < 600; i++) await note(tx, now + 999 * DAY_MS)
      for (let i = 0; i < 1200; i++) await note(tx, now - 9 * DAY_MS)
      await note(tx, now - DAY_MS)
    })
    await run({ requestLogRetentionDays: 7 })
    const left = await db.select().from(accountEvents).all()
    expect(left.map(({ at }) => (at - now) / DAY_MS)).toEqual([...Array(600).fill(999), -1])
  })

  test('an event of a deleted account is ignored', async () => {
    const { db } = await setUp()
    await commit(db, (tx) =>
      recordAccountEvent(tx, { accountId: 'gone', at: 1, kind: 'import', result: 'added', detail: null }),
    )
    expect(await db.select().from(accountEvents).all()).toEqual([])
  })
})

describe('explanations of old requests', () => {
  const setUp = async (statuses: readonly ('ok' | 'error')[]) => {
    const opened = await withAccounts('a')
    await commit(opened.db, async (tx) => {
      for (const [i, status] of statuses.entries()) await addTurn(tx, i, status)
    })
    const explained = async () =>
      (await opened.db.select().from(attempts).all())
        .filter(({ considered }) => considered !== null)
        .map(({ requestRowId, n }) => `${requestRowId}.${n}`)
    const trim = (keep: number, limit = 2) => commit(opened.db, (tx) => trimConsidered(tx, { keep, limit }))
    return { ...opened, explained, trim }
  }
  type Tx = Parameters<Parameters<typeof commit>[1]>[0]
  /** A turn has a first attempt that failed when its number is odd. */
  const addTurn = async (tx: Tx, i: number, status: 'ok' | 'error') => {
    const id = `r${i}`
    const fixed = { route: '/v1/responses', kind: 'normal', transport: 'http', httpStatus: 200, totalMs: 1 } as const
    await tx
      .insert(requests)
      .values({ id, requestId: id, startedAt: 1000 + i, status, attempts: 1, ...fixed })
      .run()
    const outcomes = i % 2 === 1 ? (['failed', 'ok'] as const) : (['ok'] as const)
    for (const [n, outcome] of outcomes.entries())
      await tx
        .insert(attempts)
        .values({ requestRowId: id, n, startedAt: i, durationMs: 1, outcome, considered: [{ id: 'a' }] })
        .run()
  }

  test('are deleted in batches, except those of failures and the newest', async () => {
    const { trim, explained, db } = await setUp(['ok', 'ok', 'error', 'ok', 'ok', 'ok'])
    expect([await trim(2), await trim(2), await trim(2)]).toEqual([2, 2, 0])
    expect((await explained()).toSorted()).toEqual(['r1.0', 'r2.0', 'r3.0', 'r4.0', 'r5.0', 'r5.1'])
    await commit(db, (tx) => addTurn(tx, 6, 'ok'))
    expect([await trim(2), await trim(2)]).toEqual([1, 0])
    expect(await explained()).not.toContain('r4.0')
  })

  test('are deleted twenty requests at a time in a large log, with a pause between', async () => {
    const { db, sqlite } = await setUp([])
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
    await clock.advance(0)
    const seen = [left()]
    for (let step = 0; step < 3; step++) {
      await clock.advance(50)
      seen.push(left())
    }
    await clock.advance('1m')
    await running
    expect(seen).toEqual([30, 10, 0, 0])
  })

  test('are not searched while there are few', async () => {
    const { trim, explained } = await setUp(['ok', 'ok'])
    expect(await trim(2)).toBe(0)
    expect(await explained()).toHaveLength(3)
  })
})
