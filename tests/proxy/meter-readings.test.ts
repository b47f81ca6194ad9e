/** Meter readings: each has exactly the work settled since the one before, whatever the ledger writes together. */
import { describe, expect, test } from 'bun:test'
import { commit, writeWith } from '../../db/commit.ts'
import { onThisThread } from '../../db/connection.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { meterReadings } from '../../db/schema/meter.ts'
import { createLog } from '../../src/lib/log.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import { Ledger, type LedgerEntry } from '../../src/proxy/ledger/ledger.ts'
import { writeLedger } from '../../src/proxy/ledger/ledger-writer.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'

const START = Date.UTC(2026, 0, 1, 12)
const WEEK_MS = 7 * 86_400_000
const RESET_AT = START + WEEK_MS

const setUp = async () => {
  const { sqlite, db } = testDb()
  const clock = new ManualClock(START)
  const log = createLog({ level: 'error', format: 'text', now: () => clock.now(), write: () => {} })
  await commit(db, async (tx) => {
    for (const id of ['acc_a', 'acc_b'])
      await tx
        .insert(accounts)
        .values({
          id,
          email: `${id}@example.com`,
          planType: 'pro',
          accessTokenSealed: '',
          refreshTokenSealed: '',
          idTokenSealed: '',
          lastRefreshAt: 0,
          createdAt: 0,
        })
        .run()
  })
  const open = () => Ledger.open({ db, clock, log })
  const rows = async (accountId = 'acc_a') =>
    (await db.select().from(meterReadings).orderBy(meterReadings.id).all())
      .filter((row) => row.accountId === accountId)
      .map(({ usedPercent, requestsHere, tokensHere, pricedMicrosHere, running }) => ({
        used: usedPercent,
        requests: requestsHere,
        tokens: tokensHere,
        micros: pricedMicrosHere,
        running,
      }))
  return { sqlite, db, clock, ledger: await open(), open, rows }
}

let made = 0
const entry = (row: Partial<LedgerEntry['row']> = {}): LedgerEntry => ({
  row: {
    id: `req_${++made}`,
    requestId: `client-${made}`,
    startedAt: START,
    route: '/v1/responses',
    kind: 'normal',
    transport: 'http',
    accountId: 'acc_a',
    model: 'strong',
    status: 'ok',
    httpStatus: 200,
    inputTokens: 100,
    outputTokens: 10,
    costMicros: 7,
    attempts: 1,
    totalMs: 12,
    ...row,
  },
  attempts: [],
  hourModel: 'strong',
  limitDeltas: [],
  isServiceFault: false,
  affinity: [],
})

const weekly = (usedPercent: number, at = START, resetAt = RESET_AT): UsageSnapshot => ({
  at,
  windows: { fiveHour: null, weekly: { usedPercent, windowMinutes: 10_080, resetAt }, monthly: null },
  credits: null,
  planType: null,
})

