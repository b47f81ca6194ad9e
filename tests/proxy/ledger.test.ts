/** The ledger: rows and totals agree, a failed write loses nothing, and no timer runs without work. */
import type { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { commit, holdWriter, writeWith } from '../../db/commit.ts'
import { type Connection, onThisThread } from '../../db/connection.ts'
import { accounts, accountTotals, accountUsage, affinity } from '../../db/schema/accounts.ts'
import { apiKeyLimits, apiKeys } from '../../db/schema/keys.ts'
import { attempts, requestHours, requests } from '../../db/schema/requests.ts'
import type { Fields, Level, Log } from '../../src/lib/log.ts'
import type { UsageSnapshot } from '../../src/model/accounts/usage-windows.ts'
import { Ledger, type LedgerEntry } from '../../src/proxy/ledger/ledger.ts'
import { writeLedger } from '../../src/proxy/ledger/ledger-writer.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'

const START = Date.UTC(2026, 0, 1, 12)
const HOUR_MS = 3_600_000
const RESET_AT = START + 5 * HOUR_MS

const setUp = async () => {
  const { sqlite, db } = testDb()
  const clock = new ManualClock(START)
  const { log, lines } = listeningLog()
  await commit(db, async (tx) => {
    for (const id of ['acc_a', 'acc_b']) await tx.insert(accounts).values(anAccount(id)).run()
    for (const id of ['key_a', 'key_b']) {
      await tx
        .insert(apiKeys)
        .values({ id, name: id, keyHash: `hash of ${id}`, keyPrefix: 'sk-', createdAt: 0 })
        .run()
      await tx
        .insert(apiKeyLimits)
        .values({
          id: `lim_${id}`,
          keyId: id,
          limitType: 'total_tokens',
          limitWindow: '5h',
          maxValue: 1e9,
          resetAt: RESET_AT,
        })
        .run()
    }
  })
  const ledger = await Ledger.open({ db, clock, log })
  const key = async (id: string) => (await db.select().from(apiKeys).all()).find((row) => row.id === id)
  return { sqlite, db, clock, ledger, lines, key }
}

/** Writes a batch, up to 100 of them, and then runs `meanwhile` before it answers. */
const whileWriting = (sqlite: Database, meanwhile: () => void): Connection => {
  const { call } = onThisThread(() => sqlite)
  let left = 100
  return {
    call: async (procedure, args) => {
      const value = await call(procedure, args)
      if (procedure === (writeLedger as unknown) && left-- > 0) meanwhile()
      return value
    },
  }
}

const listeningLog = () => {
  const lines: { level: Level; message: string; fields: Fields }[] = []
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      lines.push({ level, message, fields })
    }
  const log: Log = {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    writes: () => true,
  }
  return { log, lines }
}

const anAccount = (id: string): typeof accounts.$inferInsert => ({
  id,
  email: `${id}@example.com`,
  planType: 'pro',
  accessTokenSealed: '',
  refreshTokenSealed: '',
  idTokenSealed: '',
  lastRefreshAt: 0,
  createdAt: 0,
})

let made = 0
const anEntry = (row: Partial<LedgerEntry['row']> = {}, rest: Partial<Omit<LedgerEntry, 'row'>> = {}): LedgerEntry => ({
  row: {
    id: `req_${++made}`,
    requestId: `client-${made}`,
    startedAt: START,
    route: '/v1/responses',
    kind: 'normal',
    transport: 'http',
    keyId: 'key_a',
    accountId: 'acc_a',
    model: 'strong',
    status: 'ok',
    httpStatus: 200,
    inputTokens: 100,
    cachedInputTokens: 40,
    outputTokens: 10,
    costMicros: 7,
    attempts: 1,
    totalMs: 12.345,
    ...row,
  },
  attempts: [],
  hourModel: row.model === undefined ? 'strong' : row.model,
  limitDeltas: [],
  isServiceFault: false,
  affinity: [],
  ...rest,
})

const anAttempt = (n: number, accountId: string): LedgerEntry['attempts'][number] => ({
  n,
  accountId,
  startedAt: START,
  durationMs: 1.5,
  outcome: n === 1 ? 'failed' : 'ok',
  upstreamStatus: n === 1 ? 429 : 200,
  code: null,
  message: null,
  considered: [{ id: accountId, score: 0.5, skipped: null, until: null }],
})

