/** The ledger stores the same on PostgreSQL as on SQLite, also while ledgers and commits of other nodes write. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type ReservedSQL, SQL } from 'bun'
import { eq, sql } from 'drizzle-orm'
import { getTableConfig, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import { commit, createDb, type Db } from '../../../db/commit.ts'
import { onThisThread } from '../../../db/connection.ts'
import type { Client } from '../../../db/postgres/connection.ts'
import { getDdl } from '../../../db/postgres/ddl.ts'
import { PostgresWriter } from '../../../db/postgres/writer.ts'
import { accounts, accountTotals, accountUsage, affinity } from '../../../db/schema/accounts.ts'
import * as schema from '../../../db/schema/all.ts'
import { apiKeyLimits, apiKeys } from '../../../db/schema/keys.ts'
import { meterOpen, meterReadings } from '../../../db/schema/meter.ts'
import { rejectedClients } from '../../../db/schema/rejections.ts'
import { attempts, requestHours, requestSpans, requests } from '../../../db/schema/requests.ts'
import { facts } from '../../../db/schema/system.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { HOUR_MS } from '../../../src/lib/durations.ts'
import { createLog, type Log } from '../../../src/lib/log.ts'
import { KeyLeases } from '../../../src/model/keys/key-leases.ts'
import { KeyRing } from '../../../src/model/keys/key-ring.ts'
import { isCounted } from '../../../src/model/log/counted-requests.ts'
import { addUpHours } from '../../../src/model/reports/request-spans.ts'
import { Ledger } from '../../../src/proxy/ledger/ledger.ts'
import type { LedgerBatch } from '../../../src/proxy/ledger/ledger-batch.ts'
import { LEDGER_ON_POSTGRES } from '../../../src/proxy/ledger/ledger-postgres.ts'
import { writeLedger } from '../../../src/proxy/ledger/ledger-writer.ts'
import { ManualClock } from '../../support/clock.ts'
import { testDb } from '../../support/db.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { SEED, seededRandom } from '../../support/property.ts'
import { until } from '../../support/until.ts'
import {
  anAttempt,
  anEntry,
  aRejection,
  aSnapshot,
  batchOf,
  delta,
  fill,
  owner,
  RESET_AT,
  randomBatch,
  START,
} from './batches.ts'

/** Every table a batch writes to, and those it reads. */
const TABLES: readonly SQLiteTable[] = [
  requests,
  attempts,
  requestHours,
  requestSpans,
  apiKeys,
  apiKeyLimits,
  accounts,
  accountTotals,
  accountUsage,
  affinity,
  rejectedClients,
  meterReadings,
  meterOpen,
  facts,
]