describe('a reading', () => {
  test('has the work that was settled since the one before, also within one batch', async () => {
    const { ledger, rows } = await setUp()
    ledger.record(entry()) // before the first reading, which begins the account's statement
    ledger.usage('acc_a', weekly(10))
    ledger.record(entry())
    ledger.record(entry({ costMicros: 5 }))
    ledger.usage('acc_a', weekly(11))
    ledger.record(entry({ accountId: 'acc_b', costMicros: 1000 }))
    ledger.record(entry({ costMicros: 1 }))
    ledger.usage('acc_a', weekly(12))
    await ledger.flush()
    ledger.record(entry({ costMicros: 2 }))
    await ledger.flush()
    ledger.usage('acc_a', weekly(13))
    await ledger.flush()
    expect(await rows()).toMatchObject([
      { used: 10, requests: 0, micros: 0 },
      { used: 11, requests: 2, tokens: 220, micros: 12 },
      { used: 12, requests: 1, micros: 1 },
      { used: 13, requests: 1, micros: 2 },
    ])
  })

  test('is repeated with its work when the write failed', async () => {
    const { sqlite, db, ledger, rows } = await setUp()
    const { call } = onThisThread(() => sqlite)
    let failures = 2
    writeWith(db, {
      call: async (procedure, args) => {
        if (procedure === (writeLedger as unknown) && failures-- > 0) throw new Error('database is locked')
        return call(procedure, args)
      },
    })
    ledger.usage('acc_a', weekly(10))
    ledger.record(entry())
    await ledger.flush()
    ledger.usage('acc_a', weekly(11))
    ledger.record(entry())
    await ledger.flush()
    expect(await rows()).toEqual([])
    ledger.usage('acc_a', weekly(12))
    await ledger.flush()
    expect(await rows()).toMatchObject([
      { used: 10, requests: 0 },
      { used: 11, requests: 1 },
      { used: 12, requests: 1 },
    ])
  })

  test('keeps its place when the ledger writes in several parts', async () => {
    const { ledger, rows } = await setUp()
    ledger.usage('acc_a', weekly(1))
    for (let n = 0; n < 1500; n++) ledger.record(entry())
    ledger.usage('acc_a', weekly(2))
    for (let n = 0; n < 900; n++) ledger.record(entry())
    ledger.usage('acc_a', weekly(3))
    await ledger.flush()
    expect((await rows()).map(({ used, requests }) => [used, requests])).toEqual([
      [1, 0],
      [2, 1500],
      [3, 900],
    ])
  })

  test('takes over what another process, or this one before its restart, has settled', async () => {
    const { ledger, open, rows } = await setUp()
    ledger.usage('acc_a', weekly(1))
    ledger.record(entry())
    await ledger.flush()
    const next = await open()
    next.record(entry())
    await next.flush()
    ledger.record(entry())
    await ledger.flush()
    next.usage('acc_a', weekly(2))
    await next.flush()
    expect(await rows()).toMatchObject([{ requests: 0 }, { used: 2, requests: 3 }])
  })

  test('includes warm-ups, but not requests on paid credits, which do not move the meter', async () => {
    const { ledger, rows } = await setUp()
    ledger.usage('acc_a', weekly(1))
    ledger.record(entry({ kind: 'warmup' }))
    ledger.record(entry({ paidCredits: true }))
    ledger.usage('acc_a', weekly(2))
    await ledger.flush()
    expect(await rows()).toMatchObject([{ requests: 0 }, { requests: 1 }])
  })

  test('that repeats the last one is not stored, except as the first after running requests', async () => {
    const { ledger, rows } = await setUp()
    ledger.usage('acc_a', weekly(1), 1)
    ledger.usage('acc_a', weekly(1, START + 60_000), 1)
    ledger.usage('acc_a', weekly(1, START + 120_000, RESET_AT + 30_000), 1)
    ledger.record(entry())
    ledger.usage('acc_a', weekly(1, START + 180_000))
    ledger.usage('acc_a', weekly(1, START + 240_000))
    await ledger.flush()
    expect(await rows()).toMatchObject([
      { used: 1, running: 1, requests: 0 },
      { used: 1, running: 0, requests: 1 },
    ])
  })

  test('within one percent is stored once a minute while requests run, and loses no work', async () => {
    const { ledger, rows } = await setUp()
    for (let n = 0; n < 120; n++) {
      ledger.usage('acc_a', weekly(1 + n / 1000, START + n * 1000), 2)
      ledger.record(entry())
    }
    ledger.usage('acc_a', weekly(1.12, START + 121_000), 0)
    await ledger.flush()
    expect((await rows()).map(({ used, requests }) => [used, requests])).toEqual([
      [1, 0],
      [1.06, 60],
      [1.12, 60],
    ])
  })

  test('of an account that was deleted is not stored', async () => {
    const { db, ledger } = await setUp()
    ledger.usage('acc_gone', weekly(1))
    await ledger.flush()
    expect(await db.select().from(meterReadings).all()).toEqual([])
    expect(ledger.healthy).toBe(true)
  })
})