const aSnapshot = (at: number): UsageSnapshot => ({
  at,
  windows: { fiveHour: null, weekly: null, monthly: null },
  credits: null,
  planType: 'pro',
})

const owner = (keyHash: string, accountId: string) =>
  ({
    kind: 'conversation',
    keyHash,
    accountId,
    mixed: false,
    usedAt: START,
    units: 8,
    moveUnits: 2.5,
    cachedTokens: 2_000,
  }) as const

test('a killed process loses only what the last beat has not written', async () => {
  const { db, clock, ledger } = await setUp()
  const onDisk = async () => (await db.select({ id: requests.id }).from(requests).all()).length
  ledger.start()
  ledger.record(anEntry())
  expect([await onDisk(), ledger.unwrittenTurns]).toEqual([0, 1])
  await clock.advance(100)
  ledger.record(anEntry())
  expect([await onDisk(), ledger.unwrittenTurns]).toEqual([1, 1])
})

describe('rows and totals', () => {
  test('the counters of keys, accounts, limits and hours are the totals of the rows', async () => {
    const { db, ledger } = await setUp()
    const use = (keyId: string, delta: number) => ({
      limitDeltas: [{ limitId: `lim_${keyId}`, keyId, delta, leased: delta, resetAt: RESET_AT }],
    })
    for (let i = 0; i < 250; i++) {
      const keyId = i % 3 === 0 ? 'key_b' : 'key_a'
      const status = i % 5 === 0 ? 'error' : i % 7 === 0 ? 'cancelled' : 'ok'
      const isPriced = i % 11 !== 0
      ledger.record(
        anEntry(
          {
            keyId,
            accountId: i % 4 === 0 ? 'acc_b' : 'acc_a',
            status,
            inputTokens: i,
            costMicros: isPriced ? i : null,
            startedAt: START + i * 60_000,
          },
          use(keyId, i + 10),
        ),
      )
      if (i % 60 === 0) await ledger.flush()
    }
    ledger.record(
      anEntry({ keyId: null, accountId: null, model: null, inputTokens: null, costMicros: null, status: 'error' }),
    )
    await ledger.flush()

    const rows = await db.select().from(requests).all()
    expect(rows).toHaveLength(251)
    const sum = (of: (row: (typeof rows)[number]) => number, among = rows) => among.reduce((n, row) => n + of(row), 0)
    for (const key of await db.select().from(apiKeys).all()) {
      const own = rows.filter((row) => row.keyId === key.id)
      expect(key).toMatchObject({
        requestCount: own.length,
        inputTokens: sum((row) => row.inputTokens ?? 0, own),
        cachedInputTokens: sum((row) => row.cachedInputTokens ?? 0, own),
        outputTokens: sum((row) => row.outputTokens ?? 0, own),
        costMicros: sum((row) => row.costMicros ?? 0, own),
        lastUsedAt: Math.max(...own.map((row) => row.startedAt)),
      })
      const limit = (await db.select().from(apiKeyLimits).all()).find(({ keyId }) => keyId === key.id)
      expect(limit?.currentValue).toBe(sum((row) => (row.inputTokens ?? 0) + (row.outputTokens ?? 0), own))
    }
    const totals = await db.select().from(accountTotals).all()
    expect(totals.map(({ accountId }) => accountId).toSorted()).toEqual(['acc_a', 'acc_b'])
    for (const { accountId, ...total } of totals) {
      const own = rows.filter((row) => row.accountId === accountId)
      expect(total).toEqual({
        requests: own.length,
        inputTokens: sum((row) => row.inputTokens ?? 0, own),
        cachedInputTokens: sum((row) => row.cachedInputTokens ?? 0, own),
        outputTokens: sum((row) => row.outputTokens ?? 0, own),
        costMicros: sum((row) => row.costMicros ?? 0, own),
      })
    }
    const hours = await db.select().from(requestHours).all()
    expect(new Set(hours.map(({ hour }) => hour)).size).toBe(5)
    expect(hours.every(({ hour }) => hour % HOUR_MS === 0)).toBe(true)
    const inHours = (of: (row: (typeof hours)[number]) => number) => hours.reduce((n, row) => n + of(row), 0)
    expect(inHours((hour) => hour.requests)).toBe(251)
    expect(inHours((hour) => hour.errors)).toBe(sum((row) => Number(row.status === 'error')))
    expect(inHours((hour) => hour.cancelled)).toBe(sum((row) => Number(row.status === 'cancelled')))
    expect(inHours((hour) => hour.inputTokens)).toBe(sum((row) => row.inputTokens ?? 0))
    expect(inHours((hour) => hour.costMicros)).toBe(sum((row) => row.costMicros ?? 0))
    expect(inHours((hour) => hour.unpriced)).toBe(
      sum((row) => Number(row.inputTokens !== null && row.costMicros === null)),
    )
  })

  test('hours are counted by client, up to thirty names an hour', async () => {
    const { db, ledger } = await setUp()
    const record = (userAgent: string | null, startedAt = START) => ledger.record(anEntry({ userAgent, startedAt }))
    record('codex_exec/0.169.0 (Debian 12)')
    record('codex_exec/0.170.0 (Debian 13)')
    record('OpenAI/JS 6.1')
    record(null)
    record('x'.repeat(65))
    for (let n = 0; n < 40; n++) record(`random-${n}/1`)
    record('OpenAI/Python 2')
    record('late/1', START + HOUR_MS)
    await ledger.flush()
    const hours = await db.select().from(requestHours).all()
    const first = hours.filter(({ hour }) => hour === hours[0]?.hour)
    const counted = new Map(first.map(({ client, requests: count }) => [client, count]))
    expect(counted.size).toBe(32)
    for (const [name, count] of [
      ['codex_exec', 2],
      ['OpenAI', 2],
      ['', 1],
      ['other clients', 13],
    ] as const)
      expect(counted.get(name)).toBe(count)
    expect(hours.find(({ client }) => client === 'late')?.requests).toBe(1)
  })

  test('a row keeps its fields, and its attempts the candidates', async () => {
    const { db, ledger } = await setUp()
    const entry = anEntry({ moved: true }, { attempts: [anAttempt(1, 'acc_a'), anAttempt(2, 'acc_b')] })
    ledger.record(entry)
    await ledger.flush()
    expect(await db.select().from(requests).get()).toMatchObject({ ...entry.row, moved: true, phase: null })
    expect(await db.select().from(attempts).all()).toMatchObject(
      entry.attempts.map((attempt) => ({ ...attempt, requestRowId: entry.row.id })) as never, // as: `considered` is unknown[] here
    )
  })

  test('a limit whose window moved on starts over, and a late request of the old window does not count in the new one', async () => {
    const { db, ledger } = await setUp()
    const next = RESET_AT + HOUR_MS
    const delta = (amount: number, resetAt: number) =>
      anEntry({}, { limitDeltas: [{ limitId: 'lim_key_a', keyId: 'key_a', delta: amount, leased: amount, resetAt }] })
    for (const entry of [delta(5, RESET_AT), delta(3, next), delta(100, RESET_AT)]) ledger.record(entry)
    await ledger.flush()
    expect((await db.select().from(apiKeyLimits).all()).find(({ id }) => id === 'lim_key_a')).toMatchObject({
      currentValue: 3,
      resetAt: RESET_AT + HOUR_MS,
    })
  })

  test('only the last of several owners and snapshots in one beat is written', async () => {
    const { db, ledger } = await setUp()
    ledger.record(anEntry({}, { affinity: [owner('talk', 'acc_a')] }))
    ledger.record(anEntry({}, { affinity: [owner('talk', 'acc_b')] }))
    ledger.usage('acc_a', aSnapshot(START + 1))
    ledger.usage('acc_a', aSnapshot(START + 2))
    expect(ledger.pending).toBe(3)
    await ledger.flush()
    expect(await db.select().from(affinity).all()).toEqual([owner('talk', 'acc_b')])
    expect(await db.select().from(accountUsage).all()).toEqual([
      { accountId: 'acc_a', at: START + 2, snapshot: aSnapshot(START + 2) },
    ])
  })

  test('rows of accounts and keys deleted since are kept and cause no error', async () => {
    const { sqlite, db, ledger, key } = await setUp()
    const use = {
      limitDeltas: [{ limitId: 'lim_key_a', keyId: 'key_a', delta: 5, leased: 5, resetAt: RESET_AT }],
    }
    ledger.record(
      anEntry(
        {},
        { ...use, attempts: [anAttempt(1, 'acc_a')], affinity: [owner('talk', 'acc_a'), owner('other', 'acc_b')] },
      ),
    )
    ledger.record(anEntry({ keyId: 'key_b', accountId: 'acc_b' }))
    ledger.usage('acc_a', aSnapshot(START))
    sqlite.run(`DELETE FROM accounts WHERE id = 'acc_a'`)
    sqlite.run(`DELETE FROM api_keys WHERE id = 'key_a'`)
    await ledger.flush()
    expect([ledger.healthy, ledger.pending]).toEqual([true, 0])
    expect(await db.select().from(requests).all()).toHaveLength(2)
    expect(await db.select().from(attempts).all()).toHaveLength(1)
    expect(await db.select().from(affinity).all()).toEqual([owner('other', 'acc_b')])
    expect(await db.select().from(accountUsage).all()).toEqual([])
    expect((await key('key_b'))?.requestCount).toBe(1)
  })
})