describe.skipIf(MAY_SKIP)('the ledger on PostgreSQL', () => {
  let server: PostgresServer
  const opened: { sql: SQL; client: ReservedSQL }[] = []

  beforeAll(async () => {
    server = await startPostgres()
    for (const statement of getDdl(schema)) await server.sql.unsafe(statement)
  })
  afterAll(() => server[Symbol.asyncDispose]())
  beforeEach(async () => {
    await server.sql.unsafe(`TRUNCATE ${TABLES.map((table) => getTableConfig(table).name)} CASCADE`)
    await fill((await connect()).db)
  })
  afterEach(async () => {
    for (const { sql, client } of opened.splice(0)) {
      client.release()
      await sql.close()
    }
  })

  /** A connection of its own, as of another node. */
  const connect = async (wrap = (client: Client): Client => client) => {
    const sql = new SQL(server.url, { max: 1 })
    const client = await sql.reserve()
    opened.push({ sql, client })
    const { unsafe } = wrap(client)
    const reserved = { unsafe, close: () => client.close() } as ReservedSQL // as: the writer calls no more
    const writer = new PostgresWriter({
      ...{ sql: { reserve: async () => reserved }, node: 'test', clock: systemClock, more: LEDGER_ON_POSTGRES },
    })
    const write = (batch: LedgerBatch) => writer.call(writeLedger, batch)
    return { db: createDb({ engine: 'postgres', writer, onListenerError: fail }), write, client }
  }

  /** The number of connections that wait for a lock. */
  const countWaiting = async (): Promise<number> =>
    (await server.sql`SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted`)[0].waiting

  const both = async () => {
    const { sqlite } = testDb()
    const ours = createDb({ writer: onThisThread(() => sqlite), onListenerError: fail })
    await fill(ours)
    const { db, write } = await connect()
    const writeBoth = async (batch: LedgerBatch) => {
      writeLedger(sqlite, batch)
      await write(batch)
    }
    const expectSame = async () => expect(await contentOf(db)).toEqual(await contentOf(ours))
    return { sqlite, ours, db, writeBoth, expectSame }
  }

  test('batches store the same rows as on SQLite', async () => {
    const { ours, db, writeBoth, expectSame } = await both()
    await expectSame()
    await writeBoth(batchOf([]))
    await writeBoth(
      batchOf(
        [
          anEntry({ moved: true, errorMessage: 'a "b" \\ {c}, \u{1f600} NULL', userAgent: 'codex_exec/0.169' }),
          anEntry({ keyId: null, accountId: null, status: 'cancelled', totalMs: 0.1 + 0.2 }),
          anEntry({ kind: 'image', costMicros: null, sourceId: 'src_a' }, { hourModel: null }),
          anEntry(
            { keyId: 'key_b', accountId: 'acc_b' },
            {
              attempts: [anAttempt(1, 'acc_a'), anAttempt(2, 'acc_b')],
              limitDeltas: [delta('key_b', 5), delta('key_a', 7)],
              affinity: [owner('talk', 'acc_a'), owner('other', 'acc_b'), owner('talk', 'acc_b')],
            },
          ),
        ],
        { usage: new Map([['acc_b', aSnapshot(START)]]), rejected: [aRejection('10.0.0.1', 2)] },
      ),
    )
    await expectSame()
    // Sums are updated, a lease ends, a limit moves to the next window, a conversation moves.
    await writeBoth(
      batchOf(
        [
          anEntry({}, { limitDeltas: [delta('key_b', 95), delta('key_a', 3, RESET_AT + HOUR_MS)] }),
          anEntry({ startedAt: START - 1 }, { affinity: [owner('talk', 'acc_c')], limitDeltas: [delta('key_a', 1)] }),
        ],
        {
          usage: new Map([['acc_b', aSnapshot(START + 1)]]),
          rejected: [aRejection('10.0.0.1', 3), aRejection('::1', 1)],
        },
      ),
    )
    await expectSame()
    const [limits] = [await db.select().from(apiKeyLimits).orderBy(apiKeyLimits.id).all()]
    expect(limits.map(({ currentValue, leases }) => [currentValue, leases])).toEqual([
      [3, {}],
      [100, { 2: 50 }],
      [0, { 1: 100, 2: 50 }],
    ])
    expect(await ours.select().from(affinity).where(eq(affinity.keyHash, 'talk')).get()).toMatchObject({
      accountId: 'acc_c',
    })
  })

  test('meter readings have the same work as on SQLite', async () => {
    const { writeBoth, expectSame, ours } = await both()
    const reading = (usedPercent: number, running = 0) =>
      ({ window: 'weekly', at: START, usedPercent, windowMinutes: 10_080, resetAt: RESET_AT, running }) as const
    const note = (after: number, ...readings: ReturnType<typeof reading>[]) => ({ accountId: 'acc_a', after, readings })
    await writeBoth(batchOf([anEntry()], { meters: [note(0, reading(1.5)), note(1, reading(2.25, 1))] }))
    await writeBoth(batchOf([anEntry({ costMicros: null }), anEntry({ accountId: 'acc_b' })]))
    await writeBoth(
      batchOf([], { meters: [note(0, reading(2.25)), { ...note(0, reading(9)), accountId: 'acc_gone' }] }),
    )
    await expectSame()
    const rows = await ours.select().from(meterReadings).all()
    expect(
      rows.map(({ usedPercent, requestsHere, unpricedHere }) => [usedPercent, requestsHere, unpricedHere]),
    ).toEqual([
      [1.5, 0, 0],
      [2.25, 1, 0],
      [2.25, 1, 1],
    ])
  })

  test('nodes that settle requests of one account at once lose none of its work', async () => {
    const [first, second] = await Promise.all([connect(), connect()])
    const reading = (usedPercent: number) =>
      ({ window: 'weekly', at: START, usedPercent, windowMinutes: 10_080, resetAt: RESET_AT, running: 0 }) as const
    const meters = (usedPercent: number) => [{ accountId: 'acc_a', after: 0, readings: [reading(usedPercent)] }]
    await first.write(batchOf([], { meters: meters(1) }))
    for (let n = 0; n < 10; n++)
      await Promise.all([first, second].map(({ write }) => write(batchOf([anEntry(), anEntry()]))))
    await second.write(batchOf([], { meters: meters(2) }))
    const rows = await first.db.select().from(meterReadings).orderBy(meterReadings.id).all()
    expect(rows.map(({ requestsHere }) => requestsHere)).toEqual([0, 40])
  })

  test('requests of hours already added up are added to the spans', async () => {
    const { ours, db, writeBoth, expectSame } = await both()
    await writeBoth(batchOf([anEntry(), anEntry({ startedAt: START + HOUR_MS, keyId: 'key_b' })]))
    for (const each of [ours, db]) await addUpTo(each, START + 2 * HOUR_MS)
    await expectSame()
    const late = [START, START + 1, START + HOUR_MS, START + 2 * HOUR_MS].map((startedAt) => anEntry({ startedAt }))
    await writeBoth(batchOf(late))
    await expectSame()
    expect(await getDays(db)).toMatchObject([{ requests: 5, activeHours: 0b11 << 12 }])
  })

  test('rows of deleted accounts and keys are kept as on SQLite', async () => {
    const { ours, db, writeBoth, expectSame } = await both()
    for (const each of [ours, db])
      await commit(each, async (tx) => {
        await tx.delete(accounts).where(eq(accounts.id, 'acc_a')).run()
        await tx.delete(apiKeys).where(eq(apiKeys.id, 'key_a')).run()
      })
    await writeBoth(
      batchOf(
        [
          anEntry(
            {},
            {
              attempts: [anAttempt(1, 'acc_a')],
              limitDeltas: [delta('key_a', 5)],
              affinity: [owner('talk', 'acc_a'), owner('other', 'acc_b')],
            },
          ),
        ],
        { usage: new Map([['acc_a', aSnapshot(START)]]) },
      ),
    )
    await expectSame()
    expect(await db.select().from(affinity).all()).toEqual([owner('other', 'acc_b')])
  })

  test('random batches store the same rows as on SQLite', async () => {
    const { ours, db, writeBoth, expectSame } = await both()
    console.log(`repeat with SEED=${SEED}`)
    const random = seededRandom(SEED)
    for (let n = 0; n < 12; n++) {
      await writeBoth(randomBatch(random, 60))
      if (n === 6) for (const each of [ours, db]) await addUpTo(each, START + 2 * HOUR_MS)
    }
    await expectSame()
  })

  test('text that PostgreSQL cannot store is replaced', async () => {
    const { db, write } = await connect()
    await write(batchOf([anEntry({ errorMessage: 'a\0b', userAgent: 'half \ud800', model: '\\u0000' })]))
    expect(await db.select().from(requests).get()).toMatchObject({
      errorMessage: 'a\uFFFDb',
      userAgent: 'half \uFFFD',
      model: '\\u0000',
    })
  })

  test('the number of prepared statements does not grow with batches', async () => {
    const { db, write } = await connect()
    const count = async () => (await db.all<{ n: number }>('SELECT count(*) AS n FROM pg_prepared_statements'))[0]?.n
    const random = seededRandom(1)
    for (let n = 0; n < 3; n++) await write(randomBatch(random, 50))
    const before = await count()
    for (let n = 0; n < 5; n++) await write(randomBatch(random, 1 + n * 20))
    expect(await count()).toBe(before)
  })

  test.each([
    ['a request that lacks a value', { status: null as never }],
    ['a request that is too long for an index', { requestId: noise(30_000) }],
    ['a request that cannot be encoded', { totalMs: 1n as never }],
  ])('a batch with %s stores nothing', async (_, row) => {
    const { db, write } = await connect()
    const before = await contentOf(db)
    const bad = batchOf([
      anEntry({}, { attempts: [anAttempt(1, 'acc_a')], limitDeltas: [delta('key_a', 5)] }),
      anEntry(row),
    ])
    expect(await failureOf(write(bad))).toBeInstanceOf(Error)
    expect(await contentOf(db)).toEqual(before)
    await write(batchOf([anEntry()]))
    expect(await db.select().from(requests).all()).toHaveLength(1)
  })

  test('a record that PostgreSQL rejects is dropped alone', async () => {
    const { db } = await connect()
    const errors: string[] = []
    const log: Log = { ...silent(), error: (message) => errors.push(message) }
    const ledger = await Ledger.open({ db, clock: new ManualClock(START), log })
    for (let n = 0; n < 9; n++) ledger.record(n === 5 ? anEntry({ route: null as never }) : anEntry())
    await ledger.flush()
    expect([ledger.healthy, ledger.pending]).toEqual([true, 0])
    expect(errors).toEqual(['the database rejected a request log entry, which was dropped'])
    expect(await db.select().from(requests).all()).toHaveLength(8)
    await expectSumsToEqualRows(db)
  })

  test('what a batch stored before its connection was lost is not stored twice', async () => {
    const { db, write } = await connect()
    const entries = [anEntry(), anEntry({}, { limitDeltas: [delta('key_a', 5)] })]
    const rejected = [aRejection('10.0.0.1', 2)]
    await write(batchOf(entries, { rejected })) // the answer to COMMIT is lost
    await write(batchOf([...entries, anEntry({}, { limitDeltas: [delta('key_a', 2)] })], { rejected }))
    expect((await db.all<{ n: number }>(sql`SELECT sum(count) AS n FROM rejected_clients`))[0]?.n).toBe(2)
    expect(await db.select().from(requests).all()).toHaveLength(3)
    expect((await db.select().from(apiKeyLimits).all()).find(({ keyId }) => keyId === 'key_a')?.currentValue).toBe(7)
    await expectSumsToEqualRows(db)
  })

  test('a batch whose connection is lost in the middle stores nothing', async () => {
    const { db } = await connect()
    const { write } = await connect(
      (client) =>
        ({
          unsafe: (text: string, values?: unknown[]) =>
            text === 'COMMIT'
              ? client.unsafe('SELECT pg_terminate_backend(pg_backend_pid())')
              : client.unsafe(text, values),
        }) as Client,
    )
    const before = await contentOf(db)
    expect(await failureOf(write(batchOf([anEntry()])))).toBeInstanceOf(Error)
    expect(await contentOf(db)).toEqual(before)
  })

  test('two nodes that write at once to the same keys and hours do not deadlock, and sums equal rows', async () => {
    const [a, b] = [await connect(), await connect()]
    const random = seededRandom(SEED)
    console.log(`repeat with SEED=${SEED}`)
    const writeAll = async ({ write }: typeof a, process: number) => {
      for (let n = 0; n < 25; n++) await write({ ...randomBatch(random, 80), process })
    }
    await Promise.all([writeAll(a, 1), writeAll(b, 2)])
    expect(await a.db.select().from(requests).all()).toHaveLength(4000)
    await expectSumsToEqualRows(a.db)
  })

  test('nodes lock keys in the same order, whatever the order of their requests', async () => {
    let updates = 0
    let gate: Promise<void> | null = null
    const a = await connect(
      (client) =>
        ({
          unsafe: (text: string, values?: unknown[]) => {
            if (text.includes('UPDATE api_keys') && ++updates === 2)
              gate = until(async () => (await countWaiting()) === 1)
            return gate !== null ? gate.then(() => client.unsafe(text, values)) : client.unsafe(text, values)
          },
        }) as Client, // as: the ledger only awaits it
    )
    const b = await connect()
    const first = a.write(batchOf([anEntry({ keyId: 'key_a' }), anEntry({ keyId: 'key_b' })]))
    await until(() => updates === 2)
    await Promise.all([first, b.write(batchOf([anEntry({ keyId: 'key_b' }), anEntry({ keyId: 'key_a' })]))])
    await expectSumsToEqualRows(b.db)
  })

  describe('beside a commit of another node', () => {
    /** Up to COMMIT everything has run when `hasReached` resolves; it is sent once `open` is called. */
    const connectGated = async () => {
      const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const commitLater = async (client: Client) => {
        await client.unsafe('SELECT 1')
        reached.resolve()
        await gate.promise
        await client.unsafe('COMMIT')
      }
      const node = await connect(
        (client) =>
          ({
            unsafe: (text: string, values?: unknown[]) =>
              text === 'COMMIT' ? commitLater(client) : client.unsafe(text, values),
          }) as Client, // as: the ledger only awaits it
      )
      return { ...node, hasReached: reached.promise, open: gate.resolve }
    }

    test('no hour is added up while the ledger adds to it', async () => {
      const { write, hasReached, open } = await connectGated()
      const { db, write: writeBefore } = await connect()
      await writeBefore(batchOf([anEntry()]))
      await addUpTo(db, START)
      const written = write(batchOf([anEntry()]))
      await hasReached
      const added = addUpTo(db, START + HOUR_MS)
      await until(async () => (await countWaiting()) === 1)
      open()
      await Promise.all([written, added])
      expect(await getDays(db)).toMatchObject([{ requests: 2 }])
    })

    test('the ledger adds to an hour that was added up while it waited', async () => {
      const { db } = await connect()
      const { write } = await connect()
      await write(batchOf([anEntry()]))
      await addUpTo(db, START)
      const waits = await commit(db, async (tx) => {
        await addUpHours(tx, { before: START + HOUR_MS, rows: 100 })
        const written = write(batchOf([anEntry()]))
        await until(async () => (await countWaiting()) === 1)
        return { written }
      })
      await waits.written
      expect(await getDays(db)).toMatchObject([{ requests: 2 }])
    })

    test('what a batch settles is not undone by a node that leases from the same limit', async () => {
      const { write, hasReached, open } = await connectGated()
      const { db } = await connect()
      const ring = await KeyRing.open(db)
      const limit = ring.limit('lim_key_a')!
      const leases = new KeyLeases({
        ...{ db, clock: new ManualClock(START), log: silent(), processes: 3, flush: async () => {} },
        others: { number: 3, isAlive: () => true, hasEarlier: () => true },
        limit: (id) => ring.limit(id),
        limits: () => ring.limits(),
      })
      const written = write(batchOf([anEntry({}, { limitDeltas: [delta('key_a', 5)] })]))
      await hasReached
      const estimate = { model: null, inputTokens: 10, outputTokens: 0, costMicros: null }
      const reserved = leases.reserve({ limits: [limit] }, estimate)
      await until(async () => (await countWaiting()) === 1)
      open()
      await Promise.all([written, reserved])
      const row = await db.select().from(apiKeyLimits).where(eq(apiKeyLimits.id, 'lim_key_a')).get()
      expect(row).toMatchObject({ currentValue: 5, leases: { 1: 95, 2: 50, 3: expect.any(Number) } })
      await leases.close()
      expect(await db.select().from(apiKeyLimits).where(eq(apiKeyLimits.id, 'lim_key_a')).get()).toMatchObject({
        currentValue: 5,
        leases: { 1: 95, 2: 50, 3: 10 },
      })
    })

    test('rows of an account that is deleted while the ledger waits are left out', async () => {
      const { db } = await connect()
      const { write } = await connect()
      const batch = batchOf([anEntry({}, { affinity: [owner('talk', 'acc_a'), owner('other', 'acc_b')] })])
      const waits = await commit(db, async (tx) => {
        await tx.delete(accounts).where(eq(accounts.id, 'acc_a')).run()
        const written = write({ ...batch, usage: new Map([['acc_a', aSnapshot(START)]]) })
        await until(async () => (await countWaiting()) === 1)
        return { written }
      })
      await waits.written
      expect(await db.select().from(affinity).all()).toEqual([owner('other', 'acc_b')])
      expect(await db.select().from(requests).all()).toHaveLength(1)
    })

    test('an account is deleted after the batch that stores its usage', async () => {
      const { write, hasReached, open } = await connectGated()
      const { db } = await connect()
      const written = write({ ...batchOf([anEntry()]), usage: new Map([['acc_a', aSnapshot(START)]]) })
      await hasReached
      const deleted = commit(db, (tx) => tx.delete(accounts).where(eq(accounts.id, 'acc_a')).run())
      await until(async () => (await countWaiting()) === 1)
      open()
      await Promise.all([written, deleted])
      expect(await db.select().from(accountTotals).all()).toEqual([])
      expect(await db.select().from(accountUsage).all()).toEqual([])
    })
  })
})