describe('when the ledger writes', () => {
  test('a record is on disk one beat later, and no timer runs while nothing is pending', async () => {
    const { db, clock, ledger } = await setUp()
    ledger.start()
    expect(clock.pending).toBe(0)
    ledger.record(anEntry())
    ledger.record(anEntry())
    expect(clock.pending).toBe(1)
    await clock.advance('99ms')
    expect(await db.select().from(requests).all()).toHaveLength(0)
    await clock.advance('1ms')
    expect(await db.select().from(requests).all()).toHaveLength(2)
    expect(clock.pending).toBe(0)
  })

  test('a hundred records do not wait for the beat, and recording itself writes nothing', async () => {
    const { db, clock, ledger } = await setUp()
    ledger.start()
    for (let i = 0; i < 130; i++) ledger.record(anEntry())
    expect(await db.select().from(requests).all()).toHaveLength(0)
    expect(clock.pending).toBe(1)
    await clock.advance(0)
    expect(await db.select().from(requests).all()).toHaveLength(130)
    expect(clock.pending).toBe(0)
  })

  test('the file is only less durable during the write itself', async () => {
    const { sqlite, ledger } = await setUp()
    ledger.record(anEntry())
    await ledger.flush()
    expect(sqlite.query('PRAGMA synchronous').get()).toEqual({ synchronous: 2 })
    sqlite.run('ALTER TABLE requests RENAME TO gone')
    ledger.record(anEntry())
    await ledger.flush()
    expect(ledger.healthy).toBe(false)
    expect(sqlite.query('PRAGMA synchronous').get()).toEqual({ synchronous: 2 })
  })

  test('no beat waits behind another, so that commits do not wait for many of them', async () => {
    const { sqlite, db, clock, ledger } = await setUp()
    ledger.start()
    const lock = Promise.withResolvers<void>()
    const holding = holdWriter(db, () => lock.promise)
    for (let n = 0; n < 20; n++) {
      for (let i = 0; i < 10 * n; i++) ledger.record(anEntry())
      await clock.advance('100ms')
    }
    let tried = 0
    const { call } = onThisThread(() => sqlite)
    const busy = () => {
      tried++
      throw new Error('busy')
    }
    writeWith(db, {
      call: async (procedure, args) => (procedure === (writeLedger as unknown) ? busy() : call(procedure, args)),
    })
    const change = commit(db, async () => tried)
    lock.resolve()
    await holding
    expect(await change).toBe(1)
  })

  test('a flush ends while requests go on ending', async () => {
    const { sqlite, db, ledger } = await setUp()
    writeWith(
      db,
      whileWriting(sqlite, () => ledger.record(anEntry())),
    )
    ledger.record(anEntry({ id: 'before' }))
    await ledger.flush()
    expect((await db.select().from(requests).all()).map(({ id }) => id)).toEqual(['before'])
    expect(ledger.pending).toBe(1)
  })

  test('rows are read when they count what had ended at that moment, and nothing later', async () => {
    const { sqlite, db, ledger } = await setUp()
    writeWith(
      db,
      whileWriting(sqlite, () => ledger.record(anEntry())),
    )
    for (let i = 0; i < 1500; i++) ledger.record(anEntry())
    let ended = 0
    const rows = await ledger.readWritten(() => {
      ended = ledger.unwrittenTurns
      return async () => (await db.select({ id: requests.id }).from(requests).all()).length
    })
    expect([ended, rows, ledger.pending]).toEqual([1500, 1500, 2])
  })

  test('stopping writes what is pending, and what ends meanwhile, and leaves no timer', async () => {
    const { sqlite, db, clock, ledger } = await setUp()
    ledger.start()
    const three = [anEntry(), anEntry(), anEntry()]
    writeWith(
      db,
      whileWriting(sqlite, () => {
        const next = three.pop()
        if (next) ledger.record(next)
      }),
    )
    ledger.record(anEntry())
    await ledger.stop()
    expect(await db.select().from(requests).all()).toHaveLength(4)
    ledger.record(anEntry())
    expect(clock.pending).toBe(0)
  })
})

describe('when the ledger cannot write', () => {
  test('the batch is kept whole and written once, when the database works again', async () => {
    const { sqlite, db, clock, ledger, key, lines } = await setUp()
    ledger.start()
    sqlite.run('ALTER TABLE request_hours RENAME TO away')
    for (let i = 0; i < 5; i++) ledger.record(anEntry())
    ledger.usage('acc_a', aSnapshot(START))
    await clock.advance('1s')
    expect([ledger.healthy, ledger.pending, ledger.unwrittenTurns]).toEqual([false, 6, 5])
    expect(await db.select().from(requests).all()).toEqual([])
    expect((await key('key_a'))?.requestCount).toBe(0)
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)

    sqlite.run('ALTER TABLE away RENAME TO request_hours')
    await clock.advance('100ms')
    expect([ledger.healthy, ledger.pending, clock.pending]).toEqual([true, 0, 0])
    expect(await db.select().from(requests).all()).toHaveLength(5)
    expect((await key('key_a'))?.requestCount).toBe(5)
  })

  test('while unhealthy a hundred more records do not cause more attempts', async () => {
    const { sqlite, clock, ledger } = await setUp()
    ledger.start()
    sqlite.run('ALTER TABLE requests RENAME TO away')
    ledger.record(anEntry())
    await clock.advance('100ms')
    sqlite.run('ALTER TABLE away RENAME TO requests')
    for (let i = 0; i < 150; i++) ledger.record(anEntry())
    await clock.advance('99ms')
    expect(ledger.pending).toBe(151)
    await clock.advance('1ms')
    expect(ledger.pending).toBe(0)
  })

  test('beyond 50,000 records the oldest are dropped and counted', async () => {
    const { sqlite, db, ledger, lines } = await setUp()
    const spare = anEntry()
    sqlite.run('ALTER TABLE requests RENAME TO away')
    for (let i = 0; i < 50_010; i++) ledger.record({ ...spare, row: { ...spare.row, id: `n${i}` } })
    expect(ledger.pending).toBeLessThanOrEqual(50_000)
    const kept = ledger.pending
    await ledger.flush()
    expect(lines.find(({ fields }) => 'count' in fields)?.fields).toEqual({ count: 50_010 - kept })
    sqlite.run('ALTER TABLE away RENAME TO requests')
    await ledger.flush()
    expect(await db.select({ id: requests.id }).from(requests).all()).toHaveLength(kept)
    expect(sqlite.query(`SELECT id FROM requests WHERE id = 'n50009'`).get()).not.toBeNull()
  })

  test('a record that the schema rejects is dropped alone', async () => {
    const { db, ledger, key, lines } = await setUp()
    for (let i = 0; i < 300; i++) ledger.record(anEntry(i === 137 ? { id: 'bad', model: {} as never } : {}))
    ledger.record(anEntry({ httpStatus: null as never, id: 'worse' }))
    await ledger.flush()
    expect([ledger.healthy, ledger.pending]).toEqual([true, 0])
    expect(await db.select().from(requests).all()).toHaveLength(299)
    expect((await key('key_a'))?.requestCount).toBe(299)
    expect(lines.filter(({ level }) => level === 'error').map(({ fields }) => fields.id)).toEqual(['bad', 'worse'])
  })
})