const fail = (error: unknown) => {
  throw error
}

const silent = () => createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

/** Random text, which cannot be compressed. */
const noise = (chars: number): string => {
  const random = seededRandom(7)
  return Array.from({ length: chars }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join('')
}

/** All rows of the tables, without the numbers of rejections, which PostgreSQL counts with gaps. */
const contentOf = async (db: Db) => {
  const content: Record<string, unknown[]> = {}
  for (const table of TABLES) {
    const rows: Record<string, unknown>[] = await db.select().from(table).all()
    const plain = rows.map((row) => (table === rejectedClients || table === meterReadings ? { ...row, id: null } : row))
    content[getTableConfig(table).name] = plain.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }
  return content
}

const addUpTo = async (db: Db, before: number): Promise<void> => {
  while (await commit(db, (tx) => addUpHours(tx, { before, rows: 100 })));
}

/** The totals of each day. */
const getDays = (db: Db) => {
  return db
    .select()
    .from(requestSpans)
    .where(eq(requestSpans.dimension, 'all'))
    .all()
    .then((rows) => rows.filter(({ spanHours }) => spanHours === 24))
}

const SUMMED = ['inputTokens', 'cachedInputTokens', 'outputTokens', 'costMicros'] as const

const expectSumsToEqualRows = async (db: Db) => {
  const rows = (await db.select().from(requests).all()).filter(isCounted)
  const sumOf = (of: typeof rows) =>
    Object.fromEntries([
      ['requests', of.length],
      ...SUMMED.map((name) => [name, of.reduce((sum, row) => sum + (row[name] ?? 0), 0)]),
    ])
  const pick = (row: Record<string, unknown>, count = 'requests') =>
    Object.fromEntries([['requests', row[count]], ...SUMMED.map((name) => [name, row[name]])])
  for (const total of await db.select().from(accountTotals).all())
    expect(pick(total)).toEqual(sumOf(rows.filter(({ accountId }) => accountId === total.accountId)))
  for (const key of await db.select().from(apiKeys).all())
    expect(pick(key, 'requestCount')).toEqual(sumOf(rows.filter(({ keyId }) => keyId === key.id)))
  const hours = await db.select().from(requestHours).all()
  const total = sumOf(rows)
  for (const name of ['requests', ...SUMMED] as const)
    expect(hours.reduce((sum, hour) => sum + hour[name], 0)).toBe(total[name])
}
